"""Ways to tell a model which arm a row belongs to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from pfnts.arrays import Counts, Matrix


@runtime_checkable
class Layout(Protocol):
    """Which sequence an arm's rows go to, and what a row looks like there.

    One of your own may be passed as ``encoding``; it needs these members and nothing else.
    """

    @property
    def name(self) -> str:
        """Name shown to users; part of a posterior's version."""
        ...

    @property
    def shared(self) -> bool:
        """Whether all arms live in one sequence."""
        ...

    def features(self, X: Matrix, arms: Counts, *, n_arms: int) -> Matrix:
        """Rows of the sequence for contexts ``X`` (n, P) and arm numbers (n,) below ``n_arms``.

        Where arms have features, these are the last columns of ``X``.
        """
        ...

    def arm_columns(self, width: int, *, n_arms: int) -> range:
        """Columns of a row that name the arm, where contexts have ``width`` floats: not to be mixed away."""
        ...


@dataclass(frozen=True)
class Disjoint:
    """One sequence per arm, which sees the contexts alone.

    Examples
    --------
    >>> Disjoint().features(np.array([[0.5, 0.1]]), np.array([1]), n_arms=2)
    array([[0.5, 0.1]])
    """

    name = "disjoint"
    shared = False

    def features(self, X: Matrix, arms: Counts, *, n_arms: int) -> Matrix:  # noqa: ARG002
        """Rows as they are, (n, P)."""
        return X

    def arm_columns(self, width: int, *, n_arms: int) -> range:  # noqa: ARG002
        """None."""
        return range(0)


@dataclass(frozen=True)
class Joint:
    """One sequence for all arms, the arm appended to the context as a one-hot vector.

    Examples
    --------
    >>> Joint().features(np.array([[0.5, 0.1]]), np.array([1]), n_arms=2)
    array([[0.5, 0.1, 0. , 1. ]])
    """

    name = "joint"
    shared = True

    def features(self, X: Matrix, arms: Counts, *, n_arms: int) -> Matrix:
        """Rows (n, P + n_arms); the vector is all zeros for a candidate, which is no arm."""
        one_hot = np.zeros((len(arms), n_arms))
        known = np.flatnonzero(arms >= 0)
        one_hot[known, arms[known]] = 1.0
        return np.concatenate([X, one_hot], axis=1)

    def arm_columns(self, width: int, *, n_arms: int) -> range:
        """The one-hot vector."""
        return range(width, width + n_arms)


@dataclass(frozen=True)
class Block:
    """One sequence for all arms, the context standing in the arm's block and zeros elsewhere.

    Examples
    --------
    >>> Block().features(np.array([[0.5, 0.1]]), np.array([1]), n_arms=2)
    array([[0. , 0. , 0.5, 0.1]])
    """

    name = "block"
    shared = True

    def features(self, X: Matrix, arms: Counts, *, n_arms: int) -> Matrix:
        """Rows (n, P n_arms)."""
        rows = np.zeros((len(X), n_arms, X.shape[1]))
        rows[np.arange(len(X)), arms] = X
        return rows.reshape(len(X), -1)

    def arm_columns(self, width: int, *, n_arms: int) -> range:  # noqa: ARG002
        """None: the place of a value names the arm."""
        return range(0)
