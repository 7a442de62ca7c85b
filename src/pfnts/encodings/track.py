"""One growing sequence, refreshed at the points of a schedule and nowhere between."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pfnts.backbones.base import Backbone, PredictiveSequence
from pfnts.encodings.history import History
from pfnts.encodings.layouts import Layout
from pfnts.encodings.schedule import FIRST_POSTERIOR, Schedule

Matrix = NDArray[np.float64]


@dataclass(frozen=True)
class Snapshot:
    """A sequence as it stood at a refresh point: what a variance estimator is given."""

    sequence: PredictiveSequence
    """Holds at least ``size`` rows."""
    size: int
    """Rows that count."""
    reward_variance: float
    """Variance of the rewards of all arms that had arrived when this point was reached."""

    def means(self, queries: ArrayLike, sizes: Sequence[int]) -> Matrix:
        """Predictive means (len(sizes), q)."""
        return self.sequence.means(queries, sizes)

    def quantiles(self, queries: ArrayLike, size: int, levels: ArrayLike) -> Matrix:
        """Predictive quantiles (len(levels), q)."""
        return self.sequence.quantiles(queries, size, levels)


class Track:
    """Rows of one sequence; they reach the backbone when a refresh point is reached, in one batch.

    The pieces in which they do so depend on the number of rows alone, not on how they were handed in, so
    that a history replayed at once gives the sequence that the rounds gave.

    Parameters
    ----------
    backbone
        Makes the sequence.
    schedule
        Says at which sizes.
    layout
        What a row looks like.
    """

    def __init__(self, *, backbone: Backbone, schedule: Schedule, layout: Layout) -> None:
        self._backbone = backbone
        self._schedule = schedule
        self._layout = layout
        self._sequence: PredictiveSequence | None = None
        self._reward_variance = 0.0
        self.rows: list[int] = []
        """Places of the rows in the history."""
        self.stamp = 0
        """The last refresh point, up to which rows determine the posterior; 0 before the first."""

    def extend(self, rows: Sequence[int], history: History) -> None:
        """Take in rows of the history."""
        self.rows.extend(rows)
        for point in self._schedule.points(len(self.rows)):
            if point > self.stamp:
                self._push(self.rows[self.stamp : point], history)
                self.stamp = point

    def snapshot(self, size: int | None = None) -> Snapshot:
        """Give the sequence as it stood at a refresh point, the last by default."""
        if self._sequence is None:
            raise ValueError(f"an arm needs {FIRST_POSTERIOR} rewards for a posterior, got {len(self.rows)}")
        return Snapshot(self._sequence, self.stamp if size is None else size, self._reward_variance)

    def _push(self, rows: list[int], history: History) -> None:
        X = self._layout.features(history.contexts[rows], history.arms[rows], n_arms=history.n_arms)
        y = history.rewards[rows]
        if self._sequence is None:
            self._sequence = self._backbone.sequence(X, y)
        else:
            self._sequence.append(X, y)
        self._reward_variance = float(np.var(history.rewards[: rows[-1] + 1]))
