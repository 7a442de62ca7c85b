"""The Drink Less trial, and its stand-in, as logs."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.random import Generator

from pfnts.environments.drinkless import ARMS, DAYS, FEATURES, PEOPLE, PROPENSITIES, DrinklessScenario
from pfnts.ope.log import Log
from pfnts.ope.reading import BadLogError, Roles, read_log

FILE = "drinkless.csv.gz"
VARIABLE = "PFNTS_DATA"
_CODES = {"Z": "none", "Y": "standard", "X": "new"}
_COVARIATES = ("AUDIT_score", "age", "gender", "employment_type", "days_since_download")


def read_drinkless(folder: str | os.PathLike[str] | None = None) -> Log:
    """Read the released file of the Drink Less trial (OSF w3szp): 349 people, 30 days, three actions.

    Rounds are ordered by day with people interleaved; AUDIT score, age, gender, employment type and day are
    standardised; the logging probabilities are 0.4 (none), 0.3 (standard) and 0.3 (new).

    Parameters
    ----------
    folder
        Where ``drinkless.csv.gz`` or ``drinkless.csv`` is; the environment variable PFNTS_DATA names it when
        left out.
    """
    chosen = os.environ.get(VARIABLE) if folder is None else os.fspath(folder)
    places = [Path(chosen) / name for name in (FILE, "drinkless.csv")] if chosen else []
    found = [path for path in places if path.exists()]
    if not found:
        why = f"there is none in {chosen}" if chosen else "got nothing"
        raise BadLogError(
            f"data must name the folder with {FILE}, {why}; "
            f"give --data or set {VARIABLE} (the file is published at https://osf.io/w3szp)"
        )
    propensity = {code: PROPENSITIES[ARMS.index(arm)] for code, arm in _CODES.items()}
    # The day is both what orders the rounds and what policies see; it joins the contexts below.
    *covariates, day = _COVARIATES
    roles = Roles("subversion", "primary_outcome", propensity, "ID", time=day, context=tuple(covariates))
    log = read_log(found[0], roles)
    assert log.times is not None
    # Employment has three unordered kinds, coded 0, 1, 2.
    employment = log.features.index("employment_type")
    kinds, others = log.contexts[:, employment], np.delete(log.contexts, employment, axis=1)
    contexts = np.column_stack([others, kinds == 1, kinds == 2, log.times])
    arms = tuple(_CODES[str(arm)] for arm in log.arms)
    return replace(log, arms=arms, features=FEATURES, contexts=contexts).standardized()


def simulated_drinkless(*, rng: Generator, people: int = PEOPLE, days: int = DAYS) -> Log:
    """Draw people, randomise them every day as in the trial, and log what they did.

    `pfnts.environments.drinkless.expected_value` knows what a policy is truly worth.

    Parameters
    ----------
    rng
        Where people, actions and rewards come from.
    people
        Number of people.
    days
        Evenings that each takes part.

    Examples
    --------
    >>> log = simulated_drinkless(rng=np.random.default_rng(0))
    >>> log.rounds, log.arms, log.n_groups
    (10470, ('none', 'standard', 'new'), 349)
    """
    if days < 1:
        raise ValueError(f"days must be a positive number, got {days}")
    for_trial, for_actions = rng.spawn(2)
    rounds = np.arange(people * days)
    trial = DrinklessScenario(people=people).environment(horizon=len(rounds), rng=for_trial)
    actions = for_actions.choice(len(ARMS), size=len(rounds), p=PROPENSITIES)
    design = np.tile(PROPENSITIES, (len(rounds), 1))
    rewards, propensities = trial.rewards[rounds, actions], design[rounds, actions]
    person, day = rounds % people, (rounds // people + 1).astype(np.float64)
    return Log(trial.contexts, FEATURES, ARMS, actions, rewards, propensities, design, person, day)
