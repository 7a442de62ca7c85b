"""Posteriors of mean rewards in a known range, which may be large in it where an arm was not tried."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from pfnts.posterior.base import Array, check_factor, check_level, quantile, summary
from pfnts.posterior.best_arm import check_eligible, legendre
from pfnts.posterior.truncated import Part, Tail, TruncatedNormal

_NODES, _WEIGHTS = legendre(8)
_LEAST_SCALE = 1e-9
"""Smallest standard deviation as a share of the range: a density needs one."""
_OUTLIER_SCALE = 0.02
"""Standard deviation of a mean around an outlier that stands for it, as a share of the range."""
_CHUNK = 1 << 19


@dataclass(frozen=True, eq=False, repr=False)
class BoundedPosterior:
    """Independent mean rewards between two bounds: the model's posterior, or something that it does not know.

    Each mean is a mixture. With probability ``outlier_weight`` it is near ``outlier``, a reward that the
    model does not explain. Otherwise it has even odds to follow the model, normal around ``location``, or to
    be unexplored: more than d above ``location`` with probability ``tail`` / d, up to the bound.

    Examples
    --------
    >>> posterior = BoundedPosterior(
    ...     location=[0.2, 0.1], scale=[0.01, 0.01], low=0.0, high=1.0, size=20, tail=[0.0, 0.02]
    ... )
    >>> posterior.best_arm_probabilities().round(3), posterior.mean.round(3)
    (array([0.908, 0.092]), array([0.2  , 0.139]))
    """

    location: Array
    """Mean of the model's posterior, (..., K), moved between the bounds."""
    scale: Array
    """Its standard deviation, (..., K)."""
    low: Array
    """Least mean reward that is possible; broadcast to ``location``."""
    high: Array
    """Largest mean reward that is possible; broadcast to ``location``."""
    size: NDArray[np.int64]
    """Number of observations behind each entry."""
    tail: Array = 0.0  # type: ignore[assignment]
    """Least distance above ``location`` of an unexplored mean, (..., K); 0 where nothing is unexplored."""
    outlier: Array = 0.0  # type: ignore[assignment]
    """Reward that may stand for the mean, (..., K)."""
    outlier_weight: Array = 0.0  # type: ignore[assignment]
    """Probability that it does, (..., K)."""

    def __post_init__(self) -> None:
        shape = np.shape(self.location)
        low, high = (
            np.broadcast_to(np.asarray(end, dtype=np.float64), shape) for end in (self.low, self.high)
        )
        if not (low < high).all():
            raise ValueError(f"low must be below high, got {self.low} and {self.high}")
        location = np.clip(np.asarray(self.location, dtype=np.float64), low, high)
        outlier_weight = np.asarray(self.outlier_weight, dtype=np.float64)
        if not ((outlier_weight >= 0) & (outlier_weight <= 1)).all() or (np.asarray(self.tail) < 0).any():
            raise ValueError("outlier_weight must hold probabilities and tail no negative number")
        arrays = {
            "location": location,
            "scale": np.maximum(np.asarray(self.scale, dtype=np.float64), _LEAST_SCALE * (high - low)),
            "low": low,
            "high": high,
            "size": np.asarray(self.size),
            "tail": np.minimum(np.asarray(self.tail, dtype=np.float64), (high - location) / 2),
            "outlier": np.clip(np.asarray(self.outlier, dtype=np.float64), low, high),
            "outlier_weight": outlier_weight,
        }
        for name, array in arrays.items():
            object.__setattr__(self, name, np.broadcast_to(array, shape))

    @property
    def mean(self) -> Array:
        """Expected mean reward, (..., K)."""
        return self._expected(lambda part: part.moments()[0])

    @property
    def variance(self) -> Array:
        """Variance of the mean reward, (..., K)."""
        centre = self.mean

        def around_centre(part: Part) -> Array:
            mean, variance = part.moments()
            return variance + (mean - centre) ** 2

        return self._expected(around_centre)

    def cdf(self, values: ArrayLike) -> Array:
        """Return the probability that each mean reward is at most ``values``."""
        return self._expected(lambda part: part.cdf(np.asarray(values)))

    def draw(self, uniforms: Array) -> Array:
        """Draw the mean rewards at each context from the first K of ``uniforms`` (..., n) in [0, 1)."""
        uniforms = uniforms[..., : self.location.shape[-1]]
        # One uniform number picks the part; rescaled to [0, 1), it is the level of a quantile of that part.
        drawn = np.zeros(self.location.shape)
        begin = np.zeros(self.location.shape)
        for share, part in self._parts:
            inside = (uniforms >= begin) & (share > 0)
            left = np.clip((uniforms - begin) / np.where(share > 0, share, 1.0), 0.0, 1.0)
            drawn = np.where(inside, part.quantile(left), drawn)
            begin = begin + share
        return np.asarray(drawn)

    def sample(self, rng: Generator) -> Array:
        """Draw every entry independently."""
        return self.draw(rng.random(self.location.shape))

    def interval(self, level: float) -> tuple[Array, Array]:
        """Return the ends of the central interval of probability ``level``."""
        tail = (1 - check_level(level)) / 2
        low, high = self.low, self.high
        return quantile(self.cdf, tail, low, high), quantile(self.cdf, 1 - tail, low, high)

    def best_arm_probabilities(self, eligible: ArrayLike | None = None) -> Array:
        """Return the probability that each entry of the last axis is the largest of its row.

        By quadrature between quantiles of all parts of all arms; the error is below 1e-6.
        """
        shape = self.location.shape
        masks = check_eligible(eligible, shape).reshape(-1, shape[-1])
        rows = self._each(lambda array: array.reshape(-1, shape[-1]))
        step = max(1, _CHUNK // (25 * shape[-1] ** 2 * len(_NODES)))
        parts = [
            _largest(rows[begin : begin + step], masks[begin : begin + step])
            for begin in range(0, len(masks), step)
        ]
        return np.concatenate(parts).reshape(shape) if parts else np.ones(shape)

    def scaled(self, factor: ArrayLike) -> BoundedPosterior:
        """Return the posterior with the model's standard deviations multiplied by ``factor``.

        The probability of the unknown does not change, except that a factor of 0 leaves it out.
        """
        factors = check_factor(factor)
        if factors.any():
            return replace(self, scale=factors * self.scale)
        zero = np.zeros(())
        return replace(self, scale=zero, tail=zero, outlier_weight=zero)

    def shifted(self, offset: ArrayLike) -> BoundedPosterior:
        """Return the posterior of the mean rewards less ``offset`` (K,), bounds included."""
        less = np.asarray(offset, dtype=np.float64)
        names = ("location", "low", "high", "outlier")
        return replace(self, **{name: getattr(self, name) - less for name in names})

    def take(self, entries: NDArray[np.int64]) -> BoundedPosterior:
        """Keep some entries of the last axis."""
        return self._each(lambda array: array[..., entries])

    def __getitem__(self, index: Any) -> BoundedPosterior:
        """Cut out contexts: ``index`` applies to the leading axes, never to the arms."""
        index = index if isinstance(index, tuple) else (index,)
        return self._each(lambda array: array[*index, :])

    def __repr__(self) -> str:
        return summary(self)

    def _each(self, change: Callable[[Any], Any]) -> BoundedPosterior:
        names = ("location", "scale", "low", "high", "size", "tail", "outlier", "outlier_weight")
        return replace(self, **{name: change(getattr(self, name)) for name in names})

    @property
    def _parts(self) -> tuple[tuple[Array, Part], ...]:
        """The parts of the mixture, with their probabilities."""
        outlier = TruncatedNormal(self.outlier, _OUTLIER_SCALE * (self.high - self.low), self.low, self.high)
        unknown = np.where(self.tail > 0, 0.5, 0.0)
        return (
            (self.outlier_weight, outlier),
            ((1 - self.outlier_weight) * unknown, Tail(self.location, self.tail, self.high)),
            (
                (1 - self.outlier_weight) * (1 - unknown),
                TruncatedNormal(self.location, self.scale, self.low, self.high),
            ),
        )

    def _expected(self, value: Callable[[Part], Array]) -> Array:
        return np.asarray(sum(share * value(part) for share, part in self._parts))


def _largest(posterior: BoundedPosterior, eligible: NDArray[np.bool_]) -> Array:
    """Probability (N, K) that each arm's mean is the largest: the integral of f_k prod_{j != k} F_j."""
    n = len(eligible)
    knots = [part.knots().reshape(n, -1) for _, part in posterior._parts]
    low, high = posterior.low, posterior.high
    cuts = np.concatenate([*knots, low, high], axis=1)
    cuts = np.sort(np.clip(cuts, low.min(axis=1, keepdims=True), high.max(axis=1, keepdims=True)), axis=1)
    lengths = np.diff(cuts, axis=1)[..., None]
    # Nodes (N, nodes of all pieces, 1) and their weights.
    u = (cuts[:, :-1, None] + lengths * _NODES).reshape(n, -1, 1)
    weights = (lengths * _WEIGHTS).reshape(n, -1)
    at = posterior._each(lambda array: array[:, None, :])
    below = np.where(eligible[:, None, :], at.cdf(u), 1.0)
    density = np.where(eligible[:, None, :], at._expected(lambda part: part.density(u)), 0.0)
    first = np.ones((*below.shape[:2], 1))
    before = np.cumprod(np.concatenate([first, below[..., :-1]], axis=-1), axis=-1)
    after = np.cumprod(np.concatenate([first, below[..., :0:-1]], axis=-1), axis=-1)[..., ::-1]
    wins = np.einsum("nu,nuk->nk", weights, density * before * after)
    return np.asarray(wins / wins.sum(axis=1, keepdims=True))
