"""Tables against values worked out by hand, and what is said of those that cannot be used."""

from __future__ import annotations

import builtins
import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.random import Generator

from pfnts import policies
from pfnts.environments import from_csv
from pfnts.environments.tables import MOST_CATEGORIES, MOST_CLASSES, read_table, table_from_frame
from pfnts.simulation import simulate

PETS = "weight,coat,pet\n4,short,cat\n30,?,dog\n,long,cat\n6,short,10\n"


def written(folder: Path, text: str, name: str = "pets.csv") -> Path:
    path = folder / name
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text, encoding="utf-8")
    return path


def in_file_order(path: Path, target: str | None) -> tuple[np.ndarray, tuple[str, ...]]:
    table = read_table(path, target=target)
    rows = np.arange(len(table.targets))
    return np.concatenate([column.features(rows) for column in table.columns], axis=1), table.features


def test_features_by_hand(tmp_path: Path) -> None:
    features, names = in_file_order(written(tmp_path, PETS), "pet")
    assert names == ("weight", "coat=long", "coat=short", "coat=missing")
    present = np.array([4.0, 30.0, 6.0])
    weight = (np.array([4.0, 30.0, np.nan, 6.0]) - present.mean()) / present.std()
    expected = [[0, 1, 0], [0, 0, 1], [1, 0, 0], [0, 1, 0]]
    np.testing.assert_allclose(features, np.column_stack([weight, expected]))


def test_a_right_class_pays_1(tmp_path: Path, rng: Generator) -> None:
    environment = from_csv(written(tmp_path, "x,y\n1,a\n2,b\n3,c\n4,b\n"), "y", rng=rng)
    assert environment.arms == ("a", "b", "c")
    by_row = {1: 0, 2: 1, 3: 2, 4: 1}
    x = np.round(environment.contexts[:, 0] * np.std([1, 2, 3, 4]) + 2.5).astype(int)
    np.testing.assert_array_equal(environment.rewards, np.eye(3)[[by_row[value] for value in x]])
    np.testing.assert_array_equal(environment.means, environment.rewards)
    assert sorted(x) == [1, 2, 3, 4]


def test_compressed_and_plain_files_give_the_same(tmp_path: Path) -> None:
    plain, compressed = written(tmp_path, PETS), written(tmp_path, PETS, "pets.csv.gz")
    first, second = (from_csv(path, "pet", rng=np.random.default_rng(3)) for path in (plain, compressed))
    np.testing.assert_array_equal(first.contexts, second.contexts)
    assert first.name == second.name == "pets"


def test_target_may_stand_anywhere(tmp_path: Path) -> None:
    path = written(tmp_path, "y,x\na,1\nb,2\n")
    assert in_file_order(path, "y")[1] == ("x",)
    assert in_file_order(path, None)[1] == ("y=a", "y=b")


def test_classes_that_are_numbers_are_sorted_as_numbers(tmp_path: Path, rng: Generator) -> None:
    path = written(tmp_path, "x,y\n1,10\n2,9\n3,1\n")
    assert from_csv(path, "y", rng=rng).arms == ("1", "9", "10")


def test_order_of_the_rows_changes_no_feature(tmp_path: Path) -> None:
    header, *rows = PETS.splitlines()
    backwards = written(tmp_path, "\n".join([header, *rows[::-1]]) + "\n", "backwards.csv")
    features, names = in_file_order(written(tmp_path, PETS), "pet")
    reversed_features, reversed_names = in_file_order(backwards, "pet")
    assert names == reversed_names
    np.testing.assert_allclose(features, reversed_features[::-1])


def test_constant_empty_and_boolean_columns_are_finite_or_missing(tmp_path: Path) -> None:
    path = written(tmp_path, "same,none,flag,y\n3,,True,a\n3,,False,b\n")
    features, names = in_file_order(path, "y")
    assert names == ("same", "none", "flag")
    np.testing.assert_array_equal(features, [[0, np.nan, 1], [0, np.nan, -1]])


def test_every_integer_survives_being_stored_in_few_bytes() -> None:
    values = [-129, 40_000, 0, 255, -1, 3_000_000_000]
    table = table_from_frame(pd.DataFrame({"x": values}), pd.Series(list("ababab"), name="y"))
    column = table.columns[0].features(np.arange(6))[:, 0]
    np.testing.assert_allclose(column, (values - np.mean(values)) / np.std(values))


def test_numbers_stored_as_categories_are_numbers() -> None:
    # So OpenML stores the indicators of covertype.
    frame = pd.DataFrame({"x": pd.Categorical(["0", "1", None, "1"])})
    table = table_from_frame(frame, pd.Series(pd.Categorical(["a", "b", "a", "b"]), name="y"))
    assert table.features == ("x",)
    np.testing.assert_allclose(
        table.columns[0].features(np.arange(4))[:, 0] * np.std([0, 1, 1]) + 2 / 3, [0, 1, np.nan, 1]
    )


