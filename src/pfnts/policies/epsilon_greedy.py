"""Epsilon-greedy on the mean of any backbone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pfnts import backbones
from pfnts.backbones import Backbone
from pfnts.contexts import Schema
from pfnts.events import Label
from pfnts.policies.policy import Policy
from pfnts.policies.rules import Greedy
from pfnts.policies.sequence_means import SequenceMeans
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
    schema, seed
        See `Policy`.

    Examples
    --------
    >>> import numpy as np
    >>> policy = EpsilonGreedy(arms=2, epsilon=0.2, backbone="linear", traffic=Traffic(warmup=1))
    >>> outcomes = policy.update([[0.1], [0.7], [0.3]], arm=[0, 1, 1], reward=[0.0, 2.0, 4.0])
    >>> policy.decide([0.5]).propensities
    array([0.1, 0.9])
    """

    name = "epsilon-greedy"

    def __init__(
        self,
        arms: int | Sequence[Label],
        *,
        epsilon: float = 0.1,
        backbone: str | Backbone = "embedded",
        traffic: Traffic = TRAFFIC,
        schema: Schema | Mapping[str, Any] | None = None,
        seed: int | None = None,
    ) -> None:
        if not 0 <= epsilon <= 1:
            raise ValueError(f"epsilon must be between 0 and 1, got {epsilon}")
        if traffic.explore not in (0, epsilon):
            raise ValueError(f"explore must be 0 beside epsilon, which is the same, got {traffic.explore}")
        traffic = traffic.with_warmup(least=1, why="a prediction needs a reward")
        named = backbone if backbone in backbones.names() else None
        super().__init__(
            arms,
            model=SequenceMeans(backbones.load(backbone)),
            rule=Greedy(),
            traffic=replace(traffic, explore=epsilon),
            schema=schema,
            # A backbone of the user's own, or with options, must be passed to load.
            settings={"epsilon": float(epsilon), "backbone": named},
            seed=seed,
        )
