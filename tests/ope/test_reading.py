"""Files that become logs, and files that do not: each mistake has its own words."""

from __future__ import annotations

import gzip
import warnings
from datetime import date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from pfnts.cli import app
from pfnts.ope import BadLogError, Roles, log_from_columns, read_log

GOOD = """\
who,day,age,plan,sent,opened,p,p_no,p_yes
u1,1,41,free,no,0,0.4,0.4,0.6
u1,2,41,free,yes,1,0.6,0.4,0.6
u2,1,23,,yes,0,0.6,0.4,0.6
u2,3,23,paid,no,1,0.4,0.4,0.6
u3,2,,paid,yes,0,0.6,0.4,0.6
"""
ROLES = Roles(
    action="sent", reward="opened", propensity="p", cluster="who", time="day", context=("age", "plan")
)


def written(folder: Path, text: str, name: str = "log.csv") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_rounds_are_ordered_by_time_with_people_interleaved(tmp_path: Path) -> None:
    log = read_log(written(tmp_path, GOOD), ROLES)
    assert log.features == ("age", "plan=free", "plan=paid")
    assert log.times is not None
    assert log.clusters is not None
    assert log.times.tolist() == [1, 1, 2, 2, 3]
    assert log.clusters.tolist() == [0, 1, 0, 2, 1]
    assert [log.logged(t) for t in range(5)] == ["no", "yes", "yes", "yes", "no"]
    assert log.rewards.tolist() == [0, 0, 1, 0, 1]
    assert log.propensities.tolist() == [0.4, 0.6, 0.6, 0.6, 0.4]
    np.testing.assert_array_equal(log.contexts[1], [23, np.nan, np.nan])
    assert log.design is None


@pytest.mark.parametrize("propensity", [{"no": 0.4, "yes": 0.6}, {"no": "p_no", "yes": "p_yes"}])
def test_propensities_of_all_actions_are_kept(propensity: dict, tmp_path: Path) -> None:
    roles = Roles(action="sent", reward="opened", propensity=propensity, context=("age",))
    log = read_log(written(tmp_path, GOOD), roles)
    assert log.design is not None
    np.testing.assert_array_equal(log.design, np.tile([0.4, 0.6], (5, 1)))
    assert log.propensities.tolist() == [0.4, 0.6, 0.6, 0.4, 0.6]
    assert log.n_groups == 5


def test_action_that_could_not_be_taken_has_propensity_0(tmp_path: Path) -> None:
    roles = Roles(action="sent", reward="opened", propensity={"no": "p_no", "yes": "p_yes"}, context=("age",))
    log = read_log(written(tmp_path, replaced(2, "0.4,0.6", "0,1")), roles)
    assert log.design is not None
    np.testing.assert_array_equal(log.design[1], [0, 1])
    assert log.propensities.tolist() == [0.4, 1.0, 0.6, 0.4, 0.6]


def dated(times: Any) -> Any:
    columns = {
        "a": [0, 1, 0],
        "r": [0.0, 1.0, 0.0],
        "p": [0.5] * 3,
        "x": [1, 2, 3],
        "who": [0, 1, 1],
        "t": times,
    }
    return log_from_columns(
        columns, Roles(action="a", reward="r", propensity="p", cluster="who", time="t", context=("x",))
    )


@pytest.mark.parametrize(
    "times",
    [
        ["2026-03-02", "2026-03-01", "2026-03-04"],
        ["2026-03-02T08:30", "2026-03-02T08:29:59.5", "2026-03-03 00:00"],
        ["2026-03-02T08:30:00Z", "2026-03-02T08:30:00+02:00", "2026-03-02T12:00:00+02:00"],
        [date(2026, 3, 2), date(2026, 3, 1), date(2026, 3, 4)],
        [datetime(2026, 3, 2), datetime(2026, 3, 1), datetime(2026, 3, 4)],
        pd.to_datetime(["2026-03-02", "2026-03-01", "2026-03-04"]),
        np.array(["2026-03-02", "2026-03-01", "2026-03-04"], dtype="datetime64[ns]"),
    ],
    ids=["dates", "datetimes", "zones", "date", "datetime", "pandas", "numpy"],
)
def test_dates_and_datetimes_order_the_rounds(times: Any) -> None:
    log = dated(times)
    assert log.contexts[:, 0].tolist() == [2, 1, 3]
    assert log.times is not None
    assert (np.diff(log.times) > 0).all()


def test_a_day_is_as_long_in_every_form() -> None:
    for first, last in (("2026-03-01", "2026-03-02"), ("2026-03-01T00:00Z", "2026-03-02T02:00+02:00")):
        log = dated([first, first, last])
        assert log.times is not None
        assert log.times[2] - log.times[0] == 86400


def test_times_with_and_without_zone_are_not_mixed() -> None:
    with pytest.raises(BadLogError, match=r"row 2: column 't' must have a time zone in every row or in none"):
        dated(["2026-03-01T08:30Z", "2026-03-01T08:30", "2026-03-01T08:30"])


