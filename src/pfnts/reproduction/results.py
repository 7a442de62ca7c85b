"""``write_results``: tables worth keeping beside the code, and a page that says how they were made."""

from __future__ import annotations

import csv
import json
import math
import os
from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path

from pfnts.experiments import CoverageRow, RunStore
from pfnts.experiments.figures import figure_of, save
from pfnts.experiments.files import folder_at
from pfnts.experiments.outcomes import Outcome, read_outcomes
from pfnts.experiments.report import tables
from pfnts.experiments.report.contents import Companion, regret_chart
from pfnts.experiments.report.coverage import find_coverage, read_coverage, write_coverage
from pfnts.experiments.report.sections import Section, organize
from pfnts.experiments.report.tables import Table, markdown_text, number
from pfnts.experiments.report.writer import figure_name, nothing_finished, write_tables
from pfnts.files import write_file
from pfnts.reproduction.drinkless import CONTESTANTS
from pfnts.reproduction.kept import CURVES, SETTINGS, accumulate, keep, read_kept, software
from pfnts.reproduction.paper import PAPER
from pfnts.reproduction.peers import LIBRARY_NAMES
from pfnts.reproduction.standing import standing_table, standings, verdicts

_FILES = {
    "regret": "final regret: mean ± standard error, the lowest in bold, the average rank",
    "paper": "our regret beside the paper's, policy by policy",
    "libraries": "PFN-TS beside public libraries, with their defaults and the best of a grid",
    "drinkless-values": "off-policy evaluation on the Drink Less trial: values, weights, leads",
    "coverage": "95 % intervals: how often they hold the mean reward, and how long they are",
    "times": "mean wall-clock seconds of a run",
    "runs": "every run: its regret, rounds, seconds, where it was made, by which version and weights",
}
_BESIDE_RUNS = {CURVES: "regret of each run at about a hundred rounds", SETTINGS: "settings, by their hash"}
_TRIAL = "drinkless-values.csv"


def write_results(
    root: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    figures: bool = True,
    beside: Companion = PAPER,
) -> Path:
    """Write the tables of a report, a row for every run, a page of curves for each table and a README.

    Takes what `pfnts.experiments.report.write_report` takes, and returns the path of ``README.md``. Runs that
    ``out`` has from before, and ``root`` has not, are kept: see `pfnts.reproduction.kept.accumulate`.
    """
    store, out = RunStore(root), folder_at(out, name="the place of the results")
    outcomes, notes = read_outcomes(store)
    if not outcomes:
        raise nothing_finished(store.root, notes)
    outcomes, said = accumulate(read_kept(out), outcomes)
    keep(outcomes, out)
    # As they were written, so that results made in steps are those that are made at once.
    outcomes = read_kept(out)
    sections = _organized(outcomes)
    write_tables(out, sections, beside)
    rows = _coverage(store.root, out)
    if rows:
        write_coverage(rows, out)
    missing = beside.missing({each.spec for each in outcomes}, coverage=bool(rows))
    if (out / _TRIAL).is_file():
        missing = [text for text in missing if not text.startswith("Drink Less")] + [_trial(out / _TRIAL)]
    notes += [*said, *missing]
    if figures:
        drawn = beside.compared(_organized(filter(_pictured, outcomes)))
        for section in drawn:
            save(figure_of(regret_chart(section)), out / _picture(section))
        # A picture of earlier runs, whose curves are no longer known, would not be of these.
        for name in {*map(_picture, sections)} - {*map(_picture, drawn)}:
            (out / name).unlink(missing_ok=True)
    return write_file(out / "README.md", _readme(sections, outcomes, notes, out))


def busy(spans: Iterable[tuple[float, float]]) -> float:
    """Seconds during which at least one of the spans lasted.

    Examples
    --------
    >>> busy([(0.0, 10.0), (5.0, 12.0), (20.0, 21.0)])
    13.0
    """
    total, until = 0.0, -math.inf
    for begin, end in sorted(spans):
        total += max(0.0, end - max(begin, until))
        until = max(until, end)
    return total


def _organized(outcomes: Iterable[Outcome]) -> list[Section]:
    return organize(outcomes, titles=PAPER.titles, family=PAPER.family)


def _pictured(outcome: Outcome) -> bool:
    """Libraries have a table: with their curves, too, nobody could tell one from another."""
    return outcome.has_curve and outcome.spec.policy.name not in LIBRARY_NAMES


