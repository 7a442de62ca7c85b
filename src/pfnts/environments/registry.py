"""Environments by name."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Protocol, runtime_checkable

from numpy.random import Generator

from pfnts.dotted import find, is_dotted
from pfnts.environments.base import Environment, checked_horizon, generator
from pfnts.environments.contextual import SCENARIOS as CONTEXTUAL
from pfnts.environments.drift import SCENARIOS as DRIFT
from pfnts.environments.drinkless import DrinklessScenario
from pfnts.environments.offers import SCENARIOS as OFFERS
from pfnts.environments.openml import SCENARIOS as OPENML
from pfnts.environments.openml import OpenMLScenario
from pfnts.environments.synthetic import SCENARIOS as SYNTHETIC


@runtime_checkable
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

    @property
    def needs_context(self) -> bool | None:
        """False where one arm is best at every context, True where none is, None where nobody has checked."""
        ...

    def environment(self, *, horizon: int, rng: Generator) -> Environment:
        """Draw an environment of ``horizon`` rounds."""
        ...


_ALL: tuple[Scenario, ...] = (*SYNTHETIC, *CONTEXTUAL, *DRIFT, *OFFERS, *OPENML, DrinklessScenario())
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
        One of `names`; or ``package.module.OBJECT``, a scenario of your own.

    Examples
    --------
    >>> scenario = describe("synbart")
    >>> scenario.n_features, scenario.n_arms
    (4, 3)
    """
    if name in _SCENARIOS:
        return _SCENARIOS[name]
    if not is_dotted(name):
        raise ValueError(
            f"scenario must be one of {', '.join(_SCENARIOS)} or package.module.OBJECT; got {name!r}"
        )
    found = find(name, kind="scenario")
    # A class has the names of its properties, too, and is no scenario yet.
    if isinstance(found, type) or not isinstance(found, Scenario):
        raise ValueError(
            f"scenario {name!r} must be an object with `name`, `description`, `n_features`, `n_arms`, "
            f"`needs_context` and `environment`, got {found!r}"
        )
    return found


def make(
    name: str, *, horizon: int, rng: Generator | int, data: str | os.PathLike[str] | None = None
) -> Environment:
    """Draw an environment.

    Parameters
    ----------
    name
        One of `names`; or ``package.module.OBJECT``, a scenario of your own.
    horizon
        Number of rounds; an OpenML scenario has at most 10,000, and no more than its dataset has rows.
    rng
        Where functions, contexts and rewards come from, or its seed. The same generator state gives the
        same environment, and a longer horizon continues a shorter one.
    data
        Folder with the tables of OpenML scenarios; that of the environment variable PFNTS_DATA when left
        out. A table that is not there is downloaded once. Other scenarios need none.

    Examples
    --------
    >>> import numpy as np
    >>> environment = make("friedman", horizon=100, rng=np.random.default_rng(0))
    >>> environment.contexts.shape, environment.means.shape, environment.rewards.shape
    ((100, 5), (100, 2), (100, 2))
    """
    scenario = describe(name)
    rounds = checked_horizon(horizon)
    if data is not None and isinstance(scenario, OpenMLScenario):
        scenario = replace(scenario, data=Path(data))
    return scenario.environment(horizon=rounds, rng=generator(rng))
