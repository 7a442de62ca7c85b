"""Models of arms that are fitted from scratch as the history grows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

import numpy as np

from pfnts.arrays import Counts, Matrix, Vector
from pfnts.events import History
from pfnts.layouts.memory import Memory
from pfnts.layouts.schedule import next_refresh
from pfnts.policies.traffic import Traffic

M = TypeVar("M")

REFITTED = Memory(refresh=1.15, detector=None)
"""Refits 55 times from 10 to 10,000 rows, as often as the rule of the paper: whenever ceil(8 ln t) grows."""

Fit = Callable[[int, Matrix, Counts, Vector, int], M]
"""Fits a model: of an arm, from contexts (n, P), arms (n,) and rewards (n,) of all arms, with a seed."""
Extend = Callable[[M, int, Matrix, Counts, Vector], None]
"""Adds further rows of all arms to a model."""


def check_refitted(memory: Memory, *, policy: str) -> Memory:
    """Return it, or raise if it asks for more than refits at refresh points."""
    for name in ("window", "half_life", "detector"):
        if getattr(memory, name) is not None:
            raise ValueError(
                f"{name} must be None, {policy} is fitted to all rows, got {getattr(memory, name)}; write "
                f"Memory(refresh={memory.refresh}, detector=None), or choose PFNTS, which can forget"
            )
    return memory


def check_warmup(traffic: Traffic) -> Traffic:
    """Return it, or raise if an arm may be chosen before it has a reward."""
    return traffic.with_warmup(least=1, why="a model needs a reward of each arm")


@dataclass
class _Fitted(Generic[M]):
    """A model, the number of rows it was fitted to, and the number it has taken in by now."""

    model: M
    point: int
    learned: int


@dataclass(frozen=True)
class Refits(Generic[M]):
    """When models are fitted, and by what.

    After t rows the model of an arm is that of the first r: r is the last refresh point up to t, or the row
    that ended the arm's warm-up if it came later. Where a model is of one arm only, r goes back to the last
    row of that arm. Its randomness is seeded by r and the arm. So it follows from the rows alone, and is not
    fitted before it is asked for.
    """

    fit: Fit[M]
    extend: Extend[M] | None
    """Adds rows between two fits; None where they wait for the next."""
    shared: bool
    """True if one model, that of arm 0, predicts for all arms."""
    memory: Memory
    warmup: int

    def begin(self) -> Fits[M]:
        """Return models without rows."""
        return Fits(self)


class Fits(Generic[M]):
    """The models that were fitted so far."""

    def __init__(self, refits: Refits[M]) -> None:
        self._refits = refits
        self._fitted: dict[int, _Fitted[M]] = {}
        self._warm_since: dict[int, int] = {}
        self._own_points: dict[int, tuple[int, int]] = {}
        self._size, self._last = 0, 0
        self._next = next_refresh(0, refits.memory.refresh)
        self._history: History | None = None

    @property
    def any_warm(self) -> bool:
        """Whether some arm is past its warm-up."""
        return bool(self._warm_since)

    def observe(self, history: History, start: int, end: int) -> None:
        """Note rows; models are fitted when they are asked for."""
        self._history, self._size = history, end
        while self._next <= end:
            self._last, self._next = self._next, next_refresh(self._next, self._refits.memory.refresh)
        for arm in np.unique(history.arms[start:end]).tolist():
            if arm not in self._warm_since:
                own = np.flatnonzero(history.arms[:end] == arm)
                if len(own) >= self._refits.warmup:
                    self._warm_since[arm] = int(own[self._refits.warmup - 1]) + 1

    def point(self, arm: int) -> int:
        """Return the number of rows that an arm's model is fitted to; 0 during a warm-up without one."""
        if self._refits.shared:
            return self._newest_point()
        if arm not in self._warm_since:
            return 0
        point = max(self._last, self._warm_since[arm])
        if self._own_points.get(arm, (0, 0))[0] != point:
            assert self._history is not None
            own = np.flatnonzero(self._history.arms[:point] == arm)
            self._own_points[arm] = point, int(own[-1]) + 1
        return self._own_points[arm][1]

    def current(self, arm: int) -> M | None:
        """Return the model of an arm, up to date; None where there is none yet."""
        point, history, key = self.point(arm), self._history, 0 if self._refits.shared else arm
        if not point:
            return None
        assert history is not None
        X, arms, rewards = history.contexts, history.arms, history.rewards
        fitted = self._fitted.pop(key, None)  # gone if it fails half-way
        if fitted is None or fitted.point != point:
            seed = int(np.random.default_rng([point, key]).integers(2**31))
            model = self._refits.fit(key, X[:point], arms[:point], rewards[:point], seed)
            fitted = _Fitted(model, point, learned=point)
        if fitted.learned < self._size and self._refits.extend is not None:
            new = slice(fitted.learned, self._size)
            self._refits.extend(fitted.model, key, X[new], arms[new], rewards[new])
        self._fitted[key] = replace(fitted, learned=self._size)
        return fitted.model

    def rewards(self) -> Vector:
        """Return rewards of all arms, the prediction for an arm in warm-up; an error where none is warm."""
        if self._history is None or not self._warm_since:
            raise ValueError(
                f"posterior needs an arm with {self._refits.warmup} rewards (warmup), update the policy first"
            )
        return self._history.rewards[: self._newest_point()]

    def unchanged(self, arms: Counts) -> int:
        """Return how many rows of these arms (m,), in this order, lead to no refit."""
        if any(arm not in self._warm_since for arm in arms.tolist()):
            return 0
        return min(len(arms), self._next - self._size - 1)

    def _newest_point(self) -> int:
        return max([self._last, *self._warm_since.values()])
