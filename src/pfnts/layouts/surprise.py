"""Rewards that surprise: a sequential test of whether a model still predicts as well as it did."""

from __future__ import annotations

import copy
from bisect import bisect_left, bisect_right, insort
from collections import deque
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pfnts.layouts.memory import uniform_hash
from pfnts.posterior.base import Array

# Bets on how losses grow: so many times more often than before they are in that share of the largest.
_SHARE = np.array([0.5, 0.25, 0.1, 0.1, 0.03, 0.03, 0.01, 0.01])
_TIMES = np.array([1.5, 2.0, 3.0, 6.0, 5.0, 15.0, 10.0, 40.0])
_OTHERWISE = (1 - _TIMES * _SHARE) / (1 - _SHARE)
_FEWEST = 64
"""Losses that must be there to compare with."""


class SurpriseTest:
    """Compares each loss of a model with the last thousand, and sums up the evidence that they have grown.

    The rank of a loss among those before it is a uniform number as long as they are exchangeable, whatever
    the rewards and however well the model is calibrated; while a model learns, its losses become smaller and
    their ranks larger. The evidence is the Shiryaev-Roberts statistic, averaged over some bets on how small
    the ranks become: its mean after n rows without a change is n, so that on average there is no more than
    one alarm in ``rows``.

    Parameters
    ----------
    rows
        Rows from one false alarm to the next, on average at least.
    reference
        Losses to compare with.

    Examples
    --------
    >>> test, rng = SurpriseTest(rows=5000), np.random.default_rng(0)
    >>> test.add(np.arange(500), rng.exponential(size=500))
    []
    >>> test.add(np.arange(500, 540), 3 * rng.exponential(size=40))
    [505]
    """

    def __init__(self, *, rows: float, reference: int = 1000) -> None:
        self._rows = rows
        self._recent: deque[float] = deque(maxlen=reference)
        self._sorted: list[float] = []
        self._evidence, self._sums = np.zeros((2, len(_SHARE)))
        self._begun = np.zeros(len(_SHARE), dtype=np.int64)

    def __deepcopy__(self, memo: dict[int, Any]) -> SurpriseTest:
        other = copy.copy(self)
        other._recent, other._sorted = self._recent.copy(), self._sorted.copy()
        other._evidence, other._sums, other._begun = (
            self._evidence.copy(),
            self._sums.copy(),
            self._begun.copy(),
        )
        return other

    def add(self, rows: NDArray[np.int64], losses: Array) -> list[int]:
        """Take in the losses of rows (n,); for each alarm the row with which the change seems to have begun.

        Evidence begins anew after an alarm.
        """
        each = zip(rows.tolist(), losses.tolist(), uniform_hash(rows).tolist(), strict=True)
        return [since for one in each if (since := self._add(*one)) is not None]

    def _add(self, row: int, loss: float, draw: float) -> int | None:
        above = len(self._sorted) - bisect_right(self._sorted, loss)
        equal = len(self._sorted) - above - bisect_left(self._sorted, loss)
        rank = (above + draw * (equal + 1)) / (len(self._sorted) + 1)
        if len(self._recent) == self._recent.maxlen:
            del self._sorted[bisect_left(self._sorted, self._recent[0])]
        self._recent.append(loss)
        insort(self._sorted, loss)
        if len(self._recent) < _FEWEST:
            return None
        factor = np.where(rank < _SHARE, _TIMES, _OTHERWISE)
        self._begun[self._sums <= 0] = row
        self._sums = np.maximum(self._sums, 0.0) + np.log(factor)
        self._evidence = (1 + self._evidence) * factor
        if self._evidence.mean() < self._rows:
            return None
        since = int(self._begun[self._evidence.argmax()])
        self._evidence[:] = self._sums[:] = 0.0
        return since
