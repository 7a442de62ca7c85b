"""Scenarios in which arms have features: what an offer is worth depends on the offer and on who sees it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from pfnts.environments.base import Environment

Matrix = NDArray[np.float64]
Worth = Callable[[Matrix, Matrix], Matrix]
"""Contexts (T, P) and features of arms (K, A) to mean rewards (T, K)."""

WIDTH = 5
"""Floats in a context, and features of an arm."""
NOISE = 0.5
"""Standard deviation of a reward."""


def linear(rng: Generator) -> Worth:
    """Draw a function linear in the context, in the features, and in their products.

    Examples
    --------
    >>> worth = linear(np.random.default_rng(0))
    >>> worth(np.full((2, 5), 0.5), np.full((3, 5), 0.5))
    array([[0., 0., 0.],
           [0., 0., 0.]])
    """
    taste, own = rng.standard_normal((WIDTH, WIDTH)), rng.standard_normal(WIDTH)
    # On (-1, 1); the sum of 25 products of them has a variance of 25 / 9.
    return lambda X, F: ((2 * X - 1) @ taste + own) @ (2 * F - 1).T * 0.6


def nonlinear(rng: Generator, waves: int = 2) -> Worth:
    """Draw a sum of waves over context and features together: the best features turn with the context.

    Examples
    --------
    >>> nonlinear(np.random.default_rng(0))(np.zeros((2, 5)), np.zeros((3, 5))).shape
    (2, 3)
    """
    directions = rng.standard_normal((waves, 2 * WIDTH))
    directions *= rng.uniform(4.0, 8.0, size=(waves, 1)) / np.linalg.norm(directions, axis=1, keepdims=True)
    phases = rng.uniform(0, 2 * np.pi, size=waves)

    def worth(X: Matrix, F: Matrix) -> Matrix:
        total = np.zeros((len(X), len(F)))
        for direction, phase in zip(directions, phases, strict=True):
            total += np.sin((X @ direction[:WIDTH])[:, None] + F @ direction[WIDTH:] + phase)
        return total

    return worth


@dataclass(frozen=True)
class OfferScenario:
    """A recipe for environments with features of arms.

    Examples
    --------
    >>> [scenario.name for scenario in SCENARIOS][:2]
    ['offers-linear-50', 'offers-linear-1000']
    """

    name: str
    """The word by which `make` finds it."""
    description: str
    """One line for a person choosing a scenario."""
    n_arms: int
    """Number of arms in a round."""
    draw: Callable[[Generator], Worth]
    """Draws what offers are worth."""
    every: int | None = None
    """Rounds after which the oldest arms leave and as many new ones come; None if all stay."""
    renewed: int = 0
    """How many."""
    n_features: int = WIDTH
    needs_context: bool | None = True

    def environment(self, *, horizon: int, rng: Generator) -> Environment:
        """Draw the function, the arms, then ``horizon`` rounds; a longer horizon continues a shorter one."""
        for_worth, for_arms, for_contexts, for_rewards = rng.spawn(4)
        renewals = 0 if self.every is None else (horizon - 1) // self.every
        features = for_arms.random((self.n_arms + renewals * self.renewed, WIDTH))
        contexts = for_contexts.random((horizon, WIDTH))
        means = self.draw(for_worth)(contexts, features)
        # One number a round: whichever arm is pulled, the luck is the same, and new arms change none of it.
        rewards = means + NOISE * for_rewards.standard_normal((horizon, 1))
        available = None
        if self.every is not None:
            renewal = np.arange(horizon)[:, None] // self.every
            arm = np.arange(len(features))
            available = (arm >= renewal * self.renewed) & (arm < self.n_arms + renewal * self.renewed)
        return Environment(
            name=self.name,
            contexts=contexts,
            means=means,
            rewards=rewards,
            arm_features=features,
            available=available,
        )


SCENARIOS: tuple[OfferScenario, ...] = (
    *(
        OfferScenario(
            name=f"offers-{kind}-{count}",
            description=f"{count:,} arms with five features; rewards {how} in these and in the context",
            n_arms=count,
            draw=draw,
        )
        for kind, how, draw in (("linear", "bilinear", linear), ("nonlinear", "wavy", nonlinear))
        for count in (50, 1000)
    ),
    OfferScenario(
        name="offers-renewed",
        description="as offers-linear-50; ten arms leave and ten new ones come every 500 rounds",
        n_arms=50,
        draw=linear,
        every=500,
        renewed=10,
    ),
)
"""Every scenario with features of arms."""
