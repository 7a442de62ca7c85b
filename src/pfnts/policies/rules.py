"""How an arm is drawn, with exact propensities: pure functions of what is known and of uniform numbers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pfnts.policies.decision import Choices, Mask, Matrix, Vector
from pfnts.posterior import AnyPosterior


def thompson(
    posterior: AnyPosterior,
    eligible: Mask,
    uniforms: Matrix,
    *,
    exploration: float = 1.0,
    costs: Vector | None = None,
    shortlist: NDArray[np.int64] | None = None,
) -> Choices:
    """Draw mean rewards (q, K) and take the largest of each row.

    Parameters
    ----------
    posterior
        Of the mean rewards, (q, K), or (q, S) of a shortlist.
    eligible
        Arms that may be taken, (q, K).
    uniforms
        (q, n) numbers: as many as a draw of the posterior needs (one for each entry, one more for a mixture),
        and the last of each row to break ties.
    exploration
        Factor on the standard deviations of the draw; 0 takes the largest mean.
    costs
        What is deducted from the mean reward of each arm, (K,).
    shortlist
        Positions (q, S) of the arms that the posterior is of; None for all.
    """
    shares = np.zeros(eligible.shape)
    if shortlist is not None:
        eligible = np.take_along_axis(eligible, shortlist, axis=1)
        costs = None if costs is None else costs[shortlist]
    drawn = posterior if exploration == 1.0 else posterior.scaled(exploration)
    drawn = drawn if costs is None else drawn.shifted(costs)
    index = largest(drawn.draw(uniforms), eligible, uniforms[:, -1])
    best = drawn.best_arm_probabilities(eligible)
    if shortlist is None:
        return Choices(index, best, posterior)
    np.put_along_axis(shares, shortlist, best, axis=1)  # the others are never chosen
    return Choices(np.take_along_axis(shortlist, index[:, None], axis=1)[:, 0], shares, posterior, shortlist)


def greedy(values: Matrix, eligible: Mask, tie_break: Vector) -> Choices:
    """Take the largest value of each row (q, K); equal ones share the decision evenly."""
    allowed = np.where(eligible, values, -np.inf)
    best = allowed == allowed.max(axis=1, keepdims=True)
    return Choices(largest(values, eligible, tie_break), best / best.sum(axis=1, keepdims=True))


def largest(values: Matrix, eligible: Mask, tie_break: Vector) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Position (q,) of the largest eligible value of each row; ``tie_break`` (q,) picks among equal ones."""
    allowed = np.where(eligible, values, -np.inf)
    equal = allowed == allowed.max(axis=1, keepdims=True)
    rank = (tie_break * equal.sum(axis=1)).astype(np.int64)
    return np.asarray((equal.cumsum(axis=1) > rank[:, None]).argmax(axis=1))


def evenly(eligible: Mask, uniform: float) -> int:
    """Position of one of the eligible arms (K,), uniformly at random."""
    arms = np.flatnonzero(eligible)
    return int(arms[int(uniform * len(arms))])
