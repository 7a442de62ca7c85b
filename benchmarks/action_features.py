"""Regret where arms have features: PFN-TS, LinUCB on features, Vowpal Wabbit, uniform and an oracle.

    python benchmarks/action_features.py [--rounds 1000] [--replications 5] [--scenario offers-linear-50 ...]
    python benchmarks/action_features.py --new-arms [--rounds 2000]

Every policy meets the same arrays. Vowpal Wabbit (`pip install "pfnts[peers]"`) has action-dependent
features and all products of context and features (`-q ca`), with its default exploration and with SquareCB.

`--new-arms` plays offers-renewed, where ten of fifty arms are new every 500 rounds, and asks how well rounds
go whose best arm is new: 1 is what an oracle does, 0 is a draw at random. Beside it the same network that
sees labels alone.
"""

from __future__ import annotations

import argparse
import importlib.util
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from pfnts.arms import Features
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


def ours(
    name: str, *, features: bool = True, **options: Any
) -> Callable[[Environment, np.random.Generator], Chosen]:
    def play(environment: Environment, rng: np.random.Generator) -> Chosen:
        policy = make_policy(name, arms=environment.first_arms(features=features), **options)
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


BY = {
    "features": ours("pfn-ts"),
    "identity": ours("pfn-ts", features=False, encoding=Features(identity=True)),
}


def new_arm_losses(by: str, *, rounds: int, replication: int) -> tuple[Losses, Losses]:
    """What rounds lost, and what chance would have, by the state of their best arm.

    The first three count where it is new, its cohort pulled less than once each, up to ten times, and more
    often; the last, where it has been there for 1,000 rounds.
    """
    environment = make("offers-renewed", horizon=rounds, rng=np.random.default_rng([7, replication]))
    chosen = BY[by](environment, np.random.default_rng([8, replication]))
    assert environment.available is not None
    means = np.where(environment.available, environment.means, np.nan)
    best, losses = np.nanargmax(means, axis=1), regret(environment, chosen)
    of_chance = np.nanmax(means, axis=1) - np.nanmean(means, axis=1)
    came = environment.available.argmax(axis=0)
    lost, chance = np.zeros((2, 4))
    for t in range(500, rounds):
        cohort = np.flatnonzero(came == came[best[t]])
        age = t - came[best[t]]
        if came[best[t]] and age < 500:
            pulls = np.isin(chosen[came[best[t]] : t], cohort).sum() / len(cohort)
            column = int(pulls >= 1) + int(pulls >= 10)
        elif age >= 1000:
            column = 3
        else:
            continue
        lost[column] += losses[t]
        chance[column] += of_chance[t]
    return lost, chance


def new_arms(*, rounds: int, replications: int) -> None:
    """How well rounds go whose best arm is new, by how often its cohort has been pulled."""
    print(f"offers-renewed, {rounds:,} rounds, {replications} replications: share of chance's regret avoided")
    print(f"{'':20} {'pulls of each new arm, on average':^32}  {'arms of 1,000 rounds and more':>30}")
    print(f"{'':20} {'below 1':>10} {'1 to 10':>10} {'above 10':>10}  {'':>30}")
    for by in BY:
        found = [new_arm_losses(by, rounds=rounds, replication=each) for each in range(replications)]
        lost, chance = np.sum(found, axis=0)
        shares = 1 - lost / np.where(chance > 0, chance, np.nan)
        print(
            f"by {by:17} " + " ".join(f"{share:10.2f}" for share in shares[:3]) + f"  {shares[3]:30.2f}",
            flush=True,
        )


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
