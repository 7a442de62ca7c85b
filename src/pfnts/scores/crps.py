"""The continuous ranked probability score of a distribution given by quantiles."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]


def crps(levels: ArrayLike, quantiles: ArrayLike, y: ArrayLike) -> Array:
    """CRPS of each outcome, the integral of (F(u) - 1{u >= y})^2 du; lower is better.

    The quantile function is taken as linear between the levels and flat beyond the first and the last, for
    which the integral is exact. Quantiles that cross are put in order first.

    Parameters
    ----------
    levels
        Increasing probabilities, (L,).
    quantiles
        The quantiles at those levels, (L, ...).
    y
        Outcomes, (...).

    Examples
    --------
    >>> crps([0.0, 1.0], [[0.0], [1.0]], [0.5])  # uniform on [0, 1]: 1/3 - y (1 - y)
    array([0.08333333])
    """
    tau, values, outcome = _check(levels, quantiles, y)
    tau = tau.reshape(-1, *[1] * outcome.ndim)
    start, end = values[:-1], values[1:]
    split = np.clip(outcome, start, end)
    width = end - start
    share = np.divide(split - start, width, out=np.zeros_like(width), where=width > 0)
    at_split = tau[:-1] + share * (tau[1:] - tau[:-1])
    inside = (split - start) * _mean_square(tau[:-1], at_split)
    inside += (end - split) * _mean_square(1 - at_split, 1 - tau[1:])
    outside = np.maximum(values[0] - outcome, 0.0) + np.maximum(outcome - values[-1], 0.0)
    score: Array = inside.sum(axis=0) + outside
    return score


def _mean_square(a: Array, b: Array) -> Array:
    """Average of the square of a line that runs from a to b."""
    average: Array = (a * a + a * b + b * b) / 3
    return average


def _check(levels: ArrayLike, quantiles: ArrayLike, y: ArrayLike) -> tuple[Array, Array, Array]:
    tau = np.asarray(levels, dtype=np.float64)
    values = np.asarray(quantiles, dtype=np.float64)
    outcome = np.asarray(y, dtype=np.float64)
    if tau.ndim != 1 or len(tau) == 0 or not ((tau >= 0) & (tau <= 1)).all() or (np.diff(tau) <= 0).any():
        raise ValueError(f"levels must be increasing probabilities in one row, got {tau}")
    if values.shape != (len(tau), *outcome.shape):
        raise ValueError(
            f"quantiles must have shape (levels, *y.shape) = {(len(tau), *outcome.shape)}, got {values.shape}"
        )
    for name, array in (("quantiles", values), ("y", outcome)):
        if not np.isfinite(array).all():
            raise ValueError(f"{name} must be finite, got {array[~np.isfinite(array)][0]}")
    return tau, np.sort(values, axis=0), outcome
