"""Policies that look at no context, or at one only through a backbone's mean."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.random import Generator

from pfnts.policies import make
from pfnts.policies.context_free import arm_moments


def test_averages_and_scatter_equal_those_of_the_rewards(rng: Generator) -> None:
    policy = make("ts", arms=3)
    arms, rewards = rng.integers(3, size=90), rng.normal(5, 2, size=90)
    for start, end in ((0, 1), (1, 7), (7, 90)):
        policy.update(np.zeros((end - start, 1)), arm=arms[start:end], reward=rewards[start:end])
    posterior = policy.posterior([0.0])
    for k in range(3):
        own = rewards[arms == k]
        assert posterior.mean[k] == pytest.approx(own.mean())
        expected = (own.var() * len(own) + rewards.var()) / len(own) ** 2
        assert posterior.variance[k] == pytest.approx(expected)


def test_an_arm_with_equal_rewards_keeps_a_chance() -> None:
    mean, variance = arm_moments(np.array([5, 5]), np.array([0.0, 0.4]), np.array([0.0, 1.2]))
    assert variance[0] > 0
    np.testing.assert_array_equal(mean, [0.0, 0.4])


def test_an_arm_without_rewards_is_like_all_together() -> None:
    mean, variance = arm_moments(np.array([4, 0]), np.array([2.0, 0.0]), np.array([4.0, 0.0]))
    assert (mean[1], variance[1]) == (2.0, 1.0)


def test_posterior_is_the_same_everywhere() -> None:
    policy = make("ts", arms=2)
    policy.update([[0.0], [1.0]], arm=[0, 1], reward=[1.0, 3.0])
    posterior = policy.posterior([[0.0], [9.0]])
    np.testing.assert_array_equal(posterior.mean, [[1, 3], [1, 3]])


def test_epsilon_greedy_explores_that_share_of_the_rounds(rng: Generator) -> None:
    policy = make("epsilon-greedy", arms=4, epsilon=0.4, backbone="linear", warmup=1)
    policy.update(np.zeros((4, 1)), arm=[0, 1, 2, 3], reward=[0.0, 0.0, 9.0, 0.0])
    decisions = policy.decide_batch(np.zeros((3000, 1)), rng=rng, eligible=[True, True, True, False])
    np.testing.assert_allclose(decisions[0].propensities, [0.4 / 3, 0.4 / 3, 0.6 + 0.4 / 3, 0])
    counts = np.bincount([d.index for d in decisions], minlength=4)
    expected = 3000 * decisions[0].propensities
    assert (np.abs(counts - expected) <= 5 * np.sqrt(expected)).all()


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("ts", {"warmup": 0}, "warmup must be at least 1"),
        ("epsilon-greedy", {"warmup": 0, "backbone": "linear"}, "warmup must be at least 1"),
        (
            "epsilon-greedy",
            {"epsilon": 1.5, "backbone": "linear"},
            "epsilon must be between 0 and 1, got 1.5",
        ),
    ],
)
def test_settings_are_checked(name: str, options: dict[str, float], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        make(name, arms=2, **options)
