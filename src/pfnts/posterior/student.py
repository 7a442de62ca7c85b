"""A Student posterior of mean rewards: heavier tails where the variance rests on few blocks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import scipy
from numpy.random import Generator
from numpy.typing import ArrayLike

from pfnts.posterior.base import Array, Posterior, _spread, check_level
from pfnts.posterior.best_arm import best_arm_probabilities, check_eligible


@dataclass(frozen=True, eq=False, init=False)
class StudentPosterior(Posterior):
    """Student distribution of mean rewards.

    Parameters
    ----------
    mean
        Locations, (..., K): contexts first, arms last.
    variance
        Squared scales, same shape. The variance proper is ``variance * dof / (dof - 2)`` for ``dof > 2``.
    size
        Number of observations behind each entry; broadcast to ``mean``.
    dof
        Degrees of freedom, positive; broadcast to ``mean``.
    directions
        Block directions, (J, ..., K), whose squares add up to ``variance``; None where unknown.
    coupled
        Whether the last axis shares the block draws, and then also the degrees of freedom.

    Examples
    --------
    >>> posterior = StudentPosterior(mean=[0.0], variance=[1.0], size=10, dof=4)
    >>> lower, upper = posterior.interval(0.95)
    >>> upper.round(3)
    array([2.776])
    """

    dof: Array = field(kw_only=True)
    """Degrees of freedom of each entry."""
    _fields: ClassVar[tuple[str, ...]] = ("mean", "variance", "size", "dof")

    def __init__(
        self,
        *,
        mean: ArrayLike,
        variance: ArrayLike,
        size: ArrayLike,
        dof: ArrayLike,
        directions: ArrayLike | None = None,
        coupled: bool = False,
    ) -> None:
        super().__init__(mean=mean, variance=variance, size=size, directions=directions, coupled=coupled)
        dof = _spread("dof", np.asarray(dof, dtype=np.float64), self.mean.shape)
        if not ((dof > 0) & (dof < np.inf)).all():
            raise ValueError(
                f"dof must be positive and finite, got {dof[~((dof > 0) & (dof < np.inf))][0]}; "
                "infinitely many are Gaussian"
            )
        if self.coupled and (dof != dof[..., :1]).any():
            raise ValueError(
                "dof must be equal along the last axis when coupled=True, since all share one draw"
            )
        self._set("dof", dof)

    @property
    def n_uniforms(self) -> int:
        """Uniform numbers that `draw` takes at one context."""
        return int(self.mean.shape[-1]) + self.coupled

    def draw(self, uniforms: Array) -> Array:
        """Draw the mean rewards at each context by itself, from ``uniforms`` (..., n_uniforms) in [0, 1)."""
        uniforms = np.maximum(uniforms, 2.0**-54)
        if self.coupled:
            dof = self.dof[..., :1]
            tails = np.sqrt(dof / scipy.special.chdtri(dof, uniforms[..., :1]))
            coupled: Array = self.mean + tails * self._coupled_draw(uniforms[..., 1:])
            return coupled
        draw: Array = self.mean + np.sqrt(self.variance) * scipy.special.stdtrit(self.dof, uniforms)
        return draw

    def sample(self, rng: Generator) -> Array:
        """Draw every entry independently: ``mean.size`` standard normals, then as many chi-squares."""
        normal = rng.standard_normal(self.mean.shape)
        tails = np.sqrt(self.dof / rng.chisquare(self.dof))
        draw: Array = self.mean + np.sqrt(self.variance) * normal * tails
        return draw

    def sample_function(self, rng: Generator) -> Array:
        """Draw one function: all z of an arm (of all arms when coupled) share one sqrt(dof / chi2)."""
        normal = self._block_draws(rng)
        dof = self.dof.reshape(-1, self.dof.shape[-1])
        if (dof != dof[0]).any():
            raise ValueError(
                "dof must be the same in every context to draw a function; draw sample(rng) instead"
            )
        dof = dof[0, : normal.shape[1]]
        draw: Array = self.mean + self._along_directions(normal * np.sqrt(dof / rng.chisquare(dof)))
        return draw

    def interval(self, level: float) -> tuple[Array, Array]:
        """Return the ends of the central interval of probability ``level``."""
        half = scipy.special.stdtrit(self.dof, 0.5 + check_level(level) / 2) * np.sqrt(self.variance)
        return self.mean - half, self.mean + half

    def best_arm_probabilities(self, eligible: ArrayLike | None = None) -> Array:
        """Return the probability, for each entry of the last axis, of being the largest of its row.

        Independent entries: quadrature, error below 1e-6. Coupled: see `pfnts.posterior.best_arm`.
        ``eligible`` is a boolean mask that broadcasts to ``mean``; entries outside it get zero.
        """
        mask = check_eligible(eligible, self.mean.shape)
        directions = self.directions if self.coupled else None
        return best_arm_probabilities(
            self.mean, self.variance, eligible=mask, dof=self.dof, directions=directions
        )