def test_context_is_every_column_without_another_role_that_describes_a_round(tmp_path: Path) -> None:
    roles = Roles(action="sent", reward="opened", propensity="p", cluster="who", time="day")
    with pytest.warns(UserWarning, match=r"'p_no' \(a propensity\), 'p_yes' \(a propensity\)"):
        log = read_log(written(tmp_path, GOOD), roles)
    assert log.features == ("age", "plan=free", "plan=paid")


def test_ids_dates_and_propensities_are_contexts_only_where_they_are_named(tmp_path: Path) -> None:
    rows = [
        f"{i},u{i},2026-03-{1 + i % 28:02},{i % 7},{i % 5 // 3},{0.25 + i % 2 / 2},{0.75 - i % 2 / 2},{i % 9}"
        for i in range(300)
    ]
    path = written(tmp_path, "\n".join(["visit_id,user,day,a,r,p,q,age", *rows]) + "\n")
    with pytest.warns(UserWarning, match="left out") as caught:
        log = read_log(path, Roles(action="a", reward="r", propensity="p"))
    assert log.features == ("q", "age")
    assert caught[0].filename == __file__
    left_out = "left out of the contexts: 'visit_id' (an id), 'user' (an id), 'day' (a date); name those"
    assert left_out in str(caught[0].message)
    asked = Roles(action="a", reward="r", propensity="p", context=("visit_id", "day", "q"))
    log = read_log(path, asked)
    assert log.features == ("visit_id", "day", "q")
    assert log.contexts[1].tolist() == [1, 20514, 0.25]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        log = read_log(path, Roles(action="a", reward="r", propensity="p", context=("user",)))
    assert log.contexts.shape == (300, 32)
    copied = written(
        tmp_path, "\n".join(["a,r,p,q,age", *(f"{i % 2},{i % 5},0.5,{3 - i % 5},{i}" for i in range(60))])
    )
    with pytest.warns(
        UserWarning, match=r"left out of the contexts: 'q' \(a copy of the reward\); name those"
    ):
        assert read_log(copied, Roles(action="a", reward="r", propensity="p")).features == ("age",)


def test_actions_and_people_that_became_floats_are_the_same(tmp_path: Path) -> None:
    columns = {"a": [0, 1, 0], "r": [0.0, 1.0, 0.0], "p": [0.5] * 3, "x": [1, 2, 3], "who": [7, 8, 7]}
    roles = Roles(action="a", reward="r", propensity="p", cluster="who")
    floats = {name: [float(value) for value in values] for name, values in columns.items()}
    texts = {name: [str(value) for value in values] for name, values in floats.items()}
    expected = log_from_columns(columns, roles)
    for same in (floats, texts, pd.DataFrame(columns), pd.DataFrame(floats)):
        assert log_from_columns(same, roles).fingerprint() == expected.fingerprint()


def test_compressed_file_reads_the_same(tmp_path: Path) -> None:
    with gzip.open(tmp_path / "log.csv.gz", "wt") as file:
        file.write(GOOD)
    plain = read_log(written(tmp_path, GOOD), ROLES)
    assert read_log(tmp_path / "log.csv.gz", ROLES).fingerprint() == plain.fingerprint()


