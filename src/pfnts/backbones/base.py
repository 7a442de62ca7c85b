"""The interface of backbones: append rows to sequences, predict after any of their prefixes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pfnts.backbones.checks import check_appends, check_levels

Matrix = NDArray[np.float64]
Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Prediction:
    """Predictions for q queries of a sequence."""

    means: Matrix
    """(len(sizes), q), predictive means after each prefix size."""
    quantiles: Matrix
    """(len(levels), q), of the next target, after the last of the sizes."""
    mean_sd: Vector | None = None
    """(q,), posterior standard deviation of the mean target after the last of the sizes, where known."""

    def part(self, queries: slice) -> Prediction:
        """Return the predictions for some of the queries."""
        sd = None if self.mean_sd is None else self.mean_sd[queries]
        return Prediction(self.means[:, queries], self.quantiles[:, queries], sd)

    @staticmethod
    def joined(parts: Sequence[Prediction]) -> Prediction:
        """Concatenate predictions of different queries."""
        sds = [part.mean_sd for part in parts if part.mean_sd is not None]
        return Prediction(
            np.concatenate([part.means for part in parts], axis=1),
            np.concatenate([part.quantiles for part in parts], axis=1),
            np.concatenate(sds) if sds else None,
        )


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
    """Queries to one sequence."""

    sequence: PredictiveSequence
    queries: Matrix
    """(q, P)"""
    sizes: tuple[int, ...]
    """Prefix sizes in any order, each from 1 to the size of the sequence; means are wanted after each."""
    levels: tuple[float, ...] = ()
    """Quantile levels wanted after the last of the sizes."""


@dataclass(frozen=True)
class Append:
    """Rows for one sequence."""

    sequence: PredictiveSequence
    X: Matrix
    """(m, P)"""
    y: Vector
    """(m,)"""
    forecast: NDArray[np.bool_] | None = None
    """(m,), rows whose forecast is wanted; None for none."""


class Backbone(ABC):
    """Makes predictive sequences, appends rows to them and predicts."""

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

    def append(self, appends: Sequence[Append], *, levels: Sequence[float] = ()) -> list[Prediction | None]:
        """Append rows to sequences; return the forecasts of the rows that ask for one.

        Each row is forecast from the rows before it. `Prediction.means` is (1, f), quantiles (L, f), mean_sd
        (f,) or None, for the f rows asked for; NaN where no row came before. None where no forecast was asked
        for. A sequence may occur once. After an error all sequences are as they were.

        Unless a backbone does better, forecasts may be up to a sixteenth of the history behind: each row is
        predicted from the rows up to the last of some sizes, which are all sizes below 16 and then grow by a
        sixteenth. The pieces in which rows are appended do not matter.
        """
        checked, chosen = check_appends(appends), check_levels(levels)
        return [self._append_in_pieces(one, tuple(chosen.tolist())) for one in checked]

    def _append_in_pieces(self, one: Append, levels: tuple[float, ...]) -> Prediction | None:
        sequence, forecasts, begin = one.sequence, list[Prediction](), 0
        if one.forecast is None:
            sequence.append(one.X, one.y)
            return None
        while begin < len(one.y):
            known, following = piece_around(sequence.size)
            piece = slice(begin, begin + following - sequence.size)
            if (wanted := one.forecast[piece]).any():
                question = Question(sequence, one.X[piece][wanted], (known,), levels)
                forecasts += self.predict([question])
            sequence.append(one.X[piece], one.y[piece])
            begin = piece.stop
        return Prediction.joined(forecasts) if forecasts else None

    def prepare(self, sequences: Sequence[PredictiveSequence]) -> None:  # noqa: ARG002
        """Do now what questions about all rows of these sequences would otherwise wait for; here nothing."""
        return

    def predict(self, questions: Sequence[Question]) -> list[Prediction]:
        """Answer questions about sequences of this backbone; one that can batch them does so here."""
        return [
            question.sequence.predict(question.queries, sizes=question.sizes, levels=question.levels)
            for question in questions
        ]


def piece_around(size: int) -> tuple[int, int]:
    """Return the last size up to ``size`` on which forecasts rest, and the next.

    Examples
    --------
    >>> piece_around(15), piece_around(100)
    ((15, 16), (97, 103))
    """
    begin = following = 0
    while following <= size:
        begin, following = following, following + max(1, following // 16)
    return begin, following
