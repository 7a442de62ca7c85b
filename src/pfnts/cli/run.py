"""``pfnts run``, and ``pfnts report`` on what it leaves."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from pfnts import environments
from pfnts.cli.console import leave_with_failures, plain_warnings, regret_table, say, show, stoppable
from pfnts.cli.options import Address, Data, Device, EngineName, Figures, Workers, chosen_engine, option
from pfnts.cli.progress import finish_all
from pfnts.environments import MissingDatasetError
from pfnts.events import Label
from pfnts.experiments import Job, PolicySpec, RunSpec, RunStore, UnknownOptionError, job, plan
from pfnts.experiments.report import write_report


def run(
    scenario: Annotated[
        list[str],
        option(
            "What to play; repeat for more, or 'all'. See **pfnts scenarios**. Your own: "
            "`module.OBJECT`, or a table, `mine.csv`, with **--target**."
        ),
    ] = ["friedman"],  # noqa: B006 (typer reads the default and never changes it)
    policy: Annotated[
        list[str],
        option(
            "Who plays; repeat for more. Options go behind a colon: `lin-ts:nu=0.1,warmup=5`. Your own: "
            "`module.Class`."
        ),
    ] = ["pfn-ts"],  # noqa: B006
    target: Annotated[
        str | None, option("Column of a table whose classes are the arms; the right one pays 1.")
    ] = None,
    horizon: Annotated[int, option("Rounds in a run; of a table no more than rows.", min=1)] = 10_000,
    replications: Annotated[int, option("Independent runs of each policy.", min=1)] = 5,
    seed: Annotated[int, option("The same seed gives the same runs.", min=0)] = 42,
    backbone: Annotated[
        list[str] | None,
        option("Prediction model of policies that have one; repeat to compare. See **pfnts info**."),
    ] = None,
    encoding: Annotated[
        list[str] | None, option("How arms enter the model, for policies that choose; repeat to compare.")
    ] = None,
    out: Annotated[Path, option("Folder in which finished runs are kept.")] = Path("runs"),
    workers: Workers = None,
    engine: EngineName = "local",
    address: Address = None,
    device: Device = "cpu",
    data: Data = None,
) -> None:
    """Simulate policies on scenarios and compare their regret.

    Every finished run is kept in the folder OUT and never run again: after Ctrl-C the same command goes on
    where it stopped, and more replications or policies add to what is there. All policies meet the same
    contexts and the same luck. A run that fails stops no other; the numbers depend neither on the engine nor
    on the number of workers, only on the device, which may round otherwise.
    """
    with plain_warnings():
        where = environments.names() if "all" in scenario else scenarios_of(scenario, target)
        who = policy_grid(policy, backbone=backbone or [], encoding=encoding or [])
        specs = plan(scenarios=where, policies=who, horizon=horizon, replications=replications, seed=seed)
        chosen = chosen_engine(engine, workers=workers, address=address, device=device)
        store = RunStore(out)
        jobs = obtainable(specs, data=data, device=device)
    with stoppable(jobs, store):
        runs, failures = finish_all(jobs, store=store, engine=chosen)
    if runs:
        show(regret_table(runs))
    leave_with_failures(failures)


def report(
    runs: Annotated[Path, typer.Argument(help="Folder of finished runs, as `pfnts run --out` leaves it.")],
    out: Annotated[Path | None, option("Where it goes; RUNS/report when left out.")] = None,
    figures: Figures = True,
) -> None:
    """Make tables, figures and a page from finished runs.

    The page, index.html, is one file that needs no network: sortable tables, regret curves with their values
    under the pointer. The same tables lie beside it as markdown, CSV and LaTeX, the curves as SVG and PDF.
    Runs that are missing are shown as missing, and damaged ones are named. The paper's numbers stand beside
    ours in the report of **pfnts reproduce**.
    """
    page = write_report(runs, out, figures=figures)
    say(f"The report is in {page}.")


def obtainable(specs: Sequence[RunSpec], *, data: Path | None, device: str) -> list[Job]:
    """Work out the jobs but for those that need a missing table, with a note on each such scenario."""
    jobs: list[Job] = []
    missing: dict[str, str] = {}
    for spec in dict.fromkeys(specs):
        if spec.scenario not in missing:
            try:
                jobs.append(job(spec, inputs=data, device=device))
            except MissingDatasetError as error:
                missing[spec.scenario] = str(error)
    if specs and not jobs:
        raise ValueError(next(iter(missing.values())))
    for scenario, reason in missing.items():
        say(f"Note: {scenario} is left out: {reason}", style="yellow")
    return jobs


def scenarios_of(texts: Sequence[str], target: str | None) -> list[str]:
    """Give tables their column, and say where one is missing.

    Examples
    --------
    >>> scenarios_of(["linear", "pets.csv"], "pet")
    ['linear', 'pets.csv:pet']
    """
    tables = [text for text in texts if text.lower().endswith((".csv", ".csv.gz"))]
    if bool(tables) != (target is not None):
        raise ValueError(
            "--target, the column of the classes, goes with a table (--scenario mine.csv), and a table needs "
            f"one; got {'none' if target is None else repr(target)} and {', '.join(texts)}"
        )
    return [f"{text}:{target}" if text in tables else text for text in texts]


def policy_grid(
    texts: Sequence[str], *, arms: int | Sequence[Label] = 2, **axes: Sequence[str]
) -> list[PolicySpec]:
    """Give each policy every value of the options in ``axes`` that it takes, and try each out."""
    specs: list[PolicySpec] = []
    for written in map(PolicySpec.parse, texts):
        variants = [written]
        for name, values in axes.items():
            if values and name not in dict(written.options):
                with suppress(UnknownOptionError):  # a policy without this option is run once, as it is
                    variants[0].having(name, values[0]).build(arms=2)
                    variants = [variant.having(name, value) for variant in variants for value in values]
        specs += variants
    specs = list(dict.fromkeys(specs))
    for spec in specs:
        # A wrong option or a missing extra shows here, not after the first hour.
        spec.build(arms=arms)
    for name, values in axes.items():
        if values and not any(name in dict(spec.options) for spec in specs):
            raise ValueError(f"--{name} needs a policy that has one, got {', '.join(texts)}")
    return specs
