"""Policies that know what rewards may be, what arms cost, and how much may be spent."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from pfnts.events import ActionSet, Label
from pfnts.policies.base import Policy
from pfnts.policies.budget import affordable, price
from pfnts.policies.decision import Mask, Matrix, Vector
from pfnts.policies.rewards import Rewards
from pfnts.posterior import AnyPosterior

_SAMPLED = 128
"""Contexts of the history at which the price of a budget is worked out."""


class PricedPolicy(Policy):
    """Refuses rewards outside a range, deducts costs, and keeps to a budget.

    What is left of a budget follows from the decisions in the log. Its price, which multiplies costs, is the
    one at which the arms that look best at contexts of the history cost what may be spent in a round.

    Parameters
    ----------
    arms, options
        As for `Policy`.
    rewards
        What is known beforehand.
    """

    def __init__(self, arms: Any, *, rewards: Rewards, **options: Any) -> None:
        super().__init__(arms, **options)
        self._rewards = rewards
        self._rewards.costs(self._first_arms)
        self._sampled: tuple[Any, Matrix] | None = None  # means at some contexts, by what they depend on

    def add_arm(self, arm: Label, features: Any = None) -> None:
        """Add an arm at the end; where arms have costs, its own must be among them."""
        self._rewards.costs([arm])
        super().add_arm(arm, features)

    @abstractmethod
    def _modelled(self, X: Matrix, arms: ActionSet) -> AnyPosterior:
        """What the model says of mean rewards at contexts (q, P)."""

    @abstractmethod
    def _version(self, arms: ActionSet) -> Any:
        """Say what that depends on."""

    def _checked(self, reward: Any) -> float:
        return self._rewards.checked(super()._checked(reward))

    @property
    def _in_turn(self) -> bool:
        return self._rewards.budget is not None

    def _less(self, arms: ActionSet) -> Vector | None:
        if self._rewards.cost is None:
            return None
        costs = self._costs(arms)
        return costs if self._rewards.budget is None else (1 + self._price(arms, costs)) * costs

    def _allowed(self, arms: ActionSet, eligible: Mask) -> Mask:
        if self._rewards.budget is None:
            return eligible
        left, rounds = self._left()
        costs = self._costs(arms)
        found = eligible & affordable(costs, left=left, rounds=rounds)
        cheapest = eligible & (costs == np.where(eligible, costs, np.inf).min(axis=1, keepdims=True))
        return np.where(found.any(axis=1, keepdims=True), found, cheapest)

    def _costs(self, arms: ActionSet) -> Vector:
        if arms.candidates:
            raise ValueError("candidates must not be given where arms have costs: a candidate has no label")
        labels = self._fold().labels
        return self._rewards.costs(labels[arm] for arm in arms)

    def _left(self) -> tuple[float, int]:
        """What is left of the budget, and for how many decisions."""
        assert self._rewards.budget is not None
        history, (total, rounds) = self._fold(), self._rewards.budget
        spent = float(history.decided @ self._rewards.costs(history.labels))
        return total - spent, max(1, rounds - int(history.decided.sum()))

    def _price(self, arms: ActionSet, costs: Vector) -> float:
        history, (left, rounds) = self._fold(), self._left()
        seen = 1 << (history.size.bit_length() - 1)  # seldom others, so that the model is seldom asked
        version = seen, self._version(arms)
        if self._sampled is None or self._sampled[0] != version:
            some = np.unique(np.arange(_SAMPLED) * seen // _SAMPLED)
            self._sampled = version, self._modelled(history.contexts[some], arms).mean
        return price(self._sampled[1] - costs, costs, per_round=max(left, 0.0) / rounds)
