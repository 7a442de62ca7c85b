"""Products of what is known of the context with what is known of the arm."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pfnts.arrays import Matrix, Vector

_FARTHEST = 10.0
"""Standard deviations from the mean beyond which a value counts as if it was there."""


@dataclass(frozen=True)
class Scaling:
    """Columns in standard deviations from their means over some rows; a missing value counts as the mean.

    Examples
    --------
    >>> Scaling.of(np.array([[1.0, 5.0], [3.0, 5.0]]))(np.array([[3.0, 6.0], [np.nan, 5.0]]))
    array([[1., 1.],
           [0., 0.]])
    """

    centre: Vector
    """(W,) means."""
    scale: Vector
    """(W,) standard deviations; 1 where a column is constant."""

    @classmethod
    def of(cls, X: Matrix) -> Scaling:
        """Those of rows (n, W)."""
        seen = np.maximum((~np.isnan(X)).sum(axis=0), 1)
        centre = np.nansum(X, axis=0) / seen
        scale = np.sqrt(np.nansum((X - centre) ** 2, axis=0) / seen)
        return cls(centre, np.where(scale > 0, scale, 1.0))

    def __call__(self, X: Matrix) -> Matrix:
        """Scale rows (n, W)."""
        Z: Matrix = np.clip((X - self.centre) / self.scale, -_FARTHEST, _FARTHEST)
        return np.where(np.isnan(Z), 0.0, Z)


@dataclass(frozen=True)
class Interactions:
    """Each column of the context times each of the arm, scaled first: which arm is best depends on them.

    A product of columns that are far from zero says little beside the columns themselves; of scaled ones it
    says what neither says alone.

    Examples
    --------
    >>> rows = np.array([[1.0, 7.0, 0.0], [3.0, 9.0, 2.0], [1.0, 9.0, 2.0], [3.0, 7.0, 0.0]])
    >>> Interactions(Scaling.of(rows), width=1)(rows)
    array([[ 1.,  1.],
           [ 1.,  1.],
           [-1., -1.],
           [-1., -1.]])
    """

    scaling: Scaling
    width: int
    """Columns of the context; the others are the arm's."""

    def __call__(self, X: Matrix) -> Matrix:
        """Products (n, P A) of the columns of rows (n, P + A)."""
        Z = self.scaling(X)
        return products(Z[:, : self.width], Z[:, self.width :])


def products(left: Matrix, right: Matrix) -> Matrix:
    """Each column of (n, P) times each of (n, A): (n, P A).

    Examples
    --------
    >>> products(np.array([[2.0, 3.0]]), np.array([[5.0, 7.0]]))
    array([[10., 14., 15., 21.]])
    """
    return np.asarray((left[:, :, None] * right[:, None, :]).reshape(len(left), -1))
