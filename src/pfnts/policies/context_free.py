"""Thompson sampling that ignores the context: the yardstick for whether contexts matter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pfnts.arrays import Mask, Matrix, Vector
from pfnts.contexts import Schema
from pfnts.events import ActionSet, History, Label
from pfnts.policies.model import Model, Shape
from pfnts.policies.policy import Policy
from pfnts.policies.rules import Thompson
from pfnts.policies.traffic import TRAFFIC, Traffic
from pfnts.posterior import GaussianPosterior


class ContextFreeTS(Policy):
    """Thompson sampling on the average reward of each arm, whatever the context.

    The mean reward of an arm with n rewards is normal around their average, with variance s^2 / n.
    One pseudo-observation of the variance of all rewards together enters s^2, so that an arm whose few
    rewards were equal is not written off.

    Parameters
    ----------
    arms
        Number of arms, or their labels.
    traffic, schema, seed
        See `Policy`.

    Examples
    --------
    >>> policy = ContextFreeTS(arms=2, traffic=Traffic(warmup=1))
    >>> outcomes = policy.update([[0.1], [0.7], [0.3]], arm=[0, 1, 1], reward=[0.0, 2.0, 4.0])
    >>> policy.posterior([0.5]).mean
    array([0., 3.])
    """

    name = "ts"

    def __init__(
        self,
        arms: int | Sequence[Label],
        *,
        traffic: Traffic = TRAFFIC,
        schema: Schema | Mapping[str, Any] | None = None,
        seed: int | None = None,
    ) -> None:
        traffic = traffic.with_warmup(least=1, why="an arm's average needs a reward")
        super().__init__(
            arms,
            model=ArmMeans(),
            rule=Thompson(),
            traffic=traffic,
            schema=schema,
            settings={},
            seed=seed,
        )


class ArmMeans(Model):
    """Number, average and scatter of each arm's rewards."""

    def __init__(self, n_arms: int = 0) -> None:
        self._counts, self._average, self._scatter = np.zeros((3, n_arms))

    def fresh(self, shape: Shape) -> ArmMeans:
        """Return a model without rewards."""
        return ArmMeans(shape.arms)

    def observe(self, history: History, start: int, end: int) -> None:
        """Add rewards."""
        rows = slice(start, end)
        for arm, reward in zip(history.arms[rows].tolist(), history.rewards[rows].tolist(), strict=True):
            # Welford, one by one, so that a batch gives the same to the last bit.
            self._counts[arm] += 1
            shift = reward - self._average[arm]
            self._average[arm] += shift / self._counts[arm]
            self._scatter[arm] += shift * (reward - self._average[arm])

    def predict(self, X: Matrix, arms: ActionSet, eligible: Mask | None) -> GaussianPosterior:  # noqa: ARG002
        """Return the posterior (q, K), the same at each context."""
        if not self._counts.any():
            raise ValueError("posterior needs at least one reward, update the policy first")
        mean, variance = arm_moments(self._counts, self._average, self._scatter)
        chosen, shape = list(arms), (len(X), len(arms))
        return GaussianPosterior(
            mean=np.broadcast_to(mean[chosen], shape),
            variance=np.broadcast_to(variance[chosen], shape),
            size=np.maximum(self._counts[chosen], 1),
        )


def arm_moments(counts: Vector, average: Vector, scatter: Vector) -> tuple[Vector, Vector]:
    """Mean and variance (K,) of each arm's mean reward from counts, averages and sums of squared deviations.

    An arm without rewards is taken to be like all rewards together.
    """
    n = counts.sum()
    centre = counts @ average / n
    pooled = (scatter.sum() + counts @ (average - centre) ** 2) / n
    seen = np.maximum(counts, 1)
    mean: Vector = np.where(counts > 0, average, centre)
    variance: Vector = np.where(counts > 0, (scatter + pooled) / seen**2, pooled)
    return mean, variance
