"""Epsilon-greedy on the mean of any backbone: the plain thing a user would write."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from pfnts import backbones
from pfnts.backbones import Backbone, PredictiveSequence
from pfnts.encodings import Schema
from pfnts.policies import rules
from pfnts.policies.base import Choice, Label, Mask, Matrix, Policy, Vector


class EpsilonGreedy(Policy):
    """The arm with the largest predicted mean; with probability epsilon, any eligible arm.

    Each arm has a predictive sequence of its own.

    Parameters
    ----------
    arms
        Number of arms, or their labels.
    epsilon
        Share of rounds spent on an arm drawn uniformly.
    backbone
        Name or object of the prediction model.
    warmup
        Rewards of each arm to see first, at least 1.
    explore
        Share of the rounds in which any eligible arm is drawn, each alike; warm-up included.
    schema
        What the columns of a context are; inferred from the first contexts when not given.

    Examples
    --------
    >>> policy = EpsilonGreedy(arms=2, epsilon=0.2, backbone="linear", warmup=1)
    >>> policy.update([[0.1], [0.7], [0.3]], arm=[0, 1, 1], reward=[0.0, 2.0, 4.0])
    >>> policy.decide([0.5], rng=np.random.default_rng(0)).propensities
    array([0.1, 0.9])
    """

    name = "epsilon-greedy"

    def __init__(
        self,
        arms: int | Sequence[Label],
        *,
        epsilon: float = 0.1,
        backbone: str | Backbone = "embedded",
        warmup: int = 5,
        explore: float = 0.0,
        schema: Schema | Mapping[str, Any] | None = None,
    ) -> None:
        if not 0 <= epsilon <= 1:
            raise ValueError(f"epsilon must be between 0 and 1, got {epsilon}")
        if warmup < 1:
            raise ValueError(f"warmup must be at least 1, a prediction needs a reward, got {warmup}")
        super().__init__(arms, warmup=warmup, explore=explore, schema=schema)
        self._epsilon = float(epsilon)
        self._backbone = backbones.load(backbone)
        self._sequences: dict[int, PredictiveSequence] = {}

    def _observe(self, X: Matrix, arms: NDArray[np.int64], rewards: Vector) -> None:
        for k in np.unique(arms).tolist():
            rows, values = X[arms == k], rewards[arms == k]
            if k in self._sequences:
                self._sequences[k].append(rows, values)
            else:
                self._sequences[k] = self._backbone.sequence(rows, values)

    def _choose(self, X: Matrix, eligible: Mask, *, rng: Generator) -> Sequence[Choice]:
        means = np.zeros(eligible.shape)
        for k, sequence in self._sequences.items():
            means[:, k] = sequence.means(X, [sequence.size])[0]
        choices = []
        for mean, mask in zip(means, eligible, strict=True):
            # Both draws are made in every round, so that their number does not depend on the coin.
            explores = rng.random() < self._epsilon
            arm, other = rules.greedy(mean, mask, rng=rng), int(rng.choice(np.flatnonzero(mask)))
            shares = (1 - self._epsilon) * rules.greedy_propensities(mean, mask)
            choices.append(Choice(other if explores else arm, shares + self._epsilon * mask / mask.sum()))
        return choices
