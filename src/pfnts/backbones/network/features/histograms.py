"""Sums over the rows of trees' nodes by histograms: one addition per row and column, not per candidate split.

On a CPU this takes a fraction of the time of matrix products, which suit a card. The sums are identical,
because only whole numbers are added; so when a node is split, only the rows on its right are added up.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating[Any]]
Places = NDArray[np.intp]

COUNT = 2.0**32
"""Added to the target of each row in a sum, to count rows; targets are far below half of it."""
CELLS = 2**17
"""Rows times columns of one call, about what a cache holds."""


class Bins:
    """Rows of B histories with each value replaced by the number of thresholds below it.

    Parameters
    ----------
    X
        (B, n, P)
    thresholds
        (B, E, P), in increasing order, E < 256.

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
        """Thresholds of a column; no row is above a threshold of this number."""
        self.number = np.empty((batch, self.features, rows), dtype=np.uint8)
        for x, cuts, number in zip(X, thresholds, self.number, strict=True):
            for p in range(self.features):
                number[p] = cuts[:, p].searchsorted(x[:, p])
        self._column = rows * np.arange(batch * self.features).reshape(batch, -1)
        self._row = np.arange(rows)

    def above(self, columns: Places, numbers: Places, leaf: Places) -> NDArray[np.bool_]:
        """Return whether rows are above the thresholds of their leaves (B, T, n), numbered (B, T, L)."""
        history = np.arange(len(columns))[:, None, None]
        at = of_leaf(self._column[history, columns], leaf) + self._row
        return self.number.ravel().take(at) > of_leaf(numbers, leaf)


class BinSums:
    """Sums of whole numbers (B, n) over rows, which T trees count ``weight`` (T, n) times."""

    def __init__(self, bins: Bins, weight: Floats, whole: Floats) -> None:
        amount = weight * (COUNT + whole[:, None].astype(np.float64))  # (B, T, n)
        self._shape, self._bins = amount.shape, bins.most + 1
        self._counted = np.flatnonzero(amount)
        self._amount = amount.ravel().take(self._counted)
        row = np.broadcast_to(np.arange(whole.size).reshape(len(whole), 1, -1), amount.shape)
        number = bins.number.transpose(1, 0, 2).reshape(bins.features, -1)
        self._number = number.take(row.ravel().take(self._counted), 1)  # (P, rows that count)

    def beyond(self, leaf: Places, nodes: Floats | None) -> Floats:
        """Return count and sum of the rows of each leaf from a bin on, (2, B, T, leaves, E + 1, P).

        Leaves are the halves of ``nodes``, of which the same is given, or else there is one leaf of all rows.
        """
        if nodes is None:
            return self._beyond(self._leaf_of_each(leaf, 1), self._number, self._amount, 1)
        parents = nodes.shape[3]
        each = self._leaf_of_each(leaf, 2 * parents)
        some = np.flatnonzero(each & 1)
        number, amount = self._number.take(some, 1), self._amount.take(some)
        right = self._beyond(each.take(some) >> 1, number, amount, parents)
        return np.stack([nodes - right, right], 4).reshape(*nodes.shape[:3], -1, *nodes.shape[4:])

    def _beyond(self, leaf: Places, number: NDArray[np.uint8], amount: Floats, leaves: int) -> Floats:
        """Return the same of rows with their bins (P, rows), and what each adds."""
        shape, features = (*self._shape[:2], leaves, self._bins), len(number)
        together = min(features, max(1, CELLS // max(1, len(amount))))
        parts, begin = [], leaf * self._bins
        for first in range(0, features, together):
            part = number[first : first + together]
            count = len(part)
            at = np.add(begin, part, dtype=np.intp)
            at *= count
            at += np.arange(count)[:, None]
            sums = np.bincount(at.ravel(), np.tile(amount, count), math.prod(shape) * count)
            parts.append(sums.reshape(*shape, count))
        sums = parts[0] if len(parts) == 1 else np.concatenate(parts, -1)
        return _apart(sums[..., ::-1, :].cumsum(-2)[..., ::-1, :])

    def of_leaves(self, leaf: Places, leaves: int) -> Floats:
        """Return count and sum of all rows in each leaf, (2, B, T, leaves)."""
        shape = (*self._shape[:2], leaves)
        sums = np.bincount(self._leaf_of_each(leaf, leaves), self._amount, math.prod(shape))
        return _apart(sums.reshape(shape))

    def _leaf_of_each(self, leaf: Places, leaves: int) -> Places:
        """Return the leaf of each row that counts, numbered through all trees of all histories."""
        return numbered(leaf, leaves).ravel().take(self._counted)


def numbered(leaf: Places, leaves: int) -> Places:
    """Number the leaves (B, T, n) of T trees through all trees of all histories."""
    batch, trees, _ = leaf.shape
    return leaf + leaves * np.arange(batch * trees).reshape(batch, trees, 1)


def of_leaf(values: NDArray[Any], leaf: Places) -> NDArray[Any]:
    """Return the value (B, T, n) at the leaf of each row, of values (B, T, L)."""
    return values.ravel().take(numbered(leaf, values.shape[2]))


def _apart(sums: Floats) -> Floats:
    """Split sums into counts and the rest, (2, ...), whole numbers in single precision."""
    apart = np.empty((2, *sums.shape), dtype=np.float32)
    count = np.rint(sums / COUNT)
    apart[0] = count
    np.subtract(sums, count * COUNT, out=apart[1], casting="same_kind")
    return apart
