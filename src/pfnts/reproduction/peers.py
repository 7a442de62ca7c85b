"""Public libraries beside PFN-TS: which settings are run, and how they did."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pfnts.experiments import FinalRegret, PolicySpec, summarize
from pfnts.experiments.outcomes import Outcome
from pfnts.experiments.report.sections import Section
from pfnts.experiments.report.tables import Cell, Row, Table, csv_text, spread

PEERS = tuple(
    map(
        PolicySpec.parse,
        (
            "vw",
            "vw:arguments=--squarecb",
            "vw:arguments=--squarecb --cubic cca",
            "vw:arguments=--bag 5 --cubic cca",
            "mabwiser-linucb",
            "mabwiser-linucb:intercept=true",
            "mabwiser-linucb:alpha=0.1,intercept=true",
            "contextualbandits-linucb",
            "contextualbandits-linucb:alpha=0.1",
            "bayesianbandits-ts",
            "bayesianbandits-ts:intercept=true",
        ),
    )
)
"""Four libraries: each with its own defaults first, then a small grid."""
LIBRARY_NAMES = tuple(dict.fromkeys(policy.name for policy in PEERS))
_OURS = PolicySpec("pfn-ts")


def at_hand() -> tuple[list[PolicySpec], list[str]]:
    """Settings whose library is installed, and what is to be said about the others."""
    found, missing = [], {}
    for policy in PEERS:
        try:
            policy.build(arms=2)
            found.append(policy)
        except ImportError as error:
            missing[policy.name] = str(error)
    return found, [f"{name} is left out: {reason}." for name, reason in missing.items()]


def measured(sections: Iterable[Section], horizon: int) -> dict[str, dict[PolicySpec, FinalRegret]]:
    """Regret by scenario of PFN-TS, as it comes, and of every setting, over the replications that all have.

    A scenario may be easier in one replication than in another: means over different ones are no comparison.
    """
    found: dict[str, dict[PolicySpec, Sequence[Outcome]]] = {}
    for section in sections:
        for (scenario, policy), outcomes in section.outcomes.items():
            if section.horizon == horizon and (policy == _OURS or policy in PEERS):
                found.setdefault(scenario, {})[policy] = outcomes
    rows: dict[str, dict[PolicySpec, FinalRegret]] = {}
    for scenario, runs in found.items():
        shared = set.intersection(*({_replication(each) for each in outcomes} for outcomes in runs.values()))
        if shared and any(policy in PEERS for policy in runs):
            kept = [o for outcomes in runs.values() for o in outcomes if _replication(o) in shared]
            rows[scenario] = {row.policy: row for row in summarize(kept)}
    return rows


def peer_table(rows: dict[str, dict[PolicySpec, FinalRegret]], horizon: int) -> Table:
    """PFN-TS beside each library, with its own defaults and with the best of the grid, task by task."""
    listed: list[Row] = []
    for scenario, cells in rows.items():
        lowest = min(row.mean for row in cells.values())
        shown = [_cell(_OURS, cells, lowest)]
        for name in LIBRARY_NAMES:
            grid = [policy for policy in PEERS if policy.name == name and policy in cells]
            best = min(grid, key=lambda policy: cells[policy].mean, default=_OURS)
            shown += [_cell(PolicySpec(name), cells, lowest), _cell(best, cells, lowest, named=True)]
        listed.append((scenario, str(next(iter(cells.values())).replications), *shown))
    names = [text for name in LIBRARY_NAMES for text in (name, "best of grid")]
    settings = "; ".join(policy.label for policy in PEERS if policy.options)
    notes = (
        "Mean ± standard error over the replications that all have; bold: the lowest of the row. Each "
        "library with its own defaults, then with the best of its settings, picked after the fact.",
        f"The grid, beside the defaults: {settings}.",
    )
    caption = f"Public libraries: final regret, {horizon:,} rounds"
    return Table.of(caption, ("scenario", "replications", _OURS.name, *names), listed, notes=notes)


def peers_csv(sections: Iterable[Section]) -> str:
    """Every setting in a row of its own."""
    names = ("horizon", "scenario", "policy", "replications", "mean", "standard_error", "seconds")
    cells = dict.fromkeys(
        row for section in sections for row in section.cells.values() if row.policy in PEERS
    )
    return csv_text([{**vars(row), "policy": row.policy.label} for row in cells], names)


def _replication(outcome: Outcome) -> tuple[int, int]:
    return outcome.spec.seed, outcome.spec.replication


def _cell(
    policy: PolicySpec, cells: dict[PolicySpec, FinalRegret], lowest: float, *, named: bool = False
) -> Cell:
    if policy not in cells or (named and policy == _OURS):
        return Cell("—")
    row = cells[policy]
    options = ", ".join(f"{name}={value}" for name, value in policy.options) or "defaults"
    aside = options if named else ""
    return Cell(spread(row.mean, row.standard_error), row.mean, bold=row.mean == lowest, aside=aside)
