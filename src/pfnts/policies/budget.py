"""A budget over many decisions: which arms it still allows, and what a unit of it is worth."""

from __future__ import annotations

import numpy as np

from pfnts.policies.decision import Mask, Matrix, Vector

_HALVINGS = 50


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
