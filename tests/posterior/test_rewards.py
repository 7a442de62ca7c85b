"""Distributions of rewards: draws, cuts, and best arms by enumeration."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from numpy.random import Generator

from pfnts.posterior import RewardDistribution


def by_enumeration(points: np.ndarray, eligible: np.ndarray) -> np.ndarray:
    """Every combination of draws, ties split evenly."""
    shares = np.zeros(len(eligible))
    arms = np.flatnonzero(eligible)
    for draws in itertools.product(*(points[:, arm] for arm in arms)):
        best = arms[np.flatnonzero(np.array(draws) == max(draws))]
        shares[best] += 1 / len(best)
    return shares / len(points) ** len(arms)


@pytest.mark.parametrize("discrete", [True, False])
def test_the_largest_reward_is_that_of_an_enumeration(discrete: bool, rng: Generator) -> None:
    for arms in (1, 2, 3, 4):
        for _ in range(5):
            points = rng.normal(size=(6, arms))  # in no order
            points = np.round(points) if discrete else points
            eligible = rng.random(arms) < 0.7
            eligible[rng.integers(arms)] = True
            expected = by_enumeration(points, eligible)
            rewards = RewardDistribution(points[:, None], np.full((1, arms), 8))
            np.testing.assert_allclose(rewards.best_arm_probabilities(eligible)[0], expected, atol=1e-12)


def test_rewards_are_drawn_alike_and_cut_like_posteriors(rng: Generator) -> None:
    points = rng.normal(size=(7, 4, 3))
    rewards = RewardDistribution(points, np.full((4, 3), 5))
    np.testing.assert_allclose(rewards.mean, points.mean(axis=0))
    np.testing.assert_allclose(rewards.variance, points.var(axis=0))
    uniforms = (np.arange(7) + 0.5) / 7
    drawn = np.stack([rewards.draw(np.full((4, 3), u)) for u in uniforms])
    np.testing.assert_array_equal(np.sort(drawn, axis=0), np.sort(points, axis=0))
    assert np.isfinite(rewards.draw(np.full((4, 3), np.nextafter(1.0, 0.0)))).all()
    np.testing.assert_array_equal(rewards[2].points, points[:, 2])
    np.testing.assert_array_equal(rewards.take(np.array([2, 0])).points, points[..., [2, 0]])
    half = rewards.scaled(0.5)
    np.testing.assert_allclose(half.mean, rewards.mean)
    np.testing.assert_allclose(half.variance, rewards.variance / 4)
    lower, upper = rewards.interval(0.8)
    np.testing.assert_allclose(lower, np.quantile(points, 0.1, axis=0))
    np.testing.assert_allclose(upper, np.quantile(points, 0.9, axis=0))
