"""Thompson sampling with the regressors of bayesianbandits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import scipy

from pfnts.arrays import Mask, Matrix
from pfnts.contexts import Schema
from pfnts.events import ActionSet, Label
from pfnts.policies.model import Shape
from pfnts.policies.peers.base import PeerModel, imported
from pfnts.policies.policy import Policy
from pfnts.policies.rules import Thompson
from pfnts.policies.traffic import NO_WARMUP, Traffic
from pfnts.posterior import RewardDistribution

_LEVELS = (np.arange(500) + 0.5) / 500


class BayesianBanditsTS(Policy):
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
    intercept
        Whether a constant joins the features.
    traffic, schema, seed
        See `Policy`.

    Examples
    --------
    >>> policy = BayesianBanditsTS(arms=["a", "b"])
    >>> outcomes = policy.update([[1.0]] * 20, arm=["a", "b"] * 10, reward=[0.0, 9.0] * 10)
    >>> policy.decide([1.0], rng=np.random.default_rng(0)).arm
    'b'
    """

    name = "bayesianbandits-ts"

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
        seed: int | None = None,
    ) -> None:
        if not min(lam, a, b) > 0:
            raise ValueError(f"lam, a and b must be positive, got {lam}, {a} and {b}")
        prior = {"lam": float(lam), "a": float(a), "b": float(b)}
        module = imported("bayesianbandits", policy=self.name)
        super().__init__(
            arms,
            model=NormalInverseGamma(module, prior, intercept=intercept),
            rule=Thompson(),
            traffic=traffic,
            schema=schema,
            settings={**prior, "intercept": bool(intercept)},
            seed=seed,
        )


class NormalInverseGamma(PeerModel):
    """A `NormalInverseGammaRegressor` for each arm."""

    def __init__(
        self, module: Any, prior: dict[str, float], *, intercept: bool, shape: Shape | None = None
    ) -> None:
        super().__init__(module, intercept=intercept)
        self._prior = prior
        n_arms = 0 if shape is None else shape.arms
        self._regressors = [module.NormalInverseGammaRegressor(**prior) for _ in range(n_arms)]
        self._rows = np.zeros(n_arms, dtype=np.int64)
        for regressor in self._regressors:
            # Asked once, it has its prior; it never draws itself.
            assert shape is not None
            regressor.predict(np.zeros((1, shape.width + self._intercept)))

    def fresh(self, shape: Shape) -> NormalInverseGamma:
        """Return a model without rows."""
        return NormalInverseGamma(self._module, self._prior, intercept=self._intercept, shape=shape)

    def add(self, row: Matrix, arm: int, reward: float) -> None:
        """Add one row (1, d)."""
        self._regressors[arm].partial_fit(row, np.array([reward]))
        self._rows[arm] += 1

    def predict(self, X: Matrix, arms: ActionSet, eligible: Mask | None) -> RewardDistribution:  # noqa: ARG002
        """Return the posterior of the mean rewards, points (500, q, K)."""
        rows, points = self._design(X), []
        for regressor in (self._regressors[arm] for arm in arms):
            # Of the precision it keeps the upper half.
            precision = np.triu(regressor.cov_inv_) + np.triu(regressor.cov_inv_, 1).T
            spread = (rows * np.linalg.solve(precision, rows.T).T).sum(axis=1)
            scale = np.sqrt(regressor.b_ / regressor.a_ * np.maximum(spread, 1e-12))
            student = scipy.special.stdtrit(2 * regressor.a_, _LEVELS)
            points.append(rows @ regressor.coef_ + student[:, None] * scale)
        return RewardDistribution(np.stack(points, axis=2), np.maximum(self._rows[list(arms)], 1))
