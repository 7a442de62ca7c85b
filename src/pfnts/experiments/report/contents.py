"""The tables of a report, made from its sections."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from pfnts.experiments.figures import style_of
from pfnts.experiments.published import HORIZON, REGRET
from pfnts.experiments.report.sections import Section, average_ranks
from pfnts.experiments.report.tables import Cell, Table, csv_text, number, spread
from pfnts.experiments.spec import PolicySpec
from pfnts.experiments.summary import FinalRegret

FIXED = "best fixed arm"
_MISSING = "—"
# A bar is full where our regret is ten times the paper's, or a tenth.
_FULL_BAR = math.log(10)


def regret_table(section: Section) -> Table:
    """Policies by scenarios: mean ± standard error, the lowest bold, the average rank."""
    ranks = section.ranks
    ranked = bool(ranks) and len(section.policies) > 1
    rows = []
    for policy in section.policies:
        row = [Cell(row_name(section, policy), colour=colours(section)[policy])]
        row += [_regret_cell(section, scenario, policy) for scenario in section.scenarios]
        if ranked:
            lowest = ranks[policy] == min(ranks.values())
            row.append(Cell(f"{ranks[policy]:.2f}", ranks[policy], bold=lowest))
        rows.append(tuple(row))
    fixed = [section.best_fixed(scenario) for scenario in section.scenarios]
    footer = [Cell(FIXED), *(Cell(spread(*found), found[0]) for found in fixed)]
    header = [name + (" †" if section.needs_no_context(name) else "") for name in section.scenarios]
    titles = [_column_title(section, name) for name in section.scenarios]
    return Table(
        caption=caption(section),
        header=("policy", *header, *(["rank"] if ranked else [])),
        titles=("", *titles, *(["mean rank over the scenarios that all policies have"] if ranked else [])),
        rows=tuple(rows),
        footer=(tuple([*footer, *([Cell("")] if ranked else [])]),),
        notes=tuple(_notes(section, ranked=ranked)),
    )


def caption(section: Section) -> str:
    """What a table or a page of curves shows."""
    runs = f"{section.replications} replications" if section.replications > 1 else "1 replication"
    return f"{section.title}: final regret, {section.horizon:,} rounds, {runs}"


def row_name(section: Section, policy: PolicySpec) -> str:
    """Name a policy; a variant by what it varies."""
    if not section.axis:
        return policy.label
    varied = dict(policy.options)
    if not varied:
        return f"{policy.name} as it comes"
    return ", ".join(f"{option}={value}" for option, value in varied.items())


def colours(section: Section) -> dict[PolicySpec, int]:
    """Colour of each policy: its own wherever it appears, unless two variants would share it."""
    names = [policy.name for policy in section.policies]
    if len(set(names)) == len(names):
        return {policy: style_of(policy.name) for policy in section.policies}
    return {policy: place for place, policy in enumerate(section.policies)}


def times_table(section: Section) -> Table:
    """Policies by scenarios: mean wall-clock seconds of a run."""
    rows = []
    for policy in section.policies:
        row = [Cell(row_name(section, policy), colour=colours(section)[policy])]
        for scenario in section.scenarios:
            found = section.cells.get((scenario, policy))
            row.append(Cell(_MISSING) if found is None else Cell(_seconds(found.seconds), found.seconds))
        rows.append(tuple(row))
    return Table(
        caption=f"{section.title}: seconds a run, {section.horizon:,} rounds",
        header=("policy", *section.scenarios),
        rows=tuple(rows),
    )


def paper_table(sections: Iterable[Section]) -> Table | None:
    """Our regret beside the paper's, wherever it reports one; None where it never does."""
    pairs = _beside(sections)
    if not pairs:
        return None
    rows = []
    for name, scenario, ours in pairs:
        theirs = REGRET[name][scenario]
        ratio = ours.mean / theirs
        bar = max(-1.0, min(1.0, math.log(max(ratio, 1e-9)) / _FULL_BAR))
        rows.append(
            (
                Cell(ours.policy.label, colour=style_of(name)),
                Cell(scenario),
                Cell(spread(ours.mean, ours.standard_error), ours.mean, bold=ours.mean < theirs),
                Cell(number(theirs), theirs, bold=theirs < ours.mean),
                Cell(f"{ratio:.2f}", ratio, bar=bar),
            )
        )
    return Table(
        caption=f"Ours and the paper's: final regret, {HORIZON:,} rounds",
        header=("policy", "scenario", "ours", "paper", "ours / paper"),
        rows=tuple(rows),
        notes=("Bold: the lower of the two.", "The paper's are means over five replications."),
        text_columns=2,
    )


def paper_ranks(sections: Iterable[Section]) -> Table | None:
    """Average rank among the policies and on the scenarios that both have, ours and the paper's."""
    rows: list[tuple[Cell, ...]] = []
    for section in sections:
        known = [policy for policy in section.policies if policy.name in REGRET and not policy.options]
        shared = [
            scenario
            for scenario in section.scenarios
            if all((scenario, p) in section.cells and scenario in REGRET[p.name] for p in known)
        ]
        if section.horizon != HORIZON or section.axis or len(known) < 2 or not shared:
            continue
        ours = average_ranks({p: [section.cells[name, p].mean for name in shared] for p in known})
        theirs = average_ranks({p: [REGRET[p.name][name] for name in shared] for p in known})
        rows += [
            (
                Cell(policy.label, colour=style_of(policy.name)),
                Cell(section.title),
                Cell(str(len(shared)), len(shared)),
                Cell(f"{ours[policy]:.2f}", ours[policy], bold=ours[policy] == min(ours.values())),
                Cell(f"{theirs[policy]:.2f}", theirs[policy], bold=theirs[policy] == min(theirs.values())),
            )
            for policy in known
        ]
    if not rows:
        return None
    return Table(
        caption="Average rank among the paper's policies",
        header=("policy", "tasks", "scenarios", "ours", "paper"),
        rows=tuple(rows),
        notes=("On the scenarios that all these policies have; bold: the lowest rank.",),
        text_columns=2,
    )


