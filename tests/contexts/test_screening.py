"""Columns that describe a row, and those that do not."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.random import Generator

from pfnts.contexts import describing, read
from pfnts.contexts.screening import Rounds


def test_ids_do_not_describe_a_row() -> None:
    frame = pd.DataFrame(
        {
            "Unnamed: 0": range(100),
            "user": [f"u{i}" for i in range(100)],
            "session": [f"s{i // 2}" for i in range(100)],
            "shop_id": [i % 3 for i in range(100)],
            "city_id": ["a", "b"] * 50,
            "paid": [i % 2 for i in range(100)],
            "income": [1000 + 7 * i for i in range(100)],
            "seen": pd.date_range("2026-03-01", periods=100),
        }
    )
    schema, left_out = describing(read(frame))
    assert left_out == dict.fromkeys(["Unnamed: 0", "user", "shop_id"], "an id")
    assert [column.name for column in schema.columns] == ["session", "city_id", "paid", "income", "seen"]
    assert schema.width == 32 + 2 + 3
    _, left_out = describing(read(frame), ["income", "seen"], dates=False)
    assert left_out == {"seen": "a date"}


def test_hundreds_of_categories_that_repeat_describe_a_row() -> None:
    frame = pd.DataFrame(
        {"shop": [f"s{i % 300}" for i in range(900)], "visit": [f"v{i}" for i in range(900)]}
    )
    schema, left_out = describing(read(frame))
    assert left_out == {"visit": "an id"}
    assert schema.width == 32


def logged(rng: Generator, rows: int = 2000, arms: int = 3) -> tuple[pd.DataFrame, Rounds]:
    """A log of a policy that prefers an arm by age, with honest columns and columns that leak."""
    age = rng.normal(size=rows)
    shares = np.exp(np.outer(age, np.arange(arms)))
    shares /= shares.sum(1, keepdims=True)
    shares = 0.1 / arms + 0.9 * shares
    actions = (shares.cumsum(1) < rng.random((rows, 1))).sum(1)
    rewards = (rng.random(rows) < 0.3).astype(float)
    frame = pd.DataFrame(
        {
            "age": age,
            "share": rng.uniform(0.01, 1, rows),
            "humidity": rng.normal(0.5, 0.05, rows).clip(0, 1),
            "flag": rng.random(rows) < 0.5,
            "noisy": rewards + 0.2 * rng.normal(size=rows),
            "q": shares[np.arange(rows), actions],
            "pscore": rng.uniform(size=rows),
            "paid": 100 - 5 * rewards,
            "bought": np.where(rewards > 0, "yes", "no"),
        }
    )
    return frame, Rounds(actions.astype(np.int64), rewards)


def test_propensities_and_copies_of_the_reward_are_left_out_of_a_log(rng: Generator) -> None:
    frame, rounds = logged(rng)
    schema, left_out = describing(read(frame), rounds=rounds)
    assert left_out == {
        "q": "a propensity",
        "pscore": "a propensity",
        "paid": "a copy of the reward",
        "bought": "a copy of the reward",
    }
    assert [column.name for column in schema.columns] == ["age", "share", "humidity", "flag", "noisy"]
    assert not describing(read(frame))[1]
    few = Rounds(rounds.actions[:15], rounds.rewards[:15])
    assert describing(read(frame.head(15)), rounds=few)[1] == {"pscore": "a propensity"}


@pytest.mark.parametrize("arms", [2, 5])
def test_a_known_propensity_is_recognised_under_any_name(arms: int, rng: Generator) -> None:
    frame, rounds = logged(rng, 40, arms)
    known = Rounds(rounds.actions, rounds.rewards, frame["q"].to_numpy())
    _, left_out = describing(read(frame[["age", "q"]].rename(columns={"q": "weight"})), rounds=known)
    assert left_out == {"weight": "a propensity"}


def test_missing_and_constant_columns_are_no_copies(rng: Generator) -> None:
    _, rounds = logged(rng)
    sparse = np.where(np.arange(2000) < 10, rounds.rewards, np.nan)
    table = read(pd.DataFrame({"sparse": sparse, "one": 1.0, "huge": 1e300, "none": np.nan}))
    assert describing(table, rounds=rounds)[1] == {}
