"""`Policy.learn`: somebody else's log, learned like rows handed in one by one."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from pfnts import PFNTS
from pfnts.events import Observed
from pfnts.events.event import from_dict, to_dict
from pfnts.ope import Log
from pfnts.policies import LinTS, Policy, Uniform

SCHEMA = {"age": "numeric", "plan": ["free", "paid", "gift"]}


def frame(rows: int = 60, *, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "user_id": rng.permutation(10 * rows)[:rows],
            "age": np.where(rng.random(rows) < 0.1, np.nan, rng.uniform(20, 70, rows).round(2)),
            "plan": rng.choice(["free", "paid", "gift"], rows),
            "message": rng.choice(["none", "new"], rows),
            "p": rng.uniform(0.2, 0.8, rows),
            "opened": rng.integers(2, size=rows),
        }
    )


def make(schema: Any = SCHEMA) -> Policy:
    return PFNTS(["none", "new"], backbone="linear", schema=schema)


def answers(policy: Policy) -> Any:
    contexts = [{"age": age, "plan": plan} for age in (25.0, None, 60.0) for plan in ("free", "paid", "gift")]
    decisions = policy.decide_batch(contexts, rng=np.random.default_rng(1))
    return [(decision.arm, decision.propensities.tolist()) for decision in decisions]


def test_every_container_teaches_what_rows_one_by_one_teach(tmp_path: Path) -> None:
    table = frame()
    table.to_csv(tmp_path / "log.csv", index=False)
    table.to_parquet(tmp_path / "log.parquet")
    one_by_one = make()
    for row in table.to_dict("records"):
        one_by_one.update({k: row[k] for k in SCHEMA}, arm=row["message"], reward=row["opened"])
    expected = answers(one_by_one)
    containers = {
        "pandas": table,
        "polars": pl.from_pandas(table),
        "arrow": pa.Table.from_pandas(table),
        "columns": {name: table[name].tolist() for name in table},
        "csv": tmp_path / "log.csv",
        "parquet": str(tmp_path / "log.parquet"),
    }
    for name, log in containers.items():
        policy = make()
        assert policy.learn(log, action="message", reward="opened", propensity="p") == len(table), name
        assert answers(policy) == expected, name
        assert all(isinstance(event, Observed) and event.imported for event in policy.events[: len(table)])
    assert not any(event.imported for event in one_by_one.events if isinstance(event, Observed))


def test_a_log_of_evaluation_is_learned_with_and_without_propensities() -> None:
    rng = np.random.default_rng(0)
    log = Log(
        contexts=rng.uniform(size=(40, 2)),
        features=("age", "spent"),
        arms=("new", "none"),  # another order than the policy's
        actions=rng.integers(2, size=40),
        rewards=rng.normal(size=40),
        propensities=np.full(40, 0.5),
    )
    rows, twin = LinTS(["none", "new"]), LinTS(["none", "new"])
    assert rows.learn(log) == 40
    for t in range(40):
        twin.update(log.contexts[t], arm=log.logged(t), reward=log.rewards[t])
    np.testing.assert_array_equal(rows.posterior([0.3, 0.4]).mean, twin.posterior([0.3, 0.4]).mean)
    named = LinTS(["none", "new"], schema={"spent": "numeric", "age": "numeric"})
    named.learn(log)
    spoken = named.posterior({"age": 0.3, "spent": 0.4})
    np.testing.assert_allclose(spoken.mean, twin.posterior([0.3, 0.4]).mean, rtol=1e-12)
    with pytest.raises(ValueError, match="a Log knows its columns"):
        rows.learn(log, action="message", reward="opened")


def test_without_a_schema_ids_dates_and_roles_are_no_contexts() -> None:
    table = frame().assign(seen="2026-03-01")
    policy = make(schema=None)
    with pytest.warns(UserWarning, match=r"left out of the contexts: 'user_id' \(an id\), 'seen' \(a date\)"):
        policy.learn(table, action="message", reward="opened", propensity={"none": "p", "new": 0.5})
    assert policy.schema is not None
    assert [column.name for column in policy.schema.columns] == ["age", "plan"]
    named = make(schema=None)
    with pytest.raises(ValueError, match="context must be a list of column names, got the text 'age'"):
        named.learn(table, action="message", reward="opened", context="age")
    named.learn(table, action="message", reward="opened", context=["age"])
    assert named.schema is not None
    assert named.schema.features == ("age",)


def test_columns_that_are_no_contexts_are_named_in_one_warning_and_kept_if_asked_for() -> None:
    table = frame(300).assign(
        visit=[f"v{i}" for i in range(300)],
        propensity=0.5,
        revenue=lambda t: 20 * t["opened"] + 1,
        shop=[f"s{i % 100}" for i in range(300)],
    )
    policy = make(schema=None)
    with pytest.warns(UserWarning, match="left out") as caught:
        policy.learn(table.drop(columns="p"), action="message", reward="opened")
    words = (
        "left out of the contexts: 'user_id' (an id), 'visit' (an id), 'propensity' (a propensity), "
        "'revenue' (a copy of the reward); name those to be kept by context=[...]"
    )
    assert [str(warning.message) for warning in caught] == [words]
    assert caught[0].filename == __file__
    assert policy.schema is not None
    assert policy.schema.names == ("age", "plan", "shop")
    assert policy.decide({"age": 30, "plan": "free", "shop": "elsewhere"}, rng=np.random.default_rng(0))
    kept = make(schema=None)
    names = ["visit", "propensity", "revenue"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kept.learn(table, action="message", reward="opened", context=names)
    assert kept.schema is not None
    assert list(kept.schema.names) == names


def test_rows_are_learned_in_the_order_of_their_time() -> None:
    table = frame()
    shuffled = table.assign(day=np.arange(len(table))).sample(frac=1.0, random_state=3)
    in_order, sorted_by_time = make(), make()
    in_order.learn(table, action="message", reward="opened")
    sorted_by_time.learn(shuffled, action="message", reward="opened", time="day")
    assert list(map(to_dict, in_order.events)) == list(map(to_dict, sorted_by_time.events))


def test_one_bad_row_is_named_and_nothing_is_learned() -> None:
    policy = make()
    policy.learn(frame(10), action="message", reward="opened")
    before = policy.events
    roles: dict[str, Any] = {"action": "message", "reward": "opened"}
    backwards = frame().assign(day=np.arange(60)[::-1])
    for column, value, words in (
        ("opened", np.nan, "row 42: column 'opened' must not be empty"),
        ("opened", 1e200, r"row 42: reward must be a finite number of at most 1e\+100"),
        ("message", None, "row 42: column 'message' must not be empty"),
        (
            "message",
            "call",
            r"row 42: arms of the log must be among \['none', 'new'\], unknown are .*add_arm",
        ),
        ("age", "old", "row 42.*age"),
    ):
        for table in (frame(), backwards):
            bad = table.astype({column: object})
            bad.loc[41, column] = value
            with pytest.raises(ValueError, match=words):
                policy.learn(bad, **roles, **({"time": "day"} if "day" in bad else {}))
    for words, given in (
        ("column 'clicked' must be in the log", {"action": "message", "reward": "clicked"}),
        ("a table needs action= and reward=", {"action": "message"}),
        ("'opened' has several", {"action": "opened", "reward": "opened"}),
    ):
        with pytest.raises(ValueError, match=words):
            policy.learn(frame(), **given)
    with pytest.raises(ValueError, match="at least one row"):
        policy.learn(frame().head(0), **roles)
    with pytest.raises(ValueError, match=r"context must have the 2 columns.*it lacks"):
        policy.learn(frame().drop(columns="age"), **roles)
    with pytest.raises(ValueError, match=r"log must be an ope\.Log, a table"):
        policy.learn(np.ones((3, 2)), **roles)
    with pytest.raises(ValueError, match="file must exist"):
        policy.learn("nowhere.csv", **roles)
    assert policy.events == before
    policy.add_arm("call")
    assert policy.learn(frame().assign(message="call"), **roles) == 60


def test_numbers_and_texts_name_the_same_arm_unless_both_are_labels(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("x,arm,y\n0.5,7,1\n0.25,8,0\n")
    policy = Uniform([7, 8])
    policy.learn(path, action="arm", reward="y")
    assert [event.arm for event in policy.events if isinstance(event, Observed)] == [7, 8]
    both = Uniform([7, "7"])
    both.learn({"x": [1.0, 2.0], "arm": [7, "7"], "y": [1, 1]}, action="arm", reward="y")
    assert [event.arm for event in both.events if isinstance(event, Observed)] == [7, "7"]


def test_what_was_imported_survives_a_file_and_older_events_were_not(tmp_path: Path) -> None:
    policy = make()
    policy.learn(frame(), action="message", reward="opened")
    policy.save(tmp_path / "policy.pfnts")
    loaded = PFNTS.load(tmp_path / "policy.pfnts")
    assert list(map(to_dict, loaded.events)) == list(map(to_dict, policy.events))
    assert answers(loaded) == answers(policy)
    old = from_dict({"kind": "observed", "context": [0.5], "arm": 1, "value": 2.0})
    assert isinstance(old, Observed)
    assert not old.imported
    with pytest.raises(ValueError, match="imported is true or false"):
        from_dict(
            json.loads('{"kind": "observed", "context": [0.5], "arm": 1, "value": 2, "imported": "yes"}')
        )
