"""Rewards themselves instead of mean rewards: predictive sampling (PFN-PS)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from pfnts.posterior.estimator import Answer, Asks
from pfnts.posterior.rewards import RewardDistribution

_LEVELS = tuple((np.arange(200) + 0.5) / 200)


@dataclass(frozen=True, kw_only=True)
class Predictive:
    """The predictive distribution of a reward in the place of a posterior: the paper's PFN-PS.

    It is no posterior of the mean: it stays as wide as the noise, and explores for ever.

    Examples
    --------
    >>> len(Predictive().asks(8).levels)
    200
    """

    needs_mean_sd: ClassVar[bool] = False
    coupled: ClassVar[bool] = False
    own_directions: ClassVar[int] = 0

    def asks(self, n: int) -> Asks:
        """Ask for the predictive distribution after all n rows."""
        return Asks((n,), _LEVELS)

    def posterior(self, answer: Answer, *, size: int, reward_variance: float) -> RewardDistribution:  # noqa: ARG002
        """Give equally likely rewards at the queries, points (M, q)."""
        return RewardDistribution(answer.quantiles, np.full(answer.quantiles.shape[1], size))