def test_longer_horizon_continues_a_shorter_one(tmp_path: Path) -> None:
    path = written(tmp_path, "x,y\n" + "".join(f"{i},{'ab'[i % 2]}\n" for i in range(50)))
    short, whole, longer = (
        from_csv(path, "y", horizon=horizon, rng=np.random.default_rng(1)) for horizon in (10, None, 80)
    )
    assert (short.horizon, whole.horizon, longer.horizon) == (10, 50, 50)
    np.testing.assert_array_equal(short.contexts, whole.contexts[:10])
    np.testing.assert_array_equal(whole.contexts, longer.contexts)


def test_table_is_read_once_and_again_when_it_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path, PETS)
    reads: list[object] = []
    read_csv = pd.read_csv
    monkeypatch.setattr(
        pd, "read_csv", lambda *args, **kwargs: (reads.append(1), read_csv(*args, **kwargs))[1]
    )
    first = read_table(path, target="pet")
    once = len(reads)
    assert read_table(path, target="pet") is first
    assert len(reads) == once > 0
    written(tmp_path, PETS + "7,short,dog\n")
    assert len(read_table(path, target="pet").targets) == 5


def test_policies_play_on_a_table_with_missing_values(tmp_path: Path, rng: Generator) -> None:
    environment = from_csv(
        written(tmp_path, "\n".join([PETS.strip()] + PETS.splitlines()[1:] * 5)), "pet", rng=rng
    )
    policy = policies.make("pfn-ts", arms=list(environment.arms or ()), backbone="linear")
    assert simulate(policy, environment, rng=rng).horizon == 24


@pytest.mark.parametrize(
    ("text", "target", "message"),
    [
        (PETS, "animal", r"target must be one of the columns \['weight', 'coat', 'pet'\], got 'animal'"),
        ("", "y", r"pets.csv must have column names in its first line, it is empty"),
        ("x,y\n", "y", r"pets.csv: table must have at least one row, it has column names only"),
        ("y\na\nb\n", "y", r"table must have a column beside the target 'y', it has none"),
        ("x,y\n1,a\n2,a\n", "y", r"target 'y' must have at least two classes, it has only 'a'"),
        (
            "x,y\n1,a\n2,?\n",
            "y",
            r"target 'y' must have a class in every row, row 2 has none; drop such rows",
        ),
        ("x,y\ninf,a\n2,b\n", "y", r"column 'x' must be finite or missing, it holds an infinite number"),
        ("x,y\n1,a\n2,b,3\n4,5,6,7\n", "y", r"pets.csv must be a CSV table in UTF-8, reading it failed"),
        (
            "x,y\n" + "".join(f"1,{i / 8}\n" for i in range(MOST_CLASSES + 1)),
            "y",
            r"target 'y' must have at most 100 classes, it has 101, such as 0.0, 0.125, 0.25; name another",
        ),
        (
            "x,y\n" + "".join(f"id{i},{i % 2}\n" for i in range(MOST_CATEGORIES + 1)),
            "y",
            r"column 'x' must hold numbers or at most 256 categories, it holds 257, such as id0, id1",
        ),
    ],
)
def test_a_table_that_cannot_be_used_is_refused(
    text: str, target: str, message: str, tmp_path: Path, rng: Generator
) -> None:
    with pytest.raises(ValueError, match=message):
        from_csv(written(tmp_path, text), target, rng=rng)


def test_a_file_that_is_none_is_refused(tmp_path: Path, rng: Generator) -> None:
    with pytest.raises(ValueError, match=r"path must be a CSV file, there is none at .*nothing.csv"):
        from_csv(tmp_path / "nothing.csv", "y", rng=rng)
    with pytest.raises(ValueError, match=r"path must be a CSV file, .* is a folder"):
        from_csv(tmp_path, "y", rng=rng)
    broken = tmp_path / "broken.csv.gz"
    broken.write_bytes(gzip.compress(PETS.encode())[:-12])
    with pytest.raises(ValueError, match=r"broken.csv.gz must be a CSV table in UTF-8, reading it failed"):
        from_csv(broken, "pet", rng=rng)


@pytest.mark.parametrize("horizon", [0, 2.5])
def test_horizon_must_be_a_positive_integer(horizon: Any, tmp_path: Path, rng: Generator) -> None:
    with pytest.raises(ValueError, match=f"horizon must be a positive integer, got {horizon}"):
        from_csv(written(tmp_path, PETS), "pet", horizon=horizon, rng=rng)


def test_missing_pandas_names_the_extra(
    tmp_path: Path, rng: Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = builtins.__import__

    def without_pandas(name: str, *args: Any, **kwargs: Any) -> Any:
        if name == "pandas":
            raise ImportError("no pandas")
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without_pandas)
    with pytest.raises(ImportError, match=r"tables need pandas; .*pfnts\[bench\]"):
        from_csv(written(tmp_path, PETS), "pet", rng=rng)
