"""Wide tables made narrow enough for attention."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

KEPT = 32
PROJECTED = 8


@dataclass(frozen=True)
class ColumnReduction:
    """Keeps the columns that go most with the target, and mixes the others into a few.

    Tables of up to ``KEPT + PROJECTED`` columns pass as they are.
    """

    kept: NDArray[np.intp]
    """Columns that stay."""
    rest: NDArray[np.intp]
    """Columns that are mixed."""
    mixing: NDArray[np.float64]
    """(len(rest), PROJECTED) random signs over the columns' scales: similar rows stay similar."""
    centre: NDArray[np.float64]
    """(len(rest),)"""

    @staticmethod
    def of(X: NDArray[np.float64], y: NDArray[np.float64]) -> ColumnReduction:
        """Choose by the correlation with the target over some first rows.

        Examples
        --------
        >>> X = np.random.default_rng(0).normal(size=(50, 100))
        >>> reduction = ColumnReduction.of(X, X[:, 70])
        >>> 70 in reduction.kept, reduction(X).shape
        (True, (50, 40))
        """
        features = X.shape[1]
        everything = np.arange(features)
        if features <= KEPT + PROJECTED:
            return ColumnReduction(everything, everything[:0], np.zeros((0, 0)), np.zeros(0))
        filled = np.where(np.isnan(X), 0.0, X)
        centre, scale = filled.mean(0), filled.std(0)
        with np.errstate(invalid="ignore", divide="ignore"):
            correlation = np.abs((filled - centre).T @ (y - y.mean())) / (len(y) * scale * y.std())
        # ties (a constant target, say) go to the columns that vary most
        order = np.lexsort((-scale, -np.nan_to_num(correlation)))
        kept, rest = np.sort(order[:KEPT]), np.sort(order[KEPT:])
        sign = np.random.default_rng(0).choice([-1.0, 1.0], size=(features, PROJECTED))[rest]
        mixing = sign / np.where(scale[rest] > 0, scale[rest], 1.0)[:, None] / np.sqrt(len(rest))
        return ColumnReduction(kept, rest, mixing, centre[rest])

    def __call__(self, X: NDArray[np.float64]) -> NDArray[np.float64]:
        """Reduce (n, P)."""
        if not len(self.rest):
            return X
        others = np.where(np.isnan(X[:, self.rest]), 0.0, X[:, self.rest]) - self.centre
        return np.concatenate([X[:, self.kept], others @ self.mixing], axis=1)
