"""Mixtures of posteriors, such as the average of two layouts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from pfnts.posterior.base import Array, GaussianPosterior, check_level, quantile, summary
from pfnts.posterior.bounded import BoundedPosterior


@dataclass(frozen=True, eq=False, repr=False)
class MixturePosterior:
    """Mean rewards that follow one of several posteriors, with known probabilities.

    At each context a draw picks one component for all arms, and then draws the arms from it.

    Parameters
    ----------
    components
        Posteriors of equal shape (..., K), Gaussian or bounded.
    weights
        Probability of each component, (C,).

    Examples
    --------
    >>> sure = GaussianPosterior(mean=[0.0, 1.0], variance=[0.01, 0.01], size=50)
    >>> torn = GaussianPosterior(mean=[0.0, 0.0], variance=[1.0, 1.0], size=50)
    >>> MixturePosterior([sure, torn], [0.75, 0.25]).best_arm_probabilities()
    array([0.125, 0.875])
    """

    components: Sequence[GaussianPosterior | BoundedPosterior]
    weights: Array

    def __post_init__(self) -> None:
        weights = np.array(self.weights, dtype=np.float64)
        if not self.components or weights.shape != (len(self.components),):
            raise ValueError(
                f"weights must have one entry for each of >= 1 components, got shape {weights.shape} "
                f"for {len(self.components)}"
            )
        if not (weights >= 0).all() or abs(weights.sum() - 1) > 1e-9:
            raise ValueError(f"weights must be probabilities that sum to one, got {weights}; normalise them")
        shapes = {component.mean.shape for component in self.components}
        if len(shapes) > 1:
            raise ValueError(f"components must have equal shapes, got {sorted(shapes)}")
        weights /= weights.sum()
        weights.flags.writeable = False
        object.__setattr__(self, "components", tuple(self.components))
        object.__setattr__(self, "weights", weights)

    @property
    def mean(self) -> Array:
        """Expected mean reward, (..., K)."""
        return self._average(lambda component: component.mean)

    @property
    def variance(self) -> Array:
        """Variance of the mean reward, (..., K): that within components plus that between them."""
        centre = self.mean
        return self._average(lambda component: component.variance + (component.mean - centre) ** 2)

    @property
    def size(self) -> NDArray[np.int64]:
        """Number of observations behind each entry: the most that a component has."""
        size: NDArray[np.int64] = np.max([component.size for component in self.components], axis=0)
        return size

    def cdf(self, values: ArrayLike) -> Array:
        """Return the probability that each mean reward is at most ``values``."""
        return self._average(lambda component: component.cdf(values))

    def interval(self, level: float) -> tuple[Array, Array]:
        """Return the ends of the central interval of probability ``level`` of each entry."""
        tail = (1 - check_level(level)) / 2
        # A quantile of the mixture lies between the least and the largest of the components'.
        lower, upper = np.stack([component.interval(level) for component in self.components], axis=1)
        return (
            quantile(self.cdf, tail, lower.min(axis=0), lower.max(axis=0)),
            quantile(self.cdf, 1 - tail, upper.min(axis=0), upper.max(axis=0)),
        )

    def draw(self, uniforms: Array) -> Array:
        """Draw the mean rewards at each context from the first K + 1 of ``uniforms`` (..., n) in [0, 1).

        The first picks the component, the others draw the arms from it.
        """
        picked = np.searchsorted(np.cumsum(self.weights)[:-1], uniforms[..., 0], side="right")
        drawn = [component.draw(uniforms[..., 1:]) for component in self.components]
        return np.asarray(np.take_along_axis(np.stack(drawn), picked[None, ..., None], axis=0)[0])

    def sample(self, rng: Generator) -> Array:
        """Draw a component for each context, and every arm from it."""
        *contexts, arms = self.components[0].mean.shape
        return self.draw(rng.random((*contexts, arms + 1)))

    def best_arm_probabilities(self, eligible: ArrayLike | None = None) -> Array:
        """Return the probability, for each entry of the last axis, of being the largest of its row."""
        return self._average(lambda component: component.best_arm_probabilities(eligible))

    def scaled(self, factor: ArrayLike) -> GaussianPosterior | MixturePosterior:
        """Return the mixture of components whose standard deviations are multiplied by ``factor``.

        A factor of 0 leaves the mean of the mixture alone.
        """
        scaled = self._each(lambda component: component.scaled(factor))
        if np.any(factor) or len(self.components) == 1:
            return scaled
        return GaussianPosterior(mean=scaled.mean, variance=np.zeros(scaled.mean.shape), size=self.size)

    def shifted(self, offset: ArrayLike) -> MixturePosterior:
        """Return the posterior of the mean rewards less ``offset`` (K,)."""
        return self._each(lambda component: component.shifted(offset))

    def take(self, entries: NDArray[np.int64]) -> MixturePosterior:
        """Keep some entries of the last axis."""
        return self._each(lambda component: component.take(entries))

    def __getitem__(self, index: Any) -> MixturePosterior:
        """Cut out contexts: ``index`` applies to the leading axes, never to the arms."""
        return self._each(lambda component: component[index])

    def __repr__(self) -> str:
        return summary(self, weights=self.weights)

    def _each(self, change: Callable[[Any], Any]) -> MixturePosterior:
        return MixturePosterior([change(component) for component in self.components], self.weights)

    def _average(self, value: Callable[[GaussianPosterior | BoundedPosterior], Array]) -> Array:
        return np.asarray(sum(w * value(c) for w, c in zip(self.weights, self.components, strict=True)))
