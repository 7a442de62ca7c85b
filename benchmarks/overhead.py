"""What a run costs outside its prediction model: a backbone that answers at once, from a table.

    python benchmarks/overhead.py [--rounds 10000] [--profile]
    python benchmarks/overhead.py --against ../old/src     # version 0.1 beside it, from a worktree of bee60bd

Prints the time of a run by stretches, of one decision at a time with and without prefetching, and the time of
single calls after 10,000 rewards.
"""

from __future__ import annotations

import argparse
import cProfile
import json
import os
import pstats
import subprocess
import sys
import time

import numpy as np

import pfnts
from pfnts import PFNTS, simulate
from pfnts.environments import make

SCENARIOS = ("friedman", "friedman-sparse-disjoint")
FIRST_EDITION = pfnts.__version__.startswith("0.1") if hasattr(pfnts, "__version__") else True


class Lookup:
    """Says what a table holds at the first value of a query."""

    def __init__(self, size: int) -> None:
        self.size = size

    def append(self, X, y) -> None:
        self.size += len(y)

    def means(self, queries, sizes):
        at = np.asarray(queries)[:, 0]
        return np.broadcast_to(at, (len(sizes), len(at)))

    def quantiles(self, queries, size, levels):
        return np.asarray(queries)[:, 0] + np.asarray(levels, dtype=float)[:, None]


def backbone():
    """A backbone of these, for whichever version is imported."""
    if FIRST_EDITION:

        class First:
            name = "lookup"

            def sequence(self, X, y):
                return Lookup(len(y))

        return First()

    from pfnts.backbones import Backbone, Prediction

    class Second(Backbone):
        name = "lookup"
        knows_mean_sd = True

        def sequence(self, X, y, *, keep=()):
            return Lookup(len(y))

        def predict(self, questions):
            return [
                Prediction(
                    q.sequence.means(q.queries, q.sizes),
                    q.sequence.quantiles(q.queries, q.sizes[-1], q.levels),
                    np.full(len(q.queries), 1 / np.sqrt(q.sizes[-1])),
                )
                for q in questions
            ]

    return Second()


def whole_run(environment, *, profile: bool) -> float:
    """Processor seconds of a simulation."""
    policy, profiler = PFNTS(arms=environment.n_arms, backbone=backbone()), cProfile.Profile()
    if profile:
        profiler.enable()
    start = time.process_time()
    simulate(policy, environment, rng=np.random.default_rng(1))
    seconds = time.process_time() - start
    if profile:
        profiler.disable()
        pstats.Stats(profiler).sort_stats("tottime").print_stats(25)
    return seconds


def one_by_one(environment, *, prefetch: int) -> tuple[float, float, float]:
    """Processor seconds of all rounds, and medians of single calls in the last tenth of them."""
    policy, rng = PFNTS(arms=environment.n_arms, backbone=backbone()), np.random.default_rng(1)
    deciding, updating = [], []
    begun = time.process_time()
    for t, x in enumerate(environment.contexts):
        if prefetch and t % prefetch == 0:
            policy.prefetch(environment.contexts[t : t + prefetch])
        start = time.thread_time()
        decision = policy.decide(x, rng=rng)
        between = time.thread_time()
        reward = float(environment.rewards[t, decision.index])
        if FIRST_EDITION:
            policy.update(x, arm=decision.arm, reward=reward)
        else:
            policy.update(decision, reward=reward)
        deciding.append(between - start)
        updating.append(time.thread_time() - between)
    last = slice(-len(deciding) // 10, None)
    return time.process_time() - begun, float(np.median(deciding[last])), float(np.median(updating[last]))


def measured(rounds: int, *, profile: bool) -> dict[str, list[float]]:
    """Everything, by what it is."""
    found: dict[str, list[float]] = {}
    for scenario in SCENARIOS:
        environment = make(scenario, horizon=rounds, rng=np.random.default_rng(0))
        found[f"{scenario}: a simulation"] = [whole_run(environment, profile=profile)]
        for prefetch in (0, 256):
            whole, decide, update = one_by_one(environment, prefetch=prefetch)
            found[f"{scenario}: one by one, prefetch {prefetch}"] = [whole, 1e3 * decide, 1e3 * update]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=10_000)
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--against", help="folder of another version's source, measured in the same run")
    parser.add_argument("--json", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    found = measured(chosen.rounds, profile=chosen.profile)
    if chosen.json:
        print(json.dumps(found))
        return
    other = {}
    if chosen.against:
        command = [sys.executable, __file__, "--json", "--rounds", str(chosen.rounds)]
        environment = {**os.environ, "PYTHONPATH": os.path.abspath(chosen.against)}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        other = json.loads(done.stdout)
    for what, numbers in found.items():
        words = ["{:6.2f} s", "decision {:.3f} ms", "update {:.3f} ms"]
        said = "; ".join(word.format(n) for word, n in zip(words, numbers, strict=False))
        if what in other:
            said += f"; there {other[what][0]:.2f} s, {other[what][0] / numbers[0]:.1f} times as long"
        print(f"{what}: {said}")


if __name__ == "__main__":
    main()
