"""Detection of changes: unexpectedly large losses, and whether older rows still help."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pfnts.layouts.surprise import SurpriseTest
from pfnts.posterior.base import Array

EVERY = 64
"""Rows from one look at the surprises to the next; only there may the models change because of them."""
ALL_SCORED = 2048
"""A model that holds as many rows predicts every second reward for the detector: what it says costs more."""
_LONGEST = 8 * EVERY
"""Rows for which a suspicion lasts."""
_SURE = 3.0
"""Standard errors by which rows since a change must predict better without the older ones. Where nothing has
changed, fewer rows predict worse: chance has more to make up for than these. Two are too few where rewards
are rare: their losses are mostly those of a few rows."""
_COMPARED = 16
"""Rows that must be there for a comparison."""
_KEPT = 1024
"""Rows whose losses are kept."""


@dataclass(frozen=True)
class Change:
    """Rewards surprised a model."""

    row: int
    """Rows that the model had learned when it was noticed."""
    since: int
    """Row with which it seems to have begun."""
    restarted: bool
    """Whether the model was started anew from the rows since then; otherwise it was refreshed."""


class ChangeWatch:
    """Keeps the losses of rows that a model predicted, and suspicions while there are any.

    Parameters
    ----------
    rows
        Rows from one false alarm to the next, on average at least.
    """

    def __init__(self, *, rows: float) -> None:
        self._rows = rows
        self.begin_anew()

    def __deepcopy__(self, memo: dict[int, Any]) -> ChangeWatch:
        other = copy.copy(self)
        other._test = copy.deepcopy(self._test, memo)
        other._losses, other._alarms = self._losses.copy(), self._alarms.copy()
        other.suspected = self.suspected.copy()
        return other

    def begin_anew(self) -> None:
        """Forget everything: the model is another."""
        self._test = SurpriseTest(rows=self._rows)
        self._losses: dict[int, float] = {}
        self._alarms: list[int] = []
        self.suspected: list[int] = []
        """Rows with which a change may have begun, the first first."""

    def add(self, numbers: NDArray[np.int64], losses: Array) -> None:
        """Add the losses (n,) of rows, in their order."""
        self._alarms += self._test.add(numbers, losses)
        self._losses |= dict(zip(numbers.tolist(), losses.tolist(), strict=True))

    def look(self, size: int) -> int | None:
        """Row with which the first alarm since the last look began, if there was one.

        It becomes a suspicion. Old losses and suspicions are dropped.
        """
        since = self._alarms[0] if self._alarms else None
        self._alarms = []
        self._losses = {row: loss for row, loss in self._losses.items() if row >= size - _KEPT}
        suspected = {*self.suspected, *([] if since is None else [since])}
        self.suspected = sorted(row for row in suspected if row >= size - _LONGEST)
        return since

    def compared(self, since: int, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Rows to compare models at: those of ``rows``, and as many spread over the ones before ``since``."""
        after = [row for row in rows.tolist() if row in self._losses]
        before = [row for row in self._losses if row < since]
        spread = np.linspace(0, len(before) - 1, min(len(after), len(before))).astype(int)
        return np.array([*(before[place] for place in spread), *after], dtype=np.int64)

    def shows(self, since: int, rows: NDArray[np.int64], losses: Array) -> bool:
        """Whether the losses (n,) of models of the rows since then show that the world has changed.

        They predict these rows better than the old model did, by more than chance, and most rows before
        the change worse. The former alone says little: where prizes are rare, a model that has seen none does
        better in most rows, old or new.
        """
        gains = np.array([self._losses[row] for row in rows.tolist()]) - losses
        later, before = gains[rows >= since], gains[rows < since]
        if min(len(later), len(before)) < _COMPARED:
            return False
        better = later.mean() > _SURE * later.std() / np.sqrt(len(later))
        return bool(better and np.median(before) < 0)
