"""One sequence: rows go in one by one, and posteriors refer to the last refresh point."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pfnts.arms.schedule import FIRST_POSTERIOR, next_refresh
from pfnts.backbones.base import Backbone, PredictiveSequence
from pfnts.posterior.base import Array

if TYPE_CHECKING:
    from collections.abc import Sequence

_AT_ONCE = 64
"""Rows that wait before a backbone is given them: many appends of one row are slow."""


class ArmHistory:
    """Rows of one sequence, and what its posterior rests on: the rows up to the last refresh point.

    Parameters
    ----------
    backbone
        Makes the sequence.
    keep
        Columns that name the arm.
    refresh
        Growth factor of refresh points.
    early
        An arm's own numbers of rows at which the sequence is refreshed as well.
    """

    def __init__(
        self, *, backbone: Backbone, keep: Sequence[int], refresh: float, early: Sequence[int]
    ) -> None:
        self._backbone = backbone
        self._keep = keep
        self._refresh = refresh
        self._early = frozenset(early)
        self._waiting: list[tuple[Array, float]] = []
        self._counts: Counter[int] = Counter()
        self._next = next_refresh(0, refresh)
        self.sequence: PredictiveSequence | None = None
        self.size = 0
        """Rows so far."""
        self.version = 0
        """Rows that the posterior rests on: the last refresh point; 0 before the first."""
        self.held = self._counts.copy()
        """Rows of each arm among these."""
        self.reward_variance = 0.0
        """Variance of the rewards of all arms when that point was reached."""

    @property
    def due(self) -> int:
        """Rows to come until the next refresh point."""
        return self._next - self.size

    def add(self, row: Array, arm: int, reward: float) -> bool:
        """Take in a row (F,) of an arm; whether a refresh is due now."""
        self._waiting.append((row, reward))
        self.size += 1
        self._counts[arm] += 1
        if self.size >= self._next or self._counts[arm] in self._early:
            return True
        if len(self._waiting) >= _AT_ONCE:
            self._push()
        return False

    def refresh(self, so_far: Array) -> None:
        """Let posteriors rest on all rows there are, if these are enough for one.

        ``so_far`` are the rewards of all arms.
        """
        if self.size < FIRST_POSTERIOR:
            return
        if self._waiting:
            self._push()
        self.version, self.held = self.size, self._counts.copy()
        self.reward_variance = float(np.var(so_far))
        self._next = next_refresh(self.size, self._refresh)

    def first_refresh(self, arms: NDArray[np.int64]) -> int:
        """Place of the first of these rows, one of each arm number (m,), that would refresh it; m if none."""
        first = min(len(arms), self.due - 1)
        for arm in np.unique(arms).tolist() if self._early else ():
            places = np.flatnonzero(arms == arm)
            left = [own - self._counts[arm] for own in self._early if own > self._counts[arm]]
            if left and min(left) <= len(places):
                first = min(first, int(places[min(left) - 1]))
        return first

    def _push(self) -> None:
        X, y = np.stack([row for row, _ in self._waiting]), np.array([reward for _, reward in self._waiting])
        if self.sequence is None:
            self.sequence = self._backbone.sequence(X, y, keep=self._keep)
        else:
            self.sequence.append(X, y)
        self._waiting = []
