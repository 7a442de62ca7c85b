"""Epsilon-greedy on the mean of any backbone: the plain thing a user would write."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from pfnts import backbones
from pfnts.backbones import Backbone, PredictiveSequence, Question
from pfnts.contexts import Schema
from pfnts.events import Label
from pfnts.policies import rules
from pfnts.policies.base import Policy
from pfnts.policies.decision import Choices, Mask, Matrix, Vector
from pfnts.policies.traffic import TRAFFIC, Traffic


class EpsilonGreedy(Policy):
    """The arm with the largest predicted mean; with probability epsilon, any eligible arm.

    Each arm has a predictive sequence of its own.

    Parameters
    ----------
    arms
        Number of arms, or their labels.
    epsilon
        Share of rounds, warm-up included, in which an eligible arm is drawn uniformly.
    backbone
        Name or object of the prediction model.
    traffic
        Warm-up, at least 1; its ``explore`` is ``epsilon`` here.
    schema
        What the columns of a context are; inferred from the first contexts when not given.

    Examples
    --------
    >>> policy = EpsilonGreedy(arms=2, epsilon=0.2, backbone="linear", traffic=Traffic(warmup=1))
    >>> outcomes = policy.update([[0.1], [0.7], [0.3]], arm=[0, 1, 1], reward=[0.0, 2.0, 4.0])
    >>> policy.decide([0.5], rng=np.random.default_rng(0)).propensities
    array([0.1, 0.9])
    """

    name = "epsilon-greedy"
    rule = "greedy"

    def __init__(
        self,
        arms: int | Sequence[Label],
        *,
        epsilon: float = 0.1,
        backbone: str | Backbone = "embedded",
        traffic: Traffic = TRAFFIC,
        schema: Schema | Mapping[str, Any] | None = None,
    ) -> None:
        if not 0 <= epsilon <= 1:
            raise ValueError(f"epsilon must be between 0 and 1, got {epsilon}")
        if traffic.explore not in (0, epsilon):
            raise ValueError(f"explore must be 0 beside epsilon, which is the same, got {traffic.explore}")
        traffic = traffic.with_warmup(least=1, why="a prediction needs a reward")
        super().__init__(arms, traffic=replace(traffic, explore=epsilon), schema=schema)
        self._backbone = backbones.load(backbone)
        self._named = backbone if backbone in backbones.names() else None

    def _reset(self, width: int, n_arms: int) -> None:  # noqa: ARG002
        self._sequences: dict[int, PredictiveSequence] = {}

    def _observe(self, X: Matrix, arms: NDArray[np.int64], rewards: Vector) -> None:
        for k in np.unique(arms).tolist():
            rows, values = X[arms == k], rewards[arms == k]
            if k in self._sequences:
                self._sequences[k].append(rows, values)
            else:
                self._sequences[k] = self._backbone.sequence(rows, values)

    def _choose(self, X: Matrix, arms: Sequence[int], eligible: Mask, uniforms: Matrix) -> Choices:
        known = [k for k in arms if k in self._sequences]
        asked = [Question(self._sequences[k], X, (self._sequences[k].size,)) for k in known]
        means = np.zeros(eligible.shape)
        for k, said in zip(known, self._backbone.predict(asked), strict=True):
            means[:, list(arms).index(k)] = said.means[-1]
        return rules.greedy(means, eligible, uniforms[:, -1])

    def _settings(self) -> dict[str, Any]:
        # A backbone of the user's own, or with options, must be passed to load.
        return {"backbone": self._named}

    @classmethod
    def _from_settings(cls, arms: list[Label], schema: Schema | None, settings: dict[str, Any]) -> Self:
        if settings["backbone"] is None:
            raise ValueError("backbone must be passed to load: the policy was saved with one of your own")
        return cls(arms, epsilon=settings["traffic"].explore, schema=schema, **settings)
