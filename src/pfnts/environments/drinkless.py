"""A stand-in for the Drink Less trial: people with habits of their own, true values known.

Design, covariates and rates are like those of the trial: 349 people, 30 evenings, three actions, app opened
or not, more rarely as the weeks go by. People and outcomes are drawn; nothing of the trial's data is in here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.random import Generator
from numpy.typing import NDArray

from pfnts.environments.base import Environment

Matrix = NDArray[np.float64]
Vector = NDArray[np.float64]

ARMS = ("none", "standard", "new")
PROPENSITIES = (0.4, 0.3, 0.3)
PEOPLE = 349
DAYS = 30
FEATURES = ("AUDIT_score", "age", "gender", "employment=1", "employment=2", "days_since_download")

_AUDIT = np.arange(8, 36)
_AUDIT_SHARE = np.exp(-0.5 * ((_AUDIT - 16.5) / 7.5) ** 2)
_AUDIT_SHARE /= _AUDIT_SHARE.sum()
_AGE = np.arange(21, 72)
_AGE_SHARE = np.exp(-0.5 * ((_AGE - 43) / 12) ** 2)
_AGE_SHARE /= _AGE_SHARE.sum()
_EMPLOYMENT_SHARE = np.array([0.756, 0.106, 0.138])
_WOMEN = 0.556

# Log odds of opening the app.
_LEVEL = -4.15
_MESSAGE = (0.0, 1.75, 1.65)
_HABIT = 1.25
_WEARING_OFF = 0.55


@dataclass(frozen=True)
class People:
    """Who takes part."""

    covariates: Matrix
    """(n, 5): AUDIT score and age centred and scaled, gender, two indicators of employment."""
    habits: Vector
    """(n,) log odds by which a person opens the app more than others like them; policies do not see it."""


def draw_people(n: int, *, rng: Generator) -> People:
    """Draw people.

    Parameters
    ----------
    n
        How many.
    rng
        Where they come from.

    Examples
    --------
    >>> draw_people(10, rng=np.random.default_rng(0)).covariates.shape
    (10, 5)
    """
    if n < 1:
        raise ValueError(f"n must be a positive number of people, got {n}")
    audit = rng.choice(_AUDIT, size=n, p=_AUDIT_SHARE)
    age = rng.choice(_AGE, size=n, p=_AGE_SHARE)
    gender = (rng.random(n) < _WOMEN).astype(np.float64)
    employment = rng.choice(3, size=n, p=_EMPLOYMENT_SHARE)
    return People(_covariates(audit, age, gender, employment), _HABIT * rng.standard_normal(n))


def mean_rewards(covariates: Matrix, habits: Vector | float, days: Vector) -> Matrix:
    """Probability (T, K) of opening the app at each of T occasions.

    Parameters
    ----------
    covariates
        (T, 5), as in `People`.
    habits
        (T,)
    days
        (T,) days since the app was downloaded, from 1.
    """
    audit, age, gender = covariates[:, 0], covariates[:, 1], covariates[:, 2]
    base = _LEVEL + habits + 0.15 * age + 0.2 * gender - _WEARING_OFF * (np.log(days) - 2.4)
    # Heavier drinkers take to the new messages, lighter ones to the standard message.
    taste = np.stack([np.zeros(len(audit)), -0.25 * audit, 0.35 * audit], axis=1)
    return np.asarray(scipy.special.expit(base[:, None] + np.array(_MESSAGE) + taste), dtype=np.float64)


@dataclass(frozen=True)
class DrinklessScenario:
    """The stand-in as a bandit problem: day after day, one person after the other."""

    name: str = "drinkless-sim"
    """The word by which it is found."""
    description: str = "messages that bring people back to an app: 349 people, one evening after the other"
    """One line for a person choosing a scenario."""
    n_features: int = len(FEATURES)
    """Length P of a context."""
    n_arms: int = len(ARMS)
    """Number of arms K."""
    people: int = PEOPLE
    """Number of people."""
    needs_context: bool | None = True
    """The standard message works for light drinkers, the new ones for heavy drinkers."""

    def environment(self, *, horizon: int, rng: Generator) -> Environment:
        """Draw the people, then what each would do on every evening, whatever the message."""
        for_people, for_rewards = rng.spawn(2)
        people = draw_people(self.people, rng=for_people)
        person = np.arange(horizon) % self.people
        days = (np.arange(horizon) // self.people + 1).astype(np.float64)
        means = mean_rewards(people.covariates[person], people.habits[person], days)
        rewards = (for_rewards.random(means.shape) < means).astype(np.float64)
        contexts = _contexts(people.covariates[person], days)
        return Environment(name=self.name, contexts=contexts, means=means, rewards=rewards)


def expected_value(policy: Callable[[Matrix], Matrix], *, days: int = DAYS) -> float:
    """Mean reward of a fixed policy over all people there could be: exact, by summing over them.

    Parameters
    ----------
    policy
        Contexts (n, P) to the probabilities (n, K) of the arms.
    days
        Evenings that each person takes part.

    Examples
    --------
    >>> always_none = expected_value(lambda contexts: np.tile([1.0, 0.0, 0.0], (len(contexts), 1)))
    >>> 0.03 < always_none < 0.05
    True
    """
    audit, age, gender, employment = (
        grid.ravel() for grid in np.meshgrid(_AUDIT, _AGE, [0.0, 1.0], [0, 1, 2], indexing="ij")
    )
    share = (
        _AUDIT_SHARE[audit - _AUDIT[0]]
        * _AGE_SHARE[age - _AGE[0]]
        * np.where(gender == 1, _WOMEN, 1 - _WOMEN)
        * _EMPLOYMENT_SHARE[employment]
    )
    covariates = _covariates(audit, age, gender, employment)
    nodes, masses = np.polynomial.hermite_e.hermegauss(24)
    masses = masses / masses.sum()
    total = 0.0
    for day in range(1, days + 1):
        on_day = np.full(len(share), float(day))
        means = sum(
            mass * mean_rewards(covariates, _HABIT * node, on_day)
            for node, mass in zip(nodes, masses, strict=True)
        )
        probabilities = policy(_contexts(covariates, on_day))
        total += float(share @ (probabilities * means).sum(axis=1))
    return total / days


def _covariates(
    audit: NDArray[np.int64], age: NDArray[np.int64], gender: Vector, employment: NDArray[np.int64]
) -> Matrix:
    return np.column_stack([(audit - 18) / 6.4, (age - 43) / 11.3, gender, employment == 1, employment == 2])


def _contexts(covariates: Matrix, days: Vector) -> Matrix:
    return np.column_stack([covariates, (days - 15.5) / 8.66])
