"""Sums over the rows of trees' leaves by histograms: an addition for a row and a column, not for a question.

It takes a CPU a fraction of the time of the products of matrices that suit a card, and the sums are the same
to the last bit, since all that is added up are whole numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating[Any]]
Places = NDArray[np.intp]

COUNT = 2.0**32
"""What a row adds to the sum of a bin beside its target, which is far below half of it."""


class Bins:
    """Rows of B histories with each column as the number of its thresholds that a row lies above.

    Parameters
    ----------
    X
        (B, n, P)
    thresholds
        (B, E, P), none below the one before it.

    Examples
    --------
    >>> bins = Bins(np.array([[[0.2], [0.6], [0.9]]]), np.array([[[0.5]]]))
    >>> sums = BinSums(bins, np.array([[1.0, 2.0, 1.0]]), np.array([[5.0, 7.0, -1.0]]))
    >>> [part.ravel().tolist() for part in sums.beyond(np.zeros((1, 1, 3), dtype=np.intp), 1)]
    [[4.0, 3.0], [18.0, 13.0]]
    """

    def __init__(self, X: Floats, thresholds: Floats) -> None:
        batch, rows, self.features = X.shape
        self.most = thresholds.shape[1]
        """In a column; above a threshold with this number lies no row."""
        self.number = np.empty((batch, self.features, rows), dtype=np.intp)
        for x, cuts, number in zip(X, thresholds, self.number, strict=True):
            for p in range(self.features):
                number[p] = cuts[:, p].searchsorted(x[:, p])
        self._column = rows * np.arange(batch * self.features).reshape(batch, -1)
        self._row = np.arange(rows)

    def above(self, columns: Places, numbers: Places, leaf: Places) -> NDArray[np.bool_]:
        """Whether rows lie above the threshold of their leaf (B, T, n).

        It is one of ``columns`` and has one of ``numbers``, (B, T, L) both.
        """
        history = np.arange(len(columns))[:, None, None]
        at = of_leaf(self._column[history, columns], leaf) + self._row
        return self.number.ravel().take(at) > of_leaf(numbers, leaf)


class BinSums:
    """Sums over rows, which T trees count ``weight`` (T, n) times, of whole numbers (B, n)."""

    def __init__(self, bins: Bins, weight: Floats, whole: Floats) -> None:
        self._bins, self._features = bins.most + 1, bins.features
        self._place = bins.number * bins.features + np.arange(bins.features)[:, None]
        self._amount = weight * (COUNT + whole[:, None].astype(np.float64))  # (B, T, n)
        self._amounts = self._amount[:, :, None].repeat(bins.features, 2)
        self._at = np.empty(self._amounts.shape, dtype=np.intp)

    def beyond(self, leaf: Places, leaves: int) -> tuple[Floats, Floats]:
        """Counts and sums of rows in each leaf from a bin on, (B, T, leaves, E + 1, P) each."""
        (batch, trees, _), features = leaf.shape, self._features
        each = self._bins * features
        np.add(each * numbered(leaf, leaves)[:, :, None], self._place[:, None], out=self._at)
        sums = np.bincount(self._at.ravel(), self._amounts.ravel(), batch * trees * leaves * each)
        sums = sums.reshape(batch, trees, leaves, self._bins, features)[..., ::-1, :]
        return _apart(sums.cumsum(-2)[..., ::-1, :])

    def of_leaves(self, leaf: Places, leaves: int) -> tuple[Floats, Floats]:
        """Counts and sums of all rows in each leaf, (B, T, leaves) each."""
        shape = (*leaf.shape[:2], leaves)
        sums = np.bincount(numbered(leaf, leaves).ravel(), self._amount.ravel(), np.prod(shape))
        return _apart(sums.reshape(shape))


def numbered(leaf: Places, leaves: int) -> Places:
    """Leaves (B, T, n) of each of T trees as numbered through all trees of all histories."""
    batch, trees, _ = leaf.shape
    return leaf + leaves * np.arange(batch * trees).reshape(batch, trees, 1)


def of_leaf(values: NDArray[Any], leaf: Places) -> NDArray[Any]:
    """What stands at the leaf of each row, (B, T, n), of values (B, T, L)."""
    return values.ravel().take(numbered(leaf, values.shape[2]))


def _apart(sums: Floats) -> tuple[Floats, Floats]:
    """Counts, and the rest, as whole numbers in single precision."""
    count = np.rint(sums / COUNT)
    return count.astype(np.float32), (sums - count * COUNT).astype(np.float32)
