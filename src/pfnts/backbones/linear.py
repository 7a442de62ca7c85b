"""Exact conjugate Bayesian linear regression: a usable backbone, and the oracle of the tests."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import ArrayLike

from pfnts.backbones.base import Backbone, Matrix, Prediction, PredictiveSequence, Vector
from pfnts.backbones.checks import check_keep, check_question, check_rows
from pfnts.posterior import GaussianPosterior

_BATCH = 1 << 22  # numbers held by one batch of normal equations (32 MB)
_FACTORS = 16  # Cholesky factors kept, enough for every point of a prefix grid
_LARGEST = 1e140  # targets beyond are pulled in: the squares of a whole history must be finite


@dataclass(frozen=True, kw_only=True)
class InverseGamma:
    """Prior of the noise variance: density proportional to v^(-shape - 1) exp(-rate / v).

    Examples
    --------
    >>> InverseGamma(shape=2.0, rate=1.0)
    InverseGamma(shape=2.0, rate=1.0)
    """

    shape: float
    rate: float

    def __post_init__(self) -> None:
        for name in ("shape", "rate"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value > 0):
                raise ValueError(f"{name} must be positive and finite, got {value}")


@dataclass(frozen=True, kw_only=True)
class LinearBackbone(Backbone):
    """Bayesian linear regression with intercept, in closed form after every prefix.

    Coefficients have prior N(0, noise variance / precision). By default the prior has no units: after t rows
    it is stated for features standardised by those t rows, the intercept is flat, and the noise variance has
    an inverse gamma prior worth one observation at the targets' own variance, so that predictions follow any
    shift and scale of targets and features. With ``standardize=False`` the prior is fixed, on raw features
    and intercept alike, and the predictive means are an exact martingale. A missing value is replaced by the
    mean of its column so far.

    Parameters
    ----------
    precision
        Prior precision of a coefficient in units of the noise; about so many observations' worth.
    noise
        Known standard deviation of the noise, or an `InverseGamma` prior of its variance, or None (default).
    standardize
        Whether the prior is stated for standardised features with a flat intercept.

    Examples
    --------
    >>> sequence = LinearBackbone().sequence([[0.0], [1.0], [2.0], [3.0]], [1.0, 3.0, 5.0, 7.0])
    >>> sequence.means([[1.5]], sizes=[2, 4])
    array([[3.33333333],
           [4.        ]])
    """

    precision: float = 1.0
    noise: float | InverseGamma | None = None
    standardize: bool = True

    name = "linear"
    knows_mean_sd = True

    def __post_init__(self) -> None:
        if not (math.isfinite(self.precision) and self.precision > 0):
            raise ValueError(f"precision must be positive and finite, got {self.precision}")
        if isinstance(self.noise, int | float) and not (math.isfinite(self.noise) and self.noise > 0):
            raise ValueError(f"noise must be positive and finite, or None to learn it, got {self.noise}")

    def sequence(self, X: ArrayLike, y: ArrayLike, *, keep: Sequence[int] = ()) -> LinearSequence:
        """Start a history from ``X`` (n, P) and ``y`` (n,), n >= 1; every column has its own coefficient."""
        made = LinearSequence(X, y, prior=self)
        check_keep(keep, made.columns)
        return made


class LinearSequence(PredictiveSequence):
    """A history with the posterior of a linear model after each of its prefixes; made by `LinearBackbone`.

    Rows are kept, and their moments every so many rows, so that the moments of any prefix cost little; the
    coefficients of a prefix are solved for once, when first asked for. Memory grows like n P.
    """

    def __init__(self, X: ArrayLike, y: ArrayLike, *, prior: LinearBackbone) -> None:
        X, y = check_rows(X, y, columns=None)
        self._prior = prior
        self.columns = X.shape[1]
        """Number of features."""
        # Measuring from the first row bounds the cancellation in centred moments by a factor n.
        shift = prior.standardize
        self._origin = np.nan_to_num(X[0]) if shift else np.zeros(self.columns)
        self._target_origin = float(y[0]) if shift else 0.0
        # Targets so large that their squares are not finite are measured in a unit of their size.
        self._unit = 1.0 if not shift or abs(y[0]) < _LARGEST else float(abs(y[0]))
        self._stride = max(64, self.columns + 2)
        self._size = 0
        self._rows = np.empty((0, self.columns + 2))  # features, 1, target
        self._moments = [np.zeros((self.columns + 2, self.columns + 2))]
        self._seen = np.zeros((2, self.columns))  # count and sum of the values observed in each column
        self._solved = np.empty(0, dtype=bool)
        self._coefficients = np.empty((0, self.columns + 1))
        self._centres = np.empty((0, self.columns))
        self._spreads = np.empty(0)
        self._factors: dict[int, tuple[Matrix, Vector]] = {}
        self.append(X, y)

    @property
    def size(self) -> int:
        """Number of observations held."""
        return self._size

    def append(self, X: ArrayLike, y: ArrayLike) -> None:
        """Add observations at the end; ``X`` is (m, P) and ``y`` is (m,)."""
        X, y = check_rows(X, y, columns=self.columns)
        new = np.empty((len(y), self.columns + 2))
        new[:, : self.columns] = self._filled(X - self._origin)
        new[:, -2] = 1.0
        new[:, -1] = np.clip(y / self._unit - self._target_origin / self._unit, -_LARGEST, _LARGEST)
        self._reserve(self._size + len(y))
        self._rows[self._size : self._size + len(y)] = new
        self._size += len(y)
        while len(self._moments) * self._stride <= self._size:
            block = self._rows[: len(self._moments) * self._stride][-self._stride :]
            self._moments.append(self._moments[-1] + block.T @ block)

    def predict(self, queries: ArrayLike, *, sizes: Sequence[int], levels: ArrayLike = ()) -> Prediction:
        """Predict at ``queries`` (q, P): means after each size, quantiles after the last of them.

        ``mean_sd`` is the standard deviation of the regression function where the noise is known, and the
        scale of its Student distribution where it is not.
        """
        x, chosen, level = check_question(queries, sizes, levels, columns=self.columns, held=self._size)
        self._solve(chosen)
        means = self._evaluate(x, chosen)
        if not len(chosen):
            return Prediction(means, np.empty((0, len(x))))
        size = int(chosen[-1])
        leverage = (self._whitened(x, size) ** 2).sum(axis=0)
        standard = (
            scipy.special.ndtri(level) if self._known_noise else scipy.special.stdtrit(self._dof(size), level)
        )
        spread = self._unit * np.sqrt(self._spreads[size])
        return Prediction(
            means,
            means[-1] + standard[:, None] * (spread * np.sqrt(1 + leverage)),
            spread * np.sqrt(leverage),
        )

    def exact_posterior(self, queries: ArrayLike, size: int) -> GaussianPosterior:
        """Return the posterior of the regression function at ``queries`` after the first ``size`` rows.

        It is exact where the noise is known. Otherwise the posterior is a Student distribution, and this is
        the normal one with its location and scale.
        """
        answer = self.predict(queries, sizes=[size])
        assert answer.mean_sd is not None
        return GaussianPosterior(mean=answer.means[0], variance=answer.mean_sd**2, size=size)

    @property
    def _known_noise(self) -> bool:
        return isinstance(self._prior.noise, int | float)

    def _dof(self, size: int | Vector) -> float | Vector:
        """Degrees of freedom; the flat intercept of the standardised prior takes one."""
        noise = self._prior.noise
        extra = 2 * noise.shape if isinstance(noise, InverseGamma) else 1.0
        return size - self._prior.standardize + extra

    def _filled(self, X: Matrix) -> Matrix:
        """Replace missing values by the running mean of their column, and remember what was seen."""
        missing = np.isnan(X)
        seen = np.stack([~missing, np.where(missing, 0.0, X)])
        if not missing.any():
            self._seen = self._seen + seen.sum(axis=1)
            return X
        before = self._seen[:, None] + np.cumsum(seen, axis=1) - seen
        self._seen = self._seen + seen.sum(axis=1)
        return np.where(missing, before[1] / np.maximum(before[0], 1), X)

    def _reserve(self, size: int) -> None:
        if size <= len(self._rows):
            return
        capacity = max(size, 2 * len(self._rows), 64)
        self._rows = _grown(self._rows, capacity)
        # Index t stands for the prefix of size t, hence one more than rows.
        self._solved = _grown(self._solved, capacity + 1)
        self._coefficients = _grown(self._coefficients, capacity + 1)
        self._centres = _grown(self._centres, capacity + 1)
        self._spreads = _grown(self._spreads, capacity + 1)

    def _gram(self, size: int) -> Matrix:
        done = size // self._stride
        rest = self._rows[done * self._stride : size]
        gram: Matrix = self._moments[done] + rest.T @ rest
        return gram

    def _solve(self, sizes: np.ndarray[tuple[int], np.dtype[np.int64]]) -> None:
        """Solve the normal equations of the sizes not met before, in batches."""
        if self._solved[sizes].all():
            return
        new = np.unique(sizes[~self._solved[sizes]])
        step = max(1, _BATCH // (self.columns + 2) ** 2)
        for start in range(0, len(new), step):
            batch = new[start : start + step]
            grams = np.stack([self._gram(size) for size in batch])
            precision, moment, unit, centre = normal_equations(
                grams, self._prior.precision, self._prior.standardize
            )
            solution = np.linalg.solve(precision, moment[..., None])[..., 0]
            self._coefficients[batch] = _with_intercept(
                solution / unit, grams, centre, self._prior.standardize
            )
            self._centres[batch] = grams[:, :-2, -2] / batch[:, None]
            self._spreads[batch] = self._noise_variance(grams, (solution * moment).sum(axis=1))
            self._solved[batch] = True

    def _noise_variance(self, grams: Matrix, explained: Vector) -> Vector:
        noise, rows = self._prior.noise, grams[:, -2, -2]
        if isinstance(noise, int | float):
            return np.full(len(grams), float(noise) ** 2)
        average, square = grams[:, -1, -2] / rows, grams[:, -1, -1]
        centred = np.maximum(square - average**2 * rows, 0.0)
        total = centred if self._prior.standardize else square
        if isinstance(noise, InverseGamma):
            prior = np.full(len(grams), 2 * noise.rate)
        else:
            # A constant target says nothing about its scale: take its size, or 1 if it is zero.
            constant = np.abs(average + self._target_origin / self._unit)
            fallback = np.where(constant > 0, constant, 1.0) ** 2
            prior = np.where(centred > 1e-14 * rows * square, centred / rows, fallback)
        result: Vector = (prior + np.maximum(total - explained, 0.0)) / self._dof(rows)
        return result

    def _evaluate(self, queries: Matrix, sizes: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Matrix:
        missing = np.isnan(queries)
        known = np.where(missing, 0.0, queries - self._origin)
        slopes, intercepts = self._coefficients[sizes, :-1], self._coefficients[sizes, -1]
        result: Matrix = slopes @ known.T + intercepts[:, None]
        if missing.any():
            result += (slopes * self._centres[sizes]) @ missing.T
        return result * self._unit + self._target_origin

    def _whitened(self, queries: Matrix, size: int) -> Matrix:
        """Whitened queries (p, q), whose squares add up to the leverage."""
        filled = np.where(np.isnan(queries), self._centres[size], queries - self._origin)
        root, unit = self._factor(size)
        if not self._prior.standardize:
            design = np.concatenate([filled, np.ones((len(queries), 1))], axis=1)
            return np.asarray(scipy.linalg.solve_triangular(root, design.T, lower=True))
        design = (filled - self._centres[size]) / unit
        flat = np.full((1, len(queries)), 1 / math.sqrt(size))
        return np.concatenate([scipy.linalg.solve_triangular(root, design.T, lower=True), flat])

    def _factor(self, size: int) -> tuple[Matrix, Vector]:
        if size not in self._factors:
            precision, _, unit, _ = normal_equations(
                self._gram(size)[None], self._prior.precision, self._prior.standardize
            )
            if len(self._factors) >= _FACTORS:
                del self._factors[next(iter(self._factors))]
            self._factors[size] = np.linalg.cholesky(precision[0]), unit[0]
        return self._factors[size]


def normal_equations(
    grams: Matrix, precision: float, standardize: bool
) -> tuple[Matrix, Matrix, Matrix, Matrix]:
    """Posterior precision (S, p, p) over the noise variance, moment (S, p), unit (S, p) and centre (S, P).

    ``grams`` (S, P + 2, P + 2) are moments of the columns features, 1, target. Standardised, p = P, the
    features are centred and divided by ``unit``; raw, p = P + 1, the intercept last, and ``unit`` is one.
    """
    rows = grams[:, -2, -2]
    if not standardize:
        system, moment = grams[:, :-1, :-1], grams[:, :-1, -1]
        unit, centre = np.ones_like(moment), np.zeros_like(moment[:, :-1])
    else:
        centre = grams[:, :-2, -2] / rows[:, None]
        system = grams[:, :-2, :-2] - centre[:, :, None] * grams[:, None, :-2, -2]
        moment = grams[:, :-2, -1] - centre * grams[:, -1, -2][:, None]
        deviation = np.sqrt(np.maximum(np.diagonal(system, axis1=1, axis2=2), 0.0) / rows[:, None])
        unit = np.where(deviation > 0, deviation, 1.0)
        system = system / (unit[:, :, None] * unit[:, None, :])
        moment = moment / unit
    return system + precision * np.eye(system.shape[-1]), moment, unit, centre


def _with_intercept(slopes: Matrix, grams: Matrix, centre: Matrix, standardize: bool) -> Matrix:
    if not standardize:
        return slopes
    intercept = grams[:, -1, -2] / grams[:, -2, -2] - (centre * slopes).sum(axis=1)
    return np.concatenate([slopes, intercept[:, None]], axis=1)


def _grown(array: Matrix, capacity: int) -> Matrix:
    grown = np.zeros((capacity, *array.shape[1:]), dtype=array.dtype)
    grown[: len(array)] = array
    return grown
