"""Gaussian and Student posteriors of mean rewards, and how the posteriors of arms are joined."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from textwrap import shorten
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
import scipy
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from pfnts.posterior.best_arm import best_arm_probabilities

Array = NDArray[np.float64]

_SMALLEST = 2.0**-54
"""What a uniform number is at least, so that a normal one is finite."""


@dataclass(frozen=True, eq=False, init=False)
class Posterior(ABC):
    """Distribution of mean rewards, each with a location and a scale.

    The last axis holds arms (or queries), the axes before it contexts. Arrays are read-only views.
    """

    mean: Array
    """Location of each mean reward, (..., K)."""
    variance: Array
    """Squared scale of each mean reward itself (V / s, not the variance of a reward), (..., K)."""
    size: NDArray[np.int64]
    """Number of observations behind each entry; given as anything that broadcasts to ``mean``."""
    directions: Array | None = None
    """What one standard normal per block adds to the mean, (J, ..., K); squares add up to ``variance``."""
    coupled: bool = False
    """Whether the entries of the last axis share the draw of each block, or have their own."""
    _fields: ClassVar[tuple[str, ...]] = ("mean", "variance", "size")

    def __init__(
        self,
        *,
        mean: ArrayLike,
        variance: ArrayLike,
        size: ArrayLike,
        directions: ArrayLike | None = None,
        coupled: bool = False,
    ) -> None:
        given = {"mean": mean, "variance": variance, "directions": directions}
        arrays: dict[str, Any] = {
            name: None if values is None else np.asarray(values, dtype=np.float64)
            for name, values in given.items()
        }
        for name, array in arrays.items():
            if array is not None and not np.isfinite(array).all():
                raise ValueError(f"{name} must be finite, got {array[~np.isfinite(array)][0]}")
        shape, sizes = arrays["mean"].shape, np.asarray(size, dtype=np.int64)
        if not shape:
            raise ValueError(
                "mean must have at least one axis, the arms, got a single number; wrap it in a list"
            )
        if arrays["variance"].shape != shape:
            raise ValueError(f"variance must have the shape of mean, {shape}, got {arrays['variance'].shape}")
        if (arrays["variance"] < 0).any():
            raise ValueError(f"variance must not be negative, got {arrays['variance'].min()}")
        if (sizes < 1).any():
            raise ValueError(f"size must be at least 1, got {sizes.min()}")
        along = arrays["directions"]
        if along is not None and (along.shape[1:] != shape or along.ndim < 2):
            raise ValueError(f"directions must have shape (J, *{shape}), got {along.shape}")
        if coupled and along is None:
            raise ValueError(
                "directions must be given when coupled=True, got None; pass them or coupled=False"
            )
        # Filling takes a third of the time of broadcasting, in every decision.
        everywhere = _broadcast("size", sizes, shape) if sizes.ndim else np.full(shape, sizes)
        self._set(arrays | {"size": everywhere, "coupled": coupled})

    def _set(self, values: Mapping[str, Any]) -> Self:
        """Fill in fields, arrays as read-only views; for arrays of its own no checks are needed."""
        for name, value in values.items():
            if isinstance(value, np.ndarray):
                value = value.view()
                value.flags.writeable = False
            object.__setattr__(self, name, value)
        return self

    @abstractmethod
    def sample(self, rng: Generator) -> Array:
        """Draw every entry by itself, in the shape of ``mean``."""

    @abstractmethod
    def draw(self, uniforms: Array) -> Array:
        """Draw the mean rewards at each context by itself, from ``uniforms`` (..., n) in [0, 1).

        The first K + 1 of a context are enough. Its arms share the draw of each block where they are coupled.
        A fixed number of uniforms makes many draws at once the same as one after the other.
        """

    @abstractmethod
    def interval(self, level: float) -> tuple[Array, Array]:
        """Lower and upper end of the central interval that holds probability ``level``."""

    @abstractmethod
    def sample_function(self, rng: Generator) -> Array:
        """Draw one function and evaluate it everywhere: all contexts share the draws of an arm."""

    @abstractmethod
    def best_arm_probabilities(self, eligible: ArrayLike | None = None) -> Array:
        """Return the probability, for each entry of the last axis, of being the largest of its row.

        Independent entries: quadrature, error below 1e-6. Coupled: see `pfnts.posterior.best_arm`.
        ``eligible`` is a boolean mask that broadcasts to ``mean``; entries outside it get zero.
        """

    def scaled(self, factor: float) -> Self:
        """Return the posterior with every scale multiplied by ``factor``."""
        if not factor >= 0:
            raise ValueError(f"factor must not be negative, got {factor}")
        directions = None if self.directions is None else factor * self.directions
        return replace(self, variance=factor**2 * self.variance, directions=directions)

    def shifted(self, offset: ArrayLike) -> Self:
        """Return the posterior of the mean rewards less ``offset`` (K,)."""
        return replace(self, mean=self.mean - np.asarray(offset))

    def take(self, entries: NDArray[np.int64]) -> Self:
        """Keep some entries of the last axis."""
        kept = {name: getattr(self, name)[..., entries] for name in self._fields}
        if self.directions is not None:
            kept["directions"] = self.directions[..., entries]
        return object.__new__(type(self))._set(vars(self) | kept)

    def __getitem__(self, index: Any) -> Self:
        """Cut out contexts: ``index`` applies to the leading axes of ``mean``, never to the last."""
        if self.mean.ndim < 2:
            raise IndexError(
                f"only posteriors with leading axes can be indexed, this one has {self.mean.shape}"
            )
        index = index if isinstance(index, tuple) else (index,)
        cut = {name: getattr(self, name)[*index, :] for name in self._fields}
        if self.directions is not None:
            cut["directions"] = self.directions[:, *index, :]
        return object.__new__(type(self))._set(vars(self) | cut)

    def _block_draws(self, rng: Generator) -> Array:
        if self.directions is None:
            raise ValueError(
                "directions must be known to draw a function, got None; draw marginals by sample(rng)"
            )
        arms = 1 if self.coupled else self.mean.shape[-1]
        return rng.standard_normal((len(self.directions), arms))

    def _coupled_draw(self, normal: Array) -> Array:
        """Draw (..., K) along the directions, each context by itself, from ``normal`` (..., K) numbers."""
        assert self.directions is not None
        directions = np.moveaxis(self.directions, 0, -2)  # (..., J, K)
        if directions.shape[-2] > directions.shape[-1]:
            # A triangle of K directions has the same squares and products as J > K of them.
            directions = np.asarray(np.linalg.qr(directions, mode="r"))
        draw: Array = (normal[..., None, : directions.shape[-2]] @ directions)[..., 0, :]
        return draw

    def _along_directions(self, draws: Array) -> Array:
        # draws are (J, K) or (J, 1); every leading axis of the directions sees the same ones.
        assert self.directions is not None
        everywhere = np.broadcast_to(draws, (len(draws), self.mean.shape[-1]))
        total: Array = np.einsum("j...k,jk->...k", self.directions, everywhere)
        return total


@dataclass(frozen=True, eq=False, init=False, repr=False)
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
        """Draw the mean rewards at each context by itself, from ``uniforms`` (..., n) in [0, 1)."""
        normal = scipy.special.ndtri(np.maximum(uniforms[..., : self.mean.shape[-1]], _SMALLEST))
        if self.coupled:
            return self.mean + self._coupled_draw(normal)
        draw: Array = self.mean + np.sqrt(self.variance) * normal
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

    def cdf(self, values: ArrayLike) -> Array:
        """Return the probability that each mean reward is at most ``values``."""
        gap, scale = np.asarray(values) - self.mean, np.sqrt(self.variance)
        steps = np.where(gap < 0, -np.inf, np.inf)
        z = np.divide(gap, scale, out=steps, where=scale > 0)
        return np.asarray(scipy.special.ndtr(z))

    def best_arm_probabilities(self, eligible: ArrayLike | None = None) -> Array:
        """Return the probability, for each entry of the last axis, of being the largest of its row."""
        directions = self.directions if self.coupled else None
        return best_arm_probabilities(self.mean, self.variance, eligible=eligible, directions=directions)

    def __repr__(self) -> str:
        return summary(self)

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
        dof = _broadcast("dof", np.asarray(dof, dtype=np.float64), self.mean.shape)
        if not ((dof > 0) & (dof < np.inf)).all():
            raise ValueError(
                f"dof must be positive and finite, got {dof[~((dof > 0) & (dof < np.inf))][0]}; "
                "infinitely many are Gaussian"
            )
        if self.coupled and (dof != dof[..., :1]).any():
            raise ValueError(
                "dof must be equal along the last axis when coupled=True, since all share one draw"
            )
        self._set({"dof": dof})

    def draw(self, uniforms: Array) -> Array:
        """Draw the mean rewards at each context by itself, from ``uniforms`` (..., n) in [0, 1)."""
        arms = self.mean.shape[-1]
        uniforms = np.maximum(uniforms[..., : arms + self.coupled], _SMALLEST)
        if self.coupled:
            dof = self.dof[..., :1]
            tails = np.sqrt(dof / scipy.special.chdtri(dof, uniforms[..., :1]))
            coupled: Array = self.mean + tails * self._coupled_draw(scipy.special.ndtri(uniforms[..., 1:]))
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
        """Return the probability, for each entry of the last axis, of being the largest of its row."""
        directions = self.directions if self.coupled else None
        return best_arm_probabilities(
            self.mean, self.variance, eligible=eligible, dof=self.dof, directions=directions
        )


P = TypeVar("P", bound=Posterior)


def stack(posteriors: Sequence[P], axis: int = -1, *, coupled: bool = False) -> P:
    """Join posteriors of equal shape along a new axis, for example one per arm, (q,), into (q, K).

    Directions are padded with zero blocks to the longest; they are dropped if one posterior has none.

    Parameters
    ----------
    posteriors
        At least one, all Gaussian or all Student.
    axis
        Where the new axis goes in ``mean``.
    coupled
        Whether the new posterior's last axis shares block draws. Arms with sequences of their own do not.

    Examples
    --------
    >>> arms = [GaussianPosterior(mean=[m], variance=[1.0], size=8) for m in (0.0, 1.0)]
    >>> stack(arms).mean
    array([[0., 1.]])
    """
    kinds = {type(posterior) for posterior in posteriors}
    if len(kinds) != 1:
        names = sorted(kind.__name__ for kind in kinds)
        raise ValueError(f"posteriors must be at least one, all of one kind, got {names}")
    shapes = {posterior.mean.shape for posterior in posteriors}
    if len(shapes) != 1:
        raise ValueError(f"posteriors must have equal shapes, got {sorted(shapes)}")
    axis = axis % (posteriors[0].mean.ndim + 1)
    joined: dict[str, Any] = {
        name: np.stack([getattr(posterior, name) for posterior in posteriors], axis=axis)
        for name in posteriors[0]._fields
    }
    known = [posterior.directions for posterior in posteriors if posterior.directions is not None]
    if len(known) == len(posteriors):
        blocks = max(len(directions) for directions in known)
        padded = [
            np.concatenate([d, np.zeros((blocks - len(d), *d.shape[1:]))]) if len(d) < blocks else d
            for d in known
        ]
        joined["directions"] = np.stack(padded, axis=axis + 1)
    else:
        joined["directions"] = None
    if coupled:
        return type(posteriors[0])(**joined, coupled=True)
    return object.__new__(type(posteriors[0]))._set(joined | {"coupled": False})


def check_level(level: float) -> float:
    """Return ``level``, or raise an error if it is no probability of an interval."""
    if not 0 < level < 1:
        raise ValueError(f"level must be strictly between 0 and 1, got {level}")
    return level


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
    first = ", ".join(
        [f"{type(posterior).__name__} of shape {mean.shape}"]
        + [f"{name} {_short(values)}" for name, values in more.items()]
    )
    return f"{first}\n  mean {_short(mean)}\n  sd   {_short(np.sqrt(posterior.variance))}"


def _short(array: Array) -> str:
    """Write an array in one line of at most some ninety characters, with four digits."""
    text = np.array2string(array, precision=4, threshold=12, edgeitems=2, max_line_width=10_000)
    return shorten(" ".join(text.split()), 90, placeholder=" ...")


def _broadcast(name: str, array: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    try:
        return np.broadcast_to(array, shape)
    except ValueError as error:
        raise ValueError(f"{name} must broadcast to the shape of mean, {shape}, got {array.shape}") from error
