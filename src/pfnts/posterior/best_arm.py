"""Exact probabilities that an arm's draw is the largest, for independent normal draws.

P_k is the integral of f_k(u) prod_{j != k} F_j(u) du. The line is cut at a few quantiles of every arm, so
that on each piece every F_j is smooth for any ratio of the scales, and each piece gets a Gauss-Legendre rule.
 Only u >= L matters, L being the largest of the arms' far lower quantiles, because below it the arm that
defines L beats everything. Measured from L, every arm that still matters has a mean within a fixed number of
its own scales, so nothing is lost to rounding if scales differ by many orders. Two arms have a closed form.
"""

from __future__ import annotations

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

KNOTS = np.array([-8.0, -5.0, -2.5, 0.0, 2.5, 5.0, 8.0])
"""Cuts of the line, in standard deviations around a mean."""
_CHUNK = 1 << 20


def legendre(count: int) -> tuple[Array, Array]:
    """Return the nodes and weights of the Gauss-Legendre rule on [0, 1]."""
    nodes, weights = np.polynomial.legendre.leggauss(count)
    return (nodes + 1) / 2, weights / 2


_WIDE, _NARROW = legendre(8), legendre(4)


def best_arm_probabilities(mean: Array, variance: Array, *, eligible: ArrayLike | None = None) -> Array:
    """Probability that each entry of the last axis is the largest, (..., K).

    Parameters
    ----------
    mean, variance
        Of the draws, (..., K).
    eligible
        Mask of the entries that take part, (K,) or (..., K); each row needs one. None for all.

    Examples
    --------
    >>> best_arm_probabilities(np.zeros(4), np.ones(4)).round(6)
    array([0.25, 0.25, 0.25, 0.25])
    """
    shape = mean.shape
    mask = check_eligible(eligible, shape).reshape(-1, shape[-1])
    if shape[-1] == 1 or mean.size == 0:
        return np.ones(shape)
    mean, scale = mean.reshape(mask.shape), np.sqrt(variance).reshape(mask.shape)
    if shape[-1] == 2:
        return _pair(mean, scale, mask).reshape(shape)
    # In chunks that keep the nodes in memory.
    step = max(1, _CHUNK // (shape[-1] ** 2 * len(KNOTS) * len(_WIDE[0])))
    chunks = (slice(start, start + step) for start in range(0, len(mean), step))
    parts = [_quadrature(mean[chunk], scale[chunk], mask[chunk]) for chunk in chunks]
    return np.concatenate(parts).reshape(shape)


def check_eligible(eligible: ArrayLike | None, shape: tuple[int, ...]) -> Mask:
    """Return a mask over the arms, the last axis, broadcast to ``shape``, or raise an error; None is all."""
    if eligible is None:
        return np.ones(shape, dtype=np.bool_)
    mask = np.asarray(eligible)
    if mask.dtype != np.bool_ or mask.shape not in (shape, shape[-1:]):
        raise ValueError(
            f"eligible must be a boolean mask over the {shape[-1]} arms, of shape {shape[-1:]} or {shape}, "
            f"got {mask.dtype} of shape {mask.shape}"
        )
    if not mask.any(axis=-1).all():
        raise ValueError("eligible must leave at least one arm in every row, got a row without any")
    return np.broadcast_to(mask, shape)


def normal_density(z: Array) -> Array:
    """Density of the standard normal distribution; not below 1e-305, so that sums keep their digits."""
    return np.asarray(np.exp(-np.minimum(z * z, 1400.0) / 2) / np.sqrt(2 * np.pi))


def _pair(mean: Array, scale: Array, mask: Mask) -> Array:
    """Two arms, (N, 2): their difference is normal."""
    gap = mean[:, 0] - mean[:, 1]
    with np.errstate(divide="ignore", invalid="ignore"):
        z = np.where(gap == 0, 0.0, gap / np.hypot(scale[:, 0], scale[:, 1]))
    z = np.where(mask.all(axis=1), z, np.where(mask[:, 0], np.inf, -np.inf))
    return np.asarray(scipy.special.ndtr(np.stack([z, -z], axis=1)))


def _quadrature(mean: Array, scale: Array, mask: Mask) -> Array:
    rows = np.arange(len(mean))
    star = np.where(mask, mean + KNOTS[0] * scale, -np.inf).argmax(axis=1)
    best, narrowest = mean[rows, star][:, None], scale[rows, star][:, None]
    # Means measured from L = mean[star] - reach; the difference of means first, since it is exact at star.
    centre = (mean - best) - KNOTS[0] * narrowest
    atom = mask & (scale == 0) & (mean == best) & (narrowest == 0)
    smooth = mask & (scale > 0)
    centre, unit = np.where(smooth, centre, -np.inf), np.where(smooth, scale, 1.0)

    cuts = np.maximum(centre[..., None] + KNOTS * unit[..., None], 0.0).reshape(len(mean), -1)
    cuts.sort(axis=1)
    width = np.diff(cuts, axis=1, prepend=0.0)
    row, column = np.nonzero(width > 0)
    width, right = width[row, column], cuts[row, column]
    # With many arms most pieces are short beside every scale, and half the nodes will do.
    overlap = right[:, None] > (centre + KNOTS[0] * unit)[row]
    finest = np.where(overlap & smooth[row], 1 / unit[row], 0.0).max(axis=1)
    narrow = width * finest < 0.8
    result = np.zeros_like(mean)
    for (nodes, weights), chosen in ((_NARROW, narrow), (_WIDE, ~narrow)):
        at, length = row[chosen], width[chosen][:, None]
        u = right[chosen][:, None] - length * nodes
        z = (u[:, None, :] - centre[at][..., None]) / unit[at][..., None]
        below = scipy.special.ndtr(z)
        density = np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi) / unit[at][..., None]
        density *= (below.prod(axis=1) * length * weights)[:, None, :] / below
        np.add.at(result, at, density.sum(axis=2))
    if atom.any():
        at_atom = scipy.special.ndtr(-centre / unit).prod(axis=1)
        result += atom * (at_atom / np.maximum(atom.sum(axis=1), 1))[:, None]
    normalised: Array = result / result.sum(axis=1, keepdims=True)
    return normalised