def _coverage(root: Path, out: Path) -> list[CoverageRow]:
    """Rows of earlier results, those at hand in their place and after them."""
    places = [out / "coverage.csv", find_coverage(root)]
    read = [row for place in places if place is not None and place.is_file() for row in read_coverage(place)]
    return list({(row.task, row.method, row.size): row for row in read}.values())


def _trial(path: Path) -> str:
    """Say which policies were replayed on the trial, PFN-TS with which weights, and which were not."""
    with path.open(encoding="utf-8", newline="") as file:
        found = {row["policy"]: row.get("backbone") for row in csv.DictReader(file)}
    said = ", ".join(f"{name} (backbone {by})" if by else name for name, by in found.items())
    lacking = [policy.name for policy in CONTESTANTS if policy.name not in found]
    return f"Drink Less trial: {said}" + (f"; missing: {', '.join(lacking)}." if lacking else ".")


def _readme(sections: Sequence[Section], made: Sequence[Outcome], notes: Sequence[str], out: Path) -> str:
    lines = [
        "# Results",
        "",
        "Written by `pfnts reproduce report --out RUNS --results DIR` from finished runs; nothing here is "
        "edited by hand. What the columns mean is in [the report](../docs/report.md), how to make the runs "
        "in [Reproduce the paper](../docs/reproduce.md).",
        "",
    ]
    found = standings(sections)
    if found:
        lines += [tables.markdown(standing_table(found)), *_paragraphs(verdicts(found))]
    lines += ["## How they were made", "", tables.markdown(_machines(made))]
    lines += _paragraphs([_software(made), *notes])
    settings = {(each.spec.policy.label, json.dumps(each.settings)) for each in made if each.settings}
    listed = sorted(f"- {markdown_text(policy)}: `{found}`" for policy, found in settings)
    lines += ["Settings, defaults included:", "", *listed, ""]
    lines += ["## Files", "", "| file | what it holds |", "|---|---|"]
    for name, about in _FILES.items():
        suffixes = [s for s in ("md", "csv", "tex") if (out / f"{name}.{s}").is_file()]
        if suffixes:
            lines.append(f"| {', '.join(f'[{name}.{s}]({name}.{s})' for s in suffixes)} | {about} |")
    lines += [f"| [{name}]({name}) | {about} |" for name, about in _BESIDE_RUNS.items()]
    for section in sections:
        if (out / (picture := _picture(section))).is_file():
            lines.append(f"| [{picture}]({picture}) | regret curves: {section.title} |")
    return "\n".join([*lines, ""])


def _picture(section: Section) -> str:
    return f"{figure_name(section)}-{section.horizon}.png"


def _machines(made: Sequence[Outcome]) -> Table:
    groups: dict[str, dict[str, list[Outcome]]] = {}
    for each in made:
        groups.setdefault(each.machine, {}).setdefault(each.spec.policy.label, []).append(each)
    rows = []
    for machine, policies in sorted(groups.items()):
        rows += [_machine_row(machine, policy, members) for policy, members in sorted(policies.items())]
        if len(policies) > 1:
            rows.append(_machine_row(machine, "all", [each for some in policies.values() for each in some]))
    header = ("machine", "policy", "day", "runs", "seconds of all runs", "wall-clock seconds")
    note = "Wall-clock: while at least one of these was under way; others may have run beside them."
    return Table.of("Where the runs were made", header, rows, words=3, notes=(note,))


def _machine_row(machine: str, policy: str, members: Sequence[Outcome]) -> tuple[str, ...]:
    known = [(each.seconds, each.about["finished"]) for each in members if "finished" in each.about]
    # Of some runs only the day is on record.
    ends = [(took, datetime.fromisoformat(end).timestamp()) for took, end in known if "T" in end]
    spans = [(end - took, end) for took, end in ends]
    days = sorted(end[:10] for _, end in known)
    return (
        machine,
        policy,
        " to ".join(dict.fromkeys([days[0], days[-1]])) if days else "",
        str(len(members)),
        number(sum(each.seconds for each in members)),
        number(busy(spans)) if len(spans) == len(members) else "",
    )


def _software(made: Sequence[Outcome]) -> str:
    described = set()
    for each in made:
        backbone = each.about.get("producer", {}).get("backbone")
        described.add(", ".join(filter(None, [software(each), backbone and f"backbone {backbone}"])))
    seeds = sorted({each.spec.seed for each in made})
    return f"Software: {'; '.join(sorted(described))}. Seed: {', '.join(map(str, seeds))}."


def _paragraphs(sentences: Iterable[str]) -> list[str]:
    return [line for sentence in sentences for line in (markdown_text(sentence), "")]
