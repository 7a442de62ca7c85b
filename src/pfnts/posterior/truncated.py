"""Distributions on an interval: the parts of `pfnts.posterior.bounded`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import scipy

from pfnts.posterior.best_arm import KNOTS, Array, normal_density

_STEPS = np.arange(9) / 8


class Part(Protocol):
    """Distributions of any shape on an interval."""

    def moments(self) -> tuple[Array, Array]:
        """Return means and variances."""
        ...

    def knots(self) -> Array:
        """Return points (..., M) between which the density is smooth."""
        ...

    def cdf(self, u: Array) -> Array:
        """Return the probability of at most ``u``."""
        ...

    def density(self, u: Array) -> Array:
        """Return the density at ``u``."""
        ...

    def quantile(self, level: Array) -> Array:
        """Return the quantiles of the given levels."""
        ...


@dataclass(frozen=True)
class TruncatedNormal(Part):
    """Normal distributions truncated to an interval that holds their locations."""

    location: Array
    scale: Array
    low: Array
    high: Array

    def moments(self) -> tuple[Array, Array]:  # noqa: D102
        begin, end, mass = self._truncation()
        first, last = normal_density(begin), normal_density(end)
        shift = (first - last) / mass
        spread = np.maximum(1 + (begin * first - end * last) / mass - shift**2, 0.0)
        return self.location + self.scale * shift, self.scale**2 * spread

    def knots(self) -> Array:  # noqa: D102
        return np.asarray(self.location[..., None] + self.scale[..., None] * KNOTS)

    def cdf(self, u: Array) -> Array:  # noqa: D102
        begin, end, mass = self._truncation()
        z = np.clip((u - self.location) / self.scale, begin, end)
        return np.asarray((scipy.special.ndtr(z) - scipy.special.ndtr(begin)) / mass)

    def density(self, u: Array) -> Array:  # noqa: D102
        height = normal_density((u - self.location) / self.scale) / (self.scale * self._truncation()[2])
        return np.where((u >= self.low) & (u <= self.high), height, 0.0)

    def quantile(self, level: Array) -> Array:  # noqa: D102
        begin, _, mass = self._truncation()
        z = scipy.special.ndtri(scipy.special.ndtr(begin) + level * mass)
        return np.asarray(np.clip(self.location + self.scale * z, self.low, self.high))

    def _truncation(self) -> tuple[Array, Array, Array]:
        """Return the ends in units of the scale, and the normal probability between them."""
        begin, end = (self.low - self.location) / self.scale, (self.high - self.location) / self.scale
        return begin, end, np.asarray(scipy.special.ndtr(end) - scipy.special.ndtr(begin))


@dataclass(frozen=True)
class Tail(Part):
    """More than d above ``location`` with a probability in proportion to 1 / d, from ``begin`` to a bound.

    Entries with ``begin`` 0 have no tail; their values are finite and without meaning.
    """

    location: Array
    begin: Array
    high: Array

    def moments(self) -> tuple[Array, Array]:  # noqa: D102
        length, share = self._shape()
        above = length * share * -np.log(share) / (1 - share)
        return self.location + above, length**2 * share - above**2

    def knots(self) -> Array:  # noqa: D102
        length, share = self._shape()
        return np.asarray(self.location[..., None] + length[..., None] * share[..., None] ** _STEPS)

    def cdf(self, u: Array) -> Array:  # noqa: D102
        length, share = self._shape()
        return np.asarray((1 - share / np.clip((u - self.location) / length, share, 1.0)) / (1 - share))

    def density(self, u: Array) -> Array:  # noqa: D102
        length, share = self._shape()
        height = (u - self.location) / length
        inside = (height >= share) & (height <= 1)
        return np.where(inside, share / np.where(inside, height, 1.0) ** 2 / ((1 - share) * length), 0.0)

    def quantile(self, level: Array) -> Array:  # noqa: D102
        length, share = self._shape()
        return np.asarray(self.location + length * share / (1 - level * (1 - share)))

    def _shape(self) -> tuple[Array, Array]:
        """Return the distance from the location to the bound, and where in it the tail begins."""
        exists = self.begin > 0
        length = np.where(exists, self.high - self.location, 1.0)
        return length, np.where(exists, self.begin, 0.5) / length
