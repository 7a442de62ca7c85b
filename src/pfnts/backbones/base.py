"""What every backbone can do: hold a history and say what it would have predicted after each prefix."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Matrix = NDArray[np.float64]
Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Prediction:
    """What a backbone says about q queries of a sequence."""

    means: Matrix
    """(len(sizes), q), predictive means after each prefix size."""
    quantiles: Matrix
    """(len(levels), q), of the next target, after the last of the sizes."""
    mean_sd: Vector | None = None
    """(q,), posterior standard deviation of the mean target after the last of the sizes, where known."""

    def part(self, queries: slice) -> Prediction:
        """Keep what is said about some of the queries."""
        sd = None if self.mean_sd is None else self.mean_sd[queries]
        return Prediction(self.means[:, queries], self.quantiles[:, queries], sd)


class PredictiveSequence(ABC):
    """One ordered history, held by a backbone.

    The answer after t rows depends on the first t rows and the queries alone: on no later row, on nothing
    asked before, and not on how the rows were added. Missing feature values are NaN.
    """

    @property
    @abstractmethod
    def size(self) -> int:
        """Number of observations held."""

    @abstractmethod
    def append(self, X: ArrayLike, y: ArrayLike) -> None:
        """Add observations at the end; ``X`` is (m, P) and ``y`` is (m,)."""

    @abstractmethod
    def predict(self, queries: ArrayLike, *, sizes: Sequence[int], levels: ArrayLike = ()) -> Prediction:
        """Predict at ``queries`` (q, P): means after each size, quantiles after the last of them."""

    def means(self, queries: ArrayLike, sizes: Sequence[int]) -> Matrix:
        """Predictive means at ``queries`` (q, P) after each prefix size, as (len(sizes), q)."""
        return self.predict(queries, sizes=sizes).means

    def quantiles(self, queries: ArrayLike, size: int, levels: ArrayLike) -> Matrix:
        """Predictive quantiles at ``queries`` (q, P) after the first ``size`` rows, as (len(levels), q)."""
        return self.predict(queries, sizes=[size], levels=levels).quantiles


@dataclass(frozen=True)
class Question:
    """What is asked of one sequence."""

    sequence: PredictiveSequence
    queries: Matrix
    """(q, P)"""
    sizes: tuple[int, ...]
    """Prefix sizes in any order, each from 1 to the size of the sequence; means are wanted after each."""
    levels: tuple[float, ...] = ()
    """Quantile levels wanted after the last of the sizes."""


class Backbone(ABC):
    """Makes predictive sequences, and answers questions about them."""

    name: str
    """The word by which `pfnts.backbones.load` finds it."""
    fingerprint: str | None = None
    """Changes with the weights, where there are any."""
    knows_mean_sd: bool = False
    """Whether its predictions have `Prediction.mean_sd`."""
    copies: bool = False
    """Whether `copy.deepcopy` of a sequence is cheap and shares what was computed."""
    exploration: float = 1.0
    """Factor on that standard deviation with which Thompson sampling loses least, as far as was measured."""

    @abstractmethod
    def sequence(self, X: ArrayLike, y: ArrayLike, *, keep: Sequence[int] = ()) -> PredictiveSequence:
        """Start a history from ``X`` (n, P) and ``y`` (n,), n >= 1.

        Columns in ``keep`` (those that name an arm, say) are never mixed with others.
        """

    def prepare(self, sequences: Sequence[PredictiveSequence]) -> None:  # noqa: ARG002
        """Do now what questions about all rows of these sequences would otherwise wait for; here nothing."""
        return

    def predict(self, questions: Sequence[Question]) -> list[Prediction]:
        """Answer questions about sequences of this backbone; one that can batch them does so here."""
        return [
            question.sequence.predict(question.queries, sizes=question.sizes, levels=question.levels)
            for question in questions
        ]
