"""contextualbandits' LinUCB."""

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
from pfnts.policies.traffic import Traffic

_TRAFFIC = Traffic(warmup=1)


class ContextualBanditsLinUCB(Policy):
    """The upper confidence bounds of contextualbandits' LinUCB, which adds an intercept.

    Parameters
    ----------
    arms
        Number of arms, or their labels.
    alpha
        How many standard deviations are added to the fitted mean.
    penalty
        Penalty of each coefficient, its ``lambda_``.
    traffic, schema, seed
        See `Policy`; warm-up must be at least 1, for the bounds of an arm without rewards are partly random.

    Examples
    --------
    >>> policy = ContextualBanditsLinUCB(arms=["a", "b"])
    >>> outcomes = policy.update([[1.0], [1.0]], arm=["a", "b"], reward=[0.0, 9.0])
    >>> policy.decide([1.0], rng=np.random.default_rng(0)).arm
    'b'
    """

    name = "contextualbandits-linucb"

    def __init__(
        self,
        arms: int | Sequence[Label],
        *,
        alpha: float = 1.0,
        penalty: float = 1.0,
        traffic: Traffic = _TRAFFIC,
        schema: Schema | Mapping[str, Any] | None = None,
        seed: int | None = None,
    ) -> None:
        traffic = traffic.with_warmup(least=1, why="a bound needs a reward of its arm")
        alpha, penalty = float(alpha), float(penalty)
        module = imported("contextualbandits.online", policy=self.name)
        model = ContextualBanditsModel(module, alpha=alpha, penalty=penalty)
        model.fresh(Shape(1, 2, 2))  # a mistake in the options shows here
        super().__init__(
            arms,
            model=model,
            rule=Greedy(),
            traffic=traffic,
            schema=schema,
            settings={"alpha": alpha, "penalty": penalty},
            seed=seed,
        )


class ContextualBanditsModel(PeerModel):
    """The bounds of contextualbandits' LinUCB."""

    def __init__(self, module: Any, *, alpha: float, penalty: float, n_arms: int = 0) -> None:
        super().__init__(module)
        self._alpha, self._penalty = alpha, penalty
        if not n_arms:
            return
        try:
            self._bandit = module.LinUCB(max(n_arms, 2), alpha=alpha, lambda_=penalty)
        except AssertionError as error:
            raise ValueError(
                f"alpha and penalty must be numbers that contextualbandits takes, got {alpha} and {penalty}"
            ) from error

    def fresh(self, shape: Shape) -> ContextualBanditsModel:
        """Return a model without rows."""
        return ContextualBanditsModel(
            self._module, alpha=self._alpha, penalty=self._penalty, n_arms=shape.arms
        )

    def add(self, row: Matrix, arm: int, reward: float) -> None:
        """Add one row (1, d)."""
        self._bandit.partial_fit(row, np.array([arm]), np.array([reward]))

    def predict(self, X: Matrix, arms: ActionSet, eligible: Mask | None) -> Values:  # noqa: ARG002
        """Return bounds (q, K)."""
        scores = np.array([self._bandit.decision_function(row[None])[0] for row in self._design(X)])
        # Large features make it lose a variance to rounding; such an arm is the one that it would take.
        bounds = np.where(np.isnan(scores), np.inf, scores)[:, list(arms)]
        return Values(bounds, np.ones(len(arms)))
