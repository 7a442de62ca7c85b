"""``pfnts calibrate``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from pfnts import backbones
from pfnts.cli.console import console, plain_errors
from pfnts.cli.engine_options import Workers
from pfnts.experiments.calibration import LEVEL, SIZES, TASKS, CoverageRow
from pfnts.experiments.calibration import calibrate as run
from pfnts.experiments.calibration_cells import calibrate_cells
from pfnts.experiments.calibration_report import (
    by_method,
    coverage_figure,
    coverage_markdown,
    write_coverage_csv,
)
from pfnts.experiments.provenance import cores

QUICK_SIZES = tuple(size for size in SIZES if size <= 256)
QUICK_REPLICATIONS = 2


def calibrate(
    backbone: Annotated[
        list[str], typer.Option(help="Prediction model to ask; repeat for more. See **pfnts info**.")
    ] = ["linear", "embedded"],  # noqa: B006 (typer reads the default and never changes it)
    bart: Annotated[
        bool, typer.Option(help="Compare with BART, sampled by bartz; needs the extra baselines.")
    ] = True,
    sizes: Annotated[
        str | None, typer.Option(help="Rows of a history, commas between them; 16,64,256,1024 if left out.")
    ] = None,
    replications: Annotated[
        int | None, typer.Option(min=1, help="Histories for each task and size; 10 if left out.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same histories.")] = 42,
    quick: Annotated[
        bool, typer.Option(help="A first look: 2 replications, histories of up to 256 rows.")
    ] = False,
    out: Annotated[
        Path, typer.Option(help="Folder for coverage.csv, .md and .png, and coverage_times.csv.")
    ] = Path("calibration"),
    workers: Workers = None,
) -> None:
    """Check how often 95 % intervals for the mean reward hold it, and how long they are.

    As in the paper: arm 0 of linear and of friedman, rewards at random contexts, intervals at 50 others. Each
    backbone is asked for SubCLT intervals (subclt) and for those that PFN-TS uses unless told otherwise
    (shrunk); BART is the reference. On two cores it takes a few minutes, most of them BART's.
    """
    chosen = _sizes(sizes, quick=quick)
    count = replications or (QUICK_REPLICATIONS if quick else 10)
    with plain_errors(ValueError, ImportError, OSError):
        rows = calibrated_with_bar(
            backbone, bart=bart, sizes=chosen, replications=count, seed=seed, workers=workers
        )
        console.print(coverage_table(rows))
        console.print(
            f"Share of the intervals that hold the mean reward, nominally {LEVEL:.2f}; their mean length.",
            style="dim",
        )
        write_calibration(rows, out)
    console.print(f"Written to [bold]{out}[/]: coverage.csv, coverage.md, coverage.png, coverage_times.csv.")


def write_calibration(rows: Sequence[CoverageRow], out: Path) -> None:
    """Write table and picture into a folder."""
    out.mkdir(parents=True, exist_ok=True)
    write_coverage_csv(rows, out / "coverage.csv")
    (out / "coverage.md").write_text(coverage_markdown(rows), encoding="utf-8")
    coverage_figure(rows, out / "coverage.png")


def coverage_table(rows: Sequence[CoverageRow]) -> Table:
    """Rows for a terminal."""
    sizes = sorted({row.size for row in rows})
    table = Table(
        box=SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
        title=f"Nominal {LEVEL:.0%} intervals, {rows[0].replications} replications",
    )
    table.add_column("task", no_wrap=True)
    table.add_column("method", no_wrap=True)
    for size in sizes:
        table.add_column(f"n = {size:,}", justify="right", no_wrap=True)
    before = ""
    for (task, method), group in by_method(rows).items():
        if before not in ("", task):
            table.add_section()
        cells = [
            f"{group[size].coverage:.2f}, {group[size].length:.2f}" if size in group else "" for size in sizes
        ]
        table.add_row("" if task == before else task, method, *cells)
        before = task
    return table


def calibrated_with_bar(
    names: Sequence[str],
    *,
    bart: bool,
    sizes: Sequence[int],
    replications: int,
    seed: int,
    workers: int | None = None,
) -> list[CoverageRow]:
    """Calibrate with a bar that says what is under way, or with several workers what is done."""
    # A mistake in a name shows here, not in another process.
    loaded = [backbones.load(name) for name in dict.fromkeys(names)]
    at_a_time = min(workers or cores(), len(TASKS) * len(sizes))
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        bar = progress.add_task("")
        if at_a_time > 1:
            progress.update(bar, total=len(TASKS) * len(sizes), description="coverage of intervals")
            return calibrate_cells(
                backbones=list(dict.fromkeys(names)),
                bart=bart,
                sizes=sizes,
                replications=replications,
                seed=seed,
                workers=at_a_time,
                listener=lambda task, size: progress.update(
                    bar, advance=1, description=f"{task}, {size:,} rows, done"
                ),
            )
        progress.update(bar, total=len(TASKS) * len(sizes) * replications * (len(loaded) + bart))
        begun = 0

        def listener(task: str, size: int, number: int, model: str) -> None:
            nonlocal begun
            # What comes next is announced, so that all before it are done.
            description = f"{task}, {size:,} rows, replication {number + 1}, {model}"
            progress.update(bar, completed=begun, description=description)
            begun += 1

        return run(
            backbones=loaded, bart=bart, sizes=sizes, replications=replications, seed=seed, listener=listener
        )


def _sizes(text: str | None, *, quick: bool) -> Sequence[int]:
    if text is None:
        return QUICK_SIZES if quick else SIZES
    with plain_errors(ValueError):
        try:
            return [int(number) for number in text.split(",")]
        except ValueError:
            raise ValueError(
                f"--sizes must be whole numbers with commas between them, got {text!r}"
            ) from None
