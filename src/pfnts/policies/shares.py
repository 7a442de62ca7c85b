"""Beside a policy's own rule: warm-up, and shares of the traffic for chance, limits and a holdout."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from pfnts.arrays import Counts, Mask, Matrix, Vector
from pfnts.events import Label
from pfnts.policies.decision import Choices, Reason
from pfnts.policies.rules import evenly
from pfnts.policies.traffic import Traffic

UNIFORMS = 3
"""Uniform numbers that `settle` takes at a context."""


def settle(
    choose: Callable[[], Choices],
    eligible: Mask,
    uniforms: Matrix,
    *,
    reason: Reason,
    cold: Mask,
    ahead: Counts,
    traffic: Traffic,
    arms: Sequence[Label | None],
) -> tuple[Choices, list[Reason]]:
    """Draw arms in warm-up, let the rule choose otherwise, and draw random arms in their share.

    Cold arms are drawn uniformly at random before the rule applies. One that is ``traffic.warmup``
    decisions ahead of its rewards waits for them. If all cold arms wait and there is no warm one, any arm is
    drawn.

    Parameters
    ----------
    choose
        Returns the rule's choices among the warm arms; called only if the rule decides somewhere.
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
    The choices with exact propensities, and their reasons.
    """
    if not cold.any():
        choices = choose()
        reasons: list[Reason] = [reason] * len(eligible)
        return share_out(choices, reasons, eligible, uniforms, traffic=traffic, arms=arms)
    chosen: Choices | None = None
    index, shares = np.zeros(len(eligible), dtype=np.int64), np.zeros(eligible.shape)
    reasons = [reason] * len(index)
    ahead = ahead.copy()
    for i, allowed in enumerate(eligible):
        candidates = allowed & cold & (ahead < traffic.warmup)
        if not candidates.any() and not (allowed & ~cold).any():
            candidates = allowed
        if candidates.any():
            reasons[i] = "warmup"
            row = Choices(np.array([evenly(candidates, uniforms[i, 2])]), candidates[None] / candidates.sum())
        else:
            chosen = choose() if chosen is None else chosen
            row = replace(chosen, index=chosen.index[[i]], propensities=chosen.propensities[[i]])
        one = slice(i, i + 1)
        row, reasons[one] = share_out(
            row, reasons[one], eligible[one], uniforms[one], traffic=traffic, arms=arms
        )
        index[i], shares[i] = row.index[0], row.propensities[0]
        ahead[index[i]] += 1
    return replace(chosen or Choices(index, shares), index=index, propensities=shares), reasons


def share_out(
    choices: Choices,
    reasons: list[Reason],
    eligible: Mask,
    uniforms: Matrix,
    *,
    traffic: Traffic,
    arms: Sequence[Label | None],
) -> tuple[Choices, list[Reason]]:
    """Give the holdout its rounds, draw in a share of the others at random, and keep every arm to its limit.

    Parameters
    ----------
    choices
        What would be done otherwise, with its propensities.
    reasons
        How these came about.
    eligible
        Arms that may be chosen, (q, K).
    uniforms
        (q, 2) numbers: who decides, and which arm is drawn at random.
    traffic
        The shares.
    arms
        Labels of the arms, (K,); None for a candidate.
    """
    explore = max(traffic.explore, choices.explore)
    if not (traffic.divided or explore):
        return choices, reasons
    limits = traffic.limits(arms)
    held = np.where(eligible, traffic.holdouts(arms), 0.0)
    total = held.sum(axis=1)
    index, shares, reasons = choices.index.copy(), choices.propensities, list(reasons)
    # One number decides it all: what is left of it within its interval is again uniform.
    kept = np.where(total < 1, 1 - total, 1.0)
    left = (uniforms[:, 0] - total) / kept
    explores = (left >= 0) & (left < explore)
    for i in np.flatnonzero(explores):
        index[i], reasons[i] = evenly(eligible[i], uniforms[i, 1]), "explore"
    if explore:
        shares = (1 - explore) * shares + explore * (eligible / eligible.sum(axis=1, keepdims=True))
    if (limits < 1).any():
        part = np.where(explores, explore, 1 - explore)
        left = (left - np.where(explores, 0.0, explore)) / np.where(part > 0, part, 1.0)
        room = np.maximum(limits - held, 0.0) / kept[:, None]
        within = limited(shares, room, eligible)
        moves, index = moved(index, shares, within, left)
        for i in np.flatnonzero(moves):
            reasons[i] = "max_share"
        shares = within
    for i in np.flatnonzero(uniforms[:, 0] < total):
        index[i], reasons[i] = int(held[i].argmax()), "holdout"
    return replace(choices, index=index, propensities=(1 - total)[:, None] * shares + held), reasons


def limited(shares: Matrix, limits: Matrix, eligible: Mask) -> Matrix:
    """Propensities (q, K) of at most ``limits`` (q, K), as near to ``shares`` (q, K) as possible.

    What is above a limit goes to the other eligible arms in proportion to their shares, evenly where these
    are zero; arms that reach their limits on the way stay there. Where the limits sum to less than 1, all are
    raised by the same factor.

    Examples
    --------
    >>> limited(np.array([[0.9, 0.06, 0.04]]), np.array([[0.5, 1.0, 1.0]]), np.ones((1, 3), dtype=bool))
    array([[0.5, 0.3, 0.2]])
    """
    limits = np.where(eligible, limits, 0.0)
    limits = np.where(limits.sum(axis=1, keepdims=True) >= 1, limits, _proportions(limits, eligible))
    full = ~eligible
    while True:
        rest = np.maximum(1 - np.where(full, limits, 0.0).sum(axis=1, keepdims=True), 0.0)
        spread: Matrix = np.where(full, limits, rest * _proportions(np.where(full, 0.0, shares), ~full))
        above = ~full & (spread > limits)
        if not above.any():
            return spread
        full = full | above


def _proportions(weights: Matrix, among: Mask) -> Matrix:
    """Weights (q, K) over their sum, evenly ``among`` some where all are zero."""
    weights = np.where(weights.any(axis=1, keepdims=True), weights, among)
    # By the largest first: the smallest numbers there are cannot be divided with any precision.
    weights = weights / np.maximum(
        weights.max(axis=1, keepdims=True), np.finfo(np.float64).smallest_subnormal
    )
    return np.asarray(weights / np.maximum(weights.sum(axis=1, keepdims=True), 1.0))


def moved(index: Counts, shares: Matrix, wanted: Matrix, uniforms: Vector) -> tuple[Mask, Counts]:
    """Move draws (q,) from ``shares`` (q, K) so that they are draws from ``wanted`` (q, K).

    An arm that shall lose gives up as large a part of its draws, to the arms that shall gain.

    Returns
    -------
    Which draws were moved, and the arms they are for now.
    """
    drawn = np.take_along_axis(shares, index[:, None], axis=1)[:, 0]
    stays = np.take_along_axis(wanted, index[:, None], axis=1)[:, 0]
    leaves = np.where(drawn > 0, np.maximum(drawn - stays, 0.0) / np.where(drawn > 0, drawn, 1.0), 0.0)
    gains = np.maximum(wanted - shares, 0.0)
    moves = (uniforms < leaves) & gains.any(axis=1)
    place = uniforms / np.where(leaves > 0, leaves, 1.0) * gains.sum(axis=1)
    # Rounding may leave the sum a little below a number drawn: the last arm that gains, then.
    last = gains.shape[1] - 1 - (gains[:, ::-1] > 0).argmax(axis=1)
    target = np.minimum((gains.cumsum(axis=1) <= place[:, None]).sum(axis=1), last)
    return moves, np.where(moves, target, index)
