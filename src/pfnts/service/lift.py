"""What the policy earns over the holdout, doubly robust."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Matrix = NDArray[np.float64]
Vector = NDArray[np.float64]
_Z = 1.959963984540054
_FEWEST = 20
"""Units with rewards that each group needs."""


@dataclass(frozen=True)
class Lift:
    """Difference of mean rewards, policy less holdout, with a 95 % interval."""

    value: float
    low: float
    high: float
    policy: float
    holdout: float
    rows: int


def lift(
    contexts: Matrix,
    rewards: Sequence[float],
    treated: Sequence[bool],
    *,
    share: ArrayLike,
    units: Sequence[Hashable] | None = None,
) -> Lift | None:
    """Estimate the lift by the doubly robust (AIPW) score with ridge regressions, cross-fitted on two halves.

    Who is held out was drawn with a known probability, so that the estimate is right whatever the regressions
    say; they only make its interval shorter. Units are held out, not decisions: those of one unit are not
    independent, and count as one cluster in the standard error.

    Parameters
    ----------
    contexts
        (n, P), NaN where a value is missing.
    rewards
        (n,)
    treated
        (n,) whether the policy decided.
    share
        Probability of being held out, one for all rows or (n,).
    units
        (n,) who each row is about; each row a unit of its own when not given.

    Returns
    -------
    None where a group has too few units with rewards.
    """
    y, a = np.asarray(rewards, dtype=np.float64), np.asarray(treated, dtype=bool)
    p = np.broadcast_to(np.asarray(share, dtype=np.float64), y.shape)
    number = {unit: i for i, unit in enumerate(dict.fromkeys(units or range(len(y))))}
    cluster = np.array([number[unit] for unit in units or range(len(y))], dtype=np.int64)
    if min(len(set(cluster[a])), len(set(cluster[~a]))) < _FEWEST or not ((p > 0) & (p < 1)).all():
        return None
    if y[a].std() == 0 or y[~a].std() == 0:  # rewards all alike say nothing about how much they vary
        return None
    X = _design(contexts)
    fold = cluster % 2
    outcomes = np.empty((2, len(y)))
    for half in (0, 1):
        for group in (0, 1):
            fit = (fold != half) & (a == bool(group))
            outcomes[group, fold == half] = X[fold == half] @ _ridge(X[fit], y[fit])
    under_holdout, under_policy = outcomes
    score = under_policy - under_holdout + np.where(a, (y - under_policy) / (1 - p), -(y - under_holdout) / p)
    value = float(score.mean())
    sums = np.bincount(cluster, weights=score - value)
    reach = float(_Z * np.sqrt(len(sums) / (len(sums) - 1) * (sums**2).sum()) / len(y))
    return Lift(value, value - reach, value + reach, float(y[a].mean()), float(y[~a].mean()), len(y))


def _design(X: Matrix) -> Matrix:
    """Standardised columns, 0 where missing or constant, and a constant."""
    present = ~np.isnan(X)
    filled = np.where(present, X, 0.0)
    count = np.maximum(present.sum(axis=0), 1)
    centre = filled.sum(axis=0) / count
    centred = np.where(present, X - centre, 0.0)
    scale = np.sqrt((centred**2).sum(axis=0) / count)
    scaled = np.divide(centred, scale, out=np.zeros_like(centred), where=scale > 0)
    return np.column_stack([np.ones(len(X)), scaled])


def _ridge(X: Matrix, y: Vector, penalty: float = 1.0) -> Vector:
    weights = penalty * np.eye(X.shape[1])
    weights[0, 0] = 1e-9  # the mean is not shrunk
    return np.asarray(np.linalg.solve(X.T @ X + weights, X.T @ y), dtype=np.float64)
