"""Rare yes/no rewards: what the posterior says of few conversions, and a shop in which 3 % of visitors buy.

    python benchmarks/rare_rewards.py [--seeds 20] [--rounds 4000] [--counts-only]

First the chance that the first of two arms is best, from counts alone, beside the exact Beta-Bernoulli
answers with even priors and with Jeffreys's: where counts are small these differ by more than 0.2, so that no
answer is near to both. Then the regret of PFN-TS in a shop with five offers whose effects depend on the
visitor, beside Beta-Bernoulli Thompson sampling, LinTS and picking at random, all on the same visitors.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np
from scipy import integrate, stats

from pfnts import PFNTS, simulate
from pfnts.environments import Environment
from pfnts.policies import make

COUNTS = [  # successes and trials of the first arm, and of the second
    ((0, 30), (29, 1000)),
    ((1, 40), (30, 1000)),
    ((3, 100), (30, 1000)),
    ((30, 1000), (40, 1000)),
    ((0, 10), (5, 100)),
    ((2, 20), (5, 100)),
    ((10, 100), (30, 500)),
    ((0, 100), (3, 100)),
]


def exact(first: tuple[int, int], second: tuple[int, int], *, prior: float = 1.0) -> float:
    """The chance if both rates come from Beta(prior, prior)."""
    a, b = (stats.beta(prior + yes, prior + n - yes) for yes, n in (first, second))
    return float(
        integrate.quad(lambda p: a.pdf(p) * b.cdf(p), 0, 1, limit=200, points=[a.mean(), b.mean()])[0]
    )


def said(first: tuple[int, int], second: tuple[int, int], *, seeds: int) -> float:
    """The policy's own answer, contexts meaning nothing, on average over orders of the rows."""
    chances = []
    for seed in range(seeds):
        rng = np.random.default_rng([77, seed])
        arms = np.repeat([0, 1], [first[1], second[1]])
        rewards = np.concatenate([np.arange(n) < yes for yes, n in (first, second)]).astype(float)
        order = rng.permutation(len(arms))
        policy = PFNTS(arms=2, encoding="disjoint")
        policy.update(rng.normal(size=(len(arms), 4)), arm=arms[order].tolist(), reward=rewards[order])
        posterior = policy.posterior(rng.normal(size=(64, 4)))
        chances.append(posterior.best_arm_probabilities()[:, 0].mean())
    return float(np.mean(chances))


def shop(*, rounds: int, seed: int) -> Environment:
    """Visitors with six features; an offer's effect on the log odds depends on two of them."""
    contexts, effects, luck = np.random.default_rng([4711, seed]).spawn(3)
    X = contexts.normal(size=(rounds, 6))
    score = np.full((rounds, 5), -3.9) + 0.4 * X[:, [0]]
    for arm in range(1, 5):
        i, j = effects.choice(6, size=2, replace=False)
        score[:, arm] += (
            effects.normal(0, 0.2) + 0.9 * (X[:, i] > 0) * np.sign(effects.normal()) + 0.3 * X[:, j]
        )
    means = 1 / (1 + np.exp(-score))
    return Environment("shop", X, means, (luck.uniform(size=(rounds, 1)) < means).astype(float))


def beta_bernoulli(environment: Environment, rng: np.random.Generator) -> float:
    yes = no = np.ones(environment.n_arms)
    regret = 0.0
    for means, rewards in zip(environment.means, environment.rewards, strict=True):
        arm = rng.beta(yes, no).argmax()
        regret += means.max() - means[arm]
        bought = np.eye(environment.n_arms)[arm] * rewards[arm]
        yes, no = yes + bought, no + np.eye(environment.n_arms)[arm] - bought
    return float(regret)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=4000)
    parser.add_argument("--counts-only", action="store_true")
    chosen = parser.parse_args()
    print("first arm    second arm    P(first is best): PFN-TS   even priors   Jeffreys's")
    for first, second in COUNTS:
        ours = said(first, second, seeds=4)
        theirs = "    ".join(f"{exact(first, second, prior=prior):.2f}" for prior in (1.0, 0.5))
        pair = "    ".join(f"{yes:3d} of {n:4d}" for yes, n in (first, second))
        print(f"{pair}       {ours:.2f}    {theirs}", flush=True)
    if chosen.counts_only:
        return
    rows = []
    for seed in range(chosen.seeds):
        environment = shop(rounds=chosen.rounds, seed=seed)
        regrets = {
            name: simulate(make(name, arms=5), environment, rng=np.random.default_rng(seed)).total_regret
            for name in ("pfn-ts", "lin-ts", "uniform")
        }
        regrets["beta-bernoulli"] = beta_bernoulli(environment, np.random.default_rng(seed))
        rows.append(regrets)
        print(f"\r{seed + 1} of {chosen.seeds} shops", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    print(f"\nRegret (purchases) after {chosen.rounds} visitors, {chosen.seeds} shops")
    for name in rows[0]:
        values = np.array([row[name] for row in rows])
        worse = sum(row[name] > row["uniform"] for row in rows)
        error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
        print(f"{name:16s}{values.mean():8.1f} ± {error:.1f}   worse than uniform in {worse}")


if __name__ == "__main__":
    main()
