"""Exact probabilities that an arm's draw is the largest.

Independent draws: P_k is the integral of f_k(u) prod_{j != k} F_j(u) du. The line is cut at a few quantiles
of every arm, so that on each piece every F_j is smooth whatever the ratio of the scales, and each piece gets
a Gauss-Legendre rule. Only u >= L matters, L being the largest of the arms' far lower quantiles, because
below it the arm that defines L beats everything. Measured from L, every arm that still matters has a mean
within a fixed number of its own scales, so nothing is lost to rounding if scales differ by many orders.

Coupled draws (one draw z_j per block for all arms): two arms have a closed form. Otherwise the draws vary in
at most min(J, K - 1) directions; along the widest the probability is exact (an upper envelope of lines), over
the others it is averaged by a fixed scrambled Sobol sequence of 4096 points. On random problems with up to 20
arms and 11 blocks the error was 7e-4 in the median and 3.3e-3 at most; with three arms below 2e-4.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

_GAUSSIAN_KNOTS = np.array([-8.0, -5.0, -2.5, 0.0, 2.5, 5.0, 8.0])
_STUDENT_TAIL = 1e-9
_CHUNK = 1 << 20
_SOBOL_LOG2 = 12


def _legendre(count: int) -> tuple[Array, Array]:
    nodes, weights = np.polynomial.legendre.leggauss(count)
    return (nodes + 1) / 2, weights / 2


_WIDE, _NARROW = _legendre(8), _legendre(4)


def best_arm_probabilities(
    mean: Array,
    variance: Array,
    *,
    eligible: ArrayLike | None = None,
    dof: Array | None = None,
    directions: Array | None = None,
) -> Array:
    """Probability that each entry of the last axis is the largest, (..., K).

    Parameters
    ----------
    mean, variance
        Location and squared scale, (..., K).
    eligible
        Mask of the entries that take part, which broadcasts to (..., K); each row needs one. None for all.
    dof
        Degrees of freedom of Student draws, (..., K); None for Gaussian draws.
    directions
        Block directions of coupled draws, (J, ..., K); None for independent draws.

    Examples
    --------
    >>> best_arm_probabilities(np.zeros(4), np.ones(4)).round(6)
    array([0.25, 0.25, 0.25, 0.25])
    """
    shape = mean.shape
    rows = (-1, shape[-1])
    mask = check_eligible(eligible, shape)
    if shape[-1] == 1 or mean.size == 0:
        return np.ones(shape)
    mean, mask = mean.reshape(rows), mask.reshape(rows)
    dof = None if dof is None else dof.reshape(rows)
    if directions is not None:
        parts = _coupled(mean, directions.reshape(len(directions), *mean.shape), mask, dof)
    elif shape[-1] == 2 and dof is None:
        parts = _pair(mean, np.sqrt(variance.reshape(rows).sum(axis=1)), mask, None)
    else:
        parts = _independent(mean, np.sqrt(variance.reshape(rows)), mask, dof)
    return parts.reshape(shape)


def check_eligible(eligible: ArrayLike | None, shape: tuple[int, ...]) -> Mask:
    """Return the mask in the given shape, or raise an error; None stands for all."""
    if eligible is None:
        return np.ones(shape, dtype=np.bool_)
    mask = np.asarray(eligible)
    if mask.dtype != np.bool_:
        raise ValueError(
            f"eligible must be a mask of booleans, got dtype {mask.dtype}; convert indices first"
        )
    try:
        mask = mask if mask.shape == shape else np.broadcast_to(mask, shape)
    except ValueError as error:
        raise ValueError(f"eligible must broadcast to the shape {shape}, got {mask.shape}") from error
    if not mask.any(axis=-1).all():
        raise ValueError("eligible must leave at least one arm in every row, got a row without any")
    return mask


def _pair(mean: Array, scale: Array, mask: Mask, dof: Array | None) -> Array:
    """Two arms, (N, 2), whose difference has scale (N,)."""
    gap = mean[:, 0] - mean[:, 1]
    with np.errstate(divide="ignore", invalid="ignore"):
        z = np.where(gap == 0, 0.0, gap / scale)
    z = np.where(mask.all(axis=1), z, np.where(mask[:, 0], np.inf, -np.inf))
    both = np.stack([z, -z], axis=1)
    return _below(both, dof)


def _independent(mean: Array, scale: Array, mask: Mask, dof: Array | None) -> Array:
    """Any number of arms, (N, K), in chunks that keep the nodes in memory."""
    knots = _GAUSSIAN_KNOTS if dof is None else _student_knots(dof)
    per_row = mean.shape[1] ** 2 * knots.shape[-1] * len(_WIDE[0])
    step = max(1, _CHUNK // per_row)
    parts = []
    for start in range(0, len(mean), step):
        chunk = slice(start, start + step)
        chunk_dof = None if dof is None else dof[chunk]
        chunk_knots = knots if dof is None else knots[chunk]
        parts.append(_quadrature(mean[chunk], scale[chunk], mask[chunk], chunk_dof, chunk_knots))
    return np.concatenate(parts)


def _student_knots(dof: Array) -> Array:
    """Cut points in units of the scale, (N, K, M), in geometric progression out to a tail of 1e-9."""
    reach = -scipy.special.stdtrit(dof, _STUDENT_TAIL)
    inner = 1.25
    # A ratio of 3.5 between neighbours keeps 8 nodes accurate on x ** -(dof + 1).
    count = 1 + int(np.ceil(np.log(reach.max() / inner) / np.log(3.5)))
    outer = inner * (reach[..., None] / inner) ** (np.arange(count) / (count - 1))
    return np.concatenate([-outer[..., ::-1], np.zeros((*dof.shape, 1)), outer], axis=-1)


def _quadrature(mean: Array, scale: Array, mask: Mask, dof: Array | None, knots: Array) -> Array:
    rows = np.arange(len(mean))
    floor = np.where(mask, mean + knots[..., 0] * scale, -np.inf)
    star = floor.argmax(axis=1)
    reach = np.broadcast_to(-knots[..., 0], mean.shape)[rows, star] * scale[rows, star]
    # Means measured from L = mean[star] - reach; the difference of means first, since it is exact at star.
    centre = (mean - mean[rows, star][:, None]) + reach[:, None]
    atom = mask & (scale == 0) & (mean == mean[rows, star][:, None]) & (scale[rows, star] == 0)[:, None]
    smooth = mask & (scale > 0)
    centre = np.where(smooth, centre, -np.inf)
    unit = np.where(smooth, scale, 1.0)

    cuts = np.maximum(centre[..., None] + knots * unit[..., None], 0.0).reshape(len(mean), -1)
    cuts.sort(axis=1)
    width = np.diff(cuts, axis=1, prepend=0.0)
    row, column = np.nonzero(width > 0)
    width, right = width[row, column], cuts[row, column]
    # With many arms most pieces are short beside every scale, and half the nodes will do.
    overlap = right[:, None] > (centre + knots[..., 0] * unit)[row]
    finest = np.where(overlap & smooth[row], 1 / unit[row], 0.0).max(axis=1)
    narrow = width * finest < 0.8
    result = np.zeros_like(mean)
    for (nodes, weights), chosen in ((_NARROW, narrow), (_WIDE, ~narrow)):
        at, length = row[chosen], width[chosen][:, None]
        u = right[chosen][:, None] - length * nodes
        z = (u[:, None, :] - centre[at][..., None]) / unit[at][..., None]
        below = _below(z, dof[at][..., None] if dof is not None else None)
        density = _density(z, dof[at] if dof is not None else None) / unit[at][..., None]
        density *= (below.prod(axis=1) * length * weights)[:, None, :] / below
        np.add.at(result, at, density.sum(axis=2))
    if atom.any():
        at_atom = _below(-centre / unit, dof).prod(axis=1)
        result += atom * (at_atom / np.maximum(atom.sum(axis=1), 1))[:, None]
    normalised: Array = result / result.sum(axis=1, keepdims=True)
    return normalised


def _below(z: Array, dof: Array | None) -> Array:
    probability: Array = scipy.special.ndtr(z) if dof is None else scipy.special.stdtr(dof, z)
    return probability


def _density(z: Array, dof: Array | None) -> Array:
    if dof is None:
        gaussian: Array = np.exp(-0.5 * z**2) / np.sqrt(2 * np.pi)
        return gaussian
    logarithm = scipy.special.gammaln((dof + 1) / 2) - scipy.special.gammaln(dof / 2)
    constant = np.exp(logarithm) / np.sqrt(np.pi * dof)
    student: Array = constant[..., None] * (1 + z**2 / dof[..., None]) ** (-(dof[..., None] + 1) / 2)
    return student


def _coupled(mean: Array, directions: Array, mask: Mask, dof: Array | None) -> Array:
    """Arms (N, K) that share block draws, with directions (J, N, K)."""
    if mean.shape[1] == 2:
        gap = directions[..., 0] - directions[..., 1]
        return _pair(mean, np.sqrt((gap**2).sum(axis=0)), mask, dof)
    result = np.empty_like(mean)
    for row, arms in enumerate(mask):
        chosen = directions[:, row, arms]
        tails = None if dof is None else float(dof[row, 0])
        result[row] = 0.0
        result[row, arms] = _envelope(mean[row, arms], chosen, tails)
    return result


def _envelope(mean: Array, directions: Array, dof: float | None) -> Array:
    """Best-arm probabilities of mean + z @ directions for one context, directions (J, K)."""
    # What all arms share moves no arm past another; the rest has rank at most K - 1.
    _, singular, axes = np.linalg.svd(
        directions - directions.mean(axis=1, keepdims=True), full_matrices=False
    )
    loadings = (singular[:, None] * axes)[: max(1, len(mean) - 1)]
    order = np.argsort(loadings[0])
    slope = loadings[0, order]
    normal, tails = _sobol_points(len(loadings) - 1, dof)
    # Arm k is the line height[k] + slope[k] t in t ~ N(0, 1), in units of the tail factor.
    height = mean[order, None] / tails + loadings[1:, order].T @ normal
    enters, leaves = np.full_like(height, -np.inf), np.full_like(height, np.inf)
    for upper in range(len(slope)):
        for lower in range(upper):
            lead, gain = height[lower] - height[upper], slope[upper] - slope[lower]
            # Of parallel lines the lower one never wins; equal ones share, and NaN leaves both alone.
            crossing = lead / gain if gain > 0 else np.where(lead == 0, np.nan, np.copysign(np.inf, lead))
            enters[upper] = np.fmax(enters[upper], crossing)
            leaves[lower] = np.fmin(leaves[lower], crossing)
    wins = np.maximum(scipy.special.ndtr(leaves) - scipy.special.ndtr(enters), 0.0)
    result = np.empty_like(mean)
    result[order] = (wins / wins.sum(axis=0)).mean(axis=1)
    return result


@lru_cache(maxsize=64)
def _sobol_points(dimension: int, dof: float | None) -> tuple[Array, Array]:
    """Normal points (dimension, N) and, for Student draws, sqrt(dof / chi2) as (N,)."""
    total = dimension + (dof is not None)
    if total == 0:
        return np.empty((0, 1)), np.ones(1)
    from scipy.stats import qmc  # takes a second to import, and few need it

    uniform = qmc.Sobol(total, scramble=True, rng=np.random.default_rng(0)).random_base2(_SOBOL_LOG2).T
    uniform = np.clip(uniform, 1e-12, 1 - 1e-12)
    normal = np.ascontiguousarray(scipy.special.ndtri(uniform[:dimension]))
    tails = np.ones(1) if dof is None else np.sqrt(dof / scipy.special.chdtri(dof, uniform[-1]))
    return normal, tails
