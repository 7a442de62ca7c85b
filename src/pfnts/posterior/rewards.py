"""The distribution of a reward itself, for policies that draw rewards instead of mean rewards (PFN-PS)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from pfnts.posterior.base import Array, check_factor, check_level, summary
from pfnts.posterior.best_arm import check_eligible, legendre

_MOST_NODES = 16


@dataclass(frozen=True, eq=False, repr=False)
class RewardDistribution:
    """Equally likely rewards of each arm at each context; draws of arms are independent.

    Examples
    --------
    >>> rewards = RewardDistribution(points=[[0.0, 1.0], [2.0, 1.0]], size=[8, 8])
    >>> rewards.mean, rewards.best_arm_probabilities()
    (array([1., 1.]), array([0.5, 0.5]))
    """

    points: Array
    """(M, ..., K): M equally likely rewards."""
    size: NDArray[np.int64]
    """Number of observations behind each entry."""

    def __post_init__(self) -> None:
        points = np.asarray(self.points, dtype=np.float64)
        object.__setattr__(self, "points", points)
        object.__setattr__(self, "size", np.broadcast_to(np.asarray(self.size), points.shape[1:]))

    @property
    def mean(self) -> Array:
        """Expected reward, (..., K)."""
        return np.asarray(self.points.mean(axis=0))

    @property
    def variance(self) -> Array:
        """Variance of a reward, (..., K)."""
        return np.asarray(self.points.var(axis=0))

    def draw(self, uniforms: Array) -> Array:
        """Draw a reward of every arm at each context from the first K of ``uniforms`` (..., n)."""
        picked = (uniforms[..., : self.points.shape[-1]] * len(self.points)).astype(np.int64)
        return np.asarray(np.take_along_axis(self.points, picked[None], axis=0)[0])

    def sample(self, rng: Generator) -> Array:
        """Draw a reward of every arm."""
        return self.draw(rng.random(self.points.shape[1:]))

    def interval(self, level: float) -> tuple[Array, Array]:
        """Return the ends of the central interval that holds a reward with probability ``level``."""
        tail = (1 - check_level(level)) / 2
        lower, upper = np.quantile(self.points, [tail, 1 - tail], axis=0)
        return lower, upper

    def best_arm_probabilities(self, eligible: ArrayLike | None = None) -> Array:
        """Return the probability that the draw of each entry of the last axis is the largest of its row."""
        shape = self.points.shape[1:]
        masks = check_eligible(eligible, shape).reshape(-1, shape[-1])
        rows = self.points.reshape(len(self.points), -1, shape[-1])
        found = [largest_draw(rows[:, i], allowed) for i, allowed in enumerate(masks)]
        return np.reshape(found, shape)

    def scaled(self, factor: ArrayLike) -> RewardDistribution:
        """Return the distribution with every deviation from the mean multiplied by ``factor``."""
        return RewardDistribution(self.mean + check_factor(factor) * (self.points - self.mean), self.size)

    def shifted(self, offset: ArrayLike) -> RewardDistribution:
        """Return the distribution of the rewards less ``offset`` (K,)."""
        return RewardDistribution(self.points - np.asarray(offset), self.size)

    def take(self, entries: NDArray[np.int64]) -> RewardDistribution:
        """Keep some entries of the last axis."""
        return RewardDistribution(self.points[..., entries], self.size[..., entries])

    def __getitem__(self, index: Any) -> RewardDistribution:
        """Cut out contexts: ``index`` applies to the leading axes, never to the arms."""
        index = index if isinstance(index, tuple) else (index,)
        return RewardDistribution(self.points[:, *index, :], self.size[*index, :])

    def __repr__(self) -> str:
        return summary(self)


def stack_rewards(columns: Sequence[RewardDistribution]) -> RewardDistribution:
    """Join one distribution per arm, (q,) each, into (q, K)."""
    return RewardDistribution(
        np.stack([c.points for c in columns], axis=-1), np.stack([c.size for c in columns], axis=-1)
    )


def largest_draw(points: Array, eligible: NDArray[np.bool_]) -> Array:
    """Probability that each arm's draw from its (M, K) equally likely points is the largest.

    A draw x of arm k, with a uniform z to break ties, wins against arm j with probability
    P(X_j < x) + z P(X_j = x). The product over j is a polynomial in z of degree K - 1, so Gauss-Legendre
    nodes integrate it exactly (up to 32 eligible arms; beyond, to rounding for all practical purposes).
    """
    arms = np.flatnonzero(eligible)
    ordered = np.sort(points[:, arms], axis=0)
    size = len(ordered)
    z, weights = legendre(min((len(arms) + 1) // 2, _MOST_NODES))
    result = np.zeros(len(eligible))
    for i, arm in enumerate(arms):
        wins = np.ones((len(z), size))
        for j in range(len(arms)):
            if j != i:
                below = np.searchsorted(ordered[:, j], ordered[:, i], side="left") / size
                equal = np.searchsorted(ordered[:, j], ordered[:, i], side="right") / size - below
                wins *= below + z[:, None] * equal
        result[arm] = weights @ wins.mean(axis=1)
    return np.asarray(result / result.sum())
