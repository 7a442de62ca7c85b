"""The policy that never learns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from pfnts.arrays import Counts, Mask, Matrix
from pfnts.contexts import Schema
from pfnts.events import ActionSet, History
from pfnts.policies.arguments import Arms
from pfnts.policies.model import Model, Shape, Values
from pfnts.policies.policy import Policy
from pfnts.policies.rules import Greedy
from pfnts.policies.traffic import NO_WARMUP, Traffic


class Uniform(Policy):
    """Choose uniformly at random among the eligible arms.

    Parameters
    ----------
    arms
        Number of arms, their labels, or labels to features; None where decisions bring their own candidates.
    traffic
        Shares of the decisions that are not left to chance; no warm-up.
    schema, seed
        See `Policy`.

    Examples
    --------
    >>> Uniform(arms=4).decide([0.0]).propensities
    array([0.25, 0.25, 0.25, 0.25])
    """

    name = "uniform"
    takes_features = True

    def __init__(
        self,
        arms: Arms,
        *,
        traffic: Traffic = NO_WARMUP,
        schema: Schema | Mapping[str, Any] | None = None,
        seed: int | None = None,
    ) -> None:
        super().__init__(
            arms,
            model=Indifferent(),
            rule=Greedy("explore"),
            traffic=traffic,
            schema=schema,
            settings={},
            seed=seed,
        )


class Indifferent(Model):
    """Predicts the same for every arm."""

    takes_features = True

    def fresh(self, shape: Shape) -> Indifferent:  # noqa: ARG002
        """Return itself: nothing is learned."""
        return self

    def observe(self, history: History, start: int, end: int) -> None:
        """Learn nothing."""

    def predict(self, X: Matrix, arms: ActionSet, eligible: Mask | None) -> Values:  # noqa: ARG002
        """Return zeros."""
        return Values(np.zeros((len(X), len(arms))), np.ones(len(arms)))

    def unchanged(self, arms: Counts) -> int:
        """All."""
        return len(arms)

    def make_room(self, n_arms: int) -> bool:  # noqa: ARG002
        """Whether there is room: always."""
        return True
