"""The lift over the holdout against what is known of a simulated world."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from pfnts.service.estimates import single_arms
from pfnts.service.lift import lift


def world(rng, n=2000, share=0.2, effect=0.5):
    X = rng.normal(size=(n, 3))
    treated = rng.random(n) >= share
    y = X @ [2.0, -1.0, 0.0] + effect * treated + rng.normal(size=n)
    X[rng.random(X.shape) < 0.05] = np.nan
    return X, y, treated


def test_intervals_hold_the_effect_about_as_often_as_they_say():
    rng = np.random.default_rng(1)
    found = [lift(*world(rng, n=600), share=0.2) for _ in range(300)]
    held = np.mean([one.low <= 0.5 <= one.high for one in found])
    assert 0.90 <= held <= 0.99
    assert abs(np.mean([one.value for one in found]) - 0.5) < 0.04


def test_knowing_the_contexts_makes_the_interval_shorter():
    rng = np.random.default_rng(2)
    X, y, treated = world(rng)
    informed = lift(X, y, treated, share=0.2)
    blind = lift(np.zeros_like(X), y, treated, share=0.2)
    assert informed.high - informed.low < 0.7 * (blind.high - blind.low)


def test_too_few_rewards_or_none_that_vary_give_no_lift():
    rng = np.random.default_rng(3)
    X, y, treated = world(rng, n=60)
    assert lift(X, y, np.arange(60) > 5, share=0.2) is None
    X, y, treated = world(rng)
    assert lift(X, np.where(treated, y, 0.0), treated, share=0.2) is None
    assert lift(X, y, treated, share=0.0) is None
    assert lift(X, y, treated, share=0.2, units=["one", "other"] * 1000) is None, "two people are too few"


def people(rng, n=120, visits=6, share=0.3, effect=0.5):
    """Units that come back, each in one group for ever, each with a level that no context tells."""
    held = rng.random(n) < share
    who = np.repeat(np.arange(n), visits)
    level = rng.normal(size=n)[who]
    y = level + effect * ~held[who] + rng.normal(size=n * visits)
    return rng.normal(size=(n * visits, 2)), y, ~held[who], who.tolist()


def test_decisions_of_one_unit_are_not_taken_for_independent_ones():
    rng = np.random.default_rng(4)
    found, naive = [], []
    for _ in range(200):
        X, y, treated, units = people(rng)
        found.append(lift(X, y, treated, share=0.3, units=units))
        naive.append(lift(X, y, treated, share=0.3))
    held = np.mean([one.low <= 0.5 <= one.high for one in found])
    assert 0.88 <= held <= 0.99
    assert np.mean([one.low <= 0.5 <= one.high for one in naive]) < 0.85, "what the world would otherwise do"


def test_a_share_that_was_changed_on_the_way_leaves_the_estimate_right():
    """While few are held out the world pays more: pooled, the policy would seem to earn that."""
    rng = np.random.default_rng(5)
    found = []
    for _ in range(100):
        share = np.repeat([0.1, 0.6], 400)
        treated = rng.random(800) >= share
        y = np.repeat([3.0, 0.0], 400) + 0.5 * treated + rng.normal(size=800)
        found.append(lift(np.zeros((800, 1)), y, treated, share=share))
    assert abs(np.mean([one.value for one in found]) - 0.5) < 0.1
    assert np.mean([one.low <= 0.5 <= one.high for one in found]) >= 0.88


def test_values_of_single_arms_hold_as_often_as_they_say_where_purchases_are_rare():
    """Three in a hundred buy, and the arm is given to those who buy more often: its weights differ a lot."""
    rng = np.random.default_rng(0)
    held, told = [], 0
    for _ in range(300):
        n = 600
        likely = rng.random(n) < 0.5
        chance = np.where(likely, 0.8, 0.15)
        taken = rng.random(n) < chance
        bought = rng.random(n) < np.where(likely, 0.05, 0.01)
        rows = [
            SimpleNamespace(
                made=SimpleNamespace(group="policy", arm="a" if taken[i] else "b"),
                record=SimpleNamespace(
                    data={"event": {"propensities": [["a", chance[i]], ["b", 1 - chance[i]]]}}
                ),
                reward=float(bought[i]),
                unit=str(i),
            )
            for i in range(n)
        ]
        found = single_arms(rows, ["a", "b"], low=0.0, high=1.0).get("a")
        if found is not None:
            held.append(found["low"] <= 0.03 <= found["high"])
            told += found["high"] - found["low"]
    assert len(held) > 250
    assert np.mean(held) > 0.92
    assert told / len(held) < 0.07, "they say something, too"
