"""Sums over the rows of trees' leaves by histograms: an addition for a row and a column, not for a question.

It takes a CPU a fraction of the time of the products of matrices that suit a card, and the sums are the same
to the last bit, since all that is added up are whole numbers. So where a node's rows are parted, those on the
right are added up, and the others are what is left.
"""

from __future__ import annotations

import math
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
    >>> [part.ravel().tolist() for part in sums.beyond(np.zeros((1, 1, 3), dtype=np.intp), None)]
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
    """Sums over rows, which T trees count ``weight`` (T, n) times, of whole numbers (B, n).

    Rows that do not count are left out.
    """

    def __init__(self, bins: Bins, weight: Floats, whole: Floats) -> None:
        amount = weight * (COUNT + whole[:, None].astype(np.float64))  # (B, T, n)
        self._shape, self._bins, self._features = amount.shape, bins.most + 1, bins.features
        self._counted = np.flatnonzero(amount)
        self._amount = amount.ravel().take(self._counted)
        row = np.broadcast_to(np.arange(whole.size).reshape(len(whole), 1, -1), amount.shape)
        number = bins.number.transpose(1, 0, 2).reshape(bins.features, -1)
        self._place = number.take(row.ravel().take(self._counted), 1)
        self._place *= bins.features
        self._place += np.arange(bins.features)[:, None]

    def beyond(self, leaf: Places, nodes: Floats | None) -> Floats:
        """Count and sum of rows in each leaf from a bin on, (2, B, T, leaves, E + 1, P).

        There are two leaves for each of the ``nodes``, of which the same is known, or else one for all rows.
        """
        if nodes is None:
            return self._beyond(self._leaf_of_each(leaf, 1), self._place, self._amount, 1)
        parents = nodes.shape[3]
        each = self._leaf_of_each(leaf, 2 * parents)
        some = np.flatnonzero(each & 1)
        place, amount = self._place.take(some, 1), self._amount.take(some)
        right = self._beyond(each.take(some) >> 1, place, amount, parents)
        return np.stack([nodes - right, right], 4).reshape(*nodes.shape[:3], -1, *nodes.shape[4:])

    def _beyond(self, leaf: Places, place: Places, amount: Floats, leaves: int) -> Floats:
        """The same of some of the rows that count, by the leaf of each."""
        shape = (*self._shape[:2], leaves, self._bins, self._features)
        at = place + leaf * (self._bins * self._features)
        sums = np.bincount(at.ravel(), np.tile(amount, self._features), math.prod(shape))
        return _apart(sums.reshape(shape)[..., ::-1, :].cumsum(-2)[..., ::-1, :])

    def of_leaves(self, leaf: Places, leaves: int) -> Floats:
        """Count and sum of all rows in each leaf, (2, B, T, leaves)."""
        shape = (*self._shape[:2], leaves)
        sums = np.bincount(self._leaf_of_each(leaf, leaves), self._amount, math.prod(shape))
        return _apart(sums.reshape(shape))

    def _leaf_of_each(self, leaf: Places, leaves: int) -> Places:
        """The leaf of each row that counts, numbered through all trees of all histories."""
        return numbered(leaf, leaves).ravel().take(self._counted)


def numbered(leaf: Places, leaves: int) -> Places:
    """Leaves (B, T, n) of each of T trees as numbered through all trees of all histories."""
    batch, trees, _ = leaf.shape
    return leaf + leaves * np.arange(batch * trees).reshape(batch, trees, 1)


def of_leaf(values: NDArray[Any], leaf: Places) -> NDArray[Any]:
    """What stands at the leaf of each row, (B, T, n), of values (B, T, L)."""
    return values.ravel().take(numbered(leaf, values.shape[2]))


def _apart(sums: Floats) -> Floats:
    """Counts, and the rest, (2, ...), as whole numbers in single precision."""
    apart = np.empty((2, *sums.shape), dtype=np.float32)
    count = np.rint(sums / COUNT)
    apart[0] = count
    np.subtract(sums, count * COUNT, out=apart[1], casting="same_kind")
    return apart
