"""The tables of a report, made from its sections."""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cache

from pfnts.experiments.figures import style_of, styles_of
from pfnts.experiments.published import DEVIATION, HORIZON, LIBRARIES, REGRET, TUNED
from pfnts.experiments.report.sections import Section, average_ranks
from pfnts.experiments.report.tables import Cell, Table, csv_text, number, spread
from pfnts.experiments.spec import PolicySpec
from pfnts.experiments.summary import FinalRegret

FIXED = "best fixed arm"
LIBRARY = "public libraries"
_MISSING = "—"
# A bar is full where our regret is four times the paper's, or a quarter.
_FULL_BAR = math.log(4)


def regret_table(section: Section) -> Table:
    """Policies by scenarios: mean ± standard error, the lowest bold, the average rank."""
    ranks = section.ranks
    ranked = bool(ranks) and len(section.policies) > 1
    rows = []
    for policy in section.policies:
        row = [Cell(row_name(section, policy), colour=colours(section)[policy])]
        row += [_rank_cell(ranks, policy)] if ranked else []
        row += [_regret_cell(section, scenario, policy) for scenario in section.scenarios]
        rows.append(tuple(row))
    gap = [Cell("")] if ranked else []
    fixed = [section.best_fixed(scenario) for scenario in section.scenarios]
    footer = [[Cell(FIXED), *gap, *(Cell(spread(*found), found[0]) for found in fixed)]]
    if _has_libraries(section):
        figures = [LIBRARIES.get(scenario) for scenario in section.scenarios]
        footer.append([Cell(LIBRARY), *gap, *(Cell("" if f is None else number(f), f) for f in figures)])
    header = [name + (" †" if section.needs_no_context(name) else "") for name in section.scenarios]
    titles = [_column_title(section, name) for name in section.scenarios]
    return Table(
        caption=caption(section),
        header=("policy", *(["rank"] if ranked else []), *header),
        titles=("", *(["mean rank over the scenarios that all policies have"] if ranked else []), *titles),
        rows=tuple(rows),
        footer=tuple(map(tuple, footer)),
        notes=tuple(_notes(section, ranked=ranked)),
        heading=None if section.axis else caption(section, titled=False),
    )


def caption(section: Section, *, titled: bool = True) -> str:
    """What a table shows, with or without the title of its section."""
    runs = f"{section.replications} replications" if section.replications > 1 else "1 replication"
    text = f"final regret, {section.horizon:,} rounds, {runs}"
    return f"{section.title}: {text}" if titled else text.capitalize()


def row_name(section: Section, policy: PolicySpec) -> str:
    """Name a policy; a variant by what it varies."""
    if not section.axis:
        return policy.label
    if policy.options:
        return ", ".join(f"{option}={value}" for option, value in policy.options)
    return ", ".join(f"{option}={_default(policy, option)}" for option in section.axis) + " (default)"


def colours(section: Section) -> dict[PolicySpec, int]:
    """Colour of each policy: its own wherever it appears, unless two variants would share it."""
    styles = styles_of([policy.name for policy in section.policies])
    return dict(zip(section.policies, styles, strict=True))


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


def paper_tables(sections: Iterable[Section]) -> dict[str, Table]:
    """By policy, our regret beside the paper's, wherever it reports one."""
    rows: dict[str, list[tuple[Cell, ...]]] = {}
    for name, scenario, ours in _beside(sections):
        theirs = REGRET[name][scenario]
        ratio = ours.mean / theirs
        bar = max(-1.0, min(1.0, math.log(max(ratio, 1e-9)) / _FULL_BAR))
        rows.setdefault(name, []).append(
            (
                Cell(scenario),
                Cell(spread(ours.mean, ours.standard_error), ours.mean, bold=ours.mean < theirs),
                Cell(spread(theirs, DEVIATION[name][scenario]), theirs, bold=theirs < ours.mean),
                Cell(f"{ratio:.2f}", ratio, bar=bar),
            )
        )
    return {
        name: Table(
            caption=f"{name}, ours and the paper's: final regret, {HORIZON:,} rounds",
            header=("scenario", "ours", "paper", "ours / paper"),
            rows=tuple(listed),
            notes=(
                "Ours: mean ± standard error. The paper's: mean over five replications ± what it prints "
                "behind that sign, which by its size is a standard deviation. Bold: the lower of the two.",
                *_pilots([name]),
            ),
        )
        for name, listed in rows.items()
    }


