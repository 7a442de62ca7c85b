"""Scenarios in which the world changes: suddenly, little by little, or with the seasons."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from pfnts.environments.base import Environment
from pfnts.environments.synthetic import Matrix, MeanRewards, Vector

CHANGE = 2000
"""Round in the middle of a change; a season lasts as many rounds."""
_WAVES = 6
NOISE = 0.3
"""Standard deviation of a reward."""


@dataclass(frozen=True)
class DriftScenario:
    """Two worlds, each with a smooth random function for every arm, and how much of the second there is.

    Examples
    --------
    >>> environment = SCENARIOS[0].environment(horizon=2500, rng=np.random.default_rng(0))
    >>> environment.means.shape
    (2500, 3)
    """

    name: str
    """The word by which `make` finds it."""
    description: str
    """One line for a person choosing a scenario."""
    second: Callable[[Vector], Vector]
    """Rounds (T,) to the share (T,) of the second world."""
    n_features: int = 4
    n_arms: int = 3
    needs_context: bool | None = True

    def environment(self, *, horizon: int, rng: Generator) -> Environment:
        """Draw both worlds, then ``horizon`` rounds; a longer horizon continues a shorter one."""
        for_first, for_second, for_contexts, for_rewards = rng.spawn(4)
        contexts = for_contexts.random((horizon, self.n_features))
        worlds = [draw_waves(child, self.n_features, self.n_arms) for child in (for_first, for_second)]
        share = self.second(np.arange(horizon, dtype=np.float64))[:, None]
        means = (1 - share) * worlds[0](contexts) + share * worlds[1](contexts)
        rewards = means + NOISE * for_rewards.standard_normal(means.shape)
        return Environment(name=self.name, contexts=contexts, means=means, rewards=rewards)


def draw_waves(rng: Generator, n_features: int, n_arms: int) -> MeanRewards:
    """Draw a sum of random waves for each arm, of contexts (T, P) to (T, K), with variance about 1."""
    directions = rng.normal(0, 1.5, (n_arms, n_features, _WAVES))
    phases = rng.uniform(0, 2 * np.pi, (n_arms, _WAVES))
    heights = rng.normal(0, np.sqrt(2 / _WAVES), (n_arms, _WAVES))

    def means(x: Matrix) -> Matrix:
        columns = [np.cos(x @ directions[k] + phases[k]) @ heights[k] for k in range(n_arms)]
        return np.column_stack(columns)

    return means


def suddenly(t: Vector) -> Vector:
    """All of the second world from round 2,000 on."""
    return (t >= CHANGE).astype(np.float64)


def gradually(t: Vector) -> Vector:
    """From the first world at round 1,000 to the second at round 3,000, in a straight line."""
    return np.clip(t / CHANGE - 0.5, 0.0, 1.0)


def seasonally(t: Vector) -> Vector:
    """Forth and back, once in 4,000 rounds."""
    return (1 - np.cos(np.pi * t / CHANGE)) / 2


SCENARIOS: tuple[DriftScenario, ...] = (
    DriftScenario("drift-sudden", "smooth functions, drawn anew after 2,000 rounds", suddenly),
    DriftScenario(
        "drift-gradual", "smooth functions that turn into others from round 1,000 to 3,000", gradually
    ),
    DriftScenario(
        "drift-seasonal", "smooth functions that go to others and back in 4,000 rounds", seasonally
    ),
)
