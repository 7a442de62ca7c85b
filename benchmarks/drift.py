"""What a change of the world costs, and what watching for one costs where nothing changes.

    python benchmarks/drift.py [--part change|stationary] [--backbone embedded] [--seeds 5] [--rounds 4000]

`change` plays the drift scenarios, and beside them a stationary twin: the second world from the first round
on, with the same contexts and luck. It prints the mean regret of a round before the change, in the 1,000
rounds after it, and from then on, over that of the twin in the same rounds. `stationary` plays scenarios in
which nothing changes with and without the detector. Every run is printed as it ends.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from pfnts import simulate
from pfnts.environments import Environment, make
from pfnts.environments.drift import CHANGE, SCENARIOS, DriftScenario
from pfnts.policies import make as make_policy

TWIN = DriftScenario("stationary twin", "the second world throughout", np.ones_like)
MEMORIES: dict[str, dict[str, float | None]] = {
    "default": {},
    "no detector": {"detector": None},
    "window 1000": {"detector": None, "window": 1000},
    "half-life 500": {"detector": None, "half_life": 500},
}
STATIONARY = ("linear", "friedman", "friedman-sparse", "friedman-heteroscedastic", "synbart", "wheel-0.5")


def play(environment: Environment, options: argparse.Namespace, *, seed: int, label: str) -> np.ndarray:
    """Regret (T,) of one run, which is printed."""
    policy = make_policy("pfn-ts", arms=environment.n_arms, backbone=options.backbone, **MEMORIES[label])
    begun = time.process_time()
    regret = simulate(policy, environment, rng=np.random.default_rng(seed + 10_000)).regret
    notes = " ".join(f"{'restart' if c.restarted else 'alarm'}@{c.row}" for c in policy.changes)
    seconds = time.process_time() - begun
    print(
        f"{environment.name:24} {label:14} {seed} {regret.sum():9.1f} {seconds:6.1f} s  {notes}", flush=True
    )
    return regret


def change(options: argparse.Namespace) -> None:
    """The drift scenarios beside their twin."""
    regrets: dict[tuple[str, str], list[np.ndarray]] = {}
    for seed in range(options.seeds):
        for scenario in (TWIN, *SCENARIOS):
            if options.scenarios and scenario.name not in (TWIN.name, *options.scenarios):
                continue
            environment = scenario.environment(horizon=options.rounds, rng=np.random.default_rng(seed))
            for label in options.memories:
                found = play(environment, options, seed=seed, label=label)
                regrets.setdefault((scenario.name, label), []).append(found)
    twin = np.mean(regrets[TWIN.name, options.memories[0]], axis=0)
    parts = {
        "before": slice(0, CHANGE),
        "1,000 after": slice(CHANGE, CHANGE + 1000),
        "then": slice(CHANGE + 1000, options.rounds),
    }
    print(f"\n{'regret of a round':39}" + "".join(f"{part:>14}" for part in parts) + f"{'then / twin':>14}")
    for (name, label), found in regrets.items():
        mean = np.mean(found, axis=0)
        values = "".join(f"{mean[part].mean():14.4f}" for part in parts.values())
        print(f"{name:24} {label:14}{values}{mean[parts['then']].mean() / twin[parts['then']].mean():14.2f}")


def stationary(options: argparse.Namespace) -> None:
    """What the detector costs where nothing changes."""
    ratios = []
    for name in STATIONARY:
        totals = np.zeros(2)
        for seed in range(options.seeds):
            environment = make(name, horizon=options.rounds, rng=np.random.default_rng(seed))
            for i, label in enumerate(("default", "no detector")):
                totals[i] += play(environment, options, seed=seed, label=label).sum()
        ratios.append(totals[0] / totals[1])
        print(f"{name:24} with the detector over without: {ratios[-1]:.3f}\n")
    print(f"geometric mean {np.exp(np.log(ratios).mean()):.3f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--part", choices=("change", "stationary"), default="change")
    parser.add_argument("--backbone", default="embedded")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=2 * CHANGE)
    parser.add_argument("--scenarios", nargs="*", help="drift scenarios to play; all when left out")
    parser.add_argument("--memories", nargs="*", choices=tuple(MEMORIES), default=list(MEMORIES))
    wanted = parser.parse_args()
    {"change": change, "stationary": stationary}[wanted.part](wanted)
