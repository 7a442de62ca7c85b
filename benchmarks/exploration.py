"""Which factor on the posterior's standard deviations loses least: the default of ``exploration``.

    python benchmarks/exploration.py [--device cuda] [--workers 16] [--rounds 4000] [--seeds 4] [--out FILE]

Played on families of random functions that are none of the package's scenarios, with seeds of their own. For
each family the mean regret of every factor over that of the best one is printed, and their average.
"""

from __future__ import annotations

import argparse
import csv
import multiprocessing
import sys
import time
import zlib
from itertools import product

import numpy as np

from pfnts import simulate
from pfnts.environments import Environment
from pfnts.policies import make

FACTORS = (0.0, 0.15, 0.25, 0.35, 0.5, 0.7, 1.0)


def waves(X, arms, rng):
    """Smooth functions: sums of random waves, one function for each arm."""
    P = X.shape[1]
    return np.stack(
        [
            np.cos(X @ rng.normal(0, 2.0 / np.sqrt(P), (P, 40)) + rng.uniform(0, 6.3, 40))
            @ rng.normal(0, 0.25, 40)
            for _ in range(arms)
        ],
        axis=1,
    )


def trees(X, arms, rng):
    """Sums of twelve oblivious trees of depth three."""
    means = np.zeros((len(X), arms))
    for k, _ in product(range(arms), range(12)):
        columns, cuts = rng.integers(X.shape[1], size=3), rng.uniform(0.2, 0.8, 3)
        leaf = ((X[:, columns] > cuts) * [1, 2, 4]).sum(axis=1)
        means[:, k] += rng.normal(0, 0.3, 8)[leaf]
    return means


def ridges(X, arms, rng):
    """A shared sparse linear function, and a bend of the arm's own."""
    shared = X @ (rng.normal(size=X.shape[1]) * (rng.random(X.shape[1]) < 0.5))
    own = [np.abs(X @ rng.normal(size=X.shape[1]) - rng.normal()) for _ in range(arms)]
    return shared[:, None] + 0.5 * np.stack(own, axis=1)


def places(X, arms, rng):
    """The arm that owns the nearest of thirty centres pays, the others do not: classes as a bandit."""
    centres, owner = rng.uniform(size=(30, X.shape[1])), rng.integers(arms, size=30)
    nearest = ((X[:, None] - centres) ** 2).sum(axis=2).argmin(axis=1)
    return np.eye(arms)[owner[nearest]]


def jumps(X, arms, rng):
    """One tree of depth three for each arm: an arm is best in a few corners, and few rows show where."""
    means = np.zeros((len(X), arms))
    for k in range(arms):
        node = np.zeros(len(X), dtype=int)
        for level in range(3):
            columns, cuts = rng.integers(X.shape[1], size=2**level), rng.uniform(0.3, 0.7, 2**level)
            node = 2 * node + (X[np.arange(len(X)), columns[node]] > cuts[node])
        means[:, k] = rng.normal(0, 1.5, 8)[node]
    return means


def rare(X, arms, rng):
    """Classes as a bandit, half of the contexts of the first and ever fewer of the others."""
    scores = X @ rng.normal(size=(X.shape[1], 8)) @ rng.normal(size=8) + np.sin(6 * X[:, 0] * X[:, 1])
    shares = np.cumsum(0.5 ** np.arange(1, arms))
    return np.eye(arms)[np.searchsorted(np.quantile(scores, shares), scores)]


def ahead(X, arms, rng):
    """A shared curve; the last arm is ahead everywhere, by more where two features meet."""
    shared = np.cos(X @ rng.normal(0, 2.0, (X.shape[1], 3))).sum(axis=1)
    return shared[:, None] + np.eye(arms)[-1] * (2 * X[:, :1] * X[:, 1:2] + 0.2)


def conversions(X, arms, rng):
    """Rates of about three in a hundred that depend on the context."""
    effects = X @ rng.normal(0, 1.0, (X.shape[1], arms))
    effects = effects - effects.mean(axis=0) + rng.normal(0, 0.2, arms)
    return 1 / (1 + np.exp(3.4 - effects))


