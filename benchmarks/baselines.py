"""The baselines at T = 10,000 beside the paper's table, after a pilot run with another seed where it tunes.

Finished runs are kept and not run again, so that the table can be filled a row at a time, cheap ones first.

    python benchmarks/baselines.py                                      # minutes: all but neural-ts and bf-ts
    JAX_NUM_CPU_DEVICES=2 python benchmarks/baselines.py --rows bf-ts   # two chains at a time
    python benchmarks/baselines.py --rows neural-ts --seeds 1 --scenarios friedman

XLA is kept to one thread, or one per device: the tables of BFTS are too small to share. What it compiled is
kept below the folder of the runs. NPROC and JAX_COMPILATION_CACHE_DIR say otherwise.

Pilots: LinTS chooses nu from {1, 0.1, 0.01} over the whole horizon, NeuralTS lambda from {1, ..., 0.001} and
nu^2 from {0.1, ..., 0.0001} over a shorter one, each by the regret of one run with a seed of its own.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from pfnts.environments import names
from pfnts.experiments import Job, PolicySpec, Run, RunSpec, RunStore, plan, run_all, summarize
from pfnts.reproduction.published import REGRET

SEED, PILOT_SEED = 42, 4242


@dataclass(frozen=True)
class Row:
    """A line of the table: a policy, what its pilot chooses from, and the line of the paper it answers to."""

    policy: PolicySpec
    published: str | None = None
    grid: dict[str, tuple[float, ...]] = field(default_factory=dict)
    pilot_horizon: int | None = None
    """Rounds of a pilot run; all of them when None."""


LIN_TS = {"nu": (1.0, 0.1, 0.01)}
NEURAL_TS = {"penalty": (1.0, 0.1, 0.01, 0.001), "nu": (0.1**0.5, 0.1, 0.001**0.5, 0.01)}
BARE = {"intercept": False, "warmup": 0}
ROWS = {
    "uniform": Row(PolicySpec.of("uniform")),
    "ts": Row(PolicySpec.of("ts")),
    "lin-ts": Row(PolicySpec.of("lin-ts"), "lin-ts"),
    "lin-ts tuned": Row(PolicySpec.of("lin-ts"), "lin-ts", LIN_TS),
    "lin-ts bare, tuned": Row(PolicySpec.of("lin-ts", **BARE), "lin-ts", LIN_TS),
    "lin-ucb": Row(PolicySpec.of("lin-ucb"), "lin-ucb"),
    "lin-ucb bare": Row(PolicySpec.of("lin-ucb", **BARE), "lin-ucb"),
    "xgboost-ts": Row(PolicySpec.of("xgboost-ts"), "xgboost-ts"),
    "xgboost-ts joint": Row(PolicySpec.of("xgboost-ts", layout="joint"), "xgboost-ts"),
    "rf-ts": Row(PolicySpec.of("rf-ts"), "rf-ts"),
    "rf-ts joint": Row(PolicySpec.of("rf-ts", layout="joint"), "rf-ts"),
    "neural-ts": Row(PolicySpec.of("neural-ts"), "neural-ts", NEURAL_TS, pilot_horizon=500),
    "bf-ts": Row(PolicySpec.of("bf-ts"), "bf-ts"),
}
CHEAP = [name for name in ROWS if name not in ("neural-ts", "bf-ts")]


def pilot(row: Row, scenario: str, *, horizon: int, store: RunStore) -> PolicySpec:
    """Run every setting of the row's grid once with the pilot's seed; the least regret wins."""
    regrets: dict[PolicySpec, float] = {}
    for values in product(*row.grid.values()):
        options = {**dict(row.policy.options), **dict(zip(row.grid, values, strict=True))}
        policy = PolicySpec.of(row.policy.name, **options)
        rounds = min(horizon, row.pilot_horizon or horizon)
        spec = RunSpec(scenario, policy, horizon=rounds, replication=0, seed=PILOT_SEED)
        regrets.update((done.spec.policy, done.result.total_regret) for done in run_all([spec], store=store))
    return min(regrets, key=lambda policy: regrets[policy])


def report(console: Console, done: dict[str, list[Run]], scenarios: Iterable[str]) -> None:
    table = Table(
        "policy", title="Final regret, mean +- standard error (runs); chosen settings; seconds a run"
    )
    for scenario in scenarios:
        table.add_column(scenario)
        table.add_column("paper", justify="right")
    for name, runs in done.items():
        cells = [name]
        for scenario in scenarios:
            found = summarize(run for run in runs if run.spec.scenario == scenario)
            published = REGRET.get(ROWS[name].published or "", {}).get(scenario)
            cells.append(
                "; ".join(
                    f"{row.mean:,.0f} +- {row.standard_error:,.0f} ({row.replications})"
                    f"{_chosen(name, row.policy)} {row.seconds:,.1f} s"
                    for row in found
                )
            )
            cells.append("" if published is None else f"{published:,.0f}")
        table.add_row(*cells)
    console.print(table)


def _chosen(name: str, policy: PolicySpec) -> str:
    options = dict(policy.options)
    return "".join(f" {option}={options[option]:g}" for option in ROWS[name].grid if option in options)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", nargs="+", choices=list(ROWS), default=CHEAP)
    parser.add_argument("--scenarios", nargs="+", choices=names(), default=["linear", "friedman"])
    parser.add_argument("--horizon", type=int, default=10_000)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path("build/baselines"))
    arguments = parser.parse_args()
    # jax reads both once, when the first model is fitted
    os.environ.setdefault("NPROC", os.environ.get("JAX_NUM_CPU_DEVICES", "1"))
    os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(arguments.out / "compiled"))
    store, console = RunStore(arguments.out), Console(width=150)
    done: dict[str, list[Run]] = {}
    columns = TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), TimeRemainingColumn()
    with Progress(*columns, console=console) as progress:
        for name, scenario in product(arguments.rows, arguments.scenarios):
            row = ROWS[name]
            policy = row.policy
            if row.grid:
                policy = pilot(row, scenario, horizon=arguments.horizon, store=store)
            task = progress.add_task(f"{name} on {scenario}", total=arguments.horizon * arguments.seeds)

            def listener(job: Job, rounds: int, regret: float, task=task, name=name) -> None:  # type: ignore[no-untyped-def]
                progress.update(
                    task,
                    completed=job.spec.replication * job.spec.horizon + rounds,
                    description=f"{name} on {job.spec.scenario}, seed {job.spec.replication}: {regret:,.0f}",
                )

            specs = plan(
                scenarios=[scenario],
                policies=[policy],
                horizon=arguments.horizon,
                replications=arguments.seeds,
                seed=SEED,
            )
            done.setdefault(name, []).extend(run_all(specs, store=store, listener=listener))
    report(console, done, arguments.scenarios)


if __name__ == "__main__":
    main()