def regret_csv(sections: Sequence[Section]) -> str:
    """Every cell in a row of its own."""
    header = (
        "section", "horizon", "scenario", "rounds", "policy", "replications", "mean", "standard_error",
        "needs_no_context", "paper",
    )  # fmt: skip
    rows: list[tuple[object, ...]] = []
    for section in sections:
        for scenario in section.scenarios:
            shared = (section.title, section.horizon, scenario, section.rounds(scenario))
            free = str(section.needs_no_context(scenario)).lower()
            for policy in section.policies:
                found = section.cells.get((scenario, policy))
                theirs = published(policy, scenario, section.horizon)
                numbers = (0, None, None) if found is None else _numbers(found)
                rows.append((*shared, policy.label, *numbers, free, theirs))
            rows.append((*shared, FIXED, None, *section.best_fixed(scenario), free, None))
    return csv_text(header, rows)


def times_csv(sections: Sequence[Section]) -> str:
    """Seconds of every cell in a row of its own."""
    header = ("section", "horizon", "scenario", "policy", "replications", "seconds")
    rows = [
        (section.title, section.horizon, scenario, policy.label, found.replications, found.seconds)
        for section in sections
        for scenario in section.scenarios
        for policy in section.policies
        if (found := section.cells.get((scenario, policy))) is not None
    ]
    return csv_text(header, rows)


def paper_csv(sections: Sequence[Section]) -> str:
    """Our regret beside the paper's, as numbers."""
    rows = [
        (ours.policy.label, scenario, *_numbers(ours), REGRET[name][scenario])
        for name, scenario, ours in _beside(sections)
    ]
    return csv_text(("policy", "scenario", "replications", "mean", "standard_error", "paper"), rows)


def published(policy: PolicySpec, scenario: str, horizon: int) -> float | None:
    """What the paper reports for the policy, as it comes, on the scenario."""
    if policy.options or horizon != HORIZON:
        return None
    return REGRET.get(policy.name, {}).get(scenario)


def _beside(sections: Iterable[Section]) -> list[tuple[str, str, FinalRegret]]:
    return sorted(
        (
            (row.policy.name, scenario, row)
            for section in sections
            if not section.axis
            for (scenario, policy), row in section.cells.items()
            if published(policy, scenario, section.horizon) is not None
        ),
        key=lambda pair: (list(REGRET).index(pair[0]), list(REGRET[pair[0]]).index(pair[1])),
    )


def _numbers(row: FinalRegret) -> tuple[int, float, float]:
    return row.replications, row.mean, row.standard_error


def _regret_cell(section: Section, scenario: str, policy: PolicySpec) -> Cell:
    found = section.cells.get((scenario, policy))
    if found is None:
        return Cell(_MISSING, aside="no run yet")
    text = spread(found.mean, found.standard_error)
    if found.replications < section.replications:
        text += f" [{found.replications}]"
    theirs = None if section.axis else published(policy, scenario, section.horizon)
    return Cell(
        text,
        found.mean,
        bold=found.mean == section.best(scenario),
        aside="" if theirs is None else f"paper {number(theirs)}",
    )


def _notes(section: Section, *, ranked: bool) -> list[str]:
    notes = ["Mean ± standard error over replications; bold: the lowest mean."]
    if ranked:
        notes.append(f"Rank: average over the {_scenarios(len(section.shared))} that all policies have.")
    elif len(section.policies) > 1:
        notes.append("No rank: there is no scenario that all policies have.")
    if any(row.replications < section.replications for row in section.cells.values()):
        notes.append("[n]: only n replications so far.")
    if len(section.cells) < len(section.policies) * len(section.scenarios):
        notes.append(f"{_MISSING}: no run so far.")
    fewer = {name: section.rounds(name) for name in section.scenarios}
    if short := [f"{name} {rounds:,}" for name, rounds in fewer.items() if rounds < section.horizon]:
        notes.append(f"Rounds where there is less data: {', '.join(short)}.")
    notes.append(f"{FIXED.capitalize()}: pulled in every round, chosen in hindsight.")
    if any(map(section.needs_no_context, section.scenarios)):
        notes.append("†: one fixed arm loses nothing, so contexts are not needed.")
    return notes


def _scenarios(count: int) -> str:
    return "one scenario" if count == 1 else f"{count} scenarios"


def _column_title(section: Section, scenario: str) -> str:
    free = "one fixed arm loses nothing here" if section.needs_no_context(scenario) else ""
    return "; ".join(filter(None, [f"{section.rounds(scenario):,} rounds", free]))


def _seconds(seconds: float) -> str:
    return f"{seconds:,.1f}" if seconds >= 0.1 else f"{seconds:.3f}"
