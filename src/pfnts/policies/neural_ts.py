"""Neural Thompson sampling (Zhang et al. 2021) with a diagonal covariance."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.random import Generator
from numpy.typing import NDArray
from torch import Tensor

from pfnts.encodings import History, Schema
from pfnts.policies import network, rules
from pfnts.policies.base import Choice, Label, Mask, Matrix, Policy, Vector
from pfnts.policies.network import Precision, Weights, squared_gradients
from pfnts.posterior import GaussianPosterior

# Trainings are thinned to one per n // 1000 new rewards: each of the first 2000, every ninth near 10,000.
_GROWTH = 1000
_MOST_CATCHING_UP = 10


class NeuralTS(Policy):
    """Thompson sampling around a neural network, with the gradient as features.

    The mean reward of an arm at x is believed N(f(x), lambda nu sum g^2 / U), where g is the gradient of the
    network f by its weights and U starts at lambda and grows by the g^2 of each rewarded pull. The input is
    the context and a constant, in the arm's block.

    Parameters
    ----------
    arms
        Number of arms, or their labels.
    penalty
        lambda: the pull of the weights to their initial values.
    nu
        Factor on the variance of the draws.
    hidden
        Number of hidden units.
    learning_rate
        Size of the gradient steps.
    steps
        Full-batch gradient steps of one training.
    warmup
        Rewards of each arm to see first.
    explore
        Share of the rounds in which any eligible arm is drawn, each alike; warm-up included.
    schema
        What the columns of a context are; inferred from the first contexts when not given.

    Examples
    --------
    >>> policy, rng = NeuralTS(arms=2, warmup=0), np.random.default_rng(0)
    >>> for _ in range(30):
    ...     decision = policy.decide([0.5], rng=rng)
    ...     policy.update([0.5], arm=decision.arm, reward=float(decision.arm))
    >>> policy.decide([0.5], rng=rng).arm
    1
    """

    name = "neural-ts"

    def __init__(
        self,
        arms: int | Sequence[Label],
        *,
        penalty: float = 0.1,
        nu: float = 0.1,
        hidden: int = 100,
        learning_rate: float = 0.01,
        steps: int = 100,
        warmup: int = 5,
        explore: float = 0.0,
        schema: Schema | Mapping[str, Any] | None = None,
    ) -> None:
        for name, number in (("penalty", penalty), ("learning_rate", learning_rate)):
            if not number > 0 or not math.isfinite(number):
                raise ValueError(f"{name} must be a positive number, got {number}")
        if not nu >= 0 or not math.isfinite(nu):
            raise ValueError(f"nu must be a number from 0 on, got {nu}")
        for name, count in (("hidden", hidden), ("steps", steps)):
            if count != int(count) or count < 1:
                raise ValueError(f"{name} must be a positive integer, got {count!r}")
        super().__init__(arms, warmup=warmup, explore=explore, schema=schema)
        self._penalty, self._nu = float(penalty), float(nu)
        self._hidden, self._steps, self._learning_rate = int(hidden), int(steps), float(learning_rate)
        self._history = History(width=0, n_arms=self.n_arms)
        self._weights: Weights | None = None
        self._absorbed = 0
        self._trained = 0

    def posterior(self, contexts: Any) -> GaussianPosterior:
        """Posterior of the mean rewards, arrays (K,) for one context and (n, K) for a batch.

        It is that of the last decision: later rewards are taken in by the next one.
        """
        if self._weights is None:
            raise ValueError("posterior needs a network, which the first decision after warm-up makes")
        X, _, single = self._encode(contexts)
        moments = np.array([self._moments(x) for x in _design(X)]).reshape(len(X), 2, self.n_arms)
        posterior = self._posterior(moments[:, 0], moments[:, 1])
        return posterior[0] if single else posterior

    def _start(self, width: int) -> None:
        self._history = History(width=width + 1, n_arms=self.n_arms)

    def _observe(self, X: Matrix, arms: NDArray[np.int64], rewards: Vector) -> None:
        self._history.append(_design(X), arms, rewards)

    def _choose(self, X: Matrix, eligible: Mask, *, rng: Generator) -> Sequence[Choice]:
        self._absorb(rng=rng)
        choices = []
        for x, mask in zip(_design(X), eligible, strict=True):
            posterior = self._posterior(*self._moments(x))
            index = rules.thompson(posterior, mask, rng=rng)
            choices.append(Choice(index, posterior.best_arm_probabilities(mask), posterior))
        return choices

    def _absorb(self, *, rng: Generator) -> None:
        """Take in the rewards that came since the last decision: first into U, then by training."""
        history = self._history
        if self._weights is None:
            self._begin(history.contexts.shape[1], rng=rng)
        # The weights are still those of the decisions that these rewards belong to.
        for x, arm in zip(
            history.contexts[self._absorbed :], history.arms[self._absorbed :].tolist(), strict=True
        ):
            self._precision.add(squared_gradients(self._input, self._output, x), arm)
        self._absorbed = history.size
        missed = (history.size - self._trained) // max(1, history.size // _GROWTH)
        if missed:
            self._train(self._steps * min(missed, _MOST_CATCHING_UP))
            self._trained = history.size

    def _begin(self, width: int, *, rng: Generator) -> None:
        shape = {"n_arms": self.n_arms, "n_features": width, "hidden": self._hidden}
        self._anchor = network.start(**shape, rng=rng)
        self._precision = Precision.prior(**shape, penalty=self._penalty)
        self._tables = [_Table(width + 1) for _ in range(self.n_arms)]
        self._keep(self._anchor)

    def _keep(self, weights: Weights) -> None:
        self._weights = weights
        self._input = weights.input.double().numpy()
        self._output = weights.output.double().numpy()

    def _train(self, steps: int) -> None:
        assert self._weights is not None
        history = self._history
        new = slice(self._trained, history.size)
        for k, table in enumerate(self._tables):
            own = history.arms[new] == k
            table.append(history.contexts[new][own], history.rewards[new][own])
        tables = [(table.rows, table.rewards) for table in self._tables]
        for _ in range(20):
            weights, objective = network.train(
                self._weights,
                self._anchor,
                tables,
                steps=steps,
                learning_rate=self._learning_rate,
                penalty=self._penalty,
            )
            finite = bool(torch.isfinite(weights.input).all() and torch.isfinite(weights.output).all())
            # Large features make the usual step overshoot; then no network is better than its start.
            if finite and objective <= 2 * _spread_of(tables):
                self._keep(weights)
                return
            self._learning_rate /= 2
            self._keep(self._anchor)

    def _moments(self, x: Vector) -> tuple[Vector, Vector]:
        """Posterior mean and variance at ``x`` (P,), both (K,)."""
        gradients = squared_gradients(self._input, self._output, x)
        return gradients.value, self._penalty * self._nu * self._precision.spread(gradients)

    def _posterior(self, mean: Matrix, variance: Matrix) -> GaussianPosterior:
        return GaussianPosterior(mean=mean, variance=variance, size=np.maximum(self._observed, 1))


class _Table:
    """Rows and rewards of an arm, as tensors that grow in place."""

    def __init__(self, width: int) -> None:
        self._size = 0
        self._rows, self._rewards = torch.empty((64, width)), torch.empty(64)

    @property
    def rows(self) -> Tensor:
        return self._rows[: self._size]

    @property
    def rewards(self) -> Tensor:
        return self._rewards[: self._size]

    def append(self, contexts: Matrix, rewards: Vector) -> None:
        end = self._size + len(rewards)
        if end > len(self._rewards):
            spare = max(end, 2 * len(self._rewards)) - len(self._rewards)
            self._rows = torch.cat([self._rows, torch.empty((spare, self._rows.shape[1]))])
            self._rewards = torch.cat([self._rewards, torch.empty(spare)])
        self._rows[self._size : end, :-1] = torch.as_tensor(contexts, dtype=torch.float32)
        self._rows[self._size : end, -1] = 1.0
        self._rewards[self._size : end] = torch.as_tensor(rewards, dtype=torch.float32)
        self._size = end


def _design(X: Matrix) -> Matrix:
    """Append a constant, without which all arms are one at x = 0; missing values count as zero."""
    return np.concatenate([np.where(np.isnan(X), 0.0, X), np.ones((len(X), 1))], axis=1)


def _spread_of(tables: Sequence[tuple[Tensor, Tensor]]) -> float:
    """Mean squared reward."""
    rewards = torch.cat([y for _, y in tables]).double()
    return float(rewards @ rewards) / len(rewards)