def paper_ranks(sections: Iterable[Section]) -> Table | None:
    """Average rank among the policies and on the scenarios that both have, ours and the paper's."""
    columns: dict[str, dict[PolicySpec, float]] = {}
    for section in sections:
        known = [policy for policy in section.policies if policy.name in REGRET and not policy.options]
        shared = [
            scenario
            for scenario in section.scenarios
            if all((scenario, p) in section.cells and scenario in REGRET[p.name] for p in known)
        ]
        if section.horizon != HORIZON or section.axis or len(known) < 2 or not shared:
            continue
        tasks = f"{section.title.split()[0]} ({len(shared)})"
        ours = {policy: [section.cells[name, policy].mean for name in shared] for policy in known}
        theirs = {policy: [REGRET[policy.name][name] for name in shared] for policy in known}
        columns |= {f"{tasks}, ours": average_ranks(ours), f"{tasks}, paper": average_ranks(theirs)}
    if not columns:
        return None
    ranked = sorted(
        {policy for column in columns.values() for policy in column}, key=lambda p: style_of(p.name)
    )
    return Table(
        caption="Average rank among the paper's policies",
        header=("policy", *columns),
        rows=tuple(
            (
                Cell(policy.label, colour=style_of(policy.name)),
                *(_rank_cell(column, policy) for column in columns.values()),
            )
            for policy in ranked
        ),
        notes=(
            "On as many scenarios as the brackets say, those that all these policies have; ties share.",
            *_pilots([policy.name for policy in ranked]),
        ),
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
        (ours.policy.label, scenario, *_numbers(ours), REGRET[name][scenario], DEVIATION[name][scenario])
        for name, scenario, ours in _beside(sections)
    ]
    header = ("policy", "scenario", "replications", "mean", "standard_error", "paper", "paper_deviation")
    return csv_text(header, rows)


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


def _pilots(names: Iterable[str]) -> list[str]:
    """Say which policies the paper tuned and we did not."""
    tuned = [name for name in names if name in TUNED]
    if not tuned:
        return []
    return [f"The paper chose settings of {' and '.join(tuned)} by pilot runs; ours keep their defaults."]


@cache
def _default(policy: PolicySpec, option: str) -> object:
    return inspect.signature(type(policy.build(arms=2))).parameters[option].default


def _numbers(row: FinalRegret) -> tuple[int, float, float]:
    return row.replications, row.mean, row.standard_error


def _regret_cell(section: Section, scenario: str, policy: PolicySpec) -> Cell:
    found = section.cells.get((scenario, policy))
    if found is None:
        return Cell(_MISSING, aside="no run yet")
    theirs = None if section.axis else published(policy, scenario, section.horizon)
    return Cell(
        spread(found.mean, found.standard_error),
        found.mean,
        bold=found.mean == section.best(scenario),
        mark=f"[{found.replications}]" if found.replications < section.replications else "",
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
    if _has_libraries(section):
        notes.append(
            f"{LIBRARY.capitalize()}: the lowest of thirteen settings (three seeds), picked for each task."
        )
    if any(map(section.needs_no_context, section.scenarios)):
        notes.append("†: one fixed arm loses nothing, so contexts are not needed.")
    return notes


def _rank_cell(ranks: Mapping[PolicySpec, float], policy: PolicySpec) -> Cell:
    if policy not in ranks:
        return Cell(_MISSING)
    return Cell(f"{ranks[policy]:.2f}", ranks[policy], bold=ranks[policy] == min(ranks.values()))


def _has_libraries(section: Section) -> bool:
    known = any(scenario in LIBRARIES for scenario in section.scenarios)
    return known and section.horizon == HORIZON and not section.axis


def _scenarios(count: int) -> str:
    return "one scenario" if count == 1 else f"{count} scenarios"


def _column_title(section: Section, scenario: str) -> str:
    free = "one fixed arm loses nothing here" if section.needs_no_context(scenario) else ""
    return "; ".join(filter(None, [f"{section.rounds(scenario):,} rounds", free]))


def _seconds(seconds: float) -> str:
    return f"{seconds:,.1f}" if seconds >= 0.1 else f"{seconds:.3f}"
