"""What arms cost and how much may be spent: arms that a budget allows, and what a unit of it is worth."""

from __future__ import annotations

from collections.abc import Callable, Hashable

import numpy as np

from pfnts.arrays import Mask, Matrix, Vector
from pfnts.events import ActionSet, History
from pfnts.policies.rewards import Rewards

_HALVINGS = 50
_SAMPLED = 128
"""Contexts of the history at which the price of a budget is worked out."""


def arm_costs(rewards: Rewards, arms: ActionSet) -> Vector:
    """Cost (K,) of each arm of a decision."""
    if arms.candidates is not None:
        raise ValueError("candidates must not be given where arms have costs: a candidate has no label")
    return rewards.costs(arms.labels)


def within_budget(rewards: Rewards, history: History, arms: ActionSet, eligible: Mask) -> Mask:
    """Those of the eligible arms (q, K) that the budget allows; the cheapest where it allows none."""
    left, rounds = _left(rewards, history)
    costs = arm_costs(rewards, arms)
    found = eligible & affordable(costs, left=left, rounds=rounds)
    cheapest = eligible & (costs == np.where(eligible, costs, np.inf).min(axis=1, keepdims=True))
    return np.where(found.any(axis=1, keepdims=True), found, cheapest)


class BudgetPrice:
    """Price of a unit of a budget: that at which the arms that look best cost what may be spent in a round.

    They are compared at contexts of the history, whose mean rewards are asked for when they may have changed.

    Parameters
    ----------
    rewards
        Costs and budget.
    """

    def __init__(self, rewards: Rewards) -> None:
        self._rewards = rewards
        self._sampled: tuple[Hashable, Matrix] | None = None  # means at some contexts, by what they depend on

    def of(
        self, costs: Vector, history: History, *, version: Hashable, means_at: Callable[[Matrix], Matrix]
    ) -> float:
        """Price for arms of these costs (K,); ``means_at`` gives mean rewards (n, K) as of a ``version``."""
        seen = 1 << (history.size.bit_length() - 1)  # seldom others, so that the model is seldom asked
        if self._sampled is None or self._sampled[0] != (seen, version):
            some = np.unique(np.arange(_SAMPLED) * seen // _SAMPLED)
            self._sampled = (seen, version), means_at(history.contexts[some])
        left, rounds = _left(self._rewards, history)
        return price(self._sampled[1] - costs, costs, per_round=max(left, 0.0) / rounds)


def affordable(costs: Vector, *, left: float, rounds: int) -> Mask:
    """Arms (K,) after which what is left still pays for the cheapest one in all other ``rounds``.

    The cheapest arms are always among them: somebody waits for an answer.

    Examples
    --------
    >>> affordable(np.array([0.0, 1.0, 5.0]), left=3.0, rounds=10)
    array([ True,  True, False])
    """
    cheapest = costs.min()
    # A sum of costs is not exact.
    within = costs + (rounds - 1) * cheapest <= left + 1e-9 * (1 + abs(left))
    return np.asarray(within | (costs == cheapest))


def price(values: Matrix, costs: Vector, *, per_round: float) -> float:
    """Price of a unit of the budget: the least at which the best arms cost no more than ``per_round``.

    It is the dual variable of the linear programme that spends the budget where it earns most.

    Parameters
    ----------
    values
        What each arm is worth at some contexts, its own cost deducted, (n, K).
    costs
        Cost of each arm, (K,).
    per_round
        What may be spent on average.

    Examples
    --------
    >>> values = np.array([[0.0, 3.0], [0.0, 1.0], [0.0, 2.0], [0.0, 4.0]])
    >>> round(price(values, np.array([0.0, 1.0]), per_round=0.5), 6)  # the upper half is worth more than 2
    2.0
    """

    def spent(rate: float) -> float:
        return float(costs[(values - rate * costs).argmax(axis=1)].mean())

    steps = np.diff(np.unique(costs))
    if not len(steps) or spent(0.0) <= per_round:
        return 0.0
    low, high = 0.0, float((values.max(axis=1) - values.min(axis=1)).max() / steps.min()) + 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if spent(middle) > per_round else (low, middle)
    return high


def _left(rewards: Rewards, history: History) -> tuple[float, int]:
    """What is left of the budget, which follows from the decisions in the log, and for how many of them."""
    assert rewards.budget is not None
    total, rounds = rewards.budget
    spent = float(history.decided @ rewards.costs(history.labels))
    return total - spent, max(1, rounds - int(history.decided.sum()))
