"""Coverage diagnostics as text and as a picture."""

from __future__ import annotations

import csv
import io
import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from pfnts.experiments.calibration import LEVEL, CoverageRow
from pfnts.experiments.charts import COLOURS
from pfnts.experiments.figures import new_figure, plain, save
from pfnts.experiments.files import write_file

_MARKERS = {"subclt": "o", "shrunk": "s", "mcmc": "D"}


def by_method(rows: Iterable[CoverageRow]) -> dict[tuple[str, str], dict[int, CoverageRow]]:
    """Group rows by task and method, in the order they come, and each group by size."""
    groups: dict[tuple[str, str], dict[int, CoverageRow]] = {}
    for row in rows:
        groups.setdefault((row.task, row.method), {})[row.size] = row
    return groups


def coverage_markdown(rows: Sequence[CoverageRow]) -> str:
    """Rows as a Markdown page of two tables, coverage and length.

    Examples
    --------
    >>> row = CoverageRow("linear", "bart", "mcmc", 16, 10, 0.934, 0.021, 2.5, 0.125, 1.0)
    >>> print(coverage_markdown([row]).splitlines()[6])
    | linear | BART | 0.934 ± 0.021 |
    """
    sizes = sorted({row.size for row in rows})
    header = [
        f"| task | method | {' | '.join(f'n = {size:,}' for size in sizes)} |",
        "|---|---" + "|---:" * len(sizes) + "|",
    ]
    lines = [f"# Nominal {LEVEL:.0%} intervals for the mean reward", ""]
    for title, value, error in (
        ("Share that hold it", "coverage", "coverage_error"),
        ("Mean length", "length", "length_error"),
    ):
        lines += [f"{title}, ± standard error:", "", *header]
        for (task, method), group in by_method(rows).items():
            cells = [
                _with_error(getattr(group[size], value), getattr(group[size], error)) if size in group else ""
                for size in sizes
            ]
            lines.append(f"| {task} | {method} | {' | '.join(cells)} |")
        lines.append("")
    return "\n".join(lines)


def write_calibration(rows: Sequence[CoverageRow], out: Path) -> None:
    """Write table and picture into a folder, and the seconds to a file of their own.

    So ``coverage.csv`` is the same, byte for byte, whenever the rows are, however long they took.
    """
    names = [field.name for field in fields(CoverageRow)]
    write_file(out / "coverage.csv", _csv(rows, names[:-1]))
    write_file(out / "coverage_times.csv", _csv(rows, [*names[:5], "seconds"]))
    write_file(out / "coverage.md", coverage_markdown(rows))
    coverage_figure(rows, out / "coverage.png")


def coverage_figure(rows: Sequence[CoverageRow], path: str | os.PathLike[str]) -> Path:
    """Draw coverage against mean length, a panel for each task and a line for each method, and save it.

    The number beside a mark is the size of the history. A method is good if its line stays at the nominal
    coverage, and the better the farther left it is.

    Parameters
    ----------
    rows
        What `calibrate` gave.
    path
        Where the picture goes; its suffix decides the format.
    """
    if not rows:
        raise ValueError("rows must hold at least one row, got none")
    tasks = list(dict.fromkeys(row.task for row in rows))
    models = list(dict.fromkeys(row.model for row in rows))
    figure = new_figure(width=1.2 + 5.2 * len(tasks), height=4.8, arranged=True)
    panels = figure.subplots(1, len(tasks), squeeze=False, sharey=True)[0]
    lowest = min(row.coverage for row in rows)
    for panel, task in zip(panels, tasks, strict=True):
        panel.axhline(LEVEL, color="#777777", linewidth=1, linestyle=(0, (4, 3)))
        for (_, method), group in by_method(row for row in rows if row.task == task).items():
            _draw(panel, list(group.values()), label=plain(method), models=models)
        panel.set(title=task, xlabel="mean length of the intervals", xscale="log")
        _plain_ticks(panel)
        panel.spines[["top", "right"]].set_visible(False)
    panels[0].set(ylabel="share that hold the mean reward", ylim=(max(0.0, lowest - 0.05), 1.02))
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=min(len(labels), 5), frameon=False)
    return save(figure, path)


def _csv(rows: Iterable[CoverageRow], names: Sequence[str]) -> str:
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, names, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(asdict(row) for row in rows)
    return buffer.getvalue()


def _draw(panel: Any, rows: list[CoverageRow], *, label: str, models: list[str]) -> None:
    model, variance = rows[0].model, rows[0].variance
    colour = "#444444" if model == "bart" else COLOURS[models.index(model) % len(COLOURS)]
    panel.plot(
        [row.length for row in rows],
        [row.coverage for row in rows],
        color=colour,
        linestyle=":" if variance == "subclt" else "-",
        linewidth=1.4,
        marker=_MARKERS.get(variance, "o"),
        markersize=5,
        markerfacecolor="white" if variance == "subclt" else colour,
        label=label,
    )
    # The two variances of a backbone are often close: one has its sizes above, the other below.
    below = variance == "shrunk"
    for row in rows:
        panel.annotate(
            f"{row.size:,}",
            (row.length, row.coverage),
            xytext=(0, -6 if below else 6),
            textcoords="offset points",
            ha="center",
            va="top" if below else "bottom",
            fontsize=7,
            color=colour,
        )


def _plain_ticks(panel: Any) -> None:
    """Lengths as 0.5, 1, 2 and not as powers of ten."""
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    panel.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    panel.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    panel.xaxis.set_minor_formatter(NullFormatter())


def _with_error(value: float, error: float) -> str:
    return f"{value:.3f}" if math.isnan(error) else f"{value:.3f} ± {error:.3f}"
