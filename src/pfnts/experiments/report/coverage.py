"""Coverage diagnostics as tables, charts and files."""

from __future__ import annotations

import csv
import math
import os
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from pfnts.experiments.calibration import LEVEL, CoverageRow
from pfnts.experiments.charts import Chart, Line, Panel
from pfnts.experiments.figures import figure_of, save
from pfnts.experiments.report.tables import Table, csv_text, markdown
from pfnts.files import write_file

_NAMES = [field.name for field in fields(CoverageRow)]
_SHOWN = {"coverage": "share that hold the mean reward", "length": "mean length"}


def coverage_table(rows: Sequence[CoverageRow], measure: str = "coverage") -> Table:
    """Methods by rows of the history, "coverage" or "length", ± standard error."""
    sizes = sorted({row.size for row in rows})
    found = {(row.task, row.method, row.size): row for row in rows}
    listed = [
        (task, method, *(_words(found.get((task, method, size)), measure) for size in sizes))
        for task, method in dict.fromkeys((row.task, row.method) for row in rows)
    ]
    caption = f"Nominal {LEVEL:.0%} intervals, {rows[0].replications} replications: {_SHOWN[measure]}"
    return Table.of(caption, ("task", "method", *(f"n = {size:,}" for size in sizes)), listed, words=2)


def coverage_chart(rows: Sequence[CoverageRow], measure: str = "coverage") -> Chart:
    """Coverage, or length on logarithmic axes, over the rows of the history, a panel for each task."""
    sizes = sorted({row.size for row in rows})
    methods = list(dict.fromkeys(row.method for row in rows))
    found = {(row.task, row.method, row.size): row for row in rows}
    share, shown, panels = measure == "coverage", (measure, f"{measure}_error"), []
    for task in dict.fromkeys(row.task for row in rows):
        lines = []
        for place, method in enumerate(methods):
            cells = [found.get((task, method, size)) for size in sizes]
            lines.append(Line(place, *([getattr(cell, name, math.nan) for cell in cells] for name in shown)))
        panels.append(Panel(task, sizes, tuple(lines), fixed=LEVEL if share else None))
    heading = f"Nominal {LEVEL:.0%} intervals: {_SHOWN[measure]}, and standard error"
    series = tuple((method, place) for place, method in enumerate(methods))
    axes: dict[str, Any] = {"ylabel": measure, "xlabel": "rows", "first": 1, "log_x": True}
    return Chart(heading, series, tuple(panels), **axes, grows=not share, fixed_label="nominal")


def coverage_figure(rows: Sequence[CoverageRow], path: str | os.PathLike[str]) -> Path:
    """Draw what `calibrate` gave: coverage over the rows of the history, a panel for each task.

    A method is good if its coverage stays at the nominal one, and the better the shorter its intervals are:
    their lengths go to a picture beside it, ``_length`` in its name. The suffix of ``path`` is the format.
    """
    if not rows:
        raise ValueError("rows must hold at least one row, got none")
    path = Path(path)
    save(figure_of(coverage_chart(rows, "length")), path.with_stem(f"{path.stem}_length"))
    return save(figure_of(coverage_chart(rows)), path)


def write_calibration(rows: Sequence[CoverageRow], out: Path) -> None:
    """Write tables and pictures into a folder, and the seconds to a file of their own.

    So ``coverage.csv`` is the same, byte for byte, whenever the rows are, however long they took.
    """
    write_coverage(rows, out)
    write_file(out / "coverage_times.csv", csv_text(map(vars, rows), [*_NAMES[:5], "seconds"], digits=9))
    coverage_figure(rows, out / "coverage.png")


def write_coverage(rows: Sequence[CoverageRow], out: Path) -> None:
    """Write the tables alone."""
    write_file(out / "coverage.csv", csv_text(map(vars, rows), _NAMES[:-1], digits=9))
    write_file(out / "coverage.md", "\n".join(markdown(coverage_table(rows, each)) for each in _SHOWN))


def find_coverage(root: Path) -> Path | None:
    """Where ``coverage.csv`` is in a folder of runs, or in a folder ``coverage`` or ``calibration`` of it."""
    places = (root / name / "coverage.csv" for name in ("", "coverage", "calibration"))
    return next((place for place in places if place.is_file()), None)


def read_coverage(path: Path) -> list[CoverageRow]:
    """Read back ``coverage.csv``; the seconds are elsewhere, and NaN here."""

    def row(line: dict[str, str]) -> CoverageRow:
        # A cell that is missing, and not empty, is an error: the line ends early.
        task, model, variance, size, replications, *measures = (line[name].strip() for name in _NAMES[:-1])
        numbers = [float(cell or "nan") for cell in (*measures, "")]
        return CoverageRow(task, model, variance, int(size), int(replications), *numbers)

    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = list(map(row, csv.DictReader(file)))
        if not rows:
            raise ValueError("no rows")
    except (OSError, KeyError, ValueError, TypeError, AttributeError, csv.Error) as error:
        raise ValueError(f"{path} must be a table of pfnts calibrate, got {error!r}") from error
    return rows


def _words(row: CoverageRow | None, measure: str) -> str:
    if row is None:
        return ""
    error = getattr(row, f"{measure}_error")
    return f"{getattr(row, measure):.3f}" + ("" if math.isnan(error) else f" ± {error:.3f}")
