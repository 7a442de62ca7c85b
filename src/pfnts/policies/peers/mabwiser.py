"""MABWiser's LinUCB."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pfnts.contexts import Schema
from pfnts.events import Label
from pfnts.policies import rules
from pfnts.policies.decision import Choices, Mask, Matrix
from pfnts.policies.peers.base import PeerPolicy
from pfnts.policies.traffic import NO_WARMUP, Traffic


class MABWiserLinUCB(PeerPolicy):
    """The upper confidence bounds of MABWiser's LinUCB; the largest is taken.

    Parameters
    ----------
    arms
        Number of arms, or their labels.
    alpha
        How many standard deviations are added to the fitted mean.
    l2_lambda
        Penalty of each coefficient.
    intercept, traffic, schema
        See `PeerPolicy`.

    Examples
    --------
    >>> policy = MABWiserLinUCB(arms=["a", "b"])
    >>> outcome = policy.update([1.0], arm="b", reward=9.0)
    >>> policy.decide([1.0], rng=np.random.default_rng(0)).arm
    'b'
    """

    name = "mabwiser-linucb"
    rule = "greedy"
    library = "mabwiser.mab"

    def __init__(
        self,
        arms: int | Sequence[Label],
        *,
        alpha: float = 1.0,
        l2_lambda: float = 1.0,
        intercept: bool = False,
        traffic: Traffic = NO_WARMUP,
        schema: Schema | Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(arms, intercept=intercept, traffic=traffic, schema=schema)
        self._alpha, self._l2_lambda = float(alpha), float(l2_lambda)
        self._reset(1, 2)  # a mistake in the options shows here

    def _reset(self, width: int, n_arms: int) -> None:  # noqa: ARG002
        learning = self._module.LearningPolicy.LinUCB(alpha=self._alpha, l2_lambda=self._l2_lambda)
        self._mab = self._module.MAB(list(range(n_arms)), learning)
        self._fitted = False

    def _learn(self, row: Matrix, arm: int, reward: float) -> None:
        # Its first fit is another call than those that follow.
        fit = self._mab.partial_fit if self._fitted else self._mab.fit
        fit(decisions=np.array([arm]), rewards=np.array([reward]), contexts=row)
        self._fitted = True

    def _choose(self, X: Matrix, arms: Sequence[int], eligible: Mask, uniforms: Matrix) -> Choices:
        bounds = np.zeros(eligible.shape)
        if self._fitted:
            for i, row in enumerate(self._design(X)):
                said = self._mab.predict_expectations(row[None])
                bounds[i] = [said[arm] for arm in arms]
        return rules.greedy(bounds, eligible, uniforms[:, -1])

    def _settings(self) -> dict[str, Any]:
        return {"alpha": self._alpha, "l2_lambda": self._l2_lambda, **super()._settings()}
