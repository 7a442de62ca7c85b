"""Coverage diagnostics on the page, from the table that ``pfnts calibrate`` has written."""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from pfnts.experiments.charts import Chart, Line, Panel
from pfnts.experiments.report.page import Block, Text
from pfnts.experiments.report.tables import Cell, Table

_NOMINAL = 0.95


def coverage_blocks(path: Path) -> list[Block]:
    """Show the table, and a chart of coverage by rows where it has the columns for it."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = [row for row in csv.DictReader(file) if None not in row and None not in row.values()]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        return [Text(f"{path.name} cannot be read: {error}", "note")]
    names = [name for name in (rows[0] if rows else {}) if not name.endswith("_error")]
    words = [name for name in names if any(_number(row[name]) is None for row in rows)]
    numbers = [name for name in names if name not in words]
    table = Table(
        caption="Coverage and length of intervals, ± standard error",
        header=tuple((*words, *numbers)),
        rows=tuple(
            tuple([*(Cell(row[name]) for name in words), *(_measured(row, name) for name in numbers)])
            for row in rows
        ),
        text_columns=len(words),
    )
    return [*_chart(rows), table]


def _chart(rows: Sequence[Mapping[str, str]]) -> list[Block]:
    if not rows or not {"task", "model", "variance", "size", "coverage"} <= set(rows[0]):
        return []
    methods = list(dict.fromkeys((row["model"], row["variance"]) for row in rows))
    sizes = sorted({float(row["size"]) for row in rows})
    panels = []
    for task in dict.fromkeys(row["task"] for row in rows):
        found = {
            (row["model"], row["variance"], float(row["size"])): _number(row["coverage"])
            for row in rows
            if row["task"] == task
        }
        heights = [[found.get((*method, size)) for size in sizes] for method in methods]
        lines = [Line(i, [math.nan if y is None else y for y in ys]) for i, ys in enumerate(heights)]
        panels.append(Panel(task, sizes, tuple(lines), fixed=_NOMINAL))
    names = tuple((", ".join(method), place) for place, method in enumerate(methods))
    heading = "Share of the intervals that hold the mean reward"
    chart = Chart(
        heading, names, tuple(panels), "coverage", "rows", grows=False, log_x=True, fixed_label="nominal"
    )
    return [chart]


def _measured(row: Mapping[str, str], name: str) -> Cell:
    value, error = _number(row[name]), _number(row.get(f"{name}_error", ""))
    if value is None or (value.is_integer() and error is None):
        return Cell(row[name], value)
    return Cell(f"{value:.3f}" + ("" if error is None else f" ± {error:.3f}"), value)


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