def test_frame_reads_the_same(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    path = written(tmp_path, GOOD)
    columns = pandas.read_csv(path).to_dict("list")
    assert log_from_columns(columns, ROLES).fingerprint() == read_log(path, ROLES).fingerprint()


def test_parquet_reads_the_same(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    path = written(tmp_path, GOOD)
    pandas.read_csv(path).to_parquet(tmp_path / "log.parquet")
    assert read_log(tmp_path / "log.parquet", ROLES).fingerprint() == read_log(path, ROLES).fingerprint()


def replaced(line: int, old: str, new: str) -> str:
    lines = GOOD.splitlines()
    assert old in lines[line]
    lines[line] = lines[line].replace(old, new, 1)
    return "\n".join(lines) + "\n"


BY_COLUMN = ("--propensity", "p")
CONSTANT = ("--propensity", "no=0.4,yes=0.6")
PER_ACTION = ("--propensity", "no=p_no,yes=p_yes")
BAD = {
    "no such file": (None, BY_COLUMN, "file must exist"),
    "no rows": (GOOD.splitlines()[0] + "\n", BY_COLUMN, "at least one row"),
    "no such column": (GOOD.replace("opened", "openned", 1), BY_COLUMN, "column 'opened' must be in the log"),
    "column twice": (GOOD.replace("p_no", "p", 1), BY_COLUMN, "header repeats ['p']"),
    "ragged row": (replaced(3, "u2,", "u2,,"), BY_COLUMN, "row 3 must have the header's 9 cells, got 10"),
    "not text": ("\x00\x80", BY_COLUMN, "CSV table in UTF-8"),
    "unknown action": (replaced(4, "no", "nope"), CONSTANT, "row 4: action must be one of ['no', 'yes'], "),
    "missing action": (replaced(2, "yes", ""), BY_COLUMN, "row 2: column 'sent' must not be empty"),
    "one action": (
        GOOD.replace(",yes,", ",no,"),
        BY_COLUMN,
        "at least two actions, column 'sent' has only 'no'",
    ),
    "reward in words": (
        replaced(2, ",1,0.6", ",often,0.6"),
        BY_COLUMN,
        "row 2: column 'opened' must hold a finite",
    ),
    "missing reward": (replaced(2, ",1,0.6", ",,0.6"), BY_COLUMN, "row 2: column 'opened' must not be empty"),
    "infinite reward": (
        replaced(5, ",0,0.6", ",inf,0.6"),
        BY_COLUMN,
        "row 5: column 'opened' must hold a finite",
    ),
    "propensity 0": (
        replaced(3, "0,0.6", "0,0"),
        BY_COLUMN,
        "row 3: propensity must be above 0 and at most 1",
    ),
    "propensity above 1": (replaced(1, "0,0.4", "0,1.4"), BY_COLUMN, "row 1: propensity must be above 0"),
    "missing propensity": (replaced(4, "1,0.4", "1,"), BY_COLUMN, "row 4: column 'p' must not be empty"),
    "constants off one": (GOOD, ("--propensity", "no=0.4,yes=0.5"), "must sum to one over the actions"),
    "row off one": (replaced(4, "0.4,0.6", "0.4,0.7"), PER_ACTION, "row 4: propensities must sum to one"),
    "row below 0": (replaced(4, "0.4,0.6", "1.4,-0.4"), PER_ACTION, "row 4: propensities must be between 0"),
    "taken with 0": (
        replaced(4, "0.4,0.6", "0.0,1.0"),
        PER_ACTION,
        "row 4: propensity of the action taken, 'no', must be above 0, the propensities",
    ),
    "time in words": (
        replaced(1, "u1,1", "u1,monday"),
        BY_COLUMN,
        "row 1: column 'day' must hold numbers th",
    ),
    "numbers and dates": (
        replaced(4, "u2,3", "u2,2026-03-01"),
        BY_COLUMN,
        "row 4: column 'day' must hold a finite number, got '2026-03-01'",
    ),
    "time backwards": (
        replaced(4, "u2,3", "u2,0"),
        BY_COLUMN,
        "row 4: time must not run backwards within each",
    ),
    "missing person": (replaced(5, "u3", ""), BY_COLUMN, "row 5: column 'who' must not be empty"),
    "infinite context": (
        replaced(2, "41", "1e999"),
        BY_COLUMN,
        "row 2: context column 'age' must be fin",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_malformed_log_is_explained_and_ends_with_code_2(case: str, tmp_path: Path) -> None:
    text, propensity, message = BAD[case]
    path = tmp_path / "log.csv"
    if text is not None:
        path.write_bytes(text.encode("latin-1"))
    options = [
        "--action",
        "sent",
        "--reward",
        "opened",
        "--cluster",
        "who",
        "--time",
        "day",
        "--out",
        tmp_path / "o",
    ]
    contexts = ["--context", "age", "--context", "plan"]
    arguments = ["ope", path, *options, *propensity, *contexts, "--policy", "uniform"]
    result = CliRunner().invoke(app, [str(part) for part in arguments], env={"COLUMNS": "400"})
    assert result.exit_code == 2, result.output
    assert message in result.output
    assert "log.csv: " in result.output
    assert "Traceback" not in result.output
    assert not (tmp_path / "o").exists()


def test_command_without_roles_lists_the_columns_of_the_file(tmp_path: Path) -> None:
    path = written(tmp_path, GOOD)
    result = CliRunner().invoke(app, ["ope", str(path), "--reward", "opened"], env={"COLUMNS": "400"})
    assert result.exit_code == 2
    assert "needs --action and --propensity to say which columns these are" in result.output
    assert str(GOOD.splitlines()[0].split(",")) in result.output


def test_every_malformed_log_has_words_of_its_own() -> None:
    messages = [message for _, _, message in BAD.values()]
    assert len(set(messages)) == len(messages) >= 10


def test_column_with_two_roles_is_refused() -> None:
    with pytest.raises(BadLogError, match="'p' has several"):
        log_from_columns(
            {"a": [0, 1], "p": [0.5, 0.5], "x": [1, 2]}, Roles(action="a", reward="p", propensity="p")
        )


def test_log_without_context_is_refused() -> None:
    with pytest.raises(BadLogError, match="at least one context column"):
        log_from_columns(
            {"a": [0, 1], "r": [0, 1], "p": [0.5, 0.5]}, Roles(action="a", reward="r", propensity="p")
        )
