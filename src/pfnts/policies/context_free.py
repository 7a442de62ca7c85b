"""Thompson sampling that ignores the context: the yardstick for whether contexts matter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from pfnts.encodings import Schema
from pfnts.policies import rules
from pfnts.policies.base import Choice, Label, Mask, Matrix, Policy, Vector
from pfnts.posterior import GaussianPosterior


class ContextFreeTS(Policy):
    """Thompson sampling on the average reward of each arm, whatever the context.

    The mean reward of an arm with n rewards is believed normal around their average, with variance s^2 / n.
    One pseudo-observation of the variance of all rewards together enters s^2, so that an arm whose few
    rewards were equal is not written off.

    Parameters
    ----------
    arms
        Number of arms, or their labels.
    warmup
        Rewards of each arm to see first, at least 1.
    explore
        Share of the rounds in which any eligible arm is drawn, each alike; warm-up included.
    schema
        What the columns of a context are; inferred from the first contexts when not given.

    Examples
    --------
    >>> policy = ContextFreeTS(arms=2, warmup=1)
    >>> policy.update([[0.1], [0.7], [0.3]], arm=[0, 1, 1], reward=[0.0, 2.0, 4.0])
    >>> policy.posterior([0.5]).mean
    array([0., 3.])
    """

    name = "ts"

    def __init__(
        self,
        arms: int | Sequence[Label],
        *,
        warmup: int = 5,
        explore: float = 0.0,
        schema: Schema | Mapping[str, Any] | None = None,
    ) -> None:
        if warmup < 1:
            raise ValueError(f"warmup must be at least 1, an arm's average needs a reward, got {warmup}")
        super().__init__(arms, warmup=warmup, explore=explore, schema=schema)
        self._average = np.zeros(self.n_arms)
        self._scatter = np.zeros(self.n_arms)

    def posterior(self, contexts: Any) -> GaussianPosterior:
        """Posterior of the mean rewards, the same at every context: (K,), or (n, K) for a batch."""
        if not self._observed.any():
            raise ValueError("posterior needs at least one reward, update the policy first")
        X, _, single = self._encode(contexts)
        mean, variance = arm_beliefs(self._observed, self._average, self._scatter)
        shape = (self.n_arms,) if single else (len(X), self.n_arms)
        return GaussianPosterior(
            mean=np.broadcast_to(mean, shape),
            variance=np.broadcast_to(variance, shape),
            size=np.maximum(self._observed, 1),
        )

    def _observe(self, X: Matrix, arms: NDArray[np.int64], rewards: Vector) -> None:  # noqa: ARG002
        for k in np.unique(arms):
            new = rewards[arms == k]
            before, total = self._observed[k], self._observed[k] + len(new)
            shift = new.mean() - self._average[k]
            self._scatter[k] += ((new - new.mean()) ** 2).sum() + shift**2 * before * len(new) / total
            self._average[k] += shift * len(new) / total

    def _choose(self, X: Matrix, eligible: Mask, *, rng: Generator) -> Sequence[Choice]:
        mean, variance = arm_beliefs(self._observed, self._average, self._scatter)
        posterior = GaussianPosterior(mean=mean, variance=variance, size=np.maximum(self._observed, 1))
        whole = posterior.best_arm_probabilities()
        choices = []
        for i in range(len(X)):
            mask = eligible[i]
            shares = whole.copy() if mask.all() else posterior.best_arm_probabilities(mask)
            choices.append(Choice(rules.thompson(posterior, mask, rng=rng), shares, posterior))
        return choices


def arm_beliefs(counts: NDArray[np.int64], average: Vector, scatter: Vector) -> tuple[Vector, Vector]:
    """Mean and variance (K,) of each arm's mean reward from counts, averages and sums of squared deviations.

    An arm without rewards is believed to be like all rewards together.
    """
    n = counts.sum()
    centre = counts @ average / n
    pooled = (scatter.sum() + counts @ (average - centre) ** 2) / n
    seen = np.maximum(counts, 1)
    mean: Vector = np.where(counts > 0, average, centre)
    variance: Vector = np.where(counts > 0, (scatter + pooled) / seen**2, pooled)
    return mean, variance
