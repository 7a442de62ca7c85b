"""Neural Thompson sampling (Zhang et al. 2021) with a diagonal covariance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pfnts.arrays import Mask, Matrix, Vector
from pfnts.contexts import Schema
from pfnts.events import ActionSet, History, Label
from pfnts.policies.arguments import check_count, check_number
from pfnts.policies.baselines import network
from pfnts.policies.baselines.network import Precision, Weights, rows_of, squared_gradients
from pfnts.policies.model import Model, Shape
from pfnts.policies.policy import Policy
from pfnts.policies.rules import Thompson
from pfnts.policies.traffic import TRAFFIC, Traffic
from pfnts.posterior import GaussianPosterior

# One training per n // 1000 rows: after each of the first 2000, after every ninth near 10,000.
_THINNED = 1000
_SEED = 0


class NeuralTS(Policy):
    """Thompson sampling around a neural network, with the gradient as features.

    The mean reward of an arm at x is N(f(x), nu^2 lambda sum g^2 / U), where g is the gradient of the network
    f by its weights and U starts at lambda and grows by the g^2 of each rewarded pull. The input is the
    context and a constant, in the arm's block. The network is trained after each row, more rarely from the
    2000th on; its first weights are always the same, so that it follows from the rows.

    Parameters
    ----------
    arms
        Number of arms, or their labels.
    penalty
        lambda: the pull of the weights to their initial values.
    nu
        Factor on the standard deviation of the draws; its square, a factor on the variance, is 0.1.
    hidden
        Number of hidden units.
    learning_rate
        Size of the gradient steps.
    steps
        Full-batch gradient steps of one training.
    traffic, schema, seed
        See `Policy`.

    Examples
    --------
    >>> policy, rng = NeuralTS(arms=2, traffic=Traffic(warmup=0)), np.random.default_rng(0)
    >>> for _ in range(30):
    ...     decision = policy.decide([0.5], rng=rng)
    ...     outcome = policy.update(decision, reward=float(decision.arm))
    >>> policy.decide([0.5], rng=rng).arm
    1
    """

    name = "neural-ts"

    def __init__(
        self,
        arms: int | Sequence[Label],
        *,
        penalty: float = 0.1,
        nu: float = 0.1**0.5,
        hidden: int = 100,
        learning_rate: float = 0.01,
        steps: int = 100,
        traffic: Traffic = TRAFFIC,
        schema: Schema | Mapping[str, Any] | None = None,
        seed: int | None = None,
    ) -> None:
        penalty, nu = check_number("penalty", penalty, positive=True), check_number("nu", nu)
        learning_rate = check_number("learning_rate", learning_rate, positive=True)
        hidden, steps = check_count("hidden", hidden), check_count("steps", steps)
        settings = {"penalty": penalty, "hidden": hidden, "learning_rate": learning_rate, "steps": steps}
        super().__init__(
            arms,
            model=NeuralModel(NetworkSettings(penalty, hidden, learning_rate, steps), nu=nu),
            rule=Thompson(),
            traffic=traffic,
            schema=schema,
            settings={"nu": nu, **settings},
            seed=seed,
        )


@dataclass(frozen=True)
class NetworkSettings:
    """Size and training of the network."""

    penalty: float
    hidden: int
    learning_rate: float
    steps: int


class NeuralModel(Model):
    """A network trained after each row, and the gradients of the rows so far."""

    def __init__(self, settings: NetworkSettings, *, nu: float, shape: Shape | None = None) -> None:
        self._settings, self._nu = settings, nu
        if shape is None:
            return
        self._width, self._first = shape.width + 1, shape.first
        self._rate = settings.learning_rate
        self._anchor = self._begun(shape.arms)
        self._keep(self._anchor)
        self._precision = Precision.prior(
            n_arms=shape.arms, n_features=self._width, hidden=settings.hidden, penalty=settings.penalty
        )
        self._tables = [_Table(self._width + 1) for _ in range(shape.arms)]
        self._size = 0

    def fresh(self, shape: Shape) -> NeuralModel:
        """Return a model without rows."""
        return NeuralModel(self._settings, nu=self._nu, shape=shape)

    def _begun(self, n_arms: int) -> Weights:
        """Weights before the first row; more arms change nothing for those before them."""
        return network.start(
            n_arms=n_arms,
            n_features=self._width,
            hidden=self._settings.hidden,
            fan_in=self._first * self._width,
            rng=np.random.default_rng(_SEED),
        )

    def make_room(self, n_arms: int) -> bool:
        """Add blocks of weights; those of the other arms stay as they are."""
        self._anchor = self._begun(n_arms)
        self._keep(network.widen(self._weights, self._anchor))
        self._precision = self._precision.widened(n_arms, penalty=self._settings.penalty)
        self._tables += [_Table(self._width + 1) for _ in range(len(self._tables), n_arms)]
        return True

    def observe(self, history: History, start: int, end: int) -> None:
        """Learn rows, one after the other."""
        X, new = history.contexts[start:end], slice(start, end)
        rows = zip(_design(X), history.arms[new].tolist(), history.rewards[new].tolist(), strict=True)
        for x, arm, reward in rows:
            # First into U, by the weights of before, then by training.
            self._precision.add(squared_gradients(self._input[arm : arm + 1], self._output, x), arm)
            self._tables[arm].append(x, reward)
            self._size += 1
            if self._size % max(1, self._size // _THINNED) == 0:
                self._train()

    def predict(self, X: Matrix, arms: ActionSet, eligible: Mask | None) -> GaussianPosterior:  # noqa: ARG002
        """Return the posterior (q, K) of the mean rewards."""
        mean, spread = np.empty((2, len(X), len(arms)))
        weights = rows_of(self._input, arms)
        for i, x in enumerate(_design(X)):
            gradients = squared_gradients(weights, self._output, x)
            mean[i], spread[i] = gradients.value, self._precision.spread(gradients, arms)
        return GaussianPosterior(
            mean=mean,
            variance=self._nu**2 * self._settings.penalty * spread,
            size=np.array([max(len(self._tables[arm].rewards), 1) for arm in arms]),
        )

    def _keep(self, weights: Weights) -> None:
        self._weights = weights
        self._input = weights.input.double().numpy()
        self._output = weights.output.double().numpy()

    def _train(self) -> None:
        tables = [(table.rows, table.rewards) for table in self._tables]
        for _ in range(20):
            weights, objective = network.train(
                self._weights,
                self._anchor,
                tables,
                steps=self._settings.steps,
                learning_rate=self._rate,
                penalty=self._settings.penalty,
            )
            finite = bool(torch.isfinite(weights.input).all() and torch.isfinite(weights.output).all())
            # Large features make the usual step overshoot; then no network is better than its start.
            if finite and (objective <= 2 * _spread_of(tables) or objective <= self._at_start(tables)):
                self._keep(weights)
                return
            self._rate /= 2
            self._keep(self._anchor)

    def _at_start(self, tables: Sequence[tuple[Tensor, Tensor]]) -> float:
        """The objective of the initial weights: rewards that are all 0 so far leave no smaller measure."""
        _, objective = network.train(
            self._anchor,
            self._anchor,
            tables,
            steps=1,
            learning_rate=self._rate,
            penalty=self._settings.penalty,
        )
        return objective


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

    def append(self, x: Vector, reward: float) -> None:
        if self._size == len(self._rewards):
            self._rows = torch.cat([self._rows, torch.empty_like(self._rows)])
            self._rewards = torch.cat([self._rewards, torch.empty_like(self._rewards)])
        self._rows[self._size, :-1] = torch.as_tensor(x, dtype=torch.float32)
        self._rows[self._size, -1] = 1.0
        # by way of a tensor: beyond single precision it becomes infinite, and the network stays at its start
        self._rewards[self._size] = torch.tensor(reward, dtype=torch.float64)
        self._size += 1


def _design(X: Matrix) -> Matrix:
    """Append a constant, without which all arms are one at x = 0; missing values count as zero."""
    return np.concatenate([np.where(np.isnan(X), 0.0, X), np.ones((len(X), 1))], axis=1)


def _spread_of(tables: Sequence[tuple[Tensor, Tensor]]) -> float:
    """Mean squared reward."""
    rewards = torch.cat([y for _, y in tables]).double()
    return float(rewards @ rewards) / len(rewards)
