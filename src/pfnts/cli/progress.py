"""Bars for runs under way, with the regret so far and the time left."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from pfnts.cli.console import console
from pfnts.experiments import Run, RunSpec, RunStore, run_all


def run_with_bars(specs: Sequence[RunSpec], *, store: RunStore | None = None) -> Iterable[Run]:
    """Yield every run as it finishes, with one bar for it and one for all of them together."""
    waiting = [spec for spec in specs if store is None or spec not in store]
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[regret]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        all_runs = progress.add_task("all runs", total=sum(spec.horizon for spec in waiting), regret="")
        current = progress.add_task("", total=None, visible=False, regret="")
        done = 0
        under_way: RunSpec | None = None

        def listener(spec: RunSpec, rounds: int, regret: float) -> None:
            nonlocal under_way
            if spec is not under_way:
                progress.reset(current, total=spec.horizon, description=title(spec), visible=True)
                under_way = spec
            progress.update(current, completed=rounds, regret=f"regret {regret:,.1f}")
            progress.update(all_runs, completed=done + rounds)

        for run in run_all(specs, store=store, listener=listener):
            fresh = run.spec is under_way
            done += run.spec.horizon if fresh else 0
            time = f"{run.trajectory.seconds:,.1f} s" if fresh else "finished before"
            console.print(f"{title(run.spec)}: regret {run.trajectory.total_regret:,.1f} ({time})")
            yield run


def title(spec: RunSpec) -> str:
    """Scenario, policy and replication in a few words."""
    return f"{spec.scenario}, {spec.policy.label}, replication {spec.replication}"
