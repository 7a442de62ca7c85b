"""The share of rounds in which any eligible arm is drawn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.random import Generator

from pfnts.policies import make, names
from pfnts.policies.base import Choice, mixed

SMALL: dict[str, dict[str, Any]] = {
    "pfn-ts": {"backbone": "linear"},
    "epsilon-greedy": {"backbone": "linear"},
}


@pytest.mark.parametrize("name", names())
def test_every_policy_takes_it_and_keeps_the_floor_from_the_first_round(name: str) -> None:
    policy = make(name, arms=3, explore=0.3, **SMALL.get(name, {}))
    assert policy.explore == 0.3
    decisions = policy.decide(np.zeros((3, 2)), rng=np.random.default_rng(0))
    for decision in decisions:
        assert decision.propensities.min() >= 0.1 - 1e-12
        assert decision.propensities.sum() == pytest.approx(1, abs=1e-12)


def test_mixture_is_the_formula_and_its_frequencies_follow(rng: Generator) -> None:
    own = np.array([0.7, 0.0, 0.0, 0.3])
    eligible = np.array([True, False, True, True])
    expected = np.array([0.8 * 0.7 + 0.2 / 3, 0, 0.2 / 3, 0.8 * 0.3 + 0.2 / 3])
    counts = np.zeros(4)
    for index in rng.choice(4, size=20_000, p=own):
        choice = mixed(Choice(int(index), own), eligible, 0.2, rng=rng)
        counts[choice.index] += 1
        np.testing.assert_allclose(choice.propensities, expected, atol=1e-12)
    error = np.sqrt(expected * (1 - expected) / 20_000)
    assert (np.abs(counts / 20_000 - expected) <= 5 * error).all()


@pytest.mark.parametrize("mask", [[True, True, True], [True, False, True]])
def test_warm_up_frequencies_follow_the_propensities(mask: list[bool], rng: Generator) -> None:
    k = sum(mask)
    counts = np.zeros(3)
    for _ in range(4000):
        policy = make("lin-ts", arms=3, explore=0.4)
        decision = policy.decide([0.5], rng=rng, eligible=mask)
        np.testing.assert_allclose(
            decision.propensities, 0.6 * np.eye(3)[0] + 0.4 * np.array(mask) / k, atol=1e-12
        )
        assert decision.posterior is None
        counts[decision.index] += 1
    error = np.sqrt(decision.propensities * (1 - decision.propensities) / 4000)
    assert (np.abs(counts / 4000 - decision.propensities) <= 5 * error).all()


def test_arm_that_was_pulled_is_the_one_that_is_pending() -> None:
    policy, rng = make("lin-ts", arms=3, explore=1.0), np.random.default_rng(0)
    pulled = np.bincount([policy.decide([0.5], rng=rng).index for _ in range(40)], minlength=3)
    np.testing.assert_array_equal(policy._pending, pulled)
    assert len(set(pulled)) > 1, "a round robin would have pulled them alike"


def test_warm_up_turns_to_the_arms_that_exploring_has_left_behind() -> None:
    policy, rng = make("lin-ts", arms=3, explore=0.5), np.random.default_rng(0)
    for _ in range(60):
        behind = int(np.argmin(policy._observed + policy._pending))
        decision = policy.decide([0.5], rng=rng)
        assert decision.propensities[behind] == pytest.approx(0.5 + 0.5 / 3)


def test_each_round_consumes_the_same_draws() -> None:
    one, two = np.random.default_rng(5), np.random.default_rng(5)
    for share in (0.01, 0.99):
        mixed(Choice(0, np.array([1.0, 0.0])), np.ones(2, dtype=bool), share, rng=one)
        two.random(2)
    assert one.bit_generator.state == two.bit_generator.state


@pytest.mark.parametrize("name", ["pfn-ts", "lin-ts", "lin-ucb"])
def test_it_is_saved(name: str, tmp_path: Path) -> None:
    policy = make(name, arms=2, explore=0.25, **SMALL.get(name, {}))
    policy.update([0.5], arm=0, reward=1.0)
    policy.save(tmp_path / "policy")  # type: ignore[attr-defined]
    assert type(policy).load(tmp_path / "policy").explore == 0.25  # type: ignore[attr-defined]


@pytest.mark.parametrize("share", [-0.1, 1.1, float("nan")])
def test_share_must_be_one(share: float) -> None:
    with pytest.raises(ValueError, match=r"explore must be between 0 and 1, a share of the rounds, got"):
        make("uniform", arms=2, explore=share)
