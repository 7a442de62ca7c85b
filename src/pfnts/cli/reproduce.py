"""``pfnts reproduce``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from pfnts.cli.calibrate import QUICK_REPLICATIONS, QUICK_SIZES, calibrated_with_bar, write_calibration
from pfnts.cli.console import console, explain_failures, plain_errors, stoppable
from pfnts.cli.devices import check_device
from pfnts.cli.engine_options import Address, Data, Device, EngineName, Workers
from pfnts.cli.progress import run_with_bars
from pfnts.cli.tables import obtainable
from pfnts.experiments import FailedRunsError, PolicySpec, RunSpec, RunStore, engines
from pfnts.experiments.calibration import ESTIMATORS, SIZES
from pfnts.experiments.engines import Engine
from pfnts.experiments.provenance import versions
from pfnts.experiments.report import write_report
from pfnts.experiments.reproduce import TARGETS, reproduction
from pfnts.experiments.threads import one_thread
from pfnts.posterior import described, load

SEED = 42
_CALIBRATED = ("linear", "embedded")


def reproduce(
    target: Annotated[str, typer.Argument(help=f"What to give back: {', '.join(TARGETS)}.")],
    quick: Annotated[
        bool, typer.Option("--quick", help="A first look: 500 rounds, 2 replications, under 20 minutes.")
    ] = False,
    policy: Annotated[
        list[str] | None,
        typer.Option(
            help="Run only this policy, or your own `module.Class`; repeat for more. All when left out."
        ),
    ] = None,
    replications: Annotated[
        int | None, typer.Option(min=1, help="Independent runs of each; 5, or 2 with --quick, when left out.")
    ] = None,
    slow: Annotated[
        bool | None,
        typer.Option(help="Run bf-ts and neural-ts, which take hours; yes unless --quick when left out."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder of runs and report; runs/paper or runs/quick when left out."),
    ] = None,
    figures: Annotated[
        bool, typer.Option(help="Draw the figures for papers and slides; the page has curves of its own.")
    ] = True,
    workers: Workers = None,
    engine: EngineName = "local",
    address: Address = None,
    device: Device = "cpu",
    data: Data = None,
) -> None:
    """Give back the tables and figures of the paper, and ours beside them.

    Runs what is missing in the folder OUT, five replications of 10,000 rounds with seed 42, and writes the
    report to OUT/report: tables, curves, our numbers beside the paper's. Stop it at any time: the same
    command goes on. More replications or policies add to what is there.
    """
    with plain_errors(ValueError, ImportError):
        wanted = reproduction(
            target, quick=quick, policies=policy or (), replications=replications, slow=slow
        )
        chosen = engines.make(engine, workers=workers, address=address)
        if address is None:
            check_device(device)  # of a cluster elsewhere the engine asks
        store = RunStore(out or Path("runs/quick" if quick else "runs/paper"))
        for note in wanted.notes:
            console.print(f"[yellow]Note:[/] {note}", soft_wrap=True, highlight=False)
        specs = obtainable(wanted.specs, store, data=data)
    with stoppable(specs, store):
        if wanted.coverage:
            cover(store.root / "coverage", quick=quick, workers=workers)
        failures = make_missing(specs, store, engine=chosen, data=data, device=device)
        with plain_errors(ValueError, ImportError, OSError):
            page = write_report(store.root, figures=figures)
    console.print(f"The report is in [bold]{page}[/].", soft_wrap=True)
    if failures is not None:
        explain_failures(failures)
        raise typer.Exit(1)


def make_missing(
    specs: Sequence[RunSpec], store: RunStore, *, engine: Engine, data: Path | None, device: str
) -> FailedRunsError | None:
    """Make the runs that the store lacks, one thread each; return what failed, if anything did."""
    try:
        with plain_errors(engines.UnusableDeviceError):
            for _ in run_with_bars(specs, store=store, engine=engine, data=data, device=device):
                pass
    except FailedRunsError as error:
        return error
    return None


def cover(out: Path, *, quick: bool, workers: int | None) -> None:
    """Make the coverage diagnostics, unless those in the folder were made the same way."""
    sizes, replications = (QUICK_SIZES, QUICK_REPLICATIONS) if quick else (SIZES, 10)
    made = {
        "sizes": list(sizes),
        "replications": replications,
        "seed": SEED,
        "backbones": [PolicySpec.of("pfn-ts", backbone=name).backbone() for name in _CALIBRATED],
        "estimators": [described(load(name)) for name in ESTIMATORS],
        "pfnts": versions()["pfnts"],
    }
    finished = out / "made.json"
    if finished.is_file() and json.loads(finished.read_text(encoding="utf-8")) == made:
        console.print("Coverage diagnostics were made before.")
        return
    finished.unlink(missing_ok=True)
    with plain_errors(ValueError, ImportError, OSError), one_thread():
        rows = calibrated_with_bar(
            _CALIBRATED, bart=True, sizes=sizes, replications=replications, seed=SEED, workers=workers
        )
        write_calibration(rows, out)
    # Last, so that what a killed process has left is made anew.
    finished.write_text(json.dumps(made, indent=2) + "\n", encoding="utf-8")
    console.print(f"Coverage diagnostics are in [bold]{out}[/].", soft_wrap=True)
