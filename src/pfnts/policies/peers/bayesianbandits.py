"""Thompson sampling with the regressors of bayesianbandits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import scipy

from pfnts.contexts import Schema
from pfnts.events import Label
from pfnts.policies.decision import Matrix
from pfnts.policies.peers.base import PeerPolicy
from pfnts.policies.traffic import NO_WARMUP, Traffic
from pfnts.posterior import RewardDistribution

_LEVELS = (np.arange(500) + 0.5) / 500


class BayesianBanditsTS(PeerPolicy):
    """Thompson sampling with a `NormalInverseGammaRegressor` of bayesianbandits for each arm.

    Its posterior of a mean reward is a Student distribution. A draw is one of 500 equally likely quantiles,
    so that propensities are exact.

    Parameters
    ----------
    arms
        Number of arms, or their labels.
    lam
        Prior precision of each coefficient, in units of the noise.
    a, b
        Shape and scale of the noise's inverse gamma prior.
    intercept, traffic, schema
        See `PeerPolicy`.

    Examples
    --------
    >>> policy = BayesianBanditsTS(arms=["a", "b"])
    >>> outcomes = policy.update([[1.0]] * 20, arm=["a", "b"] * 10, reward=[0.0, 9.0] * 10)
    >>> policy.decide([1.0], rng=np.random.default_rng(0)).arm
    'b'
    """

    name = "bayesianbandits-ts"
    library = "bayesianbandits"

    def __init__(
        self,
        arms: int | Sequence[Label],
        *,
        lam: float = 1.0,
        a: float = 0.1,
        b: float = 0.1,
        intercept: bool = False,
        traffic: Traffic = NO_WARMUP,
        schema: Schema | Mapping[str, Any] | None = None,
    ) -> None:
        if not min(lam, a, b) > 0:
            raise ValueError(f"lam, a and b must be positive, got {lam}, {a} and {b}")
        super().__init__(arms, intercept=intercept, traffic=traffic, schema=schema)
        self._prior = {"lam": float(lam), "a": float(a), "b": float(b)}

    def _reset(self, width: int, n_arms: int) -> None:
        self._regressors: list[Any] = []
        self._rows = np.zeros(n_arms, dtype=np.int64)
        for _ in range(n_arms):
            self._regressors.append(self._module.NormalInverseGammaRegressor(**self._prior))
            # Asked once, it has its prior; it never draws itself.
            self._regressors[-1].predict(np.zeros((1, width + self._intercept)))

    def _learn(self, row: Matrix, arm: int, reward: float) -> None:
        self._regressors[arm].partial_fit(row, np.array([reward]))
        self._rows[arm] += 1

    def _posterior(self, X: Matrix, arms: Sequence[int]) -> RewardDistribution:
        rows, points = self._design(X), []
        for regressor in (self._regressors[arm] for arm in arms):
            # Of the precision it keeps the upper half.
            precision = np.triu(regressor.cov_inv_) + np.triu(regressor.cov_inv_, 1).T
            spread = (rows * np.linalg.solve(precision, rows.T).T).sum(axis=1)
            scale = np.sqrt(regressor.b_ / regressor.a_ * np.maximum(spread, 1e-12))
            student = scipy.special.stdtrit(2 * regressor.a_, _LEVELS)
            points.append(rows @ regressor.coef_ + student[:, None] * scale)
        sizes = np.maximum(self._rows[list(arms)], 1)
        return RewardDistribution(np.stack(points, axis=2), sizes)

    def _settings(self) -> dict[str, Any]:
        return {**self._prior, **super()._settings()}
