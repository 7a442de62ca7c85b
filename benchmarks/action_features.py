"""Regret where arms have features: PFN-TS, LinUCB on features, Vowpal Wabbit, uniform and an oracle.

    python benchmarks/action_features.py [--rounds 1000] [--replications 5] [--scenario offers-linear-50 ...]
    python benchmarks/action_features.py --new-arms --rounds 500 [--replications 5]

Every policy meets the same arrays. Vowpal Wabbit (`pip install "pfnts[peers]"`) has action-dependent
features and all products of context and features (`-q ca`), with its default exploration and with SquareCB.

`--new-arms` asks how well ten new arms are told apart after 0 to 50 pulls of each, by their features and by
their identity alone, after ``--rounds`` rewards of fifty others.
"""

from __future__ import annotations

import argparse
import importlib.util
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from pfnts.environments import Environment, make
from pfnts.policies import make as make_policy
from pfnts.simulation import simulate
from pfnts.simulation.loop import pseudo_regret

SCENARIOS = (
    "offers-linear-50",
    "offers-nonlinear-50",
    "offers-renewed",
    "offers-linear-1000",
    "offers-nonlinear-1000",
)
Chosen = np.ndarray[Any, np.dtype[np.int64]]
Losses = np.ndarray[Any, np.dtype[np.float64]]


def ours(name: str) -> Callable[[Environment, np.random.Generator], Chosen]:
    def play(environment: Environment, rng: np.random.Generator) -> Chosen:
        policy = make_policy(name, arms=environment.first_arms(features=True))
        return simulate(policy, environment, rng=rng).arms

    return play


def vowpal_wabbit(exploration: str) -> Callable[[Environment, np.random.Generator], Chosen]:
    def play(environment: Environment, rng: np.random.Generator) -> Chosen:
        from vowpalwabbit import Workspace

        learner = Workspace(
            f"--cb_explore_adf {exploration} -q ca --quiet --random_seed {rng.integers(2**31)}"
        )
        assert environment.arm_features is not None
        actions = [" |a " + _numbers(features) for features in environment.arm_features]
        chosen = np.empty(environment.horizon, dtype=np.int64)
        for t, context in enumerate(environment.contexts):
            shared, there = "shared |c " + _numbers(context), environment.there(t)
            shares = np.asarray(learner.predict("\n".join([shared, *(actions[arm] for arm in there)])))
            place = int(rng.choice(len(there), p=shares / shares.sum()))
            chosen[t] = there[place]
            label = f"0:{-environment.rewards[t, chosen[t]]}:{shares[place]}"
            learner.learn(
                "\n".join([shared, *(label * (i == place) + actions[arm] for i, arm in enumerate(there))])
            )
        learner.finish()
        return chosen

    return play


def _numbers(values: Any) -> str:
    return " ".join(f"{i}:{value:.6f}" for i, value in enumerate(values))


POLICIES: dict[str, Callable[[Environment, np.random.Generator], Chosen]] = {
    "pfn-ts": ours("pfn-ts"),
    "lin-ucb-features": ours("lin-ucb-features"),
    "vw": vowpal_wabbit(""),
    "vw squarecb": vowpal_wabbit("--squarecb"),
    "uniform": ours("uniform"),
}


def regret(environment: Environment, chosen: Chosen) -> Losses:
    means = environment.means
    if environment.available is not None:
        means = np.where(environment.available, means, -np.inf)
    return pseudo_regret(means, chosen)


def table(scenarios: list[str], names: list[str], *, rounds: int, replications: int) -> None:
    print(f"regret in {rounds:,} rounds, mean and standard error of {replications} replications; oracle: 0")
    for scenario in scenarios:
        print(f"\n{scenario}")
        for name in names:
            totals, start = [], time.process_time()
            for replication in range(replications):
                environment = make(scenario, horizon=rounds, rng=np.random.default_rng([7, replication]))
                chosen = POLICIES[name](environment, np.random.default_rng([8, replication]))
                totals.append(float(regret(environment, chosen).sum()))
            error = np.std(totals, ddof=1) / np.sqrt(replications) if replications > 1 else float("nan")
            seconds = (time.process_time() - start) / replications
            print(
                f"  {name:24} {np.mean(totals):8.1f} ± {error:6.1f}   {seconds:6.1f} s of a core each",
                flush=True,
            )


