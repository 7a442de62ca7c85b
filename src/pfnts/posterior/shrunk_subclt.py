"""A SubCLT variance that cannot collapse: shrunk to the backbone's own uncertainty, and floored."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np

from pfnts.posterior.estimator import Answer, Asks
from pfnts.posterior.gaussian import GaussianPosterior
from pfnts.posterior.student import StudentPosterior
from pfnts.posterior.subclt import SubCLT

# Midpoints of equally likely slices, so that the plain variance of the quantiles is that of the prediction.
_LEVELS = tuple((np.arange(50) + 0.5) / 50)


@dataclass(frozen=True, kw_only=True)
class ShrunkSubCLT:
    """SubCLT combined with a prior guess of its variance, for arms with only a block or two.

    SubCLT's V(x) rests on 1 / sum a_j^2 degrees of freedom, few if there are few blocks. Here it is averaged
    with ``prior_dof`` degrees of freedom at V0(x), the variance of a reward that the backbone predicts at x:
    were the mean at x estimated from n rewards at x, V would be that variance. The result is at least
    ``floor`` times the variance of the rewards of all arms. It explores well and is too narrow to be honest:
    its 95 % intervals hold the mean reward in 72 to 78 of 100 cases.

    Parameters
    ----------
    prior_dof
        Prior degrees of freedom; 0 trusts the blocks alone.
    floor
        Smallest V as a fraction of the variance of all rewards; 0 for none.
    tails
        "gaussian" draws, or "student" with the blocks' and the prior degrees of freedom together.
    base
        Growth factor of the prefix grid.
    coupled
        Whether arms that share a sequence share the draws of its blocks.

    Examples
    --------
    >>> ShrunkSubCLT(prior_dof=2.0).tails
    'gaussian'
    """

    prior_dof: float = 30.0
    floor: float = 0.01
    tails: Literal["gaussian", "student"] = "gaussian"
    base: float = 2.0
    coupled: bool = False

    needs_mean_sd: ClassVar[bool] = False
    own_directions: ClassVar[int] = 1
    """The prior's share of the variance is an arm's own, also where arms share their blocks."""

    def __post_init__(self) -> None:
        for name in ("prior_dof", "floor"):
            value = getattr(self, name)
            if not (np.isfinite(value) and value >= 0):
                raise ValueError(f"{name} must be finite and not negative, got {value}")
        if self.tails not in ("gaussian", "student"):
            raise ValueError(f'tails must be "gaussian" or "student", got {self.tails!r}')
        SubCLT(base=self.base)

    def asks(self, n: int) -> Asks:
        """Ask as SubCLT does, and for the predictive distribution after all n rows."""
        return replace(SubCLT(base=self.base).asks(n), levels=_LEVELS)

    def posterior(
        self, answer: Answer, *, size: int, reward_variance: float
    ) -> GaussianPosterior | StudentPosterior:
        """Give the posterior at the queries, arrays (q,)."""
        subclt = SubCLT(base=self.base)
        blocks = subclt.posterior(answer, size=size, reward_variance=reward_variance)
        dof, prior = subclt.dof(size), self.prior_dof
        guess = answer.quantiles.var(axis=0) / size
        shrunk = (dof * blocks.variance + prior * guess) / (dof + prior)
        variance = np.maximum(shrunk, self.floor * reward_variance / size)
        part = blocks.scaled(float(np.sqrt(dof / (dof + prior))))
        assert part.directions is not None
        own = np.sqrt(np.maximum(variance - part.variance, 0.0))
        directions = np.concatenate([part.directions, own[None]])
        gaussian = replace(part, variance=variance, directions=directions)
        return gaussian.student(dof + prior) if self.tails == "student" else gaussian
