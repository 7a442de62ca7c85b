"""How the cost of a run grows with its number of rounds, up to 100,000.

    python benchmarks/horizon.py                                       # the linear backbone, 1,000 to 100,000
    python benchmarks/horizon.py --backbone embedded --rounds 1000 3000 10000
    python benchmarks/horizon.py --backbone embedded --window 2000     # rows that a model rests on at most

Processor seconds and peak memory of each run, in a process of its own, on a synthetic scenario of so many
rounds, and the exponent b of seconds ~ rounds^b, fitted by least squares on logarithms.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time

import numpy as np

from pfnts import policies, simulate
from pfnts.environments import make


def measured(rounds: int, scenario: str, options: dict[str, object]) -> dict[str, float]:
    """One run in this process."""
    environment = make(scenario, horizon=rounds, rng=np.random.default_rng(0))
    policy = policies.make("pfn-ts", arms=environment.n_arms, **options)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begun = time.process_time()
    trajectory = simulate(policy, environment, rng=np.random.default_rng(1), prefetch=256)
    return {
        "seconds": time.process_time() - begun,
        "regret": trajectory.total_regret,
        "last tenth": float(trajectory.regret[-rounds // 10 :].mean()),
        "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "before": before / 1024,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, nargs="+", default=[1000, 3000, 10_000, 30_000, 100_000])
    parser.add_argument("--scenario", default="friedman")
    parser.add_argument("--backbone", default="linear")
    parser.add_argument("--window", type=int, help="rows that a model rests on at most")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    options = {"backbone": chosen.backbone} | ({"window": chosen.window} if chosen.window else {})
    if chosen.one:
        print(json.dumps(measured(chosen.rounds[0], chosen.scenario, options)))
        return
    seconds = []
    for rounds in chosen.rounds:
        command = [sys.executable, __file__, "--one", "--rounds", str(rounds), "--scenario", chosen.scenario]
        command += ["--backbone", chosen.backbone]
        command += ["--window", str(chosen.window)] if chosen.window else []
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        found = json.loads(done.stdout.splitlines()[-1])
        seconds.append(found["seconds"])
        print(
            f"{rounds:7,} rounds: {found['seconds']:8.2f} s, {1e3 * found['seconds'] / rounds:.3f} ms each, "
            f"{found['megabytes']:,.0f} MB at most ({found['before']:,.0f} before the first round); "
            f"regret {found['regret']:,.0f}, {found['last tenth']:.4f} a round in the last tenth",
            flush=True,
        )
    if len(seconds) > 1:
        exponent = np.polyfit(np.log(chosen.rounds), np.log(seconds), 1)[0]
        print(f"seconds grow like rounds to the power of {exponent:.2f}")


if __name__ == "__main__":
    main()
