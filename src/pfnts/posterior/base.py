"""Normal posteriors of mean rewards."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from textwrap import shorten
from typing import Any, Self

import numpy as np
import scipy
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from pfnts.posterior.best_arm import best_arm_probabilities

Array = NDArray[np.float64]

_SMALLEST = 2.0**-54
"""Least uniform number that is turned into a normal one, so that the latter is finite."""

_HALVINGS = 60


@dataclass(frozen=True, eq=False, init=False, repr=False)
class GaussianPosterior:
    """Independent normal distributions of mean rewards. Its arrays are read-only.

    Parameters
    ----------
    mean
        Posterior means, (..., K): contexts first, arms (or queries) last.
    variance
        Posterior variances of the mean rewards themselves, V / n, not of rewards; same shape.
    size
        Number of observations behind each entry; broadcast to ``mean``.

    Examples
    --------
    >>> posterior = GaussianPosterior(mean=[0.0, 1.0], variance=[1.0, 1.0], size=10)
    >>> posterior.best_arm_probabilities().round(4)
    array([0.2398, 0.7602])
    """

    mean: Array
    variance: Array
    size: NDArray[np.int64]

    def __init__(self, *, mean: ArrayLike, variance: ArrayLike, size: ArrayLike) -> None:
        mean = np.asarray(mean, dtype=np.float64)
        variance, sizes = np.asarray(variance, dtype=np.float64), np.asarray(size, dtype=np.int64)
        for name, array in (("mean", mean), ("variance", variance)):
            if not np.isfinite(array).all():
                raise ValueError(f"{name} must be finite, got {array[~np.isfinite(array)][0]}")
        if not mean.shape:
            raise ValueError(
                "mean must have at least one axis, the arms, got a single number; wrap it in a list"
            )
        if variance.shape != mean.shape:
            raise ValueError(f"variance must have the shape of mean, {mean.shape}, got {variance.shape}")
        if (variance < 0).any():
            raise ValueError(f"variance must not be negative, got {variance.min()}")
        if (sizes < 1).any():
            raise ValueError(f"size must be at least 1, got {sizes.min()}")
        try:
            sizes = sizes if sizes.shape == mean.shape else np.broadcast_to(sizes, mean.shape)
        except ValueError as error:
            raise ValueError(
                f"size must broadcast to the shape of mean, {mean.shape}, got {sizes.shape}"
            ) from error
        self._set(mean, variance, sizes)

    def _set(self, *arrays: NDArray[Any]) -> Self:
        for name, array in zip(("mean", "variance", "size"), arrays, strict=True):
            view = array.view()
            view.flags.writeable = False
            object.__setattr__(self, name, view)
        return self

    def draw(self, uniforms: Array) -> Array:
        """Draw the mean rewards at each context from the first K of ``uniforms`` (..., n) in [0, 1).

        It uses a fixed number of uniforms, so that a batch of draws equals single draws.
        """
        normal = scipy.special.ndtri(np.maximum(uniforms[..., : self.mean.shape[-1]], _SMALLEST))
        return np.asarray(self.mean + np.sqrt(self.variance) * normal)

    def sample(self, rng: Generator) -> Array:
        """Draw every entry independently; consumes ``mean.size`` standard normals."""
        return np.asarray(self.mean + np.sqrt(self.variance) * rng.standard_normal(self.mean.shape))

    def interval(self, level: float) -> tuple[Array, Array]:
        """Return the ends of the central interval of probability ``level``."""
        half = scipy.special.ndtri(0.5 + check_level(level) / 2) * np.sqrt(self.variance)
        return self.mean - half, self.mean + half

    def cdf(self, values: ArrayLike) -> Array:
        """Return the probability that each mean reward is at most ``values``."""
        gap, scale = np.asarray(values) - self.mean, np.sqrt(self.variance)
        steps = np.where(gap < 0, -np.inf, np.inf)
        return np.asarray(scipy.special.ndtr(np.divide(gap, scale, out=steps, where=scale > 0)))

    def best_arm_probabilities(self, eligible: ArrayLike | None = None) -> Array:
        """Return the probability, for each entry of the last axis, of being the largest of its row.

        By quadrature, with an error below 1e-6. ``eligible`` is a boolean mask, (K,) or as ``mean``; entries
        outside it get zero.
        """
        return best_arm_probabilities(self.mean, self.variance, eligible=eligible)

    def scaled(self, factor: ArrayLike) -> GaussianPosterior:
        """Return the posterior with standard deviations multiplied by ``factor``, broadcast to (..., K)."""
        return replace(self, variance=check_factor(factor) ** 2 * self.variance)

    def shifted(self, offset: ArrayLike) -> GaussianPosterior:
        """Return the posterior of the mean rewards less ``offset`` (K,)."""
        return replace(self, mean=self.mean - np.asarray(offset))

    def take(self, entries: NDArray[np.int64]) -> GaussianPosterior:
        """Keep some entries of the last axis."""
        return self._cut((..., entries))

    def __getitem__(self, index: Any) -> GaussianPosterior:
        """Cut out contexts: ``index`` applies to the leading axes of ``mean``, never to the last."""
        if self.mean.ndim < 2:
            raise IndexError(
                f"only posteriors with leading axes can be indexed, this one has {self.mean.shape}"
            )
        index = index if isinstance(index, tuple) else (index,)
        return self._cut((*index, slice(None)))

    def __repr__(self) -> str:
        return summary(self)

    def _cut(self, index: Any) -> GaussianPosterior:
        # Parts of checked arrays need no checks: in a decision every arm is cut once.
        cut = object.__new__(GaussianPosterior)
        return cut._set(self.mean[index], self.variance[index], self.size[index])


def stack(posteriors: Sequence[GaussianPosterior], axis: int = -1) -> GaussianPosterior:
    """Join posteriors of equal shape along a new axis, for example one per arm, (q,), into (q, K).

    Examples
    --------
    >>> arms = [GaussianPosterior(mean=[m], variance=[1.0], size=8) for m in (0.0, 1.0)]
    >>> stack(arms).mean
    array([[0., 1.]])
    """
    shapes = {posterior.mean.shape for posterior in posteriors}
    if len(shapes) != 1:
        raise ValueError(f"posteriors must be at least one, all of one shape, got {sorted(shapes)}")
    names = ("mean", "variance", "size")
    return GaussianPosterior(
        **{name: np.stack([getattr(each, name) for each in posteriors], axis=axis) for name in names}
    )


def check_factor(factor: ArrayLike) -> Array:
    """Return ``factor`` as an array, or raise if part of it is negative or no number."""
    factors = np.asarray(factor, dtype=np.float64)
    if not (factors >= 0).all():
        raise ValueError(f"factor must not be negative, got {factors}")
    return factors


def check_level(level: float) -> float:
    """Return ``level``, or raise an error if it is no probability of an interval."""
    if not 0 < level < 1:
        raise ValueError(f"level must be strictly between 0 and 1, got {level}")
    return level


def quantile(cdf: Callable[[Array], Array], level: float, low: Array, high: Array) -> Array:
    """Find the quantiles of a level between ``low`` and ``high`` by bisection."""
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        beyond = cdf(middle) >= level
        low, high = np.where(beyond, low, middle), np.where(beyond, middle, high)
    return high


def summary(posterior: Any, **more: Array) -> str:
    """Describe a posterior in three lines: its kind and shape, means, and standard deviations.

    Examples
    --------
    >>> GaussianPosterior(mean=[[0.0, 1.0]], variance=[[1.0, 4.0]], size=10)
    GaussianPosterior of shape (1, 2)
      mean [[0. 1.]]
      sd   [[1. 2.]]
    """
    mean = posterior.mean
    title = [f"{type(posterior).__name__} of shape {mean.shape}"]
    title += [f"{name} {_short(values)}" for name, values in more.items()]
    return f"{', '.join(title)}\n  mean {_short(mean)}\n  sd   {_short(np.sqrt(posterior.variance))}"


def _short(array: Array) -> str:
    text = np.array2string(array, precision=4, threshold=12, edgeitems=2, max_line_width=10_000)
    return shorten(" ".join(text.split()), 90, placeholder=" ...")
