"""For how many rows the posteriors of arms stay as they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pfnts.arms.sequences import ArmHistory

_FEWEST_ROUNDS = 64
"""Rounds for which it is worth asking about all arms, even if one is likely to be refreshed before."""


@dataclass(frozen=True)
class Lasting:
    """When the posteriors of some models will change.

    Examples
    --------
    >>> Lasting([], shared=False, within=[64, 700]).rows(1000)
    64
    """

    answering: Sequence[ArmHistory]
    """The sequences that answer, by arm number."""
    shared: bool
    """Whether they are all the same one."""
    within: Sequence[int]
    """Numbers of rows to come after which something may change, whatever the rows are."""

    def rows(self, most: int) -> int:
        """Rows, ``most`` or fewer, after which posteriors may change whatever the rows are."""
        return min([most, *self.within, *([self.answering[0].due] if self.shared else [])])

    def likely_rounds(self) -> int:
        """Rounds until the next refresh: where arms have their own sequences, if each is pulled as so far."""
        if self.shared:
            return self.answering[0].due
        rows = sum(model.size for model in self.answering)
        rounds = [model.due * rows // model.size for model in self.answering if model.size]
        return max(_FEWEST_ROUNDS, min(rounds, default=0))

    def unchanged(self, arms: NDArray[np.int64]) -> int:
        """Count how many rows of these arms (m,), in this order, leave every posterior as it is."""
        first = min(len(arms), self.rows(len(arms) + 1) - 1)
        if self.shared:
            return min(first, self.answering[0].first_refresh(arms))
        for arm in np.unique(arms).tolist():
            places = np.flatnonzero(arms == arm)
            refresh = self.answering[arm].first_refresh(arms[places])
            if refresh < len(places):
                first = min(first, int(places[refresh]))
        return first
