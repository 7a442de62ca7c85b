"""Environments by name."""

from __future__ import annotations

import operator
from typing import Protocol

from numpy.random import Generator

from pfnts.environments.base import Environment
from pfnts.environments.drinkless import DrinklessScenario
from pfnts.environments.synthetic import SCENARIOS


class Scenario(Protocol):
    """What `make` needs of a scenario, and what a listing shows."""

    @property
    def name(self) -> str:
        """The word by which it is found."""
        ...

    @property
    def description(self) -> str:
        """One line for a person choosing a scenario."""
        ...

    @property
    def n_features(self) -> int:
        """Length P of a context."""
        ...

    @property
    def n_arms(self) -> int:
        """Number of arms K."""
        ...

    def environment(self, *, horizon: int, rng: Generator) -> Environment:
        """Draw an environment of ``horizon`` rounds."""
        ...


_ALL: tuple[Scenario, ...] = (*SCENARIOS, DrinklessScenario())
_SCENARIOS: dict[str, Scenario] = {scenario.name: scenario for scenario in _ALL}


def names() -> list[str]:
    """Every scenario that `make` knows.

    Examples
    --------
    >>> names()[:2]
    ['linear', 'friedman']
    """
    return list(_SCENARIOS)


def describe(name: str) -> Scenario:
    """Look a scenario up by its name.

    Parameters
    ----------
    name
        One of `names`.

    Examples
    --------
    >>> scenario = describe("synbart")
    >>> scenario.n_features, scenario.n_arms
    (4, 3)
    """
    if name not in _SCENARIOS:
        raise ValueError(f"scenario must be one of {', '.join(_SCENARIOS)}; got {name!r}")
    return _SCENARIOS[name]


def make(name: str, *, horizon: int, rng: Generator) -> Environment:
    """Draw an environment.

    Parameters
    ----------
    name
        One of `names`.
    horizon
        Number of rounds.
    rng
        Where functions, contexts and rewards come from. The same generator state gives the same
        environment, and a longer horizon continues a shorter one.

    Examples
    --------
    >>> import numpy as np
    >>> environment = make("friedman", horizon=100, rng=np.random.default_rng(0))
    >>> environment.contexts.shape, environment.means.shape, environment.rewards.shape
    ((100, 5), (100, 2), (100, 2))
    """
    scenario = describe(name)
    try:
        rounds = operator.index(horizon)
    except TypeError:
        raise ValueError(f"horizon must be a positive integer, got {horizon!r}") from None
    if rounds < 1:
        raise ValueError(f"horizon must be a positive integer, got {horizon}")
    return scenario.environment(horizon=rounds, rng=rng)
