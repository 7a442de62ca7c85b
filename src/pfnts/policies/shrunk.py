"""A SubCLT variance that cannot collapse: shrunk to the backbone's own uncertainty, and floored."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from pfnts.encodings.base import AnyPosterior
from pfnts.encodings.track import Snapshot
from pfnts.posterior import SubCLT

# Midpoints of equally likely slices, so that the plain variance of the quantiles is that of the prediction.
_LEVELS = (np.arange(50) + 0.5) / 50


@dataclass(frozen=True, kw_only=True)
class Shrunk:
    """SubCLT combined with a prior guess of its variance, for arms with only a block or two.

    SubCLT's V(x) rests on 1 / sum a_j^2 degrees of freedom, few if there are few blocks. Here it is averaged
    with ``nu0`` degrees of freedom at V0(x), the variance of a reward that the backbone predicts at x: were
    the mean at x estimated from s rewards at x, V would be that variance. The result is at least ``floor``
    times the variance of the rewards of all arms.

    Parameters
    ----------
    nu0
        Prior degrees of freedom; 0 trusts the blocks alone.
    floor
        Smallest V as a fraction of the variance of all rewards; 0 for none.
    tails
        "gaussian" draws, or "student" with the blocks' and the prior degrees of freedom together.
    weights
        How SubCLT averages its blocks, "equal" or "root".
    base
        Ratio of the prefix grid.

    Examples
    --------
    >>> Shrunk(nu0=2.0).tails
    'gaussian'
    """

    nu0: float = 30.0
    floor: float = 0.01
    tails: Literal["gaussian", "student"] = "gaussian"
    weights: Literal["equal", "root"] = "equal"
    base: float = 2.0

    own_directions: ClassVar[int] = 1
    """The prior's share of the variance is an arm's own, also where arms share their blocks."""

    def __post_init__(self) -> None:
        if not (np.isfinite(self.nu0) and self.nu0 >= 0):
            raise ValueError(f"nu0 must be finite and not negative, got {self.nu0}")
        if not (np.isfinite(self.floor) and self.floor >= 0):
            raise ValueError(f"floor must be finite and not negative, got {self.floor}")
        if self.tails not in ("gaussian", "student"):
            raise ValueError(f'tails must be "gaussian" or "student", got {self.tails!r}')
        SubCLT(base=self.base, weights=self.weights)

    def posterior(self, sequence: Snapshot, queries: ArrayLike) -> AnyPosterior:
        """Posterior of the mean reward at ``queries`` (q, P), arrays (q,)."""
        estimator = SubCLT(base=self.base, weights=self.weights)
        blocks = estimator.posterior(sequence, queries)
        nu, s = estimator.dof(sequence.size), sequence.size
        v0 = sequence.quantiles(queries, s, _LEVELS).var(axis=0)
        shrunk = (nu * blocks.variance + self.nu0 * v0 / s) / (nu + self.nu0)
        variance = np.maximum(shrunk, self.floor * sequence.reward_variance / s)
        part = blocks.scaled(float(np.sqrt(nu / (nu + self.nu0))))
        directions = np.concatenate(
            [
                np.empty((0, len(variance))) if part.directions is None else part.directions,
                np.sqrt(np.maximum(variance - part.variance, 0.0))[None],
            ]
        )
        gaussian = replace(part, variance=variance, directions=directions)
        return gaussian.student(nu + self.nu0) if self.tails == "student" else gaussian
