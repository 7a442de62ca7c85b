"""contextualbandits' LinUCB."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pfnts.contexts import Schema
from pfnts.events import Label
from pfnts.policies import rules
from pfnts.policies.decision import Choices, Mask, Matrix
from pfnts.policies.peers.base import PeerPolicy
from pfnts.policies.traffic import Traffic

_TRAFFIC = Traffic(warmup=1)


class ContextualBanditsLinUCB(PeerPolicy):
    """The upper confidence bounds of contextualbandits' LinUCB, which adds an intercept.

    Parameters
    ----------
    arms
        Number of arms, or their labels.
    alpha
        How many standard deviations are added to the fitted mean.
    penalty
        Penalty of each coefficient, its ``lambda_``.
    traffic, schema
        See `Policy`; warm-up must be at least 1, for the bounds of an arm without rewards are partly random.

    Examples
    --------
    >>> policy = ContextualBanditsLinUCB(arms=["a", "b"])
    >>> outcomes = policy.update([[1.0], [1.0]], arm=["a", "b"], reward=[0.0, 9.0])
    >>> policy.decide([1.0], rng=np.random.default_rng(0)).arm
    'b'
    """

    name = "contextualbandits-linucb"
    rule = "greedy"
    library = "contextualbandits.online"

    def __init__(
        self,
        arms: int | Sequence[Label],
        *,
        alpha: float = 1.0,
        penalty: float = 1.0,
        traffic: Traffic = _TRAFFIC,
        schema: Schema | Mapping[str, Any] | None = None,
    ) -> None:
        traffic = traffic.with_warmup(least=1, why="a bound needs a reward of its arm")
        super().__init__(arms, traffic=traffic, schema=schema)
        self._alpha, self._penalty = float(alpha), float(penalty)
        self._reset(1, 2)  # a mistake in the options shows here

    def _reset(self, width: int, n_arms: int) -> None:  # noqa: ARG002
        try:
            self._bandit = self._module.LinUCB(max(n_arms, 2), alpha=self._alpha, lambda_=self._penalty)
        except AssertionError as error:
            raise ValueError(
                "alpha and penalty must be numbers that contextualbandits takes, got "
                f"{self._alpha} and {self._penalty}"
            ) from error

    def _learn(self, row: Matrix, arm: int, reward: float) -> None:
        self._bandit.partial_fit(row, np.array([arm]), np.array([reward]))

    def _choose(self, X: Matrix, arms: Sequence[int], eligible: Mask, uniforms: Matrix) -> Choices:
        scores = np.array([self._bandit.decision_function(row[None])[0] for row in self._design(X)])
        # Large features make it lose a variance to rounding; such an arm is the one that it would take.
        bounds = np.where(np.isnan(scores), np.inf, scores)[:, list(arms)]
        return rules.greedy(bounds, eligible, uniforms[:, -1])

    def _settings(self) -> dict[str, Any]:
        return {"alpha": self._alpha, "penalty": self._penalty}
