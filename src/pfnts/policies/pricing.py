"""What arms cost, and how much may still be spent: which arms that leaves, and what is deducted from each."""

from __future__ import annotations

from collections.abc import Callable, Hashable

import numpy as np

from pfnts.events import ActionSet, History
from pfnts.policies.budget import affordable, price
from pfnts.policies.decision import Mask, Matrix, Vector
from pfnts.policies.rewards import Rewards

_SAMPLED = 128
"""Contexts of the history at which the price of a budget is worked out."""


def within_budget(rewards: Rewards, history: History, arms: ActionSet, eligible: Mask) -> Mask:
    """Those of the eligible arms (q, K) that the budget allows; the cheapest where it allows none."""
    left, rounds = _left(rewards, history)
    costs = _costs(rewards, arms)
    found = eligible & affordable(costs, left=left, rounds=rounds)
    cheapest = eligible & (costs == np.where(eligible, costs, np.inf).min(axis=1, keepdims=True))
    return np.where(found.any(axis=1, keepdims=True), found, cheapest)


class EffectiveCosts:
    """What is deducted from mean rewards before arms are compared: costs, and the price of a budget.

    The price multiplies costs. It is the one at which the arms that look best at contexts of the history cost
    what may be spent in a round.

    Parameters
    ----------
    rewards
        Costs and budget.
    """

    def __init__(self, rewards: Rewards) -> None:
        self._rewards = rewards
        self._sampled: tuple[Hashable, Matrix] | None = None  # means at some contexts, by what they depend on

    def of(
        self, arms: ActionSet, history: History, *, version: Hashable, means_at: Callable[[Matrix], Matrix]
    ) -> Vector:
        """Costs (K,) that count; ``means_at`` gives mean rewards (n, K) at contexts, as of a ``version``."""
        costs = _costs(self._rewards, arms)
        if self._rewards.budget is None:
            return costs
        seen = 1 << (history.size.bit_length() - 1)  # seldom others, so that the model is seldom asked
        if self._sampled is None or self._sampled[0] != (seen, version):
            some = np.unique(np.arange(_SAMPLED) * seen // _SAMPLED)
            self._sampled = (seen, version), means_at(history.contexts[some])
        left, rounds = _left(self._rewards, history)
        rate = price(self._sampled[1] - costs, costs, per_round=max(left, 0.0) / rounds)
        return (1 + rate) * costs


def _costs(rewards: Rewards, arms: ActionSet) -> Vector:
    if arms.candidates is not None:
        raise ValueError("candidates must not be given where arms have costs: a candidate has no label")
    return rewards.costs(arms.labels)


def _left(rewards: Rewards, history: History) -> tuple[float, int]:
    """What is left of the budget, which follows from the decisions in the log, and for how many of them."""
    assert rewards.budget is not None
    total, rounds = rewards.budget
    spent = float(history.decided @ rewards.costs(history.labels))
    return total - spent, max(1, rounds - int(history.decided.sum()))
