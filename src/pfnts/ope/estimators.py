"""Estimates of what a policy would have earned: IPS, SNIPS, the direct method, doubly robust."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from pfnts.ope.log import Codes, Log, Matrix, Vector
from pfnts.ope.outcome import cross_fitted

_UNIT_SUM = 1e-6


@dataclass(frozen=True)
class Estimate:
    """The value of a policy: a sum of numerators over a sum of denominators, as every estimator here is.

    Examples
    --------
    >>> estimate = Estimate("ips", np.array([0.0, 2.0]), np.ones(2), groups=np.array([0, 1]))
    >>> estimate.value, estimate.standard_error, estimate.curve
    (1.0, 1.0, array([0., 1.]))
    """

    estimator: str
    """ "ips", "snips", "dm" or "dr"."""
    numerators: Vector
    """(T,)"""
    denominators: Vector
    """(T,)"""
    groups: Codes
    """(T,) rows with one number are not independent."""

    def __post_init__(self) -> None:
        if not self.denominators.sum() > 0:
            raise ValueError(
                f"{self.estimator} needs rounds in which the policy could have done what was done, got none; "
                "the policy gives probability 0 to every logged action"
            )

    @property
    def value(self) -> float:
        """Mean reward of a round under the policy."""
        return float(self.numerators.sum() / self.denominators.sum())

    @property
    def curve(self) -> Vector:
        """(T,) the value estimated from the rounds up to each one; NaN as long as nothing is known."""
        above, below = np.cumsum(self.numerators), np.cumsum(self.denominators)
        return np.asarray(np.divide(above, below, out=np.full(len(below), np.nan), where=below > 0))

    @property
    def standard_error(self) -> float:
        """Standard error of the value of a fixed policy, people being independent; NaN for a single one.

        For a policy that learned from the log it leaves out how much that learning varies: bootstrap then.
        """
        influence = (self.numerators - self.value * self.denominators) / self.denominators.sum()
        sums = np.bincount(self.groups, weights=influence)
        n = len(sums)
        return float(np.sqrt((sums**2).sum() * n / (n - 1))) if n > 1 else float("nan")

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Normal interval around the value."""
        if not 0 < level < 1:
            raise ValueError(f"level must be between 0 and 1, got {level}")
        reach = NormalDist().inv_cdf((1 + level) / 2) * self.standard_error
        return self.value - reach, self.value + reach


def weights(log: Log, propensities: Matrix) -> Vector:
    """Importance weights (T,): the policy's probability of the logged action over the logging probability.

    Parameters
    ----------
    log
        What was done.
    propensities
        (T, K) probabilities of the policy, in the order of ``log.arms``; so for every estimator.

    Examples
    --------
    >>> log = Log(
    ...     contexts=np.zeros((2, 1)), features=("x",), arms=(0, 1), actions=np.array([0, 1]),
    ...     rewards=np.array([1.0, 3.0]), propensities=np.array([0.5, 0.25]),
    ... )
    >>> half, predictions = np.full((2, 2), 0.5), np.array([[1.0, 2.0], [1.0, 2.0]])
    >>> weights(log, half)
    array([1., 2.])
    >>> ips(log, half).value, round(snips(log, half).value, 4)
    (3.5, 2.3333)
    >>> dm(log, half, predictions=predictions).value, dr(log, half, predictions=predictions).value
    (1.5, 2.5)
    """
    return log.probabilities_of(_checked(log, propensities)) / log.propensities


def ips(log: Log, propensities: Matrix) -> Estimate:
    """Inverse propensity score: mean of weight times reward; unbiased, at the mercy of the weights' sum."""
    w = weights(log, propensities)
    return Estimate("ips", w * log.rewards, np.ones(log.rounds), log.groups)


def snips(log: Log, propensities: Matrix) -> Estimate:
    """Self-normalised importance sampling: the mean of the rewards under the weights."""
    w = weights(log, propensities)
    return Estimate("snips", w * log.rewards, w, log.groups)


def dm(log: Log, propensities: Matrix, *, predictions: Matrix | None = None) -> Estimate:
    """Direct method: the mean of what an outcome model predicts for the policy's actions.

    The ``predictions`` (T, K) are those of `cross_fitted` ridge regressions when left out.
    """
    predicted = _predictions(log, predictions)
    return Estimate("dm", (_checked(log, propensities) * predicted).sum(1), np.ones(log.rounds), log.groups)


def dr(log: Log, propensities: Matrix, *, predictions: Matrix | None = None) -> Estimate:
    """Doubly robust: the direct method, corrected by the weighted errors of the model (Dudik et al. 2011).

    The ``predictions`` (T, K) are those of `cross_fitted` ridge regressions when left out.
    """
    predicted = _predictions(log, predictions)
    direct = dm(log, propensities, predictions=predicted).numerators
    errors = weights(log, propensities) * (log.rewards - log.probabilities_of(predicted))
    return Estimate("dr", direct + errors, np.ones(log.rounds), log.groups)


@dataclass(frozen=True)
class WeightDiagnostics:
    """How far a log can speak about a policy."""

    effective_sample_size: float
    """Rounds that unweighted data of the same precision would have."""
    share: float
    """The same as a share of all rounds."""
    mean: float
    """Mean weight: 1 up to chance, if the logging probabilities are right."""
    maximum: float
    """Largest weight."""
    bound: float
    """Largest weight that any policy could have on this log."""
    zero: float
    """Share of rounds with weight 0."""


def effective_sample_size(values: Vector) -> float:
    """Kish's (sum w)^2 / sum w^2 of weights (T,).

    Examples
    --------
    >>> effective_sample_size(np.array([1.0, 1.0, 0.0]))
    2.0
    """
    squares = float((values**2).sum())
    return float(values.sum()) ** 2 / squares if squares else 0.0


def weight_diagnostics(log: Log, propensities: Matrix) -> WeightDiagnostics:
    """Summarise the importance weights of a policy."""
    w = weights(log, propensities)
    size, bound = effective_sample_size(w), float(1 / log.propensities.min())
    mean, maximum, zero = map(float, (w.mean(), w.max(), (w == 0).mean()))
    return WeightDiagnostics(size, size / log.rounds, mean=mean, maximum=maximum, bound=bound, zero=zero)


def _checked(log: Log, propensities: Matrix) -> Matrix:
    p = np.asarray(propensities, dtype=np.float64)
    if p.shape != (log.rounds, log.n_arms):
        raise ValueError(
            f"propensities must be {(log.rounds, log.n_arms)}, a row for each round and a column for each of "
            f"{list(log.arms)}, got {p.shape}"
        )
    wrong = ~((p >= -_UNIT_SUM).all(1) & (np.abs(p.sum(1) - 1) < _UNIT_SUM))
    if wrong.any():
        t = int(np.flatnonzero(wrong)[0])
        raise ValueError(
            f"propensities must be non-negative and sum to one in each round, round {t} has {p[t]}"
        )
    return np.maximum(p, 0.0)


def _predictions(log: Log, predictions: Matrix | None) -> Matrix:
    if predictions is None:
        return cross_fitted(log)
    if predictions.shape != (log.rounds, log.n_arms):
        raise ValueError(f"predictions must be {(log.rounds, log.n_arms)}, got {predictions.shape}")
    return predictions
