"""What the policy earns over the holdout, doubly robust."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]
Vector = NDArray[np.float64]
_Z = 1.959963984540054
_FEWEST = 20
"""Rewards that each group needs."""


@dataclass(frozen=True)
class Lift:
    """Difference of mean rewards, policy less holdout, with a 95 % interval."""

    value: float
    low: float
    high: float
    policy: float
    holdout: float
    rows: int


def lift(contexts: Matrix, rewards: Sequence[float], treated: Sequence[bool], *, share: float) -> Lift | None:
    """Estimate the lift by the doubly robust (AIPW) score with ridge regressions, cross-fitted on two halves.

    Who is held out was drawn with a known probability, so that the estimate is right whatever the regressions
    say; they only make its interval shorter.

    Parameters
    ----------
    contexts
        (n, P), NaN where a value is missing.
    rewards
        (n,)
    treated
        (n,) whether the policy decided.
    share
        Probability of being held out.

    Returns
    -------
    None where a group has too few rewards.
    """
    y, a = np.asarray(rewards, dtype=np.float64), np.asarray(treated, dtype=bool)
    if min(a.sum(), (~a).sum()) < _FEWEST or not 0 < share < 1:
        return None
    if y[a].std() == 0 or y[~a].std() == 0:  # rewards all alike say nothing about how much they vary
        return None
    X = _design(contexts)
    fold = np.arange(len(y)) % 2
    outcomes = np.empty((2, len(y)))
    for half in (0, 1):
        for group in (0, 1):
            fit = (fold != half) & (a == bool(group))
            outcomes[group, fold == half] = X[fold == half] @ _ridge(X[fit], y[fit])
    under_holdout, under_policy = outcomes
    score = (
        under_policy
        - under_holdout
        + np.where(a, (y - under_policy) / (1 - share), -(y - under_holdout) / share)
    )
    value, reach = float(score.mean()), float(_Z * score.std(ddof=1) / np.sqrt(len(y)))
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
