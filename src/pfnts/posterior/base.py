"""What Gaussian and Student posteriors share: shapes, draws, and how they are joined and cut."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
import scipy
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]


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
        self._set("mean", _floats("mean", mean))
        shape = self.mean.shape
        if not shape:
            raise ValueError(
                "mean must have at least one axis, the arms, got a single number; wrap it in a list"
            )
        self._set("variance", _floats("variance", variance))
        if self.variance.shape != shape:
            raise ValueError(f"variance must have the shape of mean, {shape}, got {self.variance.shape}")
        if (self.variance < 0).any():
            raise ValueError(f"variance must not be negative, got {self.variance.min()}")
        self._set("size", _spread("size", np.asarray(size, dtype=np.int64), shape))
        if (self.size < 1).any():
            raise ValueError(f"size must be at least 1, got {self.size.min()}")
        self._set("directions", None if directions is None else _floats("directions", directions))
        if self.directions is not None and (self.directions.shape[1:] != shape or self.directions.ndim < 2):
            raise ValueError(f"directions must have shape (J, *{shape}), got {self.directions.shape}")
        if coupled and directions is None:
            raise ValueError(
                "directions must be given when coupled=True, got None; pass them or coupled=False"
            )
        self._set("coupled", coupled)

    @abstractmethod
    def sample(self, rng: Generator) -> Array:
        """Draw every entry by itself, in the shape of ``mean``."""

    @property
    def n_uniforms(self) -> int:
        """Uniform numbers that `draw` takes at one context."""
        return int(self.mean.shape[-1])

    @abstractmethod
    def draw(self, uniforms: Array) -> Array:
        """Draw the mean rewards at each context by itself, from ``uniforms`` (..., n_uniforms) in [0, 1).

        The arms of a context share the draw of each block where they are coupled. A fixed number of uniforms
        makes many draws at once the same as one after the other.
        """

    @abstractmethod
    def interval(self, level: float) -> tuple[Array, Array]:
        """Lower and upper end of the central interval that holds probability ``level``."""

    @abstractmethod
    def sample_function(self, rng: Generator) -> Array:
        """Draw one function and evaluate it everywhere: all contexts share the draws of an arm."""

    @abstractmethod
    def best_arm_probabilities(self, eligible: ArrayLike | None = None) -> Array:
        """Return the probability that each entry of the last axis is the largest of its row."""

    def _with(self, **changes: Any) -> Self:
        """Copy with arrays made of its own, which need no checks: every decision takes several copies."""
        copy = object.__new__(type(self))
        for name, value in (vars(self) | changes).items():
            copy._set(name, value)
        return copy

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
        return self._with(**self._each(lambda array: array[..., entries], lambda array: array[..., entries]))

    def __getitem__(self, index: Any) -> Self:
        """Cut out contexts: ``index`` applies to the leading axes of ``mean``, never to the last."""
        if self.mean.ndim < 2:
            raise IndexError(
                f"only posteriors with leading axes can be indexed, this one has {self.mean.shape}"
            )
        index = index if isinstance(index, tuple) else (index,)
        return self._with(**self._each(lambda array: array[*index, :], lambda array: array[:, *index, :]))

    def _each(self, entries: Any, blocks: Any) -> dict[str, Any]:
        changes = {name: entries(getattr(self, name)) for name in self._fields}
        changes["directions"] = None if self.directions is None else blocks(self.directions)
        return changes

    def _block_draws(self, rng: Generator) -> Array:
        if self.directions is None:
            raise ValueError(
                "directions must be known to draw a function, got None; draw marginals by sample(rng)"
            )
        arms = 1 if self.coupled else self.mean.shape[-1]
        return rng.standard_normal((len(self.directions), arms))

    def _coupled_draw(self, uniforms: Array) -> Array:
        """Draw (..., K) along the directions, each context by itself, from K uniforms or fewer of each."""
        assert self.directions is not None
        directions = np.moveaxis(self.directions, 0, -2)  # (..., J, K)
        if directions.shape[-2] > directions.shape[-1]:
            # A triangle of K directions has the same squares and products as J > K of them.
            directions = np.asarray(np.linalg.qr(directions, mode="r"))
        normal = standard_normal(uniforms[..., : directions.shape[-2]])
        draw: Array = (normal[..., None, :] @ directions)[..., 0, :]
        return draw

    def _along_directions(self, draws: Array) -> Array:
        # draws are (J, K) or (J, 1); every leading axis of the directions sees the same ones.
        assert self.directions is not None
        everywhere = np.broadcast_to(draws, (len(draws), self.mean.shape[-1]))
        total: Array = np.einsum("j...k,jk->...k", self.directions, everywhere)
        return total

    def _set(self, name: str, value: Any) -> None:
        if isinstance(value, np.ndarray):
            value = value.view()
            value.flags.writeable = False
        object.__setattr__(self, name, value)


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
    >>> from pfnts.posterior import GaussianPosterior
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
    return posteriors[0]._with(**joined, coupled=False)


def check_level(level: float) -> float:
    """Return ``level``, or raise an error if it is no probability of an interval."""
    if not 0 < level < 1:
        raise ValueError(f"level must be strictly between 0 and 1, got {level}")
    return level


def standard_normal(uniforms: Array) -> Array:
    """Turn uniform numbers in [0, 1) into standard normal ones."""
    normal: Array = scipy.special.ndtri(np.maximum(uniforms, 2.0**-54))
    return normal


def _floats(name: str, values: ArrayLike) -> Array:
    array = np.asarray(values, dtype=np.float64)
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite, got {array[~np.isfinite(array)][0]}")
    return array


def _spread(name: str, array: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    if array.shape == shape:
        return array
    if not array.ndim:
        return np.full(shape, array)  # a third of the time, in every decision
    try:
        return np.broadcast_to(array, shape)
    except ValueError as error:
        raise ValueError(f"{name} must broadcast to the shape of mean, {shape}, got {array.shape}") from error
