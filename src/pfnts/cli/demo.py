"""``pfnts demo``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pfnts import policies
from pfnts.cli.console import plain_errors, regret_table, say, show
from pfnts.cli.progress import run_with_bars
from pfnts.experiments import PolicySpec, plan, prepare, regret_curves, summarize

SCENARIO = "friedman"
RIVALS = ("lin-ts", "uniform")


def demo(
    horizon: Annotated[int, typer.Option(min=1, help="Rounds in a run.")] = 3_000,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same runs.")] = 42,
    backbone: Annotated[str, typer.Option(help="Prediction model behind PFN-TS.")] = "embedded",
    out: Annotated[Path, typer.Option(help="Where the plot goes.")] = Path("runs/demo.png"),
) -> None:
    """Watch PFN-TS learn: about a minute on two cores.

    Two arms, five features, and a reward that is a curved function of them (Friedman's first). PFN-TS plays
    against linear Thompson sampling and against picking at random; a table and a plot show what each lost.
    """
    say(
        f"{SCENARIO}: {horizon:,} rounds, two arms, five features.\n"
        f"PFN-TS asks the {backbone} backbone what it would have predicted after 2, 4, 8, ... rewards; how "
        "much those predictions moved says how uncertain each arm still is.\n"
    )
    with plain_errors(ValueError, ImportError, OSError):
        contestants = [PolicySpec.of("pfn-ts", backbone=backbone)]
        contestants += [PolicySpec(name) for name in RIVALS if name in policies.names()]
        specs = plan(scenarios=[SCENARIO], policies=contestants, horizon=horizon, replications=1, seed=seed)
        runs = list(run_with_bars(prepare(specs)))
        show(regret_table(summarize(runs)))
        path = regret_curves(runs, out)
    say(
        f"The curves are in {path}. Picking at random loses at the same rate for ever, a straight line; "
        "a curve that flattens has learned."
    )
    say("Next: pfnts scenarios, pfnts run --help, or ten lines of Python in README.md.")
