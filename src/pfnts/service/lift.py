"""What the policy earns over the holdout, doubly robust."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from pfnts.ope import Estimate
from pfnts.ope.log import Matrix
from pfnts.ope.outcome import Ridge

_FEWEST = 20
"""Units with rewards that each group needs."""


@dataclass(frozen=True)
class Lift:
    """Difference of mean rewards, policy less holdout, with a 95 % interval."""

    value: float
    low: float
    high: float
    policy: float
    holdout: float
    rows: int


def lift(
    contexts: Matrix,
    rewards: Sequence[float],
    treated: Sequence[bool],
    *,
    share: ArrayLike,
    units: Sequence[Hashable] | None = None,
) -> Lift | None:
    """Estimate the lift by the doubly robust (AIPW) score with ridge regressions, cross-fitted on two halves.

    Who is held out was drawn with a known probability, so that the estimate is right whatever the regressions
    say; they only make its interval shorter. Units are held out, not decisions: those of one unit are not
    independent, and count as one cluster in the standard error.

    Parameters
    ----------
    contexts
        (n, P), NaN where a value is missing.
    rewards
        (n,)
    treated
        (n,) whether the policy decided.
    share
        Probability of being held out, one for all rows or (n,).
    units
        (n,) who each row is about; each row a unit of its own when not given.

    Returns
    -------
    None where a group has too few units with rewards.
    """
    y, a = np.asarray(rewards, dtype=np.float64), np.asarray(treated, dtype=bool)
    p = np.broadcast_to(np.asarray(share, dtype=np.float64), y.shape)
    number = {unit: i for i, unit in enumerate(dict.fromkeys(units or range(len(y))))}
    cluster = np.array([number[unit] for unit in units or range(len(y))], dtype=np.int64)
    if min(len(set(cluster[a])), len(set(cluster[~a]))) < _FEWEST or not ((p > 0) & (p < 1)).all():
        return None
    if y[a].std() == 0 or y[~a].std() == 0:  # rewards all alike say nothing about how much they vary
        return None
    fold = cluster % 2
    outcomes = np.empty((2, len(y)))
    for half in (0, 1):
        for group in (0, 1):
            fit = (fold != half) & (a == bool(group))
            if not fit.any():
                return None
            outcomes[group, fold == half] = Ridge().fit(contexts[fit], y[fit]).predict(contexts[fold == half])
    under_holdout, under_policy = outcomes
    score = under_policy - under_holdout + np.where(a, (y - under_policy) / (1 - p), -(y - under_holdout) / p)
    estimate = Estimate("dr", score, np.ones(len(y)), cluster)
    return Lift(estimate.value, *estimate.interval(), float(y[a].mean()), float(y[~a].mean()), len(y))
