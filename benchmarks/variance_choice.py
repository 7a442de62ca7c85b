"""Which variance estimator explores best: mean regret over the eight synthetic scenarios.

Every setting meets the same environments and the same policy seeds, so settings differ by nothing else.
Finished runs are kept, one line each, and are not run again; the table is written anew after every run.

    python benchmarks/variance_choice.py --backbone embedded --horizon 2000 --seeds 5 --jobs 2
    python benchmarks/variance_choice.py --settings subclt "shrunk nu0=1 floor=0.01 gaussian" --seeds 10
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
from collections.abc import Iterable
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import numpy as np
from pfnts.encodings import VarianceEstimator
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from pfnts import PFNTS, simulate
from pfnts.environments import make
from pfnts.policies import Shrunk
from pfnts.posterior import SubCLT

SCENARIOS = [
    "linear",
    "friedman",
    "friedman2",
    "friedman3",
    "friedman-sparse",
    "friedman-sparse-disjoint",
    "friedman-heteroscedastic",
    "synbart",
]


def settings() -> dict[str, VarianceEstimator]:
    """What is compared; the first is the paper's."""
    compared: dict[str, VarianceEstimator] = {"subclt": SubCLT(), "subclt root": SubCLT(weights="root")}
    for nu0 in (0.0, 1.0, 3.0, 10.0, 30.0, 100.0):
        for floor in (0.0, 0.01, 0.05):
            if nu0 or floor:
                compared[f"shrunk nu0={nu0:g} floor={floor:g} gaussian"] = Shrunk(nu0=nu0, floor=floor)
    for nu0, floor in ((1.0, 0.0), (1.0, 0.01), (30.0, 0.01)):
        compared[f"shrunk nu0={nu0:g} floor={floor:g} student"] = Shrunk(
            nu0=nu0, floor=floor, tails="student"
        )
    for nu0, floor in ((1.0, 0.01), (30.0, 0.01)):
        compared[f"shrunk nu0={nu0:g} floor={floor:g} gaussian root"] = Shrunk(
            nu0=nu0, floor=floor, weights="root"
        )
    return compared


def run(task: dict[str, Any]) -> dict[str, Any]:
    """One policy on one environment: the final regret and the seconds it took."""
    replication = np.random.SeedSequence(42).spawn(task["seed"] + 1)[task["seed"]]
    for_environment, for_policy = (np.random.default_rng(seed) for seed in replication.spawn(2))
    environment = make(task["scenario"], horizon=task["horizon"], rng=for_environment)
    policy = PFNTS(
        environment.n_arms,
        encoding=task["encoding"],
        variance=settings()[task["setting"]],
        backbone=task["backbone"],
        device=task["device"],
    )
    trajectory = simulate(policy, environment, rng=for_policy)
    return {**task, "regret": float(trajectory.regret.sum()), "seconds": trajectory.seconds}


def table(results: Iterable[dict[str, Any]], order: list[str], scenarios: list[str]) -> str:
    """Markdown: mean regret by scenario, their average, and the average ratio to the first setting.

    The ratio is the geometric mean over scenarios of the ratios of mean regrets, and ± is the standard error
    of the average regret's paired difference from the first setting. Only seeds that all settings have
    finished on all scenarios count.
    """
    regret = {(r["setting"], r["scenario"], r["seed"]): r["regret"] for r in results}
    present = [name for name in order if any(key[0] == name for key in regret)]
    seeds = sorted(
        seed
        for seed in {key[2] for key in regret}
        if all((name, scenario, seed) in regret for name in present for scenario in scenarios)
    )
    if not seeds:
        return "No seed is finished under every setting yet.\n"
    values = np.array([[[regret[n, c, s] for s in seeds] for c in scenarios] for n in present])
    means = values.mean(axis=2)
    ratio = np.exp(np.log(np.maximum(means, 1e-9) / np.maximum(means[0], 1e-9)).mean(axis=1))
    difference = (values - values[0]).mean(axis=1)
    error = (
        difference.std(axis=1, ddof=1) / np.sqrt(len(seeds))
        if len(seeds) > 1
        else np.full(len(means), np.nan)
    )
    lines = [
        f"Mean regret, {len(seeds)} seeds.",
        "",
        "| setting | " + " | ".join(scenarios) + " | average | difference | ratio |",
        "|---|" + "---:|" * (len(scenarios) + 3),
    ]
    for i in np.argsort(means.mean(axis=1)):
        cells = " | ".join(f"{mean:.0f}" for mean in means[i])
        lines.append(
            f"| {present[i]} | {cells} | {means[i].mean():.1f} | "
            f"{difference[i].mean():+.1f} ± {error[i]:.1f} | {ratio[i]:.3f} |"
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--backbone", default="embedded")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--encoding", default="disjoint")
    parser.add_argument("--horizon", type=int, default=2000)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--scenarios", nargs="+", choices=SCENARIOS, default=SCENARIOS)
    parser.add_argument("--settings", nargs="+", choices=list(settings()), default=list(settings()))
    parser.add_argument("--out", type=Path, default=Path("build/variance_choice"))
    given = parser.parse_args()

    given.out.mkdir(parents=True, exist_ok=True)
    log, page = given.out / "runs.jsonl", given.out / "table.md"
    fixed = {name: getattr(given, name) for name in ("backbone", "device", "encoding", "horizon")}
    finished = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
    results = [r for r in finished if all(r[name] == value for name, value in fixed.items())]
    known = {(r["setting"], r["scenario"], r["seed"]) for r in results}
    tasks = [
        {**fixed, "setting": setting, "scenario": scenario, "seed": seed}
        for seed in range(given.seeds)
        for setting in given.settings
        for scenario in given.scenarios
        if (setting, scenario, seed) not in known
    ]
    # A process per core with one thread each; more threads would fight over the cores.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with bar, ProcessPoolExecutor(given.jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
        shown = bar.add_task("runs", total=len(tasks) + len(results), completed=len(results))
        waiting: list[Future[dict[str, Any]]] = [pool.submit(run, task) for task in tasks]
        for future in as_completed(waiting):
            result = future.result()
            results.append(result)
            with log.open("a") as file:
                file.write(json.dumps(result) + "\n")
            page.write_text(table(results, given.settings, given.scenarios))
            bar.update(shown, advance=1, description=f"{result['setting']}, {result['scenario']}")
    chosen = [r for r in results if r["setting"] in given.settings and r["seed"] < given.seeds]
    page.write_text(table(chosen, given.settings, given.scenarios))
    print(page.read_text())


if __name__ == "__main__":
    main()
