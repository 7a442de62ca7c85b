"""Replay: learning on matches only, exact propensities in every round."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.random import Generator

from pfnts.ope import replay, simulated_drinkless, snips
from pfnts.policies import PFNTS, Traffic, Uniform, make


def test_policy_learns_exactly_the_matched_rounds(rng: Generator) -> None:
    log = simulated_drinkless(rng=rng, people=20, days=5)
    policy = Uniform(list(log.arms))
    done = replay(policy, log, rng=rng)
    expected = [
        (log.contexts[t].tobytes(), log.logged(t), float(log.rewards[t]))
        for t in np.flatnonzero(done.matched)
    ]
    assert [(np.asarray(e.context).tobytes(), e.arm, e.value) for e in policy.events] == expected  # type: ignore[union-attr]
    np.testing.assert_array_equal(done.matched, done.proposals == log.actions)
    assert 0 < done.matches < log.rounds


def test_order_of_the_policy_s_arms_does_not_matter(rng: Generator) -> None:
    log = simulated_drinkless(rng=rng, people=20, days=5)

    arms = ["new", "none", "standard"]
    done = replay(Uniform(arms, traffic=Traffic(warmup=0, holdout=1.0, baseline="new")), log, rng=rng)
    assert (done.propensities == np.array([0.0, 0.0, 1.0])).all()
    assert (done.proposals == 2).all()


def test_prefetching_changes_nothing_but_the_time(rng: Generator) -> None:
    log = simulated_drinkless(rng=rng, people=30, days=6)
    first, second = (
        replay(PFNTS(log.arms, backbone="linear"), log, rng=np.random.default_rng(3), prefetch=prefetch)
        for prefetch in (0, 50)
    )
    np.testing.assert_array_equal(first.proposals, second.proposals)
    np.testing.assert_allclose(first.propensities, second.propensities, atol=1e-9)


def test_propensities_are_the_frequencies_of_proposals(rng: Generator) -> None:
    log = simulated_drinkless(rng=rng, people=50, days=20)
    done = replay(make("lin-ts", arms=log.arms, nu=0.3), log, rng=rng)
    np.testing.assert_allclose(done.propensities.sum(1), 1, atol=1e-6)
    drawn = np.eye(3)[done.proposals]
    # A martingale of increments bounded by 1, with variance at most p (1 - p) each.
    error = np.sqrt((done.propensities * (1 - done.propensities)).sum(0)) + 1
    assert (np.abs((drawn - done.propensities).sum(0)) < 5 * error).all()


def test_learning_pays(rng: Generator) -> None:
    log = simulated_drinkless(rng=rng, people=150, days=30)
    done = replay(make("ts", arms=log.arms), log, rng=rng)
    assert snips(log, done.propensities).value > log.rewards.mean()


def test_progress_ends_with_every_round(rng: Generator) -> None:
    log = simulated_drinkless(rng=rng, people=5, days=2)
    seen: list[tuple[int, int]] = []
    done = replay(Uniform(log.arms), log, rng=rng, progress=lambda t, matches: seen.append((t, matches)))
    assert seen[-1] == (10, done.matches)


def test_other_arms_are_refused(rng: Generator) -> None:
    log = simulated_drinkless(rng=rng, people=5, days=2)
    with pytest.raises(ValueError, match=r"arms of the log, \['none', 'standard', 'new'\], got \[0, 1, 2\]"):
        replay(Uniform(3), log, rng=rng)
    with pytest.raises(ValueError, match="prefetch must be 0"):
        replay(Uniform(log.arms), log, rng=rng, prefetch=-1)
