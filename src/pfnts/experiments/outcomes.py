"""What a report keeps of a run: a few hundred numbers instead of the whole trajectory."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pfnts.experiments.spec import RunSpec
from pfnts.experiments.store import Run

_POINTS = 112


@dataclass(frozen=True)
class Outcome:
    """A run in short.

    Examples
    --------
    >>> from pfnts.experiments import PolicySpec, run
    >>> spec = RunSpec("friedman", PolicySpec("uniform"), horizon=50, replication=0, seed=42)
    >>> outcome = condense(Run(spec, run(spec)))
    >>> int(outcome.places[-1]), outcome.regret == float(outcome.curve[-1]), outcome.best_fixed
    (50, True, 0.0)
    """

    spec: RunSpec
    """What was run."""
    places: NDArray[np.int64]
    """(n,) some of its rounds, counted from 1; the last one among them."""
    curve: NDArray[np.float64]
    """(n,) regret summed up to each of them."""
    fixed: NDArray[np.float64]
    """(K,) regret of pulling the same arm all the time."""
    seconds: float
    """Wall-clock time."""

    @property
    def regret(self) -> float:
        """Regret summed over all rounds."""
        return float(self.curve[-1])

    @property
    def best_fixed(self) -> float:
        """Regret of the best single arm, known only in hindsight."""
        return float(self.fixed.min())


def condense(run: Run) -> Outcome:
    """Keep what tables and curves show."""
    places = places_of(run.trajectory.horizon)
    total = run.trajectory.cumulative_regret
    curve = total[places - 1]
    # The two sums differ in the last digits, and a table must not depend on which one it was made from.
    curve[-1] = run.trajectory.total_regret
    return Outcome(run.spec, places, curve, run.trajectory.fixed, run.trajectory.seconds)


def places_of(horizon: int) -> NDArray[np.int64]:
    """About two hundred rounds that look even on a linear axis, and on a logarithmic one.

    Examples
    --------
    >>> places_of(3).tolist(), 150 < len(places_of(10_000)) < 250
    ([1, 2, 3], True)
    """
    even = np.linspace(1, horizon, _POINTS)
    return np.unique(np.concatenate([even, np.geomspace(1, horizon, _POINTS)]).round().astype(np.int64))


def bands(outcomes: Iterable[Outcome]) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    """Places, mean and standard deviation (NaN for one run) of curves over replications."""
    members = list(outcomes)
    shortest = min(members, key=lambda outcome: outcome.places[-1])
    if any(outcome.places[-1] != shortest.places[-1] for outcome in members):
        raise ValueError(
            "outcomes must all have the same number of rounds, got "
            f"{sorted({int(outcome.places[-1]) for outcome in members})}"
        )
    curves = np.array([outcome.curve for outcome in members])
    spread = curves.std(axis=0, ddof=1) if len(curves) > 1 else np.full(curves.shape[1], np.nan)
    return shortest.places, curves.mean(axis=0), spread
