"""The lift over the holdout against what is known of a simulated world."""

from __future__ import annotations

import numpy as np

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
