"""What comes before a policy's own rule: arms that a model knows too little of, and a share of chance."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pfnts.policies.decision import Choices, Mask, Matrix, Reason
from pfnts.policies.rules import evenly
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
) -> tuple[Choices, list[Reason]]:
    """Put warm-up draws and random ones in the place of the rule's choices where they are due.

    Cold arms are drawn at random, each alike, before the rule has a say. One that is ``traffic.warmup``
    decisions ahead of its rewards waits for them. If all cold arms wait and there is no warm one, any arm is
    drawn.

    Parameters
    ----------
    choices
        What the rule would do among the warm arms; anything where there are none.
    eligible
        Arms that may be chosen, (q, K).
    uniforms
        (q, 3) numbers: whether to explore, which arm then, and which cold arm otherwise.
    reason
        The rule's name.
    cold
        Arms whose model holds fewer than ``traffic.warmup`` of their rows, (K,).
    ahead
        Decisions of each arm that are still without a reward, (K,).
    traffic
        Rows that an arm needs to be warm, and the share of the decisions in which any eligible arm is drawn.

    Returns
    -------
    The choices with exact propensities, and how each came about.
    """
    explore = traffic.explore
    explores = uniforms[:, 0] < explore
    if not cold.any() and not explores.any():
        return _mixed(choices, eligible, explore), [reason] * len(eligible)
    index, shares = choices.index.copy(), choices.propensities.copy()
    reasons: list[Reason] = [reason] * len(index)
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
        if explores[i]:
            index[i], reasons[i] = evenly(allowed, uniforms[i, 1]), "explore"
        ahead[index[i]] += 1
    return _mixed(Choices(index, shares, choices.posterior), eligible, explore), reasons


def _mixed(choices: Choices, eligible: Mask, explore: float) -> Choices:
    """Propensities of a choice that is kept with probability 1 - ``explore``."""
    if not explore:
        return choices
    even = eligible / eligible.sum(axis=1, keepdims=True)
    mixed = (1 - explore) * choices.propensities + explore * even
    return Choices(choices.index, mixed, choices.posterior)
