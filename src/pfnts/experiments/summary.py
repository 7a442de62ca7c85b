"""Final regret over replications."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from pfnts.experiments.outcomes import Outcome, cell_of, condense
from pfnts.experiments.spec import PolicySpec
from pfnts.experiments.store import Run


@dataclass(frozen=True)
class FinalRegret:
    """Final regret of one policy on one scenario."""

    scenario: str
    """The scenario's name."""
    policy: PolicySpec
    """Who decided."""
    horizon: int
    """Number of rounds."""
    replications: int
    """How many runs the mean is over."""
    mean: float
    """Mean over replications of the regret summed over all rounds."""
    standard_error: float
    """Standard error of that mean; NaN for a single replication."""
    seconds: float
    """Mean wall-clock time of a run."""


def summarize(runs: Iterable[Run | Outcome]) -> list[FinalRegret]:
    """Average the final regret of runs, whole or in short, over replications, in order of first appearance.

    Examples
    --------
    >>> from pfnts.experiments import plan, run_all
    >>> specs = plan(scenarios=["friedman"], policies=[PolicySpec("uniform")],
    ...              horizon=100, replications=2, seed=42)
    >>> rows = summarize(run_all(specs))
    >>> rows[0].replications, 50 < rows[0].mean < 250
    (2, True)
    """
    groups: dict[tuple[str, PolicySpec, int], list[Outcome]] = {}
    for run in runs:
        outcome = run if isinstance(run, Outcome) else condense(run)
        groups.setdefault(cell_of(outcome), []).append(outcome)
    return [
        FinalRegret(
            *group,
            len(members),
            *mean_and_error([outcome.regret for outcome in members]),
            seconds=float(np.mean([outcome.seconds for outcome in members])),
        )
        for group, members in groups.items()
    ]


def mean_and_error(values: Sequence[float]) -> tuple[float, float]:
    """Mean and its standard error, NaN for a single value.

    Examples
    --------
    >>> mean_and_error([1.0, 3.0])
    (2.0, 1.0)
    """
    error = np.std(values, ddof=1) / math.sqrt(len(values)) if len(values) > 1 else np.nan
    return float(np.mean(values)), float(error)
