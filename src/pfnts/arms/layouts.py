"""Ways to tell a model which arm a row belongs to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from pfnts.contexts import Schema

Matrix = NDArray[np.float64]
_ROWS_PER_COLUMN, _MOST_WARMUP, _MOST_INTERACTIONS = 2, 64, 64


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

    @property
    def by_features(self) -> Features | None:
        """How arms are judged by their features; None where each is judged by its own rows."""
        ...

    def features(self, X: Matrix, arms: NDArray[np.int64], *, n_arms: int) -> Matrix:
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
    by_features = None

    def features(self, X: Matrix, arms: NDArray[np.int64], *, n_arms: int) -> Matrix:  # noqa: ARG002
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
    by_features = None

    def features(self, X: Matrix, arms: NDArray[np.int64], *, n_arms: int) -> Matrix:
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
    by_features = None

    def features(self, X: Matrix, arms: NDArray[np.int64], *, n_arms: int) -> Matrix:
        """Rows (n, P n_arms)."""
        rows = np.zeros((len(X), n_arms, X.shape[1]))
        rows[np.arange(len(X)), arms] = X
        return rows.reshape(len(X), -1)

    def arm_columns(self, width: int, *, n_arms: int) -> range:  # noqa: ARG002
        """None: the place of a value names the arm."""
        return range(0)


@dataclass(frozen=True)
class Features:
    """One sequence for all arms, in which a row is the context and the features of the arm.

    Arms are judged by what they have in common, so that an arm never pulled is no stranger. Warm-up is
    pooled: any arm is drawn at random until the sequence holds two rows for each of its columns, at least
    ``warmup`` and at most 64 whatever the number of arms; from then on all arms are warm, new ones too.

    Parameters
    ----------
    identity
        Whether the arm itself is among the columns, for what its features do not say.
    shortlist
        The largest number of arms that the network is asked about: those with the largest upper quantiles by
        a ridge regression on the same rows.
    explore
        Share of the decisions among more arms than that in which an arm is drawn uniformly, so that none
        is starved by a poor shortlist.
    interactions
        Whether products of context and features join the columns when the warm-up is over, as long as there
        are no more than 64.
    schema
        What the columns of features are; inferred from those of the first arms when not given.

    Examples
    --------
    >>> Features(identity=True).features(np.array([[0.5, 9.9]]), np.array([1]), n_arms=2)
    array([[0.5, 9.9, 0. , 1. ]])
    """

    identity: bool = False
    shortlist: int = 32
    explore: float = 0.01
    interactions: bool = True
    schema: Schema | None = None
    name: ClassVar[str] = "features"
    shared: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not self.shortlist >= 1 or self.shortlist % 1:
            raise ValueError(f"shortlist must be a number of arms from 1 on, got {self.shortlist!r}")
        if not 0 <= self.explore <= 1:
            raise ValueError(f"explore must be between 0 and 1, a share of the decisions, got {self.explore}")
        if self.schema is not None:
            object.__setattr__(self, "schema", Schema.of(self.schema))

    @property
    def by_features(self) -> Features:
        """This way."""
        return self

    def features(self, X: Matrix, arms: NDArray[np.int64], *, n_arms: int) -> Matrix:
        """Rows as they are, and with ``identity`` a one-hot vector."""
        return Joint().features(X, arms, n_arms=n_arms) if self.identity else X

    def arm_columns(self, width: int, *, n_arms: int) -> range:
        """The one-hot vector."""
        return range(width, width + n_arms * self.identity)

    def pooled_warmup(self, width: int, *, warmup: int) -> int:
        """Rows of the sequence without which all arms are cold, where a row has ``width`` floats."""
        return max(warmup, min(_ROWS_PER_COLUMN * width, _MOST_WARMUP))

    def interacts(self, width: int, n_features: int) -> bool:
        """Whether there are interactions of ``width`` columns of contexts with ``n_features`` of arms."""
        return self.interactions and 0 < width * n_features <= _MOST_INTERACTIONS
