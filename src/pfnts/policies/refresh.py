"""Policies whose model is refitted rarely, and what they remember in between."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from pfnts.encodings import History, Schema
from pfnts.policies.base import Choice, Label, Mask, Matrix, Policy, Vector

T = TypeVar("T")


def refresh_index(t: int, rate: float = 8.0) -> int:
    """Return ceil(rate ln t), the number that asks for a refit whenever it grows; t counts all rewards.

    Examples
    --------
    >>> [t for t in range(12, 40) if refresh_index(t) > refresh_index(t - 1)]
    [13, 14, 16, 18, 21, 23, 26, 30, 34, 38]
    """
    return math.ceil(rate * math.log(max(t, 1)))


def rounds_to_refresh(t: int, rate: float = 8.0) -> int:
    """Rewards that may still come, after ``t`` of them, until the refresh index grows."""
    following = math.floor(math.exp(refresh_index(t, rate) / rate))
    # exp and log do not quite undo each other in floating point
    while refresh_index(following + 1, rate) == refresh_index(t, rate):
        following += 1
    while following > t and refresh_index(following, rate) > refresh_index(t, rate):
        following -= 1
    return following + 1 - t


class Announced(Generic[T]):
    """Contexts said to come, and what was computed at them since the last refit.

    Parameters
    ----------
    X
        Encoded contexts (n, P), in the order in which they are expected.

    Examples
    --------
    >>> announced = Announced(np.array([[1.0], [2.0], [3.0]]))
    >>> announced.find(np.array([2.0]), limit=9, compute=lambda X: [int(10 * x[0]) for x in X])
    20
    >>> announced.find(np.array([3.0]), limit=9, compute=lambda X: 1 / 0)
    30
    """

    def __init__(self, X: Matrix) -> None:
        self._X = X
        self._place: dict[bytes, int] = {}
        for i, x in enumerate(X):
            self._place.setdefault(x.tobytes(), i)
        self._known: dict[bytes, T] = {}
        self._last = b""

    def find(self, x: Vector, *, limit: int, compute: Callable[[Matrix], Sequence[T]]) -> T:
        """Look ``x`` (P,) up, or compute it together with up to ``limit`` contexts announced after it."""
        key = x.tobytes()
        if key not in self._known:
            place = self._place.get(key)
            batch = x[None] if place is None else self._following(place, limit)
            if place is None:
                # Of contexts nobody announced the last is kept: its reward often comes next.
                self._known.pop(self._last, None)
                self._last = key
            self._known.update(
                (row.tobytes(), value) for row, value in zip(batch, compute(batch), strict=True)
            )
        return self._known[key]

    def forget(self) -> None:
        """Drop what was computed; the contexts are still expected."""
        self._known.clear()

    def _following(self, place: int, limit: int) -> Matrix:
        """Distinct contexts from a place on."""
        rows = self._X[place : place + limit]
        first = list({row.tobytes(): i for i, row in reversed(list(enumerate(rows)))}.values())
        return rows[sorted(first)]


class RefittingPolicy(Policy, Generic[T]):
    """A policy that refits its model from scratch when ceil(rate ln t) grows, t being the rewards seen.

    A refit happens in the first decision after it is due, because that is where randomness comes in. A
    subclass implements `_refit`, `_evaluate` and `_decide_at`; the values of `_evaluate` must depend on the
    last refit and the context alone, so that they can be computed ahead.
    """

    lookahead = 256
    """Most contexts evaluated at a time."""

    def __init__(
        self,
        arms: int | Sequence[Label],
        *,
        refresh: float,
        warmup: int,
        explore: float = 0.0,
        schema: Schema | Mapping[str, Any] | None,
    ) -> None:
        if warmup < 1:
            raise ValueError(f"warmup must be at least 1, a model needs a reward of each arm, got {warmup}")
        if not refresh > 0 or not math.isfinite(refresh):
            raise ValueError(f"refresh must be a positive number, got {refresh}")
        super().__init__(arms, warmup=warmup, explore=explore, schema=schema)
        self._refresh = float(refresh)
        self._fitted = False
        self._due = False
        self._history = History(width=0, n_arms=self.n_arms)
        self._announced: Announced[T] = Announced(np.empty((0, 0)))

    def prefetch(self, contexts: Any) -> None:
        """Announce contexts to come: what the model says about them is computed in batches.

        Decisions are the same with and without it. The announcement replaces the one before.
        """
        self._announced = Announced(self._encode(contexts)[0])

    @abstractmethod
    def _refit(self, *, rng: Generator) -> None:
        """Fit the model to ``self._history`` from scratch."""

    @abstractmethod
    def _evaluate(self, X: Matrix) -> Sequence[T]:
        """What the model says at each row of ``X`` (q, P)."""

    @abstractmethod
    def _decide_at(self, value: T, eligible: Mask, *, rng: Generator) -> Choice:
        """Choose among ``eligible`` (K,) given a value of `_evaluate`."""

    def _learn(self, X: Matrix, arms: NDArray[np.int64], rewards: Vector) -> None:
        """Take rewards into a model that is not refitted yet; by default they wait for the refit."""

    def _start(self, width: int) -> None:
        self._history = History(width=width, n_arms=self.n_arms)

    def _observe(self, X: Matrix, arms: NDArray[np.int64], rewards: Vector) -> None:
        before = refresh_index(self._history.size, self._refresh)
        self._history.append(X, arms, rewards)
        self._due = self._due or refresh_index(self._history.size, self._refresh) > before
        if self._fitted and not self._due:
            self._learn(X, arms, rewards)

    def _choose(self, X: Matrix, eligible: Mask, *, rng: Generator) -> Sequence[Choice]:
        if self._due or not self._fitted:
            self._refit(rng=rng)
            self._fitted, self._due = True, False
            self._announced.forget()
        announced = self._announced if len(X) == 1 else Announced(X)
        return [
            self._decide_at(self._find(announced, x), mask, rng=rng)
            for x, mask in zip(X, eligible, strict=True)
        ]

    def _find(self, announced: Announced[T], x: Vector) -> T:
        ahead = rounds_to_refresh(self._history.size, self._refresh)
        return announced.find(x, limit=min(self.lookahead, ahead), compute=self._evaluate)

    def _fitted_contexts(self, contexts: Any) -> tuple[Matrix, bool]:
        """Encode contexts for a look at the posterior, which exists once a model has been fitted."""
        if not self._fitted:
            raise ValueError("posterior needs a fitted model, which the first decision after warm-up makes")
        X, _, single = self._encode(contexts)
        return X, single
