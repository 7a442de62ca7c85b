"""Draws regret.png, the picture in README.md; makes the runs that are not yet in runs/picture."""

from __future__ import annotations

from pathlib import Path

from pfnts.cli.demo import RIVALS
from pfnts.cli.progress import run_with_bars
from pfnts.experiments import PolicySpec, RunStore, plan, prepare, regret_curves

SCENARIOS = ("friedman-disjoint", "steps")
HORIZON = 2_000
FOLDER = Path(__file__).parent


def main() -> None:
    contestants = [PolicySpec(name) for name in ("pfn-ts", *RIVALS)]
    specs = plan(scenarios=SCENARIOS, policies=contestants, horizon=HORIZON, replications=3, seed=42)
    store = RunStore(FOLDER.parent / "runs" / "picture")
    regret_curves(run_with_bars(prepare(specs), store=store), FOLDER / "regret.png")


if __name__ == "__main__":
    main()
