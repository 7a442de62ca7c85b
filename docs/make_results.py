"""Writes the tables of results in README.md and results.md from the folder results of `pfnts reproduce`."""

from __future__ import annotations

import csv
import math
import sys
from collections.abc import Sequence
from itertools import zip_longest
from pathlib import Path
from statistics import fmean

from pfnts.experiments.report.tables import markdown, number, spread
from pfnts.reproduction.peers import LIBRARY_NAMES
from pfnts.reproduction.published import OPENML, SYNTHETIC
from pfnts.reproduction.standing import Standing, standing_table, verdicts
from pfnts.reproduction.suites import CONTESTANTS

ROOT = Path(__file__).parent.parent
BEGIN = "<!-- results: written by docs/make_results.py -->"
END = "<!-- end of results -->"


def read(results: Path) -> list[Standing]:
    """PFN-TS as it comes, at the paper's horizon."""
    peers = measured(results / "runs.csv")
    with (results / "regret.csv").open(encoding="utf-8", newline="") as file:
        return [
            Standing(
                row["scenario"],
                float(row["mean"]),
                float(row["standard_error"] or math.nan),
                int(row["replications"]),
                peers.get(row["scenario"]),
            )
            for row in csv.DictReader(file)
            if row["policy"] == "pfn-ts" and row["mean"] and row["horizon"] == "10000"
            if " by " not in row["section"]
        ]


def measured(runs: Path) -> dict[str, tuple[float, float]]:
    """By scenario the mean of PFN-TS and the lowest of libraries, on the replications that all have."""
    found: dict[str, dict[str, dict[str, float]]] = {}
    with runs.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            known = row["policy"] == "pfn-ts" or row["policy"].partition("(")[0] in LIBRARY_NAMES
            if known and row["horizon"] == "10000":
                regrets = found.setdefault(row["scenario"], {}).setdefault(row["policy"], {})
                regrets[row["replication"]] = float(row["regret"])
    pairs = {}
    for scenario, policies in found.items():
        shared = set.intersection(*map(set, policies.values()))
        if len(policies) > 1 and "pfn-ts" in policies and shared:
            means = {name: fmean(regrets[r] for r in shared) for name, regrets in policies.items()}
            pairs[scenario] = means.pop("pfn-ts"), min(means.values())
    return pairs


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
    left = _side("synthetic", SYNTHETIC, by_task)
    right = _side("OpenML", OPENML, by_task) if any(task in by_task for task in OPENML) else []
    rows = [[*one, *(["", *other] if other else [])] for one, other in zip_longest(left, right)]
    rules = ["---" if head in ("", "synthetic", "OpenML") else "---:" for head in rows[0]]
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
    results = root / "results"
    found, lacking = read(results), missing(results / "regret.csv")
    blocks = {root / "README.md": short(found), root / "docs" / "results.md": long(found, lacking)}
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


def _side(name: str, tasks: Sequence[str], found: dict[str, Standing]) -> list[list[str]]:
    """A heading and a row for each task; libraries only where there are any."""
    known = [found.get(task) for task in tasks]
    libraries = any(each is not None and each.libraries is not None for each in known)
    rows = [[name, "ours", "paper", *(["best of public libraries"] if libraries else [])]]
    for task, each in zip(tasks, known, strict=True):
        cells = ["", "", ""]
        if each is not None and each.paper is not None:
            theirs = "" if each.libraries is None else number(each.libraries)
            cells = [spread(each.mean, each.error), number(each.paper), theirs]
        rows.append([task.removeprefix("openml-"), *cells[: 3 if libraries else 2]])
    return rows


if __name__ == "__main__":
    for path, text in pages().items():
        if path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            print(f"{path.relative_to(ROOT)} written", file=sys.stderr)
