"""``pfnts calibrate``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from pfnts.cli.console import leave_with_failures, say, show, stoppable, whole_numbers
from pfnts.cli.engine_options import Address, Device, EngineName, Workers, chosen_engine
from pfnts.cli.progress import finish_all
from pfnts.experiments import RunStore, prepare
from pfnts.experiments.calibration import (
    SIZES,
    CoverageRow,
    CoverageSpec,
    coverage_rows,
    plan_coverage,
)
from pfnts.experiments.jobs import Engine
from pfnts.experiments.report.coverage import coverage_table, write_calibration

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
        Path, typer.Option(help="Folder of finished cells, of coverage.csv, .md and pictures.")
    ] = Path("calibration"),
    workers: Workers = None,
    engine: EngineName = "local",
    address: Address = None,
    device: Device = "cpu",
) -> None:
    """Check how often 95 % intervals for the mean reward hold it, and how long they are.

    As in the paper: arm 0 of linear and of friedman, rewards at random contexts, intervals at 50 others. Each
    backbone is asked for SubCLT intervals (subclt) and for those that PFN-TS uses unless told otherwise
    (shrunk); BART is the reference. On two cores it takes a few minutes, most of them BART's. Finished cells
    are kept in OUT: after Ctrl-C the same command goes on.
    """
    specs = plan_coverage(
        backbones=backbone,
        bart=bart,
        sizes=whole_numbers(sizes) if sizes else QUICK_SIZES if quick else SIZES,
        replications=replications or (QUICK_REPLICATIONS if quick else 10),
        seed=seed,
    )
    chosen = chosen_engine(engine, workers=workers, address=address, device=device)
    store = RunStore(out)
    rows = cover(specs, store, engine=chosen, device=device)
    show(coverage_table(rows))
    show(coverage_table(rows, "length"))
    say(f"Written to {out}: coverage.csv, coverage.md, coverage_times.csv and two pictures.")


def cover(
    specs: Sequence[CoverageSpec], store: RunStore, *, engine: Engine, device: str
) -> list[CoverageRow]:
    """Make the cells that are missing, with bars, and write table and picture beside them."""
    jobs = prepare(specs, device=device)
    with stoppable(jobs, store):
        runs, failures = finish_all(jobs, store=store, engine=engine)
    leave_with_failures(failures)
    rows = coverage_rows(specs, runs)
    write_calibration(rows, store.root)
    return rows
