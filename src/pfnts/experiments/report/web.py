"""The report as a page to look at."""

from __future__ import annotations

import csv
import math
import os
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from pfnts.experiments.outcomes import bands, places_of
from pfnts.experiments.report import tables
from pfnts.experiments.report.contents import (
    colours,
    paper_ranks,
    paper_tables,
    regret_table,
    row_name,
    times_table,
)
from pfnts.experiments.report.page import Part, board, board_place, curve_panel, image, line, write_page
from pfnts.experiments.report.sections import Section

_ABOUT = (
    "Regret is the mean reward lost against the best arm of each round (on OpenML tasks: the number of wrong "
    "classes), summed over rounds. Tables show the mean and its standard error over replications; curves "
    "show the mean and a band of one standard deviation. All policies meet the same contexts and the same "
    "luck in a replication.",
    "Click on a column's name to sort by it. Point at a curve, or reach it by the Tab key and use the arrow "
    "keys, to read the values of all policies at a round; click on a policy in the legend to hide it.",
)


def write_index(
    path: str | os.PathLike[str],
    sections: Sequence[Section],
    *,
    notes: Sequence[str],
    machines: str,
    coverage: Path | None,
) -> Path:
    """Write the page.

    Parameters
    ----------
    path
        Where it goes.
    sections
        What it shows.
    notes
        Sentences on what was set aside.
    machines
        On what the times were measured; may be empty.
    coverage
        Table of interval coverage, a picture of the same name beside it; None shows neither.
    """
    boards: list[dict[str, Any]] = []
    parts: list[Part] = []
    several = len({section.horizon for section in sections}) > 1
    for section in (section for section in sections if not section.axis):
        parts.append(_comparison(section, boards, several=several))
    if beside := paper_tables(sections):
        parts.append(Part("Beside the paper", _beside(paper_ranks(sections), beside), "Paper"))
    varied = [section for section in sections if section.axis]
    if varied:
        body = "".join(_variants(section, boards) for section in varied)
        parts.append(Part("Variants", "<p>One policy as it comes and with other options.</p>" + body))
    if coverage is not None:
        parts.append(Part("Coverage of intervals", _coverage(coverage), "Coverage"))
    times = "".join(tables.html(times_table(section)) for section in sections)
    where = (
        f"<p class=note>Measured on {escape(machines)}; other work may have run beside it.</p>"
        if machines
        else ""
    )
    if times:
        parts.append(Part("Time", times + where))
    about = "".join(f"<p>{escape(text)}</p>" for text in (*_ABOUT, *notes))
    parts.append(Part("How to read this page", about, "About"))
    return write_page(
        path, title="Regret of bandit policies", lead=_lead(sections), parts=parts, boards=boards
    )


def regret_board(section: Section) -> dict[str, Any]:
    """Describe the curves of a section, a panel for each scenario."""
    place = {policy: i for i, policy in enumerate(section.policies)}
    panels = []
    for scenario in section.scenarios:
        rounds = places_of(section.rounds(scenario))
        lines = []
        for policy in section.policies:
            members = section.outcomes.get((scenario, policy))
            if members:
                # Where a policy has fewer rounds than another, its curve ends earlier.
                places, *curves = bands(members)
                mean, spread = (np.interp(rounds, places, curve, right=np.nan) for curve in curves)
                lines.append(line(place[policy], mean, spread=spread))
        free = section.needs_no_context(scenario)
        panels.append(
            curve_panel(
                scenario,
                rounds,
                lines,
                tag="no context needed" if free else "",
                fixed=None if free else section.best_fixed(scenario)[0],
            )
        )
    labels = [(row_name(section, policy), colours(section)[policy]) for policy in section.policies]
    return board(labels=labels, panels=panels, ylabel="cumulative regret", regret=True)


def _comparison(section: Section, boards: list[dict[str, Any]], *, several: bool) -> Part:
    boards.append(regret_board(section))
    title = f"{section.title}, {section.horizon:,} rounds" if several else section.title
    return Part(title, tables.html(regret_table(section)) + _place(len(boards) - 1), title.split(" of ")[0])


def _variants(section: Section, boards: list[dict[str, Any]]) -> str:
    boards.append(regret_board(section))
    curves = (
        f"<details><summary>Curves of {escape(section.title)}</summary>{_place(len(boards) - 1)}</details>"
    )
    return tables.html(regret_table(section)) + curves


def _place(number: int) -> str:
    return board_place(number, instead="The curves need JavaScript; they are in the folder figures, too.")


def _beside(ranks: tables.Table | None, by_policy: Mapping[str, tables.Table]) -> str:
    shown = "" if ranks is None else tables.html(ranks)
    first, *others = by_policy
    shown += tables.html(by_policy[first])
    for name in others:
        shown += f"<details><summary>{name}</summary>{tables.html(by_policy[name])}</details>"
    return shown


def _coverage(path: Path) -> str:
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    names = [name for name in (rows[0] if rows else {}) if not name.endswith("_error")]
    words = [name for name in names if any(_number(row[name]) is None for row in rows)]
    numbers = [name for name in names if name not in words]
    table = tables.Table(
        caption="Coverage and length of intervals, ± standard error",
        header=tuple((*words, *numbers)),
        rows=tuple(
            tuple([*(tables.Cell(row[name]) for name in words), *(_measured(row, name) for name in numbers)])
            for row in rows
        ),
        text_columns=len(words),
    )
    pictures = [path.with_suffix(suffix) for suffix in (".svg", ".png")]
    shown = [image(file, caption="Coverage against length") for file in pictures if file.exists()]
    return "".join(shown[:1]) + tables.html(table)


def _measured(row: Mapping[str, str], name: str) -> tables.Cell:
    value, error = _number(row[name]), _number(row.get(f"{name}_error", ""))
    if value is None or (value.is_integer() and error is None):
        return tables.Cell(row[name], value)
    return tables.Cell(f"{value:.3f}" + ("" if error is None else f" ± {error:.3f}"), value)


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _lead(sections: Sequence[Section]) -> str:
    if not sections:
        return "Intervals only; no policy has been run yet."
    runs = {
        outcome.spec for section in sections for members in section.outcomes.values() for outcome in members
    }
    main = [section for section in sections if not section.axis]
    scenarios = {name for section in main for name in section.scenarios}
    policies = {policy for section in main for policy in section.policies}
    counts = [
        (len(policies), "policy", "policies"),
        (len(scenarios), "scenario", "scenarios"),
        (len(runs), "run", "runs"),
    ]
    text = ", ".join(f"{count:,} {one if count == 1 else many}" for count, one, many in counts)
    return f"{text}. Lower regret is better."
