"""Arms judged by their features: one sequence for all, in which a row is the context and the features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from pfnts.arrays import Counts, Matrix
from pfnts.contexts import Schema
from pfnts.layouts.layout import Joint

_ROWS_PER_COLUMN, _MOST_WARMUP, _MOST_INTERACTIONS = 2, 64, 64


@dataclass(frozen=True)
class ByFeatures:
    """One sequence for all arms, whose features are the last columns of a row.

    Examples
    --------
    >>> import numpy as np
    >>> ByFeatures(identity=True).features(np.array([[0.5, 9.9]]), np.array([1]), n_arms=2)
    array([[0.5, 9.9, 0. , 1. ]])
    """

    identity: bool = False
    """Whether a one-hot vector of the arm follows."""
    name: ClassVar[str] = "features"
    shared: ClassVar[bool] = True

    def features(self, X: Matrix, arms: Counts, *, n_arms: int) -> Matrix:
        """Rows as they are, and with ``identity`` a one-hot vector."""
        return Joint().features(X, arms, n_arms=n_arms) if self.identity else X

    def arm_columns(self, width: int, *, n_arms: int) -> range:
        """The one-hot vector."""
        return range(width, width + n_arms * self.identity)


@dataclass(frozen=True)
class Features:
    """Judge arms by their features, so that the rewards of an arm never pulled are predicted too.

    Warm-up is pooled: any arm is drawn at random until the sequence holds two rows for each of its columns,
    at least ``warmup`` and at most 64 whatever the number of arms; from then on all arms are warm, new ones
    too.

    Parameters
    ----------
    identity
        Whether the arm itself is among the columns, for what its features do not say.
    shortlist
        The largest number of arms that the network predicts: those with the largest upper quantiles by a
        ridge regression on the same rows.
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
    >>> Features(shortlist=16).pooled_warmup(4, warmup=5)
    8
    """

    identity: bool = False
    shortlist: int = 32
    explore: float = 0.01
    interactions: bool = True
    schema: Schema | None = None
    name: ClassVar[str] = "features"
    switch_times: ClassVar[tuple[int, ...]] = ()
    compares: ClassVar[bool] = False
    averages: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not self.shortlist >= 1 or self.shortlist % 1:
            raise ValueError(f"shortlist must be a number of arms from 1 on, got {self.shortlist!r}")
        if not 0 <= self.explore <= 1:
            raise ValueError(f"explore must be between 0 and 1, a share of the decisions, got {self.explore}")
        if self.schema is not None:
            object.__setattr__(self, "schema", Schema.of(self.schema))

    def candidates(self, n_arms: int) -> tuple[ByFeatures, ...]:  # noqa: ARG002
        """The one layout."""
        return (ByFeatures(self.identity),)

    def choose(self, active: int, totals: Sequence[float]) -> int:  # noqa: ARG002
        """The one layout."""
        return active

    def pooled_warmup(self, width: int, *, warmup: int) -> int:
        """Rows of the sequence without which all arms are cold, where a row has ``width`` floats."""
        return max(warmup, min(_ROWS_PER_COLUMN * width, _MOST_WARMUP))

    def interacts(self, width: int, n_features: int) -> bool:
        """Whether there are interactions of ``width`` columns of contexts with ``n_features`` of arms."""
        return self.interactions and 0 < width * n_features <= _MOST_INTERACTIONS
