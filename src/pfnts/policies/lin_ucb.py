"""Linear upper confidence bounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pfnts.contexts import Schema
from pfnts.events import Label
from pfnts.policies import rules
from pfnts.policies.arguments import check_number
from pfnts.policies.decision import Choices, Mask, Matrix
from pfnts.policies.ridge import RidgePolicy
from pfnts.policies.traffic import TRAFFIC, Traffic


class LinUCB(RidgePolicy):
    """The arm with the largest x' b + alpha sqrt(x' A^-1 x), one ridge regression per arm.

    Deterministic, except that arms with equal bounds share the decision evenly.

    Parameters
    ----------
    arms
        Number of arms, or their labels.
    alpha
        How many standard deviations of a reward the bound lies above the mean.
    penalty
        Prior precision of each coefficient.
    intercept
        Whether a constant joins the features. The paper's row has none.
    traffic, schema
        See `Policy`.

    Examples
    --------
    >>> policy = LinUCB(arms=["a", "b"], traffic=Traffic(warmup=0))
    >>> policy.decide([1.0], rng=np.random.default_rng(0)).propensities
    array([0.5, 0.5])
    >>> outcome = policy.update([1.0], arm="b", reward=9.0)
    >>> policy.decide([1.0], rng=np.random.default_rng(0)).propensities
    array([0., 1.])
    """

    name = "lin-ucb"
    rule = "greedy"

    def __init__(
        self,
        arms: int | Sequence[Label],
        *,
        alpha: float = 1.0,
        penalty: float = 1.0,
        intercept: bool = True,
        traffic: Traffic = TRAFFIC,
        schema: Schema | Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(arms, penalty=penalty, intercept=intercept, traffic=traffic, schema=schema)
        self._alpha = check_number("alpha", alpha)

    def _choose(self, X: Matrix, arms: Sequence[int], eligible: Mask, uniforms: Matrix) -> Choices:
        mean, spread = self._predict(X, arms)
        return rules.greedy(mean + self._alpha * np.sqrt(spread), eligible, uniforms[:, -1])

    def _settings(self) -> dict[str, Any]:
        return {"alpha": self._alpha, **super()._settings()}
