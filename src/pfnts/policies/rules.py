"""The three decision rules, each with its exact propensities.

Equal values share the decision evenly, by a draw that is made whether or not it is needed, so that the number
of draws does not depend on the values.
"""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from pfnts.policies.base import AnyPosterior, Mask, Vector

PREDICTIVE_LEVELS = (np.arange(200) + 0.5) / 200
"""The predictive rule draws from these equally likely quantiles: its propensities are a finite sum."""

_MOST_NODES = 16


def thompson(posterior: AnyPosterior, eligible: Mask, *, rng: Generator) -> int:
    """Draw the (K,) mean rewards from the posterior; the largest wins."""
    draws = posterior.sample_function(rng) if posterior.coupled else posterior.sample(rng)
    return _largest(draws, eligible, rng=rng)


def greedy(mean: Vector, eligible: Mask, *, rng: Generator) -> int:
    """Take the largest (K,) posterior mean."""
    return _largest(mean, eligible, rng=rng)


def greedy_propensities(mean: Vector, eligible: Mask) -> Vector:
    """Return one over the number of largest means for each of them."""
    allowed = np.where(eligible, mean, -np.inf)
    best = allowed == allowed.max()
    shares: Vector = best / best.sum()
    return shares


def predictive(quantiles: Vector, eligible: Mask, *, rng: Generator) -> int:
    """Draw a reward of each arm from its (M, K) equally likely quantiles; the largest wins."""
    picked = rng.integers(len(quantiles), size=quantiles.shape[1])
    return _largest(quantiles[picked, np.arange(quantiles.shape[1])], eligible, rng=rng)


def predictive_propensities(quantiles: Vector, eligible: Mask) -> Vector:
    """Probability that each arm's draw from its (M, K) equally likely quantiles is the largest.

    A draw x of arm k, with a uniform z to break ties, wins against arm j with probability
    P(X_j < x) + z P(X_j = x). The product over j is a polynomial in z of degree K - 1, so Gauss-Legendre
    nodes integrate it exactly (up to 32 eligible arms; beyond, to rounding for all practical purposes).
    """
    arms = np.flatnonzero(eligible)
    points = np.sort(quantiles[:, arms], axis=0)
    size = len(points)
    nodes, weights = np.polynomial.legendre.leggauss(min((len(arms) + 1) // 2, _MOST_NODES))
    z, w = (nodes + 1) / 2, weights / 2
    result = np.zeros(len(eligible))
    for i, arm in enumerate(arms):
        wins = np.ones((len(z), size))
        for j in range(len(arms)):
            if j != i:
                below = np.searchsorted(points[:, j], points[:, i], side="left") / size
                equal = np.searchsorted(points[:, j], points[:, i], side="right") / size - below
                wins *= below + z[:, None] * equal
        result[arm] = w @ wins.mean(axis=1)
    normalised: Vector = result / result.sum()
    return normalised


def _largest(values: Vector, eligible: Mask, *, rng: Generator) -> int:
    allowed = np.where(eligible, values, -np.inf)
    best = int(allowed.argmax())
    lot = rng.random()
    equal = allowed == allowed[best]
    if np.count_nonzero(equal) == 1:
        return best
    candidates = np.flatnonzero(equal)
    return int(candidates[int(lot * len(candidates))])
