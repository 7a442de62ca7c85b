"""``pfnts demo``."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Annotated

from rich.console import Group
from rich.live import Live
from rich.text import Text

from pfnts.cli.console import say, terminal
from pfnts.cli.curves import Points, draw
from pfnts.cli.options import option
from pfnts.environments import Scenario, describe
from pfnts.experiments import Job, PolicySpec, plan, prepare, regret_curves, run_all
from pfnts.experiments.jobs import Spec

SCENARIO = "friedman-disjoint"
"""By name the first synthetic scenario in which the context decides."""
RIVALS = {"lin-ts": "a linear model", "ts": "one arm for all", "uniform": "chance"}
"""Policies that PFN-TS is compared with, and who a newcomer would say decides."""

_NAMES_TAKE = 23
_ROWS = 14


def demo(
    scenario: Annotated[str, option("What to play; see **pfnts scenarios**.")] = SCENARIO,
    horizon: Annotated[int, option("Rounds in a run.", min=1)] = 2_000,
    seed: Annotated[int, option("The same seed gives the same runs.", min=0)] = 42,
    backbone: Annotated[str, option("Prediction model behind PFN-TS.")] = "embedded",
    out: Annotated[Path, option("Where the picture goes, if matplotlib is there.")] = Path("runs/demo.png"),
) -> None:
    """Watch PFN-TS learn what works for whom: about half a minute on two cores.

    Two arms, five features, and no arm that is best for everybody: which one is depends on the context, by a
    curved function (Friedman's first) that no policy is told. Four policies meet the same contexts and the
    same luck, and the curves show what each has lost so far against always choosing right. The scenario is by
    name the first synthetic one in which the context decides; choose another if you doubt it.
    """
    say(introduced(describe(scenario), horizon))
    # PFN-TS last, because it takes longest: there is something to compare with while it runs.
    contestants = [*map(PolicySpec, RIVALS), PolicySpec.of("pfn-ts", backbone=backbone)]
    specs = plan(scenarios=[scenario], policies=contestants, horizon=horizon, replications=1, seed=seed)
    names: dict[Spec, str] = {spec: name(spec.policy) for spec in reversed(specs)}
    points: dict[str, list[tuple[float, float]]] = {shown: [] for shown in names.values()}

    def hear(job: Job, steps: int, value: float) -> None:
        if steps:
            points[names[job.spec]].append((steps, value))

    # Drawn again and again in a terminal, elsewhere at the end.
    drawn = partial(growing, points, horizon)
    with Live(get_renderable=drawn, console=terminal, refresh_per_second=8):
        runs = list(run_all(prepare(specs), listener=hear))
    say("\n" + saved({names[run.spec]: run.result.total_regret for run in runs}, horizon))
    try:
        say(f"The curves as a picture: {regret_curves(runs, out)}")
    except ImportError:
        say('For the curves as a picture: pip install "pfnts[bench]"')
    say(
        "One run on one problem proves little. Another problem: pfnts demo --scenario steps (pfnts scenarios "
        "lists them all). Other luck: pfnts demo --seed 1.\n"
        "Next: ten lines of Python in README.md, pfnts run --help."
    )


def growing(points: Mapping[str, Points], horizon: int) -> Group:
    """Curves through what has been heard of each run so far."""
    width = max(20, min(terminal.width - _NAMES_TAKE - 9, 72))
    curves = draw(points, x_end=horizon, width=width, height=_ROWS)
    return Group(curves, Text(f"{'rounds':>{width + 9}}", style="dim"))


def introduced(scenario: Scenario, horizon: int) -> str:
    """Say what is played, and how to read the curves.

    Examples
    --------
    >>> print(introduced(describe("linear"), 500).splitlines()[0])
    500 rounds of linear: three unrelated linear functions of ten features.
    >>> print(introduced(describe("friedman"), 500).splitlines()[1])
    2 arms, 5 features; one arm is best at every context. No policy is told.
    """
    deciding = {
        True: "which arm is best depends on the context",
        False: "one arm is best at every context",
        None: "whether the context decides is not known",
    }[scenario.needs_context]
    return (
        f"{horizon:,} rounds of {scenario.name}: {scenario.description}.\n"
        f"{scenario.n_arms} arms, {scenario.n_features} features; {deciding}. No policy is told.\n"
        "Curves: reward lost so far against always choosing right. A curve that flattens has learned.\n"
    )


def name(policy: PolicySpec) -> str:
    """Name a policy as a newcomer would."""
    return RIVALS.get(policy.name, "PFN-TS")


def saved(lost: dict[str, float], horizon: int) -> str:
    """Say what PFN-TS lost, and what that saved beside each other policy.

    Examples
    --------
    >>> print(saved({"chance": 200.0, "a linear model": 100.0, "PFN-TS": 40.0}, 100))
    PFN-TS lost 40 in 100 rounds.
    Saved: 160 (80 %) of what chance lost, 60 (60 %) of what a linear model lost.
    >>> print(saved({"a linear model": 100.0, "PFN-TS": 120.0}, 100))
    PFN-TS lost 120 in 100 rounds.
    Saved: nothing of what a linear model lost, 100.
    """
    parts, ours = [], lost["PFN-TS"]
    for rival, theirs in lost.items():
        if theirs > ours:
            share = 100 * (theirs - ours) / theirs
            parts.append(f"{theirs - ours:,.0f} ({share:.0f} %) of what {rival} lost")
        elif rival != "PFN-TS":
            parts.append(f"nothing of what {rival} lost, {theirs:,.0f}")
    return f"PFN-TS lost {ours:,.0f} in {horizon:,} rounds.\nSaved: {', '.join(parts)}."
