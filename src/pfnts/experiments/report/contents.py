"""The tables and charts of a report, made from its sections, and figures from elsewhere beside them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from pfnts.experiments.charts import Chart, Line, Panel, styles_of
from pfnts.experiments.outcomes import FinalRegret, bands, places_of
from pfnts.experiments.report.page import Part
from pfnts.experiments.report.sections import OPENML, OTHER, SYNTHETIC, Section
from pfnts.experiments.report.sections import family as family_of
from pfnts.experiments.report.tables import Cell, Row, Table, number, spread
from pfnts.experiments.simulations import RunSpec
from pfnts.experiments.spec import PolicySpec

FIXED = "best fixed arm"
_MEASURED = ("replications", "mean", "standard_error", "seconds")
_MISSING = "—"


class Companion:
    """What a report shows beside the runs; this one has nothing to add."""

    name = ""
    """Whose figures they are, in a word."""
    titles: Sequence[str] = (SYNTHETIC, OPENML, OTHER)
    """Headings under which scenarios are listed."""
    remarks: ClassVar[Mapping[str, str]] = {}
    """What is to be said of other parts of the page, by their headings."""

    def family(self, scenario: str) -> str:
        """Which of the headings a scenario stands under."""
        return family_of(scenario)

    def figure(self, policy: PolicySpec, scenario: str, horizon: int) -> float | None:  # noqa: ARG002
        """Regret to be shown below ours."""
        return None

    def compared(self, sections: Sequence[Section]) -> list[Section]:
        """Sections that get a table and curves; the others are among the parts and tables below."""
        return list(sections)

    def footer(self, section: Section) -> tuple[str, Mapping[str, float], str] | None:  # noqa: ARG002
        """A row to be shown below the policies: its name, its figures by scenario, where they come from."""
        return None

    def missing(self, made: Collection[RunSpec], *, coverage: bool) -> list[str]:  # noqa: ARG002
        """Sentences on what is still to be run, with or without coverage diagnostics at hand."""
        return []

    def parts(self, sections: Sequence[Section]) -> list[Part]:  # noqa: ARG002
        """Parts of the page after the comparisons."""
        return []

    def tables(self, sections: Sequence[Section]) -> dict[str, tuple[list[Table], str]]:  # noqa: ARG002
        """Tables to be written, with their numbers as CSV, by the name of the file."""
        return {}


NONE = Companion()


def regret_table(section: Section, *, beside: Companion = NONE) -> Table:
    """Policies by scenarios: mean ± standard error, the lowest bold, the average rank."""
    ranks, ranked = section.ranks, len(section.ranks) > 1
    rank = {"rank": "mean rank over the scenarios that all policies ranked have"} if ranked else {}
    columns = {"policy": "", **rank}
    for name in section.scenarios:
        free = section.needs_no_context(name)
        rounds = f"{section.rounds(name):,} rounds"
        columns |= {f"{name} †": f"{rounds}; one fixed arm loses nothing here"} if free else {name: rounds}
    rows = []
    for policy in section.policies:
        cells = (_regret_cell(section, scenario, policy, beside) for scenario in section.scenarios)
        rows.append([_named(section, policy), *([rank_cell(ranks, policy)] if ranked else []), *cells])
    gap = [Cell("")] * ranked
    fixed = map(section.best_fixed, section.scenarios)
    footer = [(Cell(FIXED), *gap, *(Cell(spread(*found), found[0]) for found in fixed))]
    name, known, note = beside.footer(section) or ("", {}, "")
    if name:
        figures = map(known.get, section.scenarios)
        footer.append((Cell(name), *gap, *(Cell("" if x is None else number(x), x) for x in figures)))
    return Table.of(
        caption(section),
        tuple(columns),
        rows,
        titles=tuple(columns.values()),
        footer=tuple(footer),
        notes=tuple(_notes(section, note, ranked=ranked)),
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
    # As it was when it was run: the policy itself may not be at hand.
    settings = next(m[0].settings for (_, who), m in section.outcomes.items() if who == policy)
    said = ((option, _setting(settings, option)) for option in section.axis)
    known = ", ".join(f"{option}={value}" for option, value in said if value not in (None, ""))
    # What is left to the policy, to decide by its backbone, has no value to be shown.
    return f"{known} (default)" if known else "default"


def colours(section: Section) -> dict[PolicySpec, int]:
    """Colour of each policy: its own wherever it appears, unless two variants would share it."""
    styles = styles_of([policy.name for policy in section.policies])
    return dict(zip(section.policies, styles, strict=True))


def regret_chart(section: Section) -> Chart:
    """Describe the curves of a section, a panel for each scenario."""
    panels = []
    for scenario in section.scenarios:
        rounds = places_of(section.rounds(scenario))
        lines = []
        for place, policy in enumerate(section.policies):
            if members := section.outcomes.get((scenario, policy)):
                # Where a policy has fewer rounds than another, its curve ends earlier.
                places, *curves = bands(members)
                mean, sd = (np.interp(rounds, places, curve, right=np.nan) for curve in curves)
                lines.append(Line(place, mean, sd))
        free = section.needs_no_context(scenario)
        tag, fixed = ("no context needed", None) if free else ("", section.best_fixed(scenario)[0])
        panels.append(Panel(scenario, rounds, tuple(lines), tag=tag, fixed=fixed))
    heading, ylabel = "Cumulative regret, mean and standard deviation", "cumulative regret, mean ± SD"
    series = tuple((row_name(section, policy), colour) for policy, colour in colours(section).items())
    return Chart(heading, series, tuple(panels), ylabel=ylabel)


def times_table(section: Section) -> Table:
    """Policies by scenarios: mean wall-clock seconds of a run."""

    def seconds(found: FinalRegret | None) -> str:
        if found is None:
            return _MISSING
        return f"{found.seconds:,.1f}" if found.seconds >= 0.1 else f"{found.seconds:.3f}"

    rows: list[Row] = [
        [_named(section, policy), *(seconds(section.cells.get((s, policy))) for s in section.scenarios)]
        for policy in section.policies
    ]
    caption = f"{section.title}: seconds a run, {section.horizon:,} rounds"
    return Table.of(caption, ("policy", *section.scenarios), rows)


def tidy_frame(sections: Sequence[Section], *, beside: Companion = NONE) -> list[dict[str, object]]:
    """Every cell of every table in a row of its own, then the best fixed arm of its scenario."""
    rows: list[dict[str, object]] = []
    for section in sections:
        for scenario in section.scenarios:
            free = str(section.needs_no_context(scenario)).lower()
            shared: dict[str, object] = {"section": section.title, "horizon": section.horizon}
            shared |= {"scenario": scenario, "rounds": section.rounds(scenario), "needs_no_context": free}
            for policy in section.policies:
                row = {**shared, "policy": policy.label, "replications": 0}
                if found := section.cells.get((scenario, policy)):
                    row |= {name: getattr(found, name) for name in _MEASURED}
                rows.append({**row, beside.name: beside.figure(policy, scenario, section.horizon)})
            mean, error = section.best_fixed(scenario)
            rows.append({**shared, "policy": FIXED, "mean": mean, "standard_error": error})
    return rows


def rank_cell(ranks: Mapping[PolicySpec, float], policy: PolicySpec) -> Cell:
    """An average rank, the lowest bold."""
    if policy not in ranks:
        return Cell(_MISSING)
    return Cell(f"{ranks[policy]:.2f}", ranks[policy], bold=ranks[policy] == min(ranks.values()))


def _regret_cell(section: Section, scenario: str, policy: PolicySpec, beside: Companion) -> Cell:
    found = section.cells.get((scenario, policy))
    if found is None:
        return Cell(_MISSING)
    theirs = None if section.axis else beside.figure(policy, scenario, section.horizon)
    text, best = spread(found.mean, found.standard_error), found.mean == section.best(scenario)
    mark = f"[{found.replications}]" if found.replications < section.replications else ""
    aside = "" if theirs is None else f"{beside.name} {number(theirs)}"
    return Cell(text, found.mean, bold=best, mark=mark, aside=aside)


def _notes(section: Section, footer: str, *, ranked: bool) -> list[str]:
    notes = ["Mean ± standard error over replications; bold: the lowest mean."]
    if ranked:
        policies, scenarios = section.comparable(section.policies)
        which = "one scenario" if len(scenarios) == 1 else f"{len(scenarios)} scenarios"
        whom = "all policies have" if len(policies) == len(section.policies) else "the policies ranked have"
        notes.append(f"Rank: average over the {which} that {whom}.")
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
    notes += [footer] if footer else []
    if any(map(section.needs_no_context, section.scenarios)):
        notes.append("†: one fixed arm loses nothing, so contexts are not needed.")
    return notes


def _named(section: Section, policy: PolicySpec) -> Cell:
    return Cell(row_name(section, policy), colour=colours(section)[policy])


def _setting(settings: Mapping[str, Any], option: str) -> object:
    """The value of an option, also where it is a field of a settings object."""
    groups = [each["settings"] for each in settings.values() if isinstance(each, dict) and "settings" in each]
    value = next((group[option] for group in (settings, *groups) if option in group), None)
    return value["name"] if isinstance(value, dict) and "name" in value else value
