"""What an encoding does for a policy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pfnts.encodings.history import History
from pfnts.encodings.track import Snapshot
from pfnts.posterior import GaussianPosterior, StudentPosterior

Matrix = NDArray[np.float64]
AnyPosterior: TypeAlias = GaussianPosterior | StudentPosterior
Stamp: TypeAlias = tuple[str, int]


class VarianceEstimator(Protocol):
    """Turns the predictive means of a snapshot into a posterior; `pfnts.posterior.SubCLT` is one."""

    def posterior(self, sequence: Snapshot, queries: ArrayLike) -> AnyPosterior:
        """Posterior of the mean reward at ``queries`` (q, P), arrays (q,)."""
        ...


class Encoding(Protocol):
    """Owns the sequences of a policy and answers for its arms, given by their numbers in the history."""

    @property
    def layout(self) -> str:
        """Name of the layout that answers now: "disjoint", "joint" or "block"."""
        ...

    def advance(self, history: History) -> None:
        """Take in the rows that the history has gained."""
        ...

    def rebuild(self, history: History) -> None:
        """Start the sequences again from the whole history: an arm was added."""
        ...

    def stamps(self, arms: Sequence[int]) -> tuple[Stamp, ...]:
        """Say for each arm what its posterior depends on; while it stays the same, so does the posterior."""
        ...

    def columns(self, X: Matrix, arms: Sequence[int], variance: VarianceEstimator) -> list[AnyPosterior]:
        """Posterior of each arm's mean reward at contexts ``X`` (q, P), one with arrays (q,) per arm."""
        ...

    def join(self, columns: Sequence[AnyPosterior], *, coupled: bool, own: int = 0) -> AnyPosterior:
        """Join one column per arm into (q, K); ``coupled`` where arms share a sequence.

        The last ``own`` directions of a column belong to its arm alone, whatever the arms share.
        """
        ...

    def quantiles(self, X: Matrix, arms: Sequence[int], levels: ArrayLike) -> Matrix:
        """Predictive quantiles of each arm's reward, (len(levels), q, len(arms))."""
        ...

    def state(self) -> dict[str, Any]:
        """Give what the history does not determine, as plain JSON."""
        ...

    def restore(self, state: dict[str, Any], history: History) -> None:
        """Take up a saved state and replay the history."""
        ...
