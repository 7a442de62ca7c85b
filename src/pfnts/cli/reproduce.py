"""``pfnts reproduce``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pfnts.cli.calibrate import QUICK_REPLICATIONS, QUICK_SIZES, cover
from pfnts.cli.console import leave_with_failures, say, stoppable
from pfnts.cli.options import Address, Data, Device, EngineName, Figures, Workers, chosen_engine, option
from pfnts.cli.progress import finish_all
from pfnts.cli.run import obtainable
from pfnts.experiments import RunStore, prepare
from pfnts.experiments.calibration import SIZES, plan_coverage
from pfnts.experiments.replays import values
from pfnts.experiments.report import write_report
from pfnts.ope import Log, read_drinkless
from pfnts.reproduction.drinkless import CONTESTANTS, QUICK_PEOPLE, policy_name, replays_at_hand, trial_plan
from pfnts.reproduction.paper import PAPER, Paper
from pfnts.reproduction.results import write_results
from pfnts.reproduction.targets import TARGETS, reproduction

SEED = 42
_CALIBRATED = ("linear", "embedded")


def reproduce(
    target: Annotated[str, typer.Argument(help=f"What to give back: {', '.join(TARGETS)}.")],
    quick: Annotated[
        bool, option("A first look: 500 rounds, 2 replications, under 20 minutes.", "--quick")
    ] = False,
    policy: Annotated[
        list[str] | None,
        option("Run only this policy, or your own `module.Class`; repeat for more. All when left out."),
    ] = None,
    replications: Annotated[
        int | None, option("Independent runs of each; 5, or 2 with --quick, when left out.", min=1)
    ] = None,
    slow: Annotated[
        bool | None, option("Run bf-ts and neural-ts, which take hours; yes unless --quick when left out.")
    ] = None,
    out: Annotated[
        Path | None, option("Folder of runs and report; runs/paper or runs/quick when left out.")
    ] = None,
    results: Annotated[
        Path | None, option("Write tables, a row for every run and a README to this folder, too.")
    ] = None,
    figures: Figures = True,
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
    wanted = reproduction(target, quick=quick, policies=policy or (), replications=replications, slow=slow)
    chosen = chosen_engine(engine, workers=workers, address=address, device=device)
    store = RunStore(out or Path("runs/quick" if quick else "runs/paper"))
    for note in wanted.notes:
        say(f"Note: {note}", style="yellow")
    jobs = obtainable(wanted.specs, data=data, device=device)
    trial, replays = _trial(data, quick=quick, said=bool(wanted.trial)), []
    if trial is not None:
        planned = trial_plan(trial, quick=quick, names=[policy.name for policy in CONTESTANTS], seed=SEED)
        replays = prepare(planned, inputs=trial, device=device)
    if wanted.coverage:
        sizes, count = (QUICK_SIZES, QUICK_REPLICATIONS) if quick else (SIZES, 10)
        cells = plan_coverage(backbones=_CALIBRATED, bart=True, sizes=sizes, replications=count, seed=SEED)
        cover(cells, RunStore(store.root / "coverage"), engine=chosen, device="cpu")
    kept = RunStore(store.root / "drinkless")
    with stoppable(jobs, store):
        _, failures = finish_all(jobs, store=store, engine=chosen)
        asked = [each for each in replays if policy_name(each) in wanted.trial]
        _, lost = finish_all(asked, store=kept, engine=chosen)
        done = replays_at_hand(replays, kept)  # what is there is shown, whatever was asked for
        paper = Paper((trial, values(trial, done))) if trial and done else PAPER
        page = write_report(store.root, figures=figures, beside=paper)
        say(f"The report is in {page}.")
        if results is not None:
            made = write_results(store.root, results, figures=figures, beside=paper)
            say(f"The results are in {made}.")
    leave_with_failures(failures)
    leave_with_failures(lost)


def _trial(data: Path | None, *, quick: bool, said: bool) -> Log | None:
    """The Drink Less trial, if its file is at hand; else, where it was asked for, a note."""
    try:
        return read_drinkless(data).first(QUICK_PEOPLE) if quick else read_drinkless(data)
    except (ValueError, OSError) as error:
        if said:
            say(f"Note: the Drink Less trial is left out: {error}", style="yellow")
        return None
