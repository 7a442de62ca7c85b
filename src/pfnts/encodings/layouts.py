"""The three fixed ways to tell a model which arm a row belongs to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]


class Layout(Protocol):
    """Which sequence an arm's rows go to, and what a row looks like there."""

    @property
    def name(self) -> str:
        """The word by which `pfnts.encodings.start` finds it."""
        ...

    @property
    def shared(self) -> bool:
        """Whether all arms live in one sequence."""
        ...

    def features(self, X: Matrix, arms: NDArray[np.int64], *, n_arms: int) -> Matrix:
        """Rows of the sequence for contexts ``X`` (n, P) and arm numbers (n,)."""
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

    def features(self, X: Matrix, arms: NDArray[np.int64], *, n_arms: int) -> Matrix:  # noqa: ARG002
        """Rows as they are, (n, P)."""
        return X


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

    def features(self, X: Matrix, arms: NDArray[np.int64], *, n_arms: int) -> Matrix:
        """Rows (n, P + n_arms)."""
        return np.concatenate([X, np.eye(n_arms)[arms]], axis=1)


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

    def features(self, X: Matrix, arms: NDArray[np.int64], *, n_arms: int) -> Matrix:
        """Rows (n, P n_arms)."""
        rows = np.zeros((len(X), n_arms, X.shape[1]))
        rows[np.arange(len(X)), arms] = X
        return rows.reshape(len(X), -1)