PULLS = (0, 1, 2, 5, 10, 20, 50)
"""Of each new arm, after which the ten are judged."""


def judged(*, features: bool, rounds: int, replication: int) -> list[float]:
    """How well ten new arms are told apart after so many pulls of each: 1 is an oracle, 0 is chance.

    The fifty arms before them were pulled at random, and so are the ten, at contexts of their own. At 400
    further contexts the one with the largest posterior mean is taken.
    """
    pulled = rounds + 10 * PULLS[-1]
    environment = make("offers-renewed", horizon=pulled + 400, rng=np.random.default_rng([9, replication]))
    X, rewards, means = environment.contexts, environment.rewards, environment.means[pulled:, 50:60]
    assert environment.arm_features is not None
    known = list(environment.arm_features) if features else [None] * 60
    rng = np.random.default_rng([10, replication])
    first = list(range(50))
    policy = make_policy("pfn-ts", arms=dict(zip(first, known, strict=False)) if features else first)
    old = rng.integers(50, size=rounds)
    policy.update(X[:rounds], arm=old.tolist(), reward=rewards[np.arange(rounds), old])
    for arm in range(50, 60):
        policy.add_arm(arm, known[arm])
    for arm in first:
        policy.remove_arm(arm)  # what they taught stays
    shares, chance = [], means.max(axis=1) - means.mean(axis=1)
    for before, count in zip((0, *PULLS), PULLS, strict=False):
        arms = rng.permutation(np.tile(np.arange(50, 60), count - before))
        rows = rounds + 10 * before + np.arange(len(arms))
        if len(arms):
            policy.update(X[rows], arm=arms.tolist(), reward=rewards[rows, arms])
        chosen = policy.posterior(X[pulled:]).mean.argmax(axis=1)
        lost = means.max(axis=1) - np.take_along_axis(means, chosen[:, None], axis=1)[:, 0]
        shares.append(float(1 - lost.sum() / chance.sum()))
    return shares


def new_arms(*, rounds: int, replications: int) -> None:
    """How well new arms are told apart, by features and by identity alone, and how soon half of the best."""
    print(
        f"ten new arms after {rounds:,} rounds, {replications} replications: share of chance's loss avoided"
    )
    print(f"{'pulls of each':14}" + "".join(f"{count:>14}" for count in PULLS))
    for name, features in (("by features", True), ("by identity", False)):
        found = [judged(features=features, rounds=rounds, replication=each) for each in range(replications)]
        shares, errors = np.mean(found, axis=0), np.std(found, axis=0) / np.sqrt(max(1, replications - 1))
        cells = "".join(f"{f'{s:.2f} ± {e:.2f}':>14}" for s, e in zip(shares, errors, strict=True))
        below = np.flatnonzero(shares < shares[-1] / 2)
        half = PULLS[below[-1] + 1] if len(below) else 0
        print(f"{name:14}{cells}   half of the last after {half}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--replications", type=int, default=5)
    parser.add_argument("--scenario", action="append", choices=SCENARIOS)
    parser.add_argument("--policy", action="append", choices=list(POLICIES))
    parser.add_argument("--new-arms", action="store_true")
    asked = parser.parse_args()
    if asked.new_arms:
        new_arms(rounds=asked.rounds, replications=asked.replications)
        return
    names = asked.policy or list(POLICIES)
    if importlib.util.find_spec("vowpalwabbit") is None:
        print('Vowpal Wabbit is not installed: pip install "pfnts[peers]"')
        names = [name for name in names if not name.startswith("vw")]
    table(asked.scenario or list(SCENARIOS), names, rounds=asked.rounds, replications=asked.replications)


if __name__ == "__main__":
    main()
