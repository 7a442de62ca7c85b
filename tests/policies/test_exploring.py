"""The share of rounds in which any eligible arm is drawn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.random import Generator

from pfnts.policies import Choices, Traffic, make, names
from pfnts.policies.shares import settle

SMALL: dict[str, dict[str, Any]] = {"pfn-ts": {"backbone": "linear"}}
TAKE_IT = [name for name in names() if name != "epsilon-greedy"]  # it has a word of its own


@pytest.mark.parametrize("name", TAKE_IT)
def test_every_policy_takes_it_and_keeps_the_floor_from_the_first_round(name: str) -> None:
    try:
        arms = {k: {"price": k} for k in range(3)} if name == "lin-ucb-features" else 3
        policy = make(name, arms=arms, explore=0.3, **SMALL.get(name, {}))
    except ImportError as error:
        pytest.skip(str(error))
    assert policy.traffic.explore == 0.3
    for decision in policy.decide_batch(np.zeros((3, 2)), rng=np.random.default_rng(0)):
        assert decision.propensities.min() >= 0.1 - 1e-12
        assert decision.propensities.sum() == pytest.approx(1, abs=1e-12)


def test_mixture_is_the_formula_and_its_frequencies_follow(rng: Generator) -> None:
    own = np.array([0.7, 0.0, 0.0, 0.3])
    eligible = np.tile([True, False, True, True], (20_000, 1))
    expected = np.array([0.8 * 0.7 + 0.2 / 3, 0, 0.2 / 3, 0.8 * 0.3 + 0.2 / 3])
    choices, reasons = settle(
        lambda: Choices(rng.choice(4, size=20_000, p=own), np.tile(own, (20_000, 1))),
        eligible,
        rng.random((20_000, 3)),
        reason="thompson",
        cold=np.zeros(4, dtype=bool),
        ahead=np.zeros(4, dtype=np.int64),
        traffic=Traffic(warmup=0, explore=0.2),
        arms=range(4),
    )
    np.testing.assert_allclose(choices.propensities, np.tile(expected, (20_000, 1)), atol=1e-12)
    seen = np.bincount(choices.index, minlength=4) / 20_000
    assert (np.abs(seen - expected) <= 5 * np.sqrt(expected * (1 - expected) / 20_000)).all()
    assert abs(reasons.count("explore") / 20_000 - 0.2) < 5 * np.sqrt(0.16 / 20_000)


@pytest.mark.parametrize("mask", [[True, True, True], [True, False, True]])
def test_warm_up_frequencies_follow_the_propensities(mask: list[bool], rng: Generator) -> None:
    counts, share = np.zeros(3), np.array(mask) / sum(mask)
    for _ in range(2000):
        policy = make("lin-ts", arms=3, explore=0.4)
        decision = policy.decide([0.5], rng=rng, eligible=mask)
        np.testing.assert_allclose(decision.propensities, share, atol=1e-12)
        assert decision.posterior is None
        counts[decision.index] += 1
    assert (np.abs(counts / 2000 - share) <= 5 * np.sqrt(share * (1 - share) / 2000)).all()


def test_warm_up_turns_to_the_arms_that_exploring_has_left_behind() -> None:
    policy, rng = make("lin-ts", arms=3, explore=0.5, warmup=4), np.random.default_rng(0)
    ahead = np.zeros(3, dtype=int)
    for _ in range(60):
        cold = ahead < 4
        cold = cold if cold.any() else ~cold
        decision = policy.decide([0.5], rng=rng)
        np.testing.assert_allclose(decision.propensities, 0.5 * cold / cold.sum() + 0.5 / 3)
        ahead[decision.index] += 1


def test_each_round_consumes_the_same_draws() -> None:
    ends = set()
    for explore in (0.0, 0.01, 0.99, 1.0):
        for mask in ([True, True], [True, False]):
            policy, rng = make("lin-ts", arms=2, explore=explore, warmup=1), np.random.default_rng(5)
            for t in range(6):
                policy.decide([0.5], rng=rng, eligible=mask)
                policy.update([0.5], arm=t % 2, reward=1.0)
            ends.add(rng.random())
    assert len(ends) == 1


@pytest.mark.parametrize("share", [-0.1, 1.1, float("nan")])
def test_share_must_be_one(share: float) -> None:
    with pytest.raises(ValueError, match=r"explore must be between 0 and 1, a share of the rounds, got"):
        make("uniform", arms=2, explore=share)
