"""Final regret over replications, beside the published figures."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from pfnts.experiments.published import HORIZON, REGRET
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
    published: float | None
    """Regret of the paper's PFN-TS on the scenario, where it has one for this horizon."""


def summarize(runs: Iterable[Run]) -> list[FinalRegret]:
    """Average the final regret over replications, in the order of first appearance.

    Examples
    --------
    >>> from pfnts.experiments import plan, run_all
    >>> specs = plan(scenarios=["friedman"], policies=[PolicySpec("uniform")],
    ...              horizon=100, replications=2, seed=42)
    >>> rows = summarize(run_all(specs))
    >>> rows[0].replications, 50 < rows[0].mean < 250
    (2, True)
    """
    groups: dict[tuple[str, PolicySpec, int], list[Run]] = {}
    for run in runs:
        groups.setdefault((run.spec.scenario, run.spec.policy, run.spec.horizon), []).append(run)
    return [_row(*group, members) for group, members in groups.items()]


def _row(scenario: str, policy: PolicySpec, horizon: int, runs: list[Run]) -> FinalRegret:
    totals = np.array([run.trajectory.total_regret for run in runs])
    error = totals.std(ddof=1) / np.sqrt(len(totals)) if len(totals) > 1 else np.nan
    return FinalRegret(
        scenario=scenario,
        policy=policy,
        horizon=horizon,
        replications=len(totals),
        mean=float(totals.mean()),
        standard_error=float(error),
        seconds=float(np.mean([run.trajectory.seconds for run in runs])),
        published=REGRET["pfn-ts"].get(scenario) if horizon == HORIZON else None,
    )
