from __future__ import annotations

import itertools

import numpy as np
import pytest
from numpy.random import Generator

from pfnts.policies.rules import greedy, greedy_propensities, predictive, predictive_propensities, thompson
from pfnts.posterior import GaussianPosterior


def by_enumeration(quantiles: np.ndarray, eligible: np.ndarray) -> np.ndarray:
    """Every combination of draws, ties split evenly."""
    shares = np.zeros(len(eligible))
    arms = np.flatnonzero(eligible)
    for draws in itertools.product(*(quantiles[:, arm] for arm in arms)):
        best = arms[np.flatnonzero(np.array(draws) == max(draws))]
        shares[best] += 1 / len(best)
    return shares / len(quantiles) ** len(arms)


@pytest.mark.parametrize("discrete", [True, False])
def test_predictive_propensities_equal_an_enumeration(discrete: bool, rng: Generator) -> None:
    for arms in (1, 2, 3, 4):
        for _ in range(5):
            quantiles = np.sort(rng.normal(size=(6, arms)), axis=0)
            quantiles = np.round(quantiles) if discrete else quantiles
            eligible = rng.random(arms) < 0.7
            eligible[rng.integers(arms)] = True
            np.testing.assert_allclose(
                predictive_propensities(quantiles, eligible), by_enumeration(quantiles, eligible), atol=1e-12
            )


def test_predictive_draws_follow_their_propensities(rng: Generator) -> None:
    quantiles = np.round(np.sort(rng.normal(size=(200, 3)), axis=0), 1)
    eligible = np.array([True, True, True])
    expected = predictive_propensities(quantiles, eligible)
    n = 20_000
    counts = np.bincount([predictive(quantiles, eligible, rng=rng) for _ in range(n)], minlength=3)
    assert (np.abs(counts / n - expected) < 5 * np.sqrt(expected * (1 - expected) / n)).all()


def test_greedy_splits_ties_among_the_eligible(rng: Generator) -> None:
    mean, eligible = np.array([1.0, 2.0, 2.0, 2.0, 9.0]), np.array([True, True, True, False, False])
    np.testing.assert_array_equal(greedy_propensities(mean, eligible), [0, 0.5, 0.5, 0, 0])
    counts = np.bincount([greedy(mean, eligible, rng=rng) for _ in range(2000)], minlength=5)
    assert counts[1] + counts[2] == 2000
    assert abs(counts[1] - 1000) < 5 * np.sqrt(500)


def test_draws_do_not_depend_on_values_or_masks() -> None:
    # So that one policy's luck does not shift when a value or a mask changes.
    ends = set()
    for mean, mask in itertools.product(
        ([0.0, 0.0, 0.0], [1.0, 2.0, 3.0]), ([True] * 3, [True, False, False])
    ):
        rng = np.random.default_rng(0)
        posterior = GaussianPosterior(mean=mean, variance=[0.0, 0.0, 1.0], size=4)
        thompson(posterior, np.array(mask), rng=rng)
        greedy(posterior.mean, np.array(mask), rng=rng)
        predictive(np.zeros((5, 3)), np.array(mask), rng=rng)
        ends.add(rng.random())
    assert len(ends) == 1


def test_thompson_splits_certain_ties(rng: Generator) -> None:
    posterior = GaussianPosterior(mean=[0.0, 0.0, -1.0], variance=[0.0, 0.0, 0.0], size=4)
    counts = np.bincount([thompson(posterior, np.ones(3, bool), rng=rng) for _ in range(2000)], minlength=3)
    assert counts[2] == 0
    assert abs(counts[0] - 1000) < 5 * np.sqrt(500)
