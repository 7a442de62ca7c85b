"""Bayesian forest Thompson sampling (BFTS): a Bayesian additive regression trees model per arm."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pfnts.arms.memory import Memory
from pfnts.contexts import Schema
from pfnts.events import Label
from pfnts.policies import rules
from pfnts.policies.bart import BartFit, BartSettings, Scale
from pfnts.policies.decision import Choices, Mask, Matrix, Vector
from pfnts.policies.refitting import REFITTED, Arms, RefittingPolicy
from pfnts.policies.traffic import TRAFFIC, Traffic
from pfnts.posterior import GaussianPosterior, RewardDistribution

_BART = BartSettings()
_TOGETHER = 64
"""Contexts whose draws are held at a time: there are thousands of each."""


class BFTS(RefittingPolicy[BartFit]):
    """Thompson sampling from the draws of a Bayesian additive regression trees model per arm.

    A decision picks one of each arm's draws uniformly at random, and takes the arm with the largest. Its
    propensities are exact given the draws.

    Parameters
    ----------
    arms
        Number of arms, or their labels.
    bart
        Trees, chains and draws.
    memory
        How much the history of all arms grows before the models are refitted.
    traffic, schema
        See `Policy`.

    Examples
    --------
    >>> policy = BFTS(arms=["a", "b"], bart=BartSettings(trees=20))
    >>> policy.decide([0.5], rng=np.random.default_rng(0)).reason  # before the first fit
    'warmup'
    """

    name = "bf-ts"

    def __init__(
        self,
        arms: int | Sequence[Label],
        *,
        bart: BartSettings = _BART,
        memory: Memory = REFITTED,
        traffic: Traffic = TRAFFIC,
        schema: Schema | Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(arms, shared=False, memory=memory, traffic=traffic, schema=schema)
        self._bart = bart

    def _fit(self, arm: int, X: Matrix, arms: Arms, rewards: Vector, *, seed: int) -> BartFit:
        own = arms == arm
        return BartFit(X[own], rewards[own], settings=self._bart, scale=Scale.of(rewards), seed=seed)

    def _choose(self, X: Matrix, arms: Sequence[int], eligible: Mask, uniforms: Matrix) -> Choices:
        index = np.empty(len(X), dtype=np.int64)
        propensities, mean, variance = np.empty((3, len(X), len(arms)))
        for few, draws in self._draws(X, arms):
            drawn = rules.thompson(draws, eligible[few], uniforms[few])
            index[few], propensities[few] = drawn.index, drawn.propensities
            mean[few], variance[few] = draws.mean, draws.variance
        return Choices(index, propensities, self._normal(mean, variance, arms))

    def _posterior(self, X: Matrix, arms: Sequence[int]) -> GaussianPosterior:
        mean, variance = np.empty((2, len(X), len(arms)))
        for few, draws in self._draws(X, arms):
            mean[few], variance[few] = draws.mean, draws.variance
        return self._normal(mean, variance, arms)

    def _normal(self, mean: Matrix, variance: Matrix, arms: Sequence[int]) -> GaussianPosterior:
        """Report a normal posterior with the mean and variance of the draws."""
        fits = [self._current(arm) for arm in arms]
        return GaussianPosterior(
            mean=mean, variance=variance, size=[1 if fit is None else fit.size for fit in fits]
        )

    def _draws(self, X: Matrix, arms: Sequence[int]) -> Iterator[tuple[slice, RewardDistribution]]:
        """Draws of the mean rewards at ``X`` (q, P), as points (R, few, K) for a few rows at a time."""
        total = self._bart.total
        for start in range(0, len(X), _TOGETHER):
            few = slice(start, start + _TOGETHER)
            points = np.empty((total, len(X[few]), len(arms)))
            for column, arm in enumerate(arms):
                fit = self._current(arm)
                if fit is None:
                    levels = (np.arange(total) + 0.5) / total
                    points[:, :, column] = np.quantile(self._any_reward(), levels)[:, None]
                else:
                    points[:, :, column] = fit.draws(X[few]).T
            yield few, RewardDistribution(points, np.ones(len(arms), dtype=np.int64))

    def _unchanged(self, arms: NDArray[np.int64]) -> int:
        if any(arm not in self._warm_since for arm in arms.tolist()):
            return 0
        return min(len(arms), self._next - self._fold().size - 1)

    def _settings(self) -> dict[str, Any]:
        return asdict(self._bart) | asdict(self._memory)
