"""``pfnts reproduce``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pfnts.cli.console import console, explain_failures, plain_errors, stoppable
from pfnts.cli.engine_options import Address, Data, EngineName, Workers
from pfnts.cli.progress import run_with_bars
from pfnts.experiments import FailedRunsError, RunSpec, RunStore, engines
from pfnts.experiments.engines import Engine
from pfnts.experiments.report import write_report
from pfnts.experiments.reproduce import TARGETS, missing_tables, reproduction


def reproduce(
    target: Annotated[str, typer.Argument(help=f"What to give back: {', '.join(TARGETS)}.")],
    quick: Annotated[
        bool, typer.Option("--quick", help="A first look: 500 rounds, 2 replications, under 20 minutes.")
    ] = False,
    policy: Annotated[
        list[str] | None, typer.Option(help="Run only this policy; repeat for more. All when left out.")
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
        store = RunStore(out or Path("runs/quick" if quick else "runs/paper"))
        unfinished = [spec for spec in wanted.specs if spec not in store]
        missing = missing_tables(unfinished, data=data)
    for note in (*wanted.notes, *(f"{name} is left out: {why}" for name, why in missing.items())):
        console.print(f"[yellow]Note:[/] {note}", soft_wrap=True, highlight=False)
    specs = [spec for spec in wanted.specs if spec.scenario not in missing or spec in store]
    failures = made(specs, store, engine=chosen, data=data)
    with plain_errors(ValueError, ImportError, OSError):
        page = write_report(store.root, figures=figures)
    console.print(f"The report is in [bold]{page}[/].", soft_wrap=True)
    if failures is not None:
        explain_failures(failures)
        raise typer.Exit(1)


def made(
    specs: list[RunSpec], store: RunStore, *, engine: Engine, data: Path | None
) -> FailedRunsError | None:
    """Make the runs that the store lacks; return what failed, if anything did."""
    with stoppable(specs, store), plain_errors():
        finished = [spec for spec in specs if spec in store]
        console.print(f"{len(specs)} runs, of which {len(finished)} were finished before.", highlight=False)
        try:
            for _ in run_with_bars(
                [spec for spec in specs if spec not in store], store=store, engine=engine, data=data
            ):
                pass
        except FailedRunsError as error:
            return error
    return None
