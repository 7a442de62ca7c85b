"""What comes before a policy's own rule: arms that a model knows too little of, and shares of the traffic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from pfnts.events import Label
from pfnts.policies.decision import Choices, Mask, Matrix, Reason
from pfnts.policies.rules import evenly
from pfnts.policies.shares import share_out
from pfnts.policies.traffic import Traffic

UNIFORMS = 3
"""Uniform numbers that `settle` takes at a context."""


def settle(
    choices: Choices,
    eligible: Mask,
    uniforms: Matrix,
    *,
    reason: Reason,
    cold: Mask,
    ahead: NDArray[np.int64],
    traffic: Traffic,
    arms: Sequence[Label | None],
) -> tuple[Choices, list[Reason]]:
    """Put warm-up draws and random ones in the place of the rule's choices where they are due.

    Cold arms are drawn uniformly at random before the rule applies. One that is ``traffic.warmup``
    decisions ahead of its rewards waits for them. If all cold arms wait and there is no warm one, any arm is
    drawn.

    Parameters
    ----------
    choices
        What the rule would do among the warm arms; anything where there are none.
    eligible
        Arms that may be chosen, (q, K).
    uniforms
        (q, 3) numbers: who decides, which arm is drawn at random, and which cold arm otherwise.
    reason
        The rule's name.
    cold
        Arms whose model holds fewer than ``traffic.warmup`` of their rows, (K,).
    ahead
        Decisions of each arm that are still without a reward, (K,).
    traffic
        Rows that an arm needs to be warm, and the shares of the decisions that are not the rule's.
    arms
        Labels of the arms, (K,); None for a candidate.

    Returns
    -------
    The choices with exact propensities, and how each came about.
    """
    if not cold.any():
        reasons: list[Reason] = [reason] * len(eligible)
        return share_out(choices, reasons, eligible, uniforms, traffic=traffic, arms=arms)
    index, shares = choices.index.copy(), choices.propensities.copy()
    reasons = [reason] * len(index)
    ahead = ahead.copy()
    for i, allowed in enumerate(eligible):
        candidates = allowed & cold & (ahead < traffic.warmup)
        if not candidates.any() and not (allowed & ~cold).any():
            candidates = allowed
        if candidates.any():
            index[i], shares[i], reasons[i] = (
                evenly(candidates, uniforms[i, 2]),
                candidates / candidates.sum(),
                "warmup",
            )
        one = slice(i, i + 1)
        row, reasons[one] = share_out(
            Choices(index[one], shares[one]),
            reasons[one],
            eligible[one],
            uniforms[one],
            traffic=traffic,
            arms=arms,
        )
        index[i], shares[i] = row.index[0], row.propensities[0]
        ahead[index[i]] += 1
    return replace(choices, index=index, propensities=shares), reasons
