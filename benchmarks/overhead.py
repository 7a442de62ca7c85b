"""What a run costs outside its prediction model: a backbone that answers at once, from a table.

    python benchmarks/overhead.py [--rounds 10000] [--profile]

Prints the time of a run by stretches, of one decision at a time with and without prefetching, and the time of
single calls after 10,000 rewards.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import time

import numpy as np

from pfnts import PFNTS, simulate
from pfnts.backbones import Backbone, Prediction, PredictiveSequence
from pfnts.environments import make


class Lookup(PredictiveSequence):
    """Says what a table holds at the first value of a query."""

    def __init__(self, size: int) -> None:
        self._size = size

    @property
    def size(self) -> int:
        return self._size

    def append(self, X, y) -> None:
        self._size += len(y)

    def predict(self, queries, *, sizes, levels=()) -> Prediction:
        at = np.asarray(queries)[:, 0]
        means = np.broadcast_to(at, (len(sizes), len(at)))
        quantiles = at + np.asarray(levels, dtype=float)[:, None]
        return Prediction(means, quantiles, np.full(len(at), 1 / np.sqrt(sizes[-1])))


class LookupBackbone(Backbone):
    name = "lookup"
    knows_mean_sd = True

    def sequence(self, X, y, *, keep=()) -> Lookup:
        return Lookup(len(y))


def one_by_one(environment, rounds: int, *, prefetch: int) -> tuple[float, float, float]:
    policy, rng = PFNTS(arms=environment.n_arms, backbone=LookupBackbone()), np.random.default_rng(1)
    deciding, updating = [], []
    begun = time.perf_counter()
    for t in range(rounds):
        if prefetch and t % prefetch == 0:
            policy.prefetch(environment.contexts[t : t + prefetch])
        start = time.perf_counter()
        decision = policy.decide(environment.contexts[t], rng=rng)
        between = time.perf_counter()
        policy.update(decision, reward=environment.rewards[t, decision.index])
        deciding.append(between - start)
        updating.append(time.perf_counter() - between)
    last = slice(-rounds // 10, None)
    return time.perf_counter() - begun, float(np.median(deciding[last])), float(np.median(updating[last]))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=10_000)
    parser.add_argument("--profile", action="store_true")
    chosen = parser.parse_args()
    for scenario in ("friedman", "friedman-sparse-disjoint"):
        environment = make(scenario, horizon=chosen.rounds, rng=np.random.default_rng(0))
        policy = PFNTS(arms=environment.n_arms, backbone=LookupBackbone())
        profile = cProfile.Profile()
        if chosen.profile:
            profile.enable()
        start = time.perf_counter()
        simulate(policy, environment, rng=np.random.default_rng(1))
        seconds = time.perf_counter() - start
        if chosen.profile:
            profile.disable()
            pstats.Stats(profile).sort_stats("tottime").print_stats(25)
        print(f"{scenario}, K = {environment.n_arms}, {chosen.rounds} rounds: {seconds:.2f} s by stretches")
        for prefetch in (0, 256):
            whole, decide, update = one_by_one(environment, chosen.rounds, prefetch=prefetch)
            print(
                f"  one by one, prefetch {prefetch:3d}: {whole:5.2f} s;"
                f" the last decisions {1e3 * decide:.3f} ms, updates {1e3 * update:.3f} ms"
            )


if __name__ == "__main__":
    main()
