"""Writes the tables of results in README.md and results.md from the folder results of `pfnts reproduce`."""

from __future__ import annotations

import csv
import math
import sys
from itertools import zip_longest
from pathlib import Path

from pfnts.experiments.report.tables import markdown, number, spread
from pfnts.reproduction.peers import LIBRARY_NAMES
from pfnts.reproduction.published import OPENML, SYNTHETIC
from pfnts.reproduction.standing import Standing, standing_table, verdicts
from pfnts.reproduction.suites import CONTESTANTS

ROOT = Path(__file__).parent.parent
BEGIN = "<!-- results: written by docs/make_results.py -->"
END = "<!-- end of results -->"


def read(table: Path) -> list[Standing]:
    """PFN-TS as it comes, at the paper's horizon."""
    with table.open(encoding="utf-8", newline="") as file:
        listed = [row for row in csv.DictReader(file) if row["mean"] and row["horizon"] == "10000"]
    rows = [row for row in listed if row["policy"] == "pfn-ts"]
    peers: dict[str, float] = {}
    for row in listed:
        if row["policy"].partition("(")[0] in LIBRARY_NAMES:
            peers[row["scenario"]] = min(float(row["mean"]), peers.get(row["scenario"], math.inf))
    return [
        Standing(
            row["scenario"],
            float(row["mean"]),
            float(row["standard_error"] or math.nan),
            int(row["replications"]),
            peers.get(row["scenario"]),
        )
        for row in rows
        if " by " not in row["section"]
    ]


def missing(table: Path) -> str:
    """What has fewer than five replications of the paper's tasks, policy by policy."""
    made: dict[tuple[str, str], int] = {}
    with table.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if row["horizon"] == "10000" and " by " not in row["section"]:
                # With whatever settings: where a pilot chooses them, they are part of the label.
                cell = row["policy"].partition("(")[0], row["scenario"]
                made[cell] = max(made.get(cell, 0), int(row["replications"] or 0))
    tasks, said = [*SYNTHETIC, *OPENML], []
    for policy in (each.name for each in CONTESTANTS):
        counts: dict[int, list[str]] = {}
        for task in tasks:
            counts.setdefault(min(made.get((policy, task), 0), 5), []).append(task.removeprefix("openml-"))
        lacking = [
            f"{count or 'none'} on {'all' if len(where) == len(tasks) else ', '.join(where)}"
            for count, where in sorted(counts.items())
            if count < 5
        ]
        if lacking:
            said.append(f"{policy} ({'; '.join(lacking)})")
    if not said:
        return "Every policy has five replications of the paper's sixteen tasks."
    return f"Fewer than five replications of the paper's tasks: {'; '.join(said)}. All others have five."


def short(found: list[Standing]) -> str:
    """The paper's tasks, synthetic ones on the left and OpenML, if there are any, on the right."""
    by_task = {each.task: each for each in found}
    heads, rules = ["synthetic", "ours", "paper"], ["---", "---:", "---:"]
    right = OPENML if any(task in by_task for task in OPENML) else ()
    if right:
        heads += ["", "OpenML", "ours", "paper", "best of public libraries"]
        rules += ["---", "---", "---:", "---:", "---:"]
    rows = [heads]
    for one, other in zip_longest(SYNTHETIC, right):
        cells = _cells(one, by_task)
        rows.append([*cells, "", *_cells(other, by_task), _library(by_task.get(other))] if right else cells)
    lines = [f"|{'|'.join(f' {cell} ' if cell else ' ' for cell in row)}|" for row in rows]
    lines.insert(1, f"|{'|'.join(rules)}|")
    introduction = _introduction([each for each in found if each.paper is not None])
    return "\n".join([introduction, "", *lines, "", *verdicts(found)])


def long(found: list[Standing], lacking: str) -> str:
    """Every task in a row of its own, and what has not been run."""
    return "\n".join([markdown(standing_table(found)), *verdicts(found), "", lacking])


def fill(page: str, block: str) -> str:
    """Put a block between the marks of a page."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the page must have the lines {BEGIN} and {END}")
    return f"{before}{BEGIN}\n{block}\n{END}{after}"


def pages(root: Path = ROOT) -> dict[Path, str]:
    """What README.md and results.md are to be."""
    table = root / "results" / "regret.csv"
    found = read(table)
    blocks = {root / "README.md": short(found), root / "docs" / "results.md": long(found, missing(table))}
    return {path: fill(path.read_text(encoding="utf-8"), block) for path, block in blocks.items()}


def _introduction(found: list[Standing]) -> str:
    most = max(each.replications for each in found)
    fewer = [f"{each.task} {each.replications}" for each in found if each.replications < most]
    runs = f"{most} replications" + (f" ({', '.join(fewer)})" if fewer else "")
    return (
        "Final regret of PFN-TS after 10,000 rounds, or as many as a table has rows, with the network that "
        "comes in the package\nand default settings, beside the paper's, whose TabICL takes hours on a GPU: "
        f"mean ± standard error of {runs}.\nThe folder [results](results/README.md) has the other policies "
        "and tasks, times, machine and settings;\n[Results](docs/results.md) says what is missing."
    )


def _cells(task: str, found: dict[str, Standing]) -> list[str]:
    each = found.get(task)
    name = task.removeprefix("openml-")
    if each is None or each.paper is None:
        return [name, "", ""]
    return [name, spread(each.mean, each.error), number(each.paper)]


def _library(each: Standing | None) -> str:
    return "" if each is None or each.libraries is None else number(each.libraries)


if __name__ == "__main__":
    for path, text in pages().items():
        if path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            print(f"{path.relative_to(ROOT)} written", file=sys.stderr)
