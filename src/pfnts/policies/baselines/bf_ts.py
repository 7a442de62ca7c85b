"""Bayesian forest Thompson sampling (BFTS): a Bayesian additive regression trees model per arm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from pfnts.arrays import Counts, Mask, Matrix, Vector
from pfnts.contexts import Schema
from pfnts.events import ActionSet, History, Label
from pfnts.layouts.memory import Memory
from pfnts.policies.baselines.bart import BartFit, BartSettings, Scale
from pfnts.policies.baselines.refits import REFITTED, Refits, check_refitted, check_warmup
from pfnts.policies.model import Model, Shape
from pfnts.policies.policy import Policy
from pfnts.policies.rules import Thompson
from pfnts.policies.traffic import TRAFFIC, Traffic
from pfnts.posterior import RewardDistribution

_BART = BartSettings()


class BFTS(Policy):
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
    traffic, schema, seed
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
        seed: int | None = None,
    ) -> None:
        traffic = check_warmup(traffic)
        super().__init__(
            arms,
            model=BartModel(bart, check_refitted(memory, policy="BFTS"), warmup=traffic.warmup),
            rule=Thompson(),
            traffic=traffic,
            schema=schema,
            settings=asdict(bart) | asdict(memory),
            seed=seed,
        )


class BartModel(Model):
    """Draws of the mean rewards from a Bayesian additive regression trees model per arm."""

    def __init__(self, bart: BartSettings, memory: Memory, *, warmup: int) -> None:
        self._bart = bart
        self._refits = Refits(self._fit, None, shared=False, memory=memory, warmup=warmup)
        self._fits = self._refits.begin()

    def fresh(self, shape: Shape) -> BartModel:  # noqa: ARG002
        """Return a model without rows."""
        return BartModel(self._bart, self._refits.memory, warmup=self._refits.warmup)

    def observe(self, history: History, start: int, end: int) -> None:
        """Note rows."""
        self._fits.observe(history, start, end)

    def predict(self, X: Matrix, arms: ActionSet, eligible: Mask | None) -> RewardDistribution:  # noqa: ARG002
        """Return draws of the mean rewards, points (R, q, K)."""
        rewards, total = self._fits.rewards(), self._bart.total
        points, sizes = np.empty((total, len(X), len(arms))), np.ones(len(arms), dtype=np.int64)
        for column, arm in enumerate(arms):
            fit = self._fits.current(arm)
            if fit is None:
                points[:, :, column] = np.quantile(rewards, (np.arange(total) + 0.5) / total)[:, None]
            else:
                points[:, :, column], sizes[column] = fit.draws(X).T, fit.size
        return RewardDistribution(points, sizes)

    def unchanged(self, arms: Counts) -> int:
        """Rows before the next refit."""
        return self._fits.unchanged(arms)

    def make_room(self, n_arms: int) -> bool:  # noqa: ARG002
        """Whether there is room: always, a new arm has a model of its own."""
        return True

    def _fit(self, arm: int, X: Matrix, arms: Counts, rewards: Vector, seed: int) -> BartFit:
        own = arms == arm
        return BartFit(X[own], rewards[own], settings=self._bart, scale=Scale.of(rewards), seed=seed)
