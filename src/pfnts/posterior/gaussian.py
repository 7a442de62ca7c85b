"""A Gaussian posterior of mean rewards."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy
from numpy.random import Generator
from numpy.typing import ArrayLike

from pfnts.posterior.base import Array, Posterior, check_level, standard_normal
from pfnts.posterior.best_arm import best_arm_probabilities, check_eligible
from pfnts.posterior.student import StudentPosterior


@dataclass(frozen=True, eq=False, init=False)
class GaussianPosterior(Posterior):
    """Normal distribution of mean rewards.

    Parameters
    ----------
    mean
        Posterior means, (..., K): contexts first, arms last.
    variance
        Posterior variances of the mean rewards themselves, V / s, same shape.
    size
        Number of observations behind each entry; broadcast to ``mean``.
    directions
        Block directions, (J, ..., K), whose squares add up to ``variance``; None where unknown.
    coupled
        Whether the last axis shares the block draws (one sequence for all arms).

    Examples
    --------
    >>> posterior = GaussianPosterior(mean=[0.0, 1.0], variance=[1.0, 1.0], size=10)
    >>> posterior.best_arm_probabilities().round(4)
    array([0.2398, 0.7602])
    """

    def draw(self, uniforms: Array) -> Array:
        """Draw the mean rewards at each context by itself, from ``uniforms`` (..., n_uniforms) in [0, 1)."""
        if self.coupled:
            return self.mean + self._coupled_draw(uniforms)
        draw: Array = self.mean + np.sqrt(self.variance) * standard_normal(uniforms)
        return draw

    def sample(self, rng: Generator) -> Array:
        """Draw every entry independently; consumes ``mean.size`` standard normals."""
        draw: Array = self.mean + np.sqrt(self.variance) * rng.standard_normal(self.mean.shape)
        return draw

    def sample_function(self, rng: Generator) -> Array:
        """Draw ``mean + sum_j z_j directions_j``: one z_j for each arm, or one for all when coupled."""
        draw: Array = self.mean + self._along_directions(self._block_draws(rng))
        return draw

    def interval(self, level: float) -> tuple[Array, Array]:
        """Return the ends of the central interval of probability ``level``."""
        half = scipy.special.ndtri(0.5 + check_level(level) / 2) * np.sqrt(self.variance)
        return self.mean - half, self.mean + half

    def best_arm_probabilities(self, eligible: ArrayLike | None = None) -> Array:
        """Return the probability, for each entry of the last axis, of being the largest of its row.

        Independent entries: quadrature, error below 1e-6. Coupled: see `pfnts.posterior.best_arm`.
        ``eligible`` is a boolean mask that broadcasts to ``mean``; entries outside it get zero.
        """
        mask = check_eligible(eligible, self.mean.shape)
        directions = self.directions if self.coupled else None
        return best_arm_probabilities(self.mean, self.variance, eligible=mask, directions=directions)

    def student(self, dof: ArrayLike) -> StudentPosterior:
        """Return the same location, scale and directions with Student tails of ``dof`` degrees of freedom."""
        return StudentPosterior(
            mean=self.mean,
            variance=self.variance,
            size=self.size,
            directions=self.directions,
            coupled=self.coupled,
            dof=dof,
        )
