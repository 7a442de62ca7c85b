"""Whether the world has changed: what a model's surprises say, and whether older rows still help."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pfnts.arms.surprise import SurpriseTest
from pfnts.posterior.base import Array

EVERY = 64
"""Rows from one look at the surprises to the next; only there may the models change because of them."""
ALL_SCORED = 2048
"""A model that holds as many rows predicts every second reward for the detector: what it says costs more."""
_LONGEST = 8 * EVERY
"""Rows for which a suspicion lasts."""
_SURE = 2.0
"""Standard errors by which rows since a change must predict better without the older ones. Where nothing has
changed, fewer rows predict worse: chance has more to make up for than these."""
_COMPARED = 16
"""Rows that must be there for a comparison."""


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
        """Take in the losses (n,) of rows, in their order."""
        self._alarms += self._test.add(numbers, losses)
        self._losses |= dict(zip(numbers.tolist(), losses.tolist(), strict=True))

    def look(self, size: int) -> int | None:
        """Row with which the first alarm since the last look began, if there was one.

        It becomes a suspicion. Old losses and suspicions are dropped.
        """
        since = self._alarms[0] if self._alarms else None
        self._alarms = []
        self._losses = {row: loss for row, loss in self._losses.items() if row >= size - _LONGEST}
        suspected = {*self.suspected, *([] if since is None else [since])}
        self.suspected = sorted(row for row in suspected if row >= size - _LONGEST)
        return since

    def worse_than(self, numbers: NDArray[np.int64], losses: Array) -> bool:
        """Whether other losses (n,) at the same rows are lower by more than chance."""
        known = np.array([number in self._losses for number in numbers.tolist()], dtype=np.bool_)
        if known.sum() < _COMPARED:
            return False
        gains = np.array([self._losses[number] for number in numbers[known].tolist()]) - losses[known]
        return bool(gains.mean() > _SURE * gains.std() / np.sqrt(len(gains)))
