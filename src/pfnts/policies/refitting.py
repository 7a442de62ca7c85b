"""Policies whose models are fitted from scratch as the history grows."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from pfnts.arms.memory import Memory
from pfnts.arms.schedule import next_refresh
from pfnts.contexts import Schema
from pfnts.events import Label
from pfnts.policies.base import Policy
from pfnts.policies.decision import Matrix, Vector
from pfnts.policies.traffic import Traffic
from pfnts.posterior import AnyPosterior

M = TypeVar("M")
Arms = NDArray[np.int64]

REFITTED = Memory(refresh=1.15, detector=None)
"""Refits 55 times from 10 to 10,000 rows, as often as the rule of the paper: whenever ceil(8 ln t) grows."""


@dataclass
class _Fitted(Generic[M]):
    """A model, the number of rows it was fitted to, and the number it has taken in by now."""

    model: M
    point: int
    learned: int


class RefittingPolicy(Policy, Generic[M]):
    """A policy that refits its models when the history has grown by a factor, and when an arm leaves warm-up.

    After t rows the model of an arm is that of the first r: r is the last refresh point up to t, or the row
    that ended the arm's warm-up if it came later. Where a model is of one arm only, r goes back to the last
    row of that arm: one that was not pulled since is not fitted anew. Its randomness is seeded by r and the
    arm. So it follows from the rows alone, and is not fitted before it is asked for.

    Parameters
    ----------
    arms
        Number of arms, or their labels.
    shared
        Whether one model answers for all arms.
    memory
        How much the history of all arms grows before the models are refitted; they forget nothing.
    traffic, schema
        See `Policy`; warm-up must be at least 1.
    """

    def __init__(
        self,
        arms: int | Sequence[Label],
        *,
        shared: bool,
        memory: Memory,
        traffic: Traffic,
        schema: Schema | Mapping[str, Any] | None,
    ) -> None:
        for name in ("window", "half_life"):
            if getattr(memory, name) is not None:
                raise ValueError(
                    f"{name} must be None, {type(self).__name__} is fitted to all rows, "
                    f"got {getattr(memory, name)}; PFNTS can forget"
                )
        traffic = traffic.with_warmup(least=1, why="a model needs a reward of each arm")
        super().__init__(arms, traffic=traffic, schema=schema)
        self._shared = shared
        self._memory = memory

    def _posterior_at(self, X: Matrix, candidates: Any = None) -> AnyPosterior:
        # An arm in warm-up that no model answers for is taken to be like a reward of any arm.
        self._model(X.shape[1])
        if not self._warm_since:
            needed = self._traffic.warmup
            raise ValueError(
                f"posterior needs an arm with {needed} rewards (warmup), update the policy first"
            )
        return super()._posterior_at(X, candidates)

    # Hooks. A model is that of one arm, or that of all arms, which goes by the number 0.

    @abstractmethod
    def _fit(self, arm: int, X: Matrix, arms: Arms, rewards: Vector, *, seed: int) -> M:
        """Fit a model to rows (n, P) of all arms."""

    def _learn(self, model: M, arm: int, X: Matrix, arms: Arms, rewards: Vector) -> None:
        """Take further rows of all arms into a model; by default they wait for the refit."""

    # When models are fitted.

    def _reset(self, width: int, n_arms: int) -> None:  # noqa: ARG002
        self._fits: dict[int, _Fitted[M]] = {}
        self._warm_since: dict[int, int] = {}
        self._own_points: dict[int, tuple[int, int]] = {}
        self._last, self._next = 0, next_refresh(0, self._memory.refresh)

    def _grow(self, n_arms: int) -> bool:  # noqa: ARG002
        return not self._shared

    def _observe(self, X: Matrix, arms: Arms, rewards: Vector) -> None:  # noqa: ARG002
        history = self._fold()
        while self._next <= history.size:
            self._last, self._next = self._next, next_refresh(self._next, self._memory.refresh)
        for arm in np.unique(arms).tolist():
            if arm not in self._warm_since and history.rewarded[arm] >= self._traffic.warmup:
                own = np.flatnonzero(history.arms == arm)
                self._warm_since[arm] = int(own[self._traffic.warmup - 1]) + 1

    def _point(self, arm: int) -> int:
        """Rows that the model of an arm is fitted to; 0 during a warm-up in which it has none."""
        if self._shared:
            return self._newest_point()
        if arm not in self._warm_since:
            return 0
        point = max(self._last, self._warm_since[arm])
        if self._own_points.get(arm, (0, 0))[0] != point:
            own = np.flatnonzero(self._fold().arms[:point] == arm)
            self._own_points[arm] = point, int(own[-1]) + 1
        return self._own_points[arm][1]

    def _newest_point(self) -> int:
        return max([self._last, *self._warm_since.values()])

    def _current(self, arm: int) -> M | None:
        """Give the model that answers for an arm, up to date; None where there is none yet."""
        point, history, key = self._point(arm), self._fold(), 0 if self._shared else arm
        if not point:
            return None
        X, arms, rewards = history.contexts, history.arms, history.rewards
        fitted = self._fits.pop(key, None)  # gone if it fails half-way
        if fitted is None or fitted.point != point:
            seed = int(np.random.default_rng([point, key]).integers(2**31))
            model = self._fit(key, X[:point], arms[:point], rewards[:point], seed=seed)
            fitted = _Fitted(model, point, learned=point)
        if fitted.learned < history.size:
            new = slice(fitted.learned, history.size)
            self._learn(fitted.model, key, X[new], arms[new], rewards[new])
            fitted.learned = history.size
        self._fits[key] = fitted
        return fitted.model

    def _any_reward(self) -> Vector:
        """Rewards of all arms, which stand in for a model during an arm's warm-up."""
        return self._fold().rewards[: self._newest_point()]
