"""What is kept of a run, a few hundred numbers instead of the whole trajectory, and means over runs."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pfnts.experiments.jobs import code_fingerprint
from pfnts.experiments.simulations import RunSpec
from pfnts.experiments.spec import PolicySpec
from pfnts.experiments.store import CorruptRunError, Run, RunStore, read_simulation

_POINTS = 112


@dataclass(frozen=True)
class Outcome:
    """A run in short."""

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
    about: Mapping[str, Any] = field(default_factory=dict)
    """What is on record: producer, versions, machine and time."""

    @property
    def regret(self) -> float:
        """Regret summed over all rounds."""
        return float(self.curve[-1])

    @property
    def rounds(self) -> int:
        """Rounds that were played: a table may have had fewer than were asked for."""
        return int(self.places[-1])

    @property
    def has_curve(self) -> bool:
        """Whether more is known than the regret at the end."""
        return len(self.places) > 1

    @property
    def best_fixed(self) -> float:
        """Regret of the best single arm, known only in hindsight."""
        return float(self.fixed.min())

    @property
    def machine(self) -> str:
        """Processor, cores and device in a line; empty where nothing is on record."""
        if not (machine := self.about.get("machine", {})):
            return ""
        device = str(machine.get("device", "cpu"))
        name = f"{machine.get('cpu', 'unknown processor')}, {machine.get('cores', '?')} cores"
        return name if device.startswith("cpu") else f"{device}; {name}"

    @property
    def settings(self) -> Mapping[str, Any]:
        """All settings of its policy, defaults filled in, as they were when it was made."""
        return dict(self.about.get("producer", {}).get("settings", {}))

    def met_the_rounds_of(self, other: Outcome) -> bool:
        """Whether both had the same contexts and rewards, by what fixed arms would have lost."""
        # Not to the last digit, which another processor may have summed up otherwise.
        return self.fixed.shape == other.fixed.shape and np.allclose(self.fixed, other.fixed, rtol=1e-9)


def condense(run: Run, about: Mapping[str, Any] | None = None) -> Outcome:
    """Keep what tables and curves show."""
    places = places_of(run.result.horizon)
    curve = run.result.cumulative_regret[places - 1]
    # The two sums differ in the last digits, and a table must not depend on which one it was made from.
    curve[-1] = run.result.total_regret
    return Outcome(run.spec, places, curve, run.result.fixed, run.result.seconds, about or {})


def read_outcomes(store: RunStore) -> tuple[list[Outcome], list[str]]:
    """Read every simulation in short, each once; say in sentences what was set aside.

    Nothing that a run names is imported: what it was made with is read from its record.
    """
    found: dict[RunSpec, list[Outcome]] = {}
    damaged: list[str] = []
    for folder in store.folders():
        try:
            if (simulation := read_simulation(folder)) is not None:
                outcome = condense(*simulation)
                found.setdefault(outcome.spec, []).append(outcome)
        except CorruptRunError:
            damaged.append(folder.name)

    def newest(outcome: Outcome) -> tuple[bool, str]:
        return _is_ours(outcome), str(outcome.about.get("finished", ""))

    chosen = [max(members, key=newest) for members in found.values()]
    kept = of_the_same_rounds(chosen)
    twice, older = sum(len(members) > 1 for members in found.values()), sum(not _is_ours(o) for o in kept)
    notes = {
        "Made by several versions of the package or of the weights, and shown once": twice,
        "Made by another version of the package than the one at hand": older,
        "Left out, because they met other rounds than the runs beside them": len(chosen) - len(kept),
    }
    said = [f"{text}: {n} run{'' if n == 1 else 's'}." for text, n in notes.items() if n]
    if damaged:
        said.append(f"Damaged and left out: {', '.join(damaged)}. Delete them to run them anew.")
    return kept, said


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
    rounds = sorted({outcome.rounds for outcome in members})
    if len(rounds) > 1:
        raise ValueError(f"outcomes must all have the same number of rounds, got {rounds}")
    curves = np.array([outcome.curve for outcome in members])
    spread = curves.std(axis=0, ddof=1) if len(curves) > 1 else np.full(curves.shape[1], np.nan)
    return members[0].places, curves.mean(axis=0), spread


def _is_ours(outcome: Outcome) -> bool:
    return not outcome.about or outcome.about["producer"].get("code") == code_fingerprint()


def of_the_same_rounds(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Keep, of each replication, the largest group of runs that met the same rounds.

    Of a policy on a scenario, moreover, the replications that are as long as most: a mean is over equals.
    """
    replications: dict[tuple[Any, ...], list[list[Outcome]]] = {}
    for outcome in outcomes:
        spec = outcome.spec
        groups = replications.setdefault((spec.scenario, spec.horizon, spec.replication, spec.seed), [])
        group = next((group for group in groups if outcome.met_the_rounds_of(group[0])), [])
        if not group:
            groups.append(group)
        group.append(outcome)
    kept = {outcome.spec for groups in replications.values() for outcome in max(groups, key=len)}
    same = [outcome for outcome in outcomes if outcome.spec in kept]
    lengths = Counter((cell_of(outcome), outcome.rounds) for outcome in same).most_common()
    usual = {cell: rounds for (cell, rounds), _ in reversed(lengths)}
    return [outcome for outcome in same if outcome.rounds == usual[cell_of(outcome)]]


def cell_of(outcome: Outcome) -> tuple[str, PolicySpec, int]:
    """Scenario, policy and horizon: what replications have in common."""
    return outcome.spec.scenario, outcome.spec.policy, outcome.spec.horizon


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
    rows = []
    for cell, members in groups.items():
        lost, seconds = ([getattr(each, name) for each in members] for name in ("regret", "seconds"))
        rows.append(FinalRegret(*cell, len(members), *mean_and_error(lost), seconds=float(np.mean(seconds))))
    return rows


def mean_and_error(values: Sequence[float]) -> tuple[float, float]:
    """Mean and its standard error, NaN for a single value."""
    error = np.std(values, ddof=1) / math.sqrt(len(values)) if len(values) > 1 else np.nan
    return float(np.mean(values)), float(error)
