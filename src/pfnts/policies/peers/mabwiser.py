"""MABWiser's LinUCB."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pfnts.arrays import Mask, Matrix
from pfnts.contexts import Schema
from pfnts.events import ActionSet, Label
from pfnts.policies.model import Shape, Values
from pfnts.policies.peers.base import PeerModel, imported
from pfnts.policies.policy import Policy
from pfnts.policies.rules import Greedy
from pfnts.policies.traffic import NO_WARMUP, Traffic


class MABWiserLinUCB(Policy):
    """The upper confidence bounds of MABWiser's LinUCB; the largest is taken.

    Parameters
    ----------
    arms
        Number of arms, or their labels.
    alpha
        How many standard deviations are added to the fitted mean.
    l2_lambda
        Penalty of each coefficient.
    intercept
        Whether a constant joins the features.
    traffic, schema, seed
        See `Policy`.

    Examples
    --------
    >>> policy = MABWiserLinUCB(arms=["a", "b"])
    >>> outcome = policy.update([1.0], arm="b", reward=9.0)
    >>> policy.decide([1.0], rng=np.random.default_rng(0)).arm
    'b'
    """

    name = "mabwiser-linucb"

    def __init__(
        self,
        arms: int | Sequence[Label],
        *,
        alpha: float = 1.0,
        l2_lambda: float = 1.0,
        intercept: bool = False,
        traffic: Traffic = NO_WARMUP,
        schema: Schema | Mapping[str, Any] | None = None,
        seed: int | None = None,
    ) -> None:
        alpha, l2_lambda = float(alpha), float(l2_lambda)
        model = MABWiserModel(
            imported("mabwiser.mab", policy=self.name), alpha=alpha, l2_lambda=l2_lambda, intercept=intercept
        )
        model.fresh(Shape(1, 2, 2))  # a mistake in the options shows here
        super().__init__(
            arms,
            model=model,
            rule=Greedy(),
            traffic=traffic,
            schema=schema,
            settings={"alpha": alpha, "l2_lambda": l2_lambda, "intercept": bool(intercept)},
            seed=seed,
        )


class MABWiserModel(PeerModel):
    """The bounds of MABWiser's LinUCB."""

    def __init__(
        self, module: Any, *, alpha: float, l2_lambda: float, intercept: bool, n_arms: int = 0
    ) -> None:
        super().__init__(module, intercept=intercept)
        self._options = {"alpha": alpha, "l2_lambda": l2_lambda}
        self._fitted = False
        if n_arms:
            self._mab = module.MAB(list(range(n_arms)), module.LearningPolicy.LinUCB(**self._options))

    def fresh(self, shape: Shape) -> MABWiserModel:
        """Return a model without rows."""
        return MABWiserModel(self._module, intercept=self._intercept, n_arms=shape.arms, **self._options)

    def add(self, row: Matrix, arm: int, reward: float) -> None:
        """Add one row (1, d)."""
        # Its first fit is another call than those that follow.
        fit = self._mab.partial_fit if self._fitted else self._mab.fit
        fit(decisions=np.array([arm]), rewards=np.array([reward]), contexts=row)
        self._fitted = True

    def predict(self, X: Matrix, arms: ActionSet, eligible: Mask | None) -> Values:  # noqa: ARG002
        """Return bounds (q, K)."""
        bounds = np.zeros((len(X), len(arms)))
        if self._fitted:
            for i, row in enumerate(self._design(X)):
                expected = self._mab.predict_expectations(row[None])
                bounds[i] = [expected[arm] for arm in arms]
        return Values(bounds, np.ones(len(arms)))
