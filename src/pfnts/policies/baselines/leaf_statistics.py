"""Trees as arrays, and the statistics of their leaves: the mathematics of TETS (Nilsson et al. 2024)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from pfnts.arrays import Matrix, Vector

Indices = NDArray[np.int64]


@dataclass(frozen=True)
class Trees:
    """M binary trees of at most N nodes, as arrays (M, N); a node without children is its own child."""

    feature: Indices
    """Column that a node asks about."""
    threshold: NDArray[np.float32]
    """A row goes left if its value, in single precision, is at most this."""
    left: Indices
    right: Indices
    missing_left: NDArray[np.bool_]
    """Whether a missing value goes left."""

    @classmethod
    def joined(cls, trees: Sequence[dict[str, NDArray[np.generic]]]) -> Trees:
        """Join single trees, given as the fields' names to arrays (nodes,), children -1 where none.

        Examples
        --------
        >>> stump = {
        ...     "feature": np.array([0, -2, -2]),
        ...     "threshold": np.array([0.5, -2, -2]),
        ...     "left": np.array([1, -1, -1]),
        ...     "right": np.array([2, -1, -1]),
        ...     "missing_left": np.array([True, False, False]),
        ... }
        >>> Trees.joined([stump]).leaves(np.array([[0.2], [0.9], [np.nan]]))[:, 0]
        array([1, 2, 1])
        """
        size = max(len(tree["left"]) for tree in trees)
        shape = (len(trees), size)
        feature, threshold = np.zeros(shape, np.int64), np.zeros(shape, np.float32)
        left, right = (np.tile(np.arange(size), (len(trees), 1)) for _ in range(2))
        missing_left = np.zeros(shape, np.bool_)
        for m, tree in enumerate(trees):
            inner = np.flatnonzero(np.asarray(tree["left"]) >= 0)
            feature[m, inner] = tree["feature"][inner]
            threshold[m, inner] = tree["threshold"][inner]
            left[m, inner] = tree["left"][inner]
            right[m, inner] = tree["right"][inner]
            missing_left[m, inner] = tree["missing_left"][inner]
        return cls(feature, threshold, left, right, missing_left)

    @cached_property
    def _following(self) -> Indices:
        """Children of every node, numbered on through the trees: left at 2i, right at 2i + 1."""
        first = self.left.shape[1] * np.arange(len(self.left))[:, None]
        following: Indices = (np.stack([self.left, self.right], axis=-1) + first[..., None]).ravel()
        return following

    def leaves(self, X: Matrix) -> Indices:
        """Leaf of each row of ``X`` (q, P) in each tree, (q, M)."""
        # Most calls are for one row, so that the number of operations counts, more than their size.
        values, missing = X.astype(np.float32), np.isnan(X)
        feature, threshold, missing_left = (
            part.reshape(-1) for part in (self.feature, self.threshold, self.missing_left)
        )
        roots = self.left.shape[1] * np.arange(len(self.left))
        rows = X.shape[1] * np.arange(len(X))[:, None]
        node = np.tile(roots, (len(X), 1))
        some_missing = missing.any()
        while True:
            asked = rows + feature.take(node)
            right = values.take(asked) > threshold.take(node)
            if some_missing:
                right |= missing.take(asked) > missing_left.take(node)
            following = self._following.take(2 * node + right)
            if (following == node).all():
                leaves: Indices = node - roots
                return leaves
            node = following


class LeafStatistics:
    """Count, mean and scatter of the targets in every leaf, kept up to date between refits.

    A tree adds ``scale * count * mean / (count + penalty)`` to the prediction and
    ``scale^2 * variance / count`` to its variance, with the sample variance of the leaf's targets.

    Parameters
    ----------
    count, mean, scatter
        Number, average and sum of squared deviations of the targets in each leaf, (M, N).
    offset
        What the prediction is before the first tree.
    scale
        Weight of a tree: 1 / M in a forest, the learning rate in boosting.
    penalty
        Prior precision of a leaf's value.
    boosted
        Whether the target of a tree is the residual of the trees before it, or the reward itself.
    """

    def __init__(
        self,
        *,
        count: Matrix,
        mean: Matrix,
        scatter: Matrix,
        offset: float,
        scale: float,
        penalty: float,
        boosted: bool,
    ) -> None:
        self._count, self._mean, self._scatter = (np.array(part) for part in (count, mean, scatter))
        self._offset, self._scale, self._penalty, self._boosted = offset, scale, penalty, boosted
        self._trees = np.arange(len(count))
        self._lonely = lonely_variance(count, mean, scatter)

    def moments(self, leaves: Indices) -> tuple[Vector, Vector]:
        """Mean and variance of the prediction at contexts with ``leaves`` (..., M), both (...)."""
        count, scatter = self._count[self._trees, leaves], self._scatter[self._trees, leaves]
        with np.errstate(divide="ignore", invalid="ignore"):
            variance = np.where(count > 1, scatter / (count - 1), self._lonely)
        mean = self._offset + self._values(leaves).sum(axis=-1)
        return mean, self._scale**2 * (variance / np.maximum(count, 1)).sum(axis=-1)

    def observe(self, leaves: Indices, reward: float) -> None:
        """Add a reward to its ``leaves`` (M,)."""
        at = self._trees, leaves
        target = np.full(len(leaves), reward)
        if self._boosted:
            values = self._values(leaves)
            target -= self._offset + np.cumsum(values) - values
        self._count[at] += 1
        shift = target - self._mean[at]
        self._mean[at] += shift / self._count[at]
        self._scatter[at] += shift * (target - self._mean[at])

    def _values(self, leaves: Indices) -> Matrix:
        count = self._count[self._trees, leaves]
        # an empty leaf adds nothing, also where there is no penalty
        share = count / np.maximum(count + self._penalty, 1e-300)
        values: Matrix = self._scale * share * self._mean[self._trees, leaves]
        return values


def lonely_variance(count: Matrix, mean: Matrix, scatter: Matrix) -> Vector:
    """Variance (M,) to use in leaves with one target: the tree's variance within leaves, or overall.

    A sample variance needs two targets. Boosted trees have leaves with one, above all while data are few.
    """
    freedom = np.maximum(count - 1, 0).sum(axis=1)
    total = np.maximum(count.sum(axis=1), 1)
    centre = (count * mean).sum(axis=1) / total
    overall = (scatter + count * (mean - centre[:, None]) ** 2).sum(axis=1) / total
    within = scatter.sum(axis=1) / np.maximum(freedom, 1)
    result: Vector = np.where(freedom > 0, within, overall)
    return result


def grouped(leaves: Indices, targets: Matrix, size: int) -> tuple[Matrix, Matrix, Matrix]:
    """Count, mean and scatter of ``targets`` (n, M) by their ``leaves`` (n, M), each (M, size).

    Examples
    --------
    >>> grouped(np.array([[1], [1], [0]]), np.array([[2.0], [4.0], [5.0]]), 2)
    (array([[1., 2.]]), array([[5., 3.]]), array([[0., 2.]]))
    """
    trees = leaves.shape[1]
    flat = (leaves + size * np.arange(trees)).ravel()
    count = np.bincount(flat, minlength=trees * size).astype(np.float64)
    mean = np.bincount(flat, weights=targets.ravel(), minlength=trees * size) / np.maximum(count, 1)
    deviation = targets.ravel() - mean[flat]
    scatter: Matrix = np.bincount(flat, weights=deviation**2, minlength=trees * size).astype(np.float64)
    shape = (trees, size)
    return count.reshape(shape), mean.reshape(shape), scatter.reshape(shape)
