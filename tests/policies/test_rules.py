from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.stats
from numpy.random import Generator

from pfnts import Policy
from pfnts.events import History
from pfnts.policies.model import Model, Shape
from pfnts.policies.rules import Thompson, evenly, greedy, largest, thompson
from pfnts.posterior import GaussianPosterior, RewardDistribution

N = 8000


def test_greedy_splits_ties_among_the_eligible(rng: Generator) -> None:
    values = np.tile([1.0, 2.0, 2.0, 2.0, 9.0], (N, 1))
    eligible = np.tile([True, True, True, False, False], (N, 1))
    choices = greedy(values, eligible, rng.random(N))
    np.testing.assert_array_equal(choices.propensities[0], [0, 0.5, 0.5, 0, 0])
    counts = np.bincount(choices.index, minlength=5)
    assert counts[1] + counts[2] == N
    assert abs(counts[1] - N / 2) < 5 * np.sqrt(N / 4)


@pytest.mark.parametrize("exploration", [0.0, 0.5, 1.0, 2.0])
def test_thompson_draws_follow_its_propensities_at_any_width(exploration: float, rng: Generator) -> None:
    variance = rng.standard_normal(3) ** 2
    posterior = GaussianPosterior(
        mean=np.tile([0.0, 0.3, 0.3], (N, 1)),
        variance=np.tile(variance, (N, 1)),
        size=4,
    )
    eligible = np.ones((N, 3), dtype=bool)
    part = slice(0, 1)
    expected = thompson(posterior[part], eligible[part], rng.random((1, 4)), exploration=exploration)
    scaled = posterior[0].scaled(exploration)
    np.testing.assert_allclose(expected.propensities[0], scaled.best_arm_probabilities(), atol=1e-12)
    assert expected.posterior is not None
    np.testing.assert_array_equal(expected.posterior.variance, posterior[part].variance)  # as it was
    uniforms = rng.random((N, 4))
    index = largest(posterior.scaled(exploration).draw(uniforms[:, :3]), eligible, uniforms[:, -1])
    seen = np.bincount(index, minlength=3) / N
    share = expected.propensities[0]
    assert (np.abs(seen - share) < 5 * np.sqrt(share * (1 - share) / N) + 4e-3).all()


def test_rewards_are_drawn_by_the_same_rule(rng: Generator) -> None:
    points = np.round(rng.normal(size=(50, 1, 3)), 1)
    rewards = RewardDistribution(np.tile(points, (1, N, 1)), np.full((N, 3), 5))
    eligible = np.tile([True, True, False], (N, 1))
    share = thompson(rewards[:1], eligible[:1], rng.random((1, 4))).propensities[0]
    uniforms = rng.random((N, 4))
    index = largest(rewards.draw(uniforms[:, :3]), eligible, uniforms[:, -1])
    seen = np.bincount(index, minlength=3) / N
    assert share[2] == 0
    assert (np.abs(seen - share) < 5 * np.sqrt(share * (1 - share) / N) + 1e-12).all()


def test_thompson_splits_certain_ties(rng: Generator) -> None:
    posterior = GaussianPosterior(
        mean=np.tile([0.0, 0.0, -1.0], (2000, 1)), variance=np.zeros((2000, 3)), size=4
    )
    choices = thompson(posterior, np.ones((2000, 3), bool), rng.random((2000, 4)))
    counts = np.bincount(choices.index, minlength=3)
    assert counts[2] == 0
    assert abs(counts[0] - 1000) < 5 * np.sqrt(500)
    np.testing.assert_array_equal(choices.propensities[0], [0.5, 0.5, 0])


def test_evenly_reaches_every_eligible_arm_and_no_other() -> None:
    mask = np.array([False, True, True, False, True])
    places = [evenly(mask, u) for u in np.arange(0, 1, 1 / 300)]
    assert np.bincount(places, minlength=5).tolist() == [0, 100, 100, 0, 100]
    assert evenly(mask, np.nextafter(1.0, 0.0)) == 4
    tie = np.ones((1, 5))
    assert largest(tie, mask[None], np.array([np.nextafter(1.0, 0.0)])).tolist() == [4]


class Coins(Model):
    """All that Thompson sampling needs: a model with a posterior."""

    def __init__(self, n_arms: int = 0) -> None:
        self._paid, self._rows = np.zeros((2, n_arms))

    def fresh(self, shape: Shape) -> Model:
        return Coins(shape.arms)

    def observe(self, history: History, start: int, end: int) -> None:
        np.add.at(self._paid, history.arms[start:end], history.rewards[start:end])
        np.add.at(self._rows, history.arms[start:end], 1)

    def predict(self, X: Any, arms: Any, eligible: Any) -> GaussianPosterior:
        mean = np.broadcast_to((self._paid / (self._rows + 1))[list(arms)], (len(X), len(arms)))
        variance = np.broadcast_to(1 / (self._rows + 1)[list(arms)], mean.shape)
        return GaussianPosterior(mean=mean, variance=variance, size=1)


def test_a_policy_with_a_posterior_draws_from_it(rng: Generator) -> None:
    policy = Policy(["a", "b"], model=Coins(), rule=Thompson())
    policy.update([[0.0]] * 3, arm=["a", "b", "b"], reward=[1.0, 2.0, 1.0])
    decision = policy.decide([0.0], rng=rng)
    gap, spread = 1 / 2 - 3 / 3, np.sqrt(1 / 2 + 1 / 3)
    expected = scipy.stats.norm.cdf([gap / spread, -gap / spread])
    np.testing.assert_allclose(decision.propensities, expected, atol=1e-9)
    np.testing.assert_allclose(policy.posterior([0.0]).mean, [1 / 2, 3 / 3])
    assert policy.explain([0.0]).leader == "b"
