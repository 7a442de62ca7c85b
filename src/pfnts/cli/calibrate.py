"""``pfnts calibrate``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from pfnts.cli.console import leave_with_failures, say, show, stoppable, whole_numbers
from pfnts.cli.options import Address, Device, EngineName, Workers, chosen_engine, option
from pfnts.cli.progress import finish_all
from pfnts.experiments import RunStore, prepare
from pfnts.experiments.calibration import SIZES, CoverageRow, CoverageSpec, coverage_rows, plan_coverage
from pfnts.experiments.jobs import Engine
from pfnts.experiments.report.coverage import coverage_table, write_calibration

QUICK_SIZES = tuple(size for size in SIZES if size <= 256)
QUICK_REPLICATIONS = 2


def calibrate(
    backbone: Annotated[
        list[str], option("Prediction model to ask; repeat for more. See **pfnts info**.")
    ] = ["linear", "embedded"],  # noqa: B006 (typer reads the default and never changes it)
    bart: Annotated[bool, option("Compare with BART, sampled by bartz; needs the extra baselines.")] = True,
    sizes: Annotated[
        str | None, option("Rows of a history, commas between them; 16,64,256,1024 if left out.")
    ] = None,
    replications: Annotated[
        int | None, option("Histories for each task and size; 10 if left out.", min=1)
    ] = None,
    seed: Annotated[int, option("The same seed gives the same histories.", min=0)] = 42,
    quick: Annotated[bool, option("A first look: 2 replications, histories of up to 256 rows.")] = False,
    out: Annotated[Path, option("Folder of finished cells, of coverage.csv, .md and pictures.")] = Path(
        "calibration"
    ),
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
    rows = whole_numbers(sizes) if sizes else QUICK_SIZES if quick else SIZES
    count = replications or (QUICK_REPLICATIONS if quick else 10)
    specs = plan_coverage(backbones=backbone, bart=bart, sizes=rows, replications=count, seed=seed)
    chosen = chosen_engine(engine, workers=workers, address=address, device=device)
    store = RunStore(out)
    found = cover(specs, store, engine=chosen, device=device)
    show(coverage_table(found))
    show(coverage_table(found, "length"))
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
