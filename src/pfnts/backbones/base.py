"""What every backbone can do: hold a history and say what it would have predicted after each prefix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

Matrix = NDArray[np.float64]
Vector = NDArray[np.float64]


@runtime_checkable
class PredictiveSequence(Protocol):
    """One ordered history, held by a backbone.

    Missing feature values are NaN; every backbone accepts them.
    """

    @property
    def size(self) -> int:
        """Number of observations held."""
        ...

    def append(self, X: ArrayLike, y: ArrayLike) -> None:
        """Add observations at the end; ``X`` is (m, P) and ``y`` is (m,)."""
        ...

    def means(self, queries: ArrayLike, sizes: Sequence[int]) -> Matrix:
        """Predictive means at ``queries`` (q, P) after each prefix size, as (len(sizes), q)."""
        ...

    def quantiles(self, queries: ArrayLike, size: int, levels: ArrayLike) -> Matrix:
        """Predictive quantiles at ``queries`` (q, P) after the first ``size`` rows, as (len(levels), q)."""
        ...


@runtime_checkable
class Backbone(Protocol):
    """Makes predictive sequences."""

    @property
    def name(self) -> str:
        """The word by which `pfnts.backbones.load` finds it."""
        ...

    def sequence(self, X: ArrayLike, y: ArrayLike) -> PredictiveSequence:
        """Start a history from ``X`` (n, P) and ``y`` (n,), n >= 1."""
        ...
