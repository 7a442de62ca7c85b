"""The synthetic scenarios of the paper (appendix "Synthetic DGP Specifications")."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from pfnts.environments.bart import draw_bart
from pfnts.environments.base import Environment

Matrix = NDArray[np.float64]
Vector = NDArray[np.float64]
MeanRewards = Callable[[Matrix], Matrix]
"""Contexts (T, P) to the mean reward of every arm, (T, K)."""


@dataclass(frozen=True)
class SyntheticScenario:
    """A recipe for environments: draw functions, contexts and rewards.

    Examples
    --------
    >>> SCENARIOS[0].name, SCENARIOS[0].n_features, SCENARIOS[0].n_arms
    ('linear', 10, 3)
    """

    name: str
    """The word by which `make` finds it."""
    description: str
    """One line for a person choosing a scenario."""
    n_features: int
    """Length P of a context."""
    n_arms: int
    """Number of arms K."""
    draw_means: Callable[[Generator], MeanRewards]
    """Draws the mean reward functions of one replication."""
    draw_noise: Callable[[Generator], Vector] | None
    """Draws the noise variance of every arm, (K,); None where rewards are 0 or 1 and the means chances."""
    needs_context: bool | None = True
    """Whether different contexts have different best arms; False where one arm is best at all of them."""
    place: Callable[[Matrix], Matrix] = lambda uniform: uniform
    """Moves contexts (T, P), which are uniform on the unit cube, to where they should be."""

    def environment(self, *, horizon: int, rng: Generator) -> Environment:
        """Draw the functions, then ``horizon`` rounds; a longer horizon continues a shorter one."""
        for_means, for_noise, for_contexts, for_rewards = rng.spawn(4)
        mean_rewards = self.draw_means(for_means)
        contexts = self.place(for_contexts.random((horizon, self.n_features)))
        means = mean_rewards(contexts)
        if self.draw_noise is None:
            rewards = (for_rewards.random(means.shape) < means).astype(np.float64)
        else:
            variances = self.draw_noise(for_noise)
            rewards = means + np.sqrt(variances) * for_rewards.standard_normal(means.shape)
        return Environment(name=self.name, contexts=contexts, means=means, rewards=rewards)


def friedman1(x: Matrix) -> Vector:
    """Friedman's first function of the first five columns of ``x`` (T, P), as (T,)."""
    return 10 * np.sin(np.pi * x[:, 0] * x[:, 1]) + 20 * (x[:, 2] - 0.5) ** 2 + 10 * x[:, 3] + 5 * x[:, 4]


def friedman2(x: Matrix) -> Vector:
    """Friedman's second function, scaled to the size of the first, as (T,)."""
    real, imaginary = _impedance(x)
    return np.hypot(real, imaginary) / 125


def friedman3(x: Matrix) -> Vector:
    """Friedman's third function, scaled to the size of the first, as (T,)."""
    real, imaginary = _impedance(x)
    return np.arctan2(imaginary, real) / 0.1


def _impedance(x: Matrix) -> tuple[Vector, Vector]:
    # The resistance and reactance of an alternating-current circuit. The resistance is never negative, so
    # that arctan2 is the paper's arctan of the quotient and stays finite at x1 = 0.
    resistance = 100 * x[:, 0]
    frequency = 40 * np.pi + 520 * np.pi * x[:, 1]
    inductance = x[:, 2]
    capacity = 1 + 10 * x[:, 3]
    return resistance, frequency * inductance - 1 / (frequency * capacity)


def _shared(first_arm: Callable[[Matrix], Vector]) -> Callable[[Generator], MeanRewards]:
    def means(x: Matrix) -> Matrix:
        first = first_arm(x)
        return np.column_stack([first, first + 5 * np.sin(np.pi * x[:, 0] * x[:, 1])])

    return lambda _: means


def disjoint(_: Generator) -> MeanRewards:
    """Friedman's first function of the context for arm 1, of the context read backwards for arm 2."""
    return lambda x: np.column_stack([friedman1(x), friedman1(x[:, ::-1])])


def _linear(rng: Generator) -> MeanRewards:
    coefficients = rng.standard_normal((10, 3))
    return lambda x: x @ coefficients


def _synbart(rng: Generator) -> MeanRewards:
    arms = [draw_bart(n_features=4, rng=child) for child in rng.spawn(3)]
    return lambda x: np.column_stack([arm(x) for arm in arms])


def constant_noise(variance: float, n_arms: int) -> Callable[[Generator], Vector]:
    """Give all arms the same noise variance in every replication."""
    return lambda _: np.full(n_arms, variance)


def _heteroscedastic_noise(rng: Generator) -> Vector:
    return np.asarray(10 ** rng.uniform(-1, 1, size=2), dtype=np.float64)


SCENARIOS: tuple[SyntheticScenario, ...] = (
    SyntheticScenario(
        name="linear",
        description="three unrelated linear functions of ten features",
        n_features=10,
        n_arms=3,
        draw_means=_linear,
        draw_noise=constant_noise(1.0, 3),
    ),
    SyntheticScenario(
        name="friedman",
        description="Friedman's first function; arm 2 adds an interaction and is best everywhere",
        n_features=5,
        n_arms=2,
        draw_means=_shared(friedman1),
        draw_noise=constant_noise(1.0, 2),
        needs_context=False,
    ),
    SyntheticScenario(
        name="friedman2",
        description="as friedman, with Friedman's second function",
        n_features=5,
        n_arms=2,
        draw_means=_shared(friedman2),
        draw_noise=constant_noise(1.0, 2),
        needs_context=False,
    ),
    SyntheticScenario(
        name="friedman3",
        description="as friedman, with Friedman's third function",
        n_features=5,
        n_arms=2,
        draw_means=_shared(friedman3),
        draw_noise=constant_noise(1.0, 2),
        needs_context=False,
    ),
    SyntheticScenario(
        name="friedman-sparse",
        description="as friedman, with fifteen irrelevant features",
        n_features=20,
        n_arms=2,
        draw_means=_shared(friedman1),
        draw_noise=constant_noise(1.0, 2),
        needs_context=False,
    ),
    SyntheticScenario(
        name="friedman-sparse-disjoint",
        description="twenty features; arm 2 is Friedman's first function of the last five, reversed",
        n_features=20,
        n_arms=2,
        draw_means=disjoint,
        draw_noise=constant_noise(1.0, 2),
    ),
    SyntheticScenario(
        name="friedman-heteroscedastic",
        description="as friedman, each arm with its own noise variance between 0.1 and 10",
        n_features=5,
        n_arms=2,
        draw_means=_shared(friedman1),
        draw_noise=_heteroscedastic_noise,
        needs_context=False,
    ),
    SyntheticScenario(
        name="synbart",
        description="three functions of four features, drawn from a sparse BART prior; little noise",
        n_features=4,
        n_arms=3,
        draw_means=_synbart,
        draw_noise=constant_noise(0.01, 3),
    ),
)
"""Every synthetic scenario of the paper, in the order of the paper's appendix."""