FAMILIES = {  # function, features, arms, noise; None for yes and no
    "waves-4-2": (waves, 4, 2, 0.3),
    "waves-8-4": (waves, 8, 4, 1.0),
    "trees-10-3": (trees, 10, 3, 0.5),
    "ridges-12-5": (ridges, 12, 5, 0.5),
    "places-3-4": (places, 3, 4, 0.0),
    "places-6-3": (places, 6, 3, 0.0),
    "conversions-6-5": (conversions, 6, 5, None),
    "jumps-8-4": (jumps, 8, 4, 0.7),
    "rare-4-6": (rare, 4, 6, 0.0),
    "ahead-5-2": (ahead, 5, 2, 0.5),
}


def draw(family: str, *, rounds: int, seed: int) -> Environment:
    function, features, arms, noise = FAMILIES[family]
    for_contexts, for_function, for_noise = np.random.default_rng([zlib.crc32(family.encode()), seed]).spawn(
        3
    )
    contexts = for_contexts.uniform(size=(rounds, features))
    means = function(contexts, arms, for_function)
    if noise and function is not ahead:
        # Arms that are best on average would leave little for the context to decide.
        means = means - 0.8 * means.mean(axis=0)
    if noise is None:
        rewards = (for_noise.uniform(size=(rounds, 1)) < means).astype(float)
    else:
        rewards = means + noise * for_noise.normal(size=means.shape)
    return Environment(name=family, contexts=contexts, means=means, rewards=rewards)


def play(job: tuple[str, int, str, float, int, str]) -> dict[str, object]:
    family, seed, estimator, factor, rounds, device = job
    environment = draw(family, rounds=rounds, seed=seed)
    policy = make("pfn-ts", arms=environment.n_arms, device=device, estimator=estimator, exploration=factor)
    done = simulate(policy, environment, rng=np.random.default_rng(seed))
    return {
        "family": family,
        "seed": seed,
        "estimator": estimator,
        "exploration": factor,
        "regret": done.total_regret,
        "uniform": float(done.fixed.mean()),
        "seconds": done.seconds,
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=4000)
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--estimators", nargs="+", default=["network"])
    parser.add_argument("--factors", nargs="+", type=float, default=FACTORS)
    parser.add_argument("--out")
    chosen = parser.parse_args()
    jobs = [
        (family, 7000 + seed, estimator, factor, chosen.rounds, chosen.device)
        for seed in range(chosen.seeds)
        for family in FAMILIES
        for estimator in chosen.estimators
        for factor in chosen.factors
    ]
    begun, rows = time.perf_counter(), []
    with multiprocessing.get_context("spawn").Pool(chosen.workers) as pool:
        for row in pool.imap_unordered(play, jobs):
            rows.append(row)
            print(
                f"\r{len(rows)} of {len(jobs)} runs, {time.perf_counter() - begun:.0f} s",
                end="",
                file=sys.stderr,
            )
    print(file=sys.stderr)
    if chosen.out:
        with open(chosen.out, "w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
    settings = [(e, f) for e in chosen.estimators for f in chosen.factors]
    print(
        "family           " + "".join(f"{e[:4]} {f:<6.2f}" for e, f in settings) + "  best regret / uniform"
    )
    ratios = []
    for family in FAMILIES:
        regret = [
            np.mean(
                [
                    r["regret"]
                    for r in rows
                    if (r["family"], r["estimator"], r["exploration"]) == (family, e, f)
                ]
            )
            for e, f in settings
        ]
        uniform = np.mean([r["uniform"] for r in rows if r["family"] == family])
        ratios.append(np.array(regret) / min(regret))
        print(
            f"{family:17s}"
            + "".join(f"{ratio:<11.2f}" for ratio in ratios[-1])
            + f"  {min(regret):.1f} / {uniform:.1f}"
        )
    print(f"{'average':17s}" + "".join(f"{ratio:<11.2f}" for ratio in np.mean(ratios, axis=0)))


if __name__ == "__main__":
    main()
