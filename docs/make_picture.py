"""Draws regret.png, the picture in README.md, from runs/paper; makes the runs that are not there."""

from __future__ import annotations

from pathlib import Path

from pfnts import policies
from pfnts.cli.demo import RIVALS
from pfnts.cli.progress import run_with_bars
from pfnts.experiments import PolicySpec, RunStore, plan, prepare, regret_curves

SCENARIOS = ("friedman", "friedman-sparse-disjoint")
FOLDER = Path(__file__).parent


def main() -> None:
    contestants = [PolicySpec("pfn-ts")]
    contestants += [PolicySpec(name) for name in RIVALS if name in policies.names()]
    specs = plan(scenarios=SCENARIOS, policies=contestants, horizon=10_000, replications=5, seed=42)
    store = RunStore(FOLDER.parent / "runs" / "paper")
    regret_curves(run_with_bars(prepare(specs), store=store), FOLDER / "regret.png")


if __name__ == "__main__":
    main()
