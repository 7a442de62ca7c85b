"""Tables against values worked out by hand, and what is said of those that cannot be used."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.random import Generator

from pfnts import policies
from pfnts.contexts import Table
from pfnts.environments import from_csv, make
from pfnts.environments import tables as module
from pfnts.environments.tables import MOST_CLASSES, RewardTable, class_table, read_table
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
    return features_of(table), table.schema.features


def features_of(table: RewardTable) -> np.ndarray:
    class InOrder:
        def permutation(self, n: int) -> np.ndarray:
            return np.arange(n)

    return table.environment(name="", horizon=None, rng=InOrder()).contexts  # type: ignore[arg-type]


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
    table = class_table(Table.of({"x": values}), list("ababab"), target="y")
    np.testing.assert_allclose(features_of(table)[:, 0], (values - np.mean(values)) / np.std(values))


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
    read_file = module.read_file
    monkeypatch.setattr(module, "read_file", lambda path: (reads.append(1), read_file(path))[1])
    first = read_table(path, target="pet")
    assert read_table(path, target="pet") is first
    assert len(reads) == 1
    written(tmp_path, PETS + "7,short,dog\n")
    assert len(read_table(path, target="pet").rewards) == 5


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
        ("", "y", r"pets.csv: column names must be there and be distinct, the first line is empty"),
        ("x,y\n", "y", r"pets.csv: table must have at least one row, it has column names only"),
        ("y\na\nb\n", "y", r"table must have a column beside those of classes or rewards, it has none"),
        ("x,y\n1,a\n2,a\n", "y", r"target 'y' must have at least two classes, it has only 'a'"),
        (
            "x,y\n1,a\n2,?\n",
            "y",
            r"target 'y' must have a class in every row, row 2 has none; drop such rows",
        ),
        ("x,y\n2,b\ninf,a\n", "y", r"row 2: context column 'x' must be finite or missing .*, got 'inf'"),
        ("x,y\n1,a\n2,b,3\n4,5,6,7\n", "y", r"pets.csv: row 2 must have the header's 2 cells, got 3"),
        (
            "x,y\n" + "".join(f"1,{i / 8}\n" for i in range(MOST_CLASSES + 1)),
            "y",
            r"target 'y' must have at most 100 classes, it has 101, such as 0, 0.125, 0.25; name another",
        ),
        (
            "x,y\n" + "".join(f"id{i},{i % 2}\n" for i in range(30)),
            "y",
            r"must have a column that describes its rows, left out are {'x': 'an id'}",
        ),
    ],
)
def test_a_table_that_cannot_be_used_is_refused(
    text: str, target: str, message: str, tmp_path: Path, rng: Generator
) -> None:
    with pytest.raises(ValueError, match=message):
        from_csv(written(tmp_path, text), target, rng=rng)


def test_a_file_that_is_none_is_refused(tmp_path: Path, rng: Generator) -> None:
    with pytest.raises(ValueError, match=r"nothing.csv: file must exist, there is none at .*nothing.csv"):
        from_csv(tmp_path / "nothing.csv", "y", rng=rng)
    with pytest.raises(ValueError, match=r"path must be a CSV or Parquet file, .* is a folder"):
        from_csv(tmp_path, "y", rng=rng)
    broken = tmp_path / "broken.csv.gz"
    broken.write_bytes(gzip.compress(PETS.encode())[:-12])
    with pytest.raises(
        ValueError, match=r"broken.csv.gz: file must be a CSV table in UTF-8, reading it failed"
    ):
        from_csv(broken, "pet", rng=rng)


@pytest.mark.parametrize("horizon", [0, 2.5])
def test_horizon_must_be_a_positive_integer(horizon: Any, tmp_path: Path, rng: Generator) -> None:
    with pytest.raises(ValueError, match=f"horizon must be a positive integer, got {horizon}"):
        from_csv(written(tmp_path, PETS), "pet", horizon=horizon, rng=rng)


def test_a_parquet_file_gives_the_same_as_a_csv_file(tmp_path: Path) -> None:
    path = written(tmp_path, PETS)
    pd.read_csv(path, na_values="?").to_parquet(tmp_path / "pets.parquet")
    expected = from_csv(path, "pet", rng=0)
    found = from_csv(tmp_path / "pets.parquet", "pet", rng=0)
    np.testing.assert_array_equal(found.contexts, expected.contexts)
    np.testing.assert_array_equal(found.rewards, expected.rewards)
    assert (found.arms, found.features) == (expected.arms, expected.features)


OFFERS = "age,user,click_a,click_b,note\n" + "".join(f"{20 + i % 3},u{i},{i % 2},0.5,x\n" for i in range(40))


def test_rewards_of_every_arm_may_stand_in_the_table(tmp_path: Path) -> None:
    path = written(tmp_path, OFFERS)
    environment = from_csv(path, rewards={"a": "click_a", "b": "click_b"}, drop=["user", "note"], rng=0)
    assert (environment.arms, environment.features) == (("a", "b"), ("age",))
    rows = np.random.default_rng(0).permutation(40)
    np.testing.assert_array_equal(environment.rewards, np.column_stack([rows % 2, np.full(40, 0.5)]))
    by_name = from_csv(path, rewards=["click_a", "click_b"], drop=["user", "note"], rng=0)
    assert by_name.arms == ("click_a", "click_b")
    np.testing.assert_array_equal(by_name.rewards, environment.rewards)


def test_an_id_is_left_out_with_a_warning_and_a_dropped_one_without(
    tmp_path: Path, recwarn: pytest.WarningsRecorder
) -> None:
    path = written(tmp_path, OFFERS)
    with pytest.warns(UserWarning, match=r"left out of the contexts: 'user' \(an id\); name them in drop="):
        environment = from_csv(path, rewards=["click_a", "click_b"], rng=0)
    assert environment.features == ("age", "note=x")
    recwarn.clear()
    assert from_csv(path, "click_a", drop=["user"], rng=0).features == ("age", "click_b", "note=x")
    assert not recwarn.list


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "give target or rewards and not both, got None and"),
        ({"target": "note", "rewards": ["click_a"]}, "give target or rewards and not both"),
        ({"rewards": "click_a"}, "rewards must be a list of column names, got the text 'click_a'"),
        ({"rewards": ["click_a"]}, "rewards must name the columns of at least two arms"),
        ({"rewards": ["click_a", "click_c"]}, "rewards must be one of the columns .*, got 'click_c'"),
        ({"rewards": ["click_a", "note"]}, "row 1: context column 'note' must be numeric, got 'x'"),
        ({"target": "note", "drop": "user"}, "drop must be a list of column names, got the text 'user'"),
        ({"target": "note", "drop": ["usr"]}, "drop must be one of the columns .*, got 'usr'"),
        (
            {"target": "click_a", "rng": None},
            "rng must be a numpy.random.Generator or a seed from 0 on, got None",
        ),
        ({"target": "click_a", "rng": -1}, "rng must be a numpy.random.Generator or a seed"),
    ],
)
def test_wrong_arguments_are_explained(options: dict[str, Any], words: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=words):
        from_csv(written(tmp_path, OFFERS), **{"rng": 0, **options})


def test_a_missing_reward_is_named_by_its_row(tmp_path: Path) -> None:
    path = written(tmp_path, "x,a,b\n1,0,1\n2,,1\n")
    with pytest.raises(ValueError, match="row 2: column 'a' must hold a reward, it is missing"):
        from_csv(path, rewards=["a", "b"], rng=0)


def test_a_seed_is_a_generator() -> None:
    seeded, drawn = (make("friedman", horizon=9, rng=rng) for rng in (3, np.random.default_rng(3)))
    np.testing.assert_array_equal(seeded.contexts, drawn.contexts)
