"""Wide tables made narrow enough for attention."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

PROJECTED = 8
"""Columns into which all that are not kept are mixed."""


@dataclass(frozen=True)
class ColumnReduction:
    """Keeps the columns that go most with the target, and mixes the others into a few."""

    kept: NDArray[np.intp]
    """Columns that stay."""
    rest: NDArray[np.intp]
    """Columns that are mixed."""
    mixing: NDArray[np.float64]
    """(len(rest), PROJECTED) random signs over the columns' scales: similar rows stay similar."""
    centre: NDArray[np.float64]
    """(len(rest),)"""

    def places(self, columns: Sequence[int]) -> list[int]:
        """Where columns that are kept stand among those that are left.

        Examples
        --------
        >>> ColumnReduction(np.array([0, 3, 5]), np.array([1]), np.zeros((1, 8)), np.zeros(1)).places([3, 5])
        [1, 2]
        """
        places: list[int] = np.searchsorted(self.kept, list(columns)).tolist()
        return places

    @staticmethod
    def of(
        X: NDArray[np.float64], y: NDArray[np.float64], *, width: int, keep: Sequence[int] = ()
    ) -> ColumnReduction:
        """Choose by how much columns go with the target over some first rows.

        Parameters
        ----------
        X
            The rows, (n, P); NaN where missing.
        y
            Their targets, (n,).
        width
            Columns to be left; more if there are more to ``keep``.
        keep
            Columns that are never mixed.

        Examples
        --------
        >>> X = np.random.default_rng(0).normal(size=(50, 100))
        >>> reduction = ColumnReduction.of(X, X[:, 70], width=40)
        >>> 70 in reduction.kept, reduction(X).shape
        (True, (50, 40))
        """
        features = X.shape[1]
        everything, width = np.arange(features), max(width, len(keep) + PROJECTED)
        if features <= width:
            return ColumnReduction(everything, everything[:0], np.zeros((0, 0)), np.zeros(0))
        score, variation = association(X, y), np.isfinite(X).any(0) & (np.nanmax(X, 0) > np.nanmin(X, 0))
        score[list(keep)] = np.inf
        # ties (a constant target, say) go to columns that vary
        order = np.lexsort((~variation, -score))
        kept, rest = np.sort(order[: width - PROJECTED]), np.sort(order[width - PROJECTED :])
        centre, scale = moments(X[:, rest])
        sign = np.random.default_rng(0).choice([-1.0, 1.0], size=(features, PROJECTED))[rest]
        return ColumnReduction(kept, rest, sign / scale[:, None] / np.sqrt(len(rest)), centre)

    def __call__(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """Reduce (n, P)."""
        if not len(self.rest):
            return X
        others = X[:, self.rest] - self.centre
        others[np.isnan(others)] = 0.0
        return np.concatenate([X[:, self.kept], others @ self.mixing], axis=1)


def association(X: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.float64]:
    """How much each column (n, P) goes with the target (n,), from 0 to 1.

    The largest of three correlations: of the values, of their ranks, and of how far the ranks are from the
    middle, which finds what plain correlation does not.

    Examples
    --------
    >>> x = np.linspace(-1, 1, 50)
    >>> association(np.stack([x**3, x**2, np.ones(50)], 1), x).round(1)
    array([1., 0., 0.])
    >>> association(x[:, None], x**2).round(1)
    array([1.])
    """
    centre, scale = moments(X)
    values = (np.where(np.isnan(X), centre, X) - centre) / scale
    ranks = rankdata(values, axis=0) / len(y) - (len(y) + 1) / (2 * len(y))
    target = rankdata(y) - (len(y) + 1) / 2
    y_centre, y_scale = moments(y[:, None])
    plain = correlation(values, (y - y_centre) / y_scale)
    found: NDArray[np.float64] = np.max(
        [plain, correlation(ranks, target), correlation(ranks**2, target)], axis=0
    )
    return found


def correlation(X: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.float64]:
    """Absolute correlation of each column (n, P) with (n,); zero for a constant."""
    X, y = X - X.mean(0), y - y.mean()
    size = np.sqrt((X**2).sum(0) * (y**2).sum())
    product: NDArray[np.float64] = np.abs(y @ X)
    return np.divide(product, size, out=np.zeros_like(product), where=size > 1e-12)


def moments(X: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean and standard deviation of each column (n, P) without its missing values; 0 and 1 if there is none.

    Columns are measured in units of their largest value, whose square need not be finite.
    """
    seen = ~np.isnan(X)
    count = np.maximum(seen.sum(0), 1)
    unit = np.where(seen, np.abs(X), 0.0).max(0)
    unit[unit == 0] = 1.0
    value = np.where(seen, X / unit, 0.0)
    centre = value.sum(0) / count
    scale = np.sqrt((np.where(seen, value - centre, 0.0) ** 2).sum(0) / count)
    return centre * unit, np.where(scale > 0, scale * unit, 1.0)
