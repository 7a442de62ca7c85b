"""What a change of the world costs, and what watching for one costs where nothing changes.

    python benchmarks/drift.py [--part sudden|lasting|stationary|attainable] [--seeds 10] [--rounds 4000]
                               [--scenarios drift-sudden sines] [--backbone embedded] [--minutes 30]

`sudden` plays worlds that change in the middle: drift-sudden, where all functions are drawn anew, and
scenarios whose arms change places. Regret of a round from 1,000 rounds after the change on is set against two
policies that meet the same contexts and luck: the *twin*, whose world was the second from the first round on
(it has learned three times as long), and the *fresh start*, which is made when the change happens and so
knows of it. `lasting` plays changes that go on, with and without a detector, a window, a half-life.
`stationary` plays worlds that do not change with and without the detector. `attainable` asks what could be
reached on drift-sudden: Thompson sampling that knows from what family of functions the worlds are drawn, the
noise, and when the change comes, as fresh start and as twin.

Ratios are those of sums over replications, with 90 % of their bootstrap distribution. Every run is printed as
it ends; --minutes stops after the replication in which they are over.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace

import numpy as np

from pfnts import simulate
from pfnts.environments import Environment, make
from pfnts.environments.drift import CHANGE, NOISE, DriftScenario
from pfnts.policies import make as make_policy

TWIN = DriftScenario("twin", "the second world throughout", np.ones_like)
NO_DETECTOR = {"detector": None}
MEMORIES: dict[str, dict[str, float | None]] = {
    "no detector": NO_DETECTOR,
    "the default": {},
    "window 1000": {"window": 1000, **NO_DETECTOR},
    "half-life 500": {"half_life": 500, **NO_DETECTOR},
}
SCENARIOS = {
    "sudden": ["drift-sudden", "friedman-disjoint", "steps", "sines"],
    "lasting": ["drift-gradual", "drift-seasonal"],
    "stationary": ["linear", "friedman", "friedman-heteroscedastic", "synbart", "steps", "logistic"],
}
Regrets = dict[str, list[np.ndarray]]


def play(environment: Environment, label: str, options: argparse.Namespace, seed: int) -> np.ndarray:
    """Regret (T,) of one run, which is printed."""
    memory = MEMORIES.get(label, {})
    policy = make_policy("pfn-ts", arms=environment.n_arms, backbone=options.backbone, **memory)
    begun = time.process_time()
    regret = simulate(policy, environment, rng=np.random.default_rng(seed + 10_000)).regret
    restarts = [f"restarted at row {change.row}" for change in policy.changes if change.restarted]
    notes = ", ".join([f"{len(policy.changes) - len(restarts)} alarms", *restarts])
    seconds = time.process_time() - begun
    print(f"  {seed:4} {label:14} {regret.sum():9.1f} {seconds:6.1f} s  {notes}", flush=True)
    return regret


def change_and_twin(name: str, rounds: int, seed: int) -> tuple[Environment, Environment]:
    """A world that changes in the middle, and one that was the second from the first round on."""
    if name == "drift-sudden":
        twin = TWIN.environment(horizon=rounds, rng=np.random.default_rng(seed))
        return make(name, horizon=rounds, rng=np.random.default_rng(seed)), twin
    first = make(name, horizon=rounds, rng=np.random.default_rng(seed))
    twin = replace(first, means=np.roll(first.means, 1, axis=1), rewards=np.roll(first.rewards, 1, axis=1))
    before = (np.arange(rounds) < rounds // 2)[:, None]
    means, rewards = (
        np.where(before, ours, theirs)
        for ours, theirs in ((first.means, twin.means), (first.rewards, twin.rewards))
    )
    return replace(first, means=means, rewards=rewards), twin


def after(environment: Environment, begin: int) -> Environment:
    """An environment from a round on."""
    kept = {name: getattr(environment, name)[begin:] for name in ("contexts", "means", "rewards")}
    return replace(environment, **kept)


def ratio(above: np.ndarray, below: np.ndarray) -> str:
    """Ratio of the sums of two arrays (replications,), with 90 % of its bootstrap distribution."""
    drawn = np.random.default_rng(0).integers(len(above), size=(4000, len(above)))
    low, high = np.quantile(above[drawn].sum(axis=1) / below[drawn].sum(axis=1), [0.05, 0.95])
    return f"{above.sum() / below.sum():6.2f} ({low:.2f} to {high:.2f})"


def informed_thompson(environment: Environment, *, seed: int, waves: int = 400) -> np.ndarray:
    """Regret (T,) of one Bayesian regression per arm whose prior is that of drift-sudden's functions.

    These are sums of waves with normal directions: a Gaussian process, here with ``waves`` of them.
    """
    rng, arms = np.random.default_rng(seed), environment.n_arms
    directions = rng.normal(0, 1.5, (environment.contexts.shape[1], waves))
    phases = rng.uniform(0, 2 * np.pi, waves)
    design = np.sqrt(2 / waves) * np.cos(environment.contexts @ directions + phases)
    mean, covariance = np.zeros((arms, waves)), np.tile(np.eye(waves), (arms, 1, 1))
    regret = environment.means.max(axis=1)
    for t, x in enumerate(design):
        spread = covariance @ x
        variance = spread @ x
        k = int((mean @ x + np.sqrt(np.maximum(variance, 0)) * rng.standard_normal(arms)).argmax())
        gain = spread[k] / (variance[k] + NOISE**2)
        mean[k] += gain * (environment.rewards[t, k] - mean[k] @ x)
        covariance[k] -= np.outer(gain, spread[k])
        regret[t] -= environment.means[t, k]
    return regret


def attainable(options: argparse.Namespace) -> None:
    """Regret of a round from 1,000 rounds after the change on, by those who know all but the functions."""
    later, found = slice(options.rounds // 2 + 1000, None), []
    for seed in range(options.first, options.first + options.seeds):
        _, twin = change_and_twin("drift-sudden", options.rounds, seed)
        fresh = informed_thompson(after(twin, options.rounds // 2), seed=seed)
        found.append((fresh[1000:].mean(), informed_thompson(twin, seed=seed)[later].mean()))
    fresh, twin = np.transpose(found)
    print(f"regret of a round: fresh start {fresh.mean():.4f}, twin {twin.mean():.4f}; {ratio(fresh, twin)}")


def replications(name: str, options: argparse.Namespace, deadline: float) -> Regrets:
    """Regrets (T,) of every replication of a scenario, by label."""
    print(f"\n{name}", flush=True)
    found: Regrets = {}
    for seed in range(options.first, options.first + options.seeds):
        if options.part == "sudden":
            changed, twin = change_and_twin(name, options.rounds, seed)
            fresh = after(twin, options.rounds // 2)
            played = {"the default": changed, "twin": twin, "fresh start": fresh}
            if options.blind:
                played["no detector"] = changed
        else:
            environment = make(name, horizon=options.rounds, rng=np.random.default_rng(seed))
            labels = list(MEMORIES) if options.part == "lasting" else list(MEMORIES)[:2]
            played = dict.fromkeys(labels, environment)
        for label, environment in played.items():
            found.setdefault(label, []).append(play(environment, label, options, seed))
        if time.monotonic() > deadline:
            break
    return found


def sudden(results: dict[str, Regrets], rounds: int) -> None:
    """Regret of a round before and after the change, and over those of twin and fresh start."""
    middle, later = rounds // 2, slice(rounds // 2 + 1000, None)
    columns = ["before", "1,000 after", "then", "twin", "fresh start"]
    titles = "".join(f"{column:>13}" for column in columns) + f"{'over twin':>22}{'over fresh start':>22}"
    print(f"\nregret of a round{'':23}{titles}")
    for name, found in results.items():
        twin, fresh = np.array(found["twin"])[:, later], np.array(found["fresh start"])[:, 1000:]
        for label in ("the default", "no detector") if "no detector" in found else ("the default",):
            ours = np.array(found[label])
            then = ours[:, later]
            parts = (ours[:, :middle], ours[:, middle : middle + 1000], then, twin, fresh)
            ratios = [ratio(then.sum(axis=1), other.sum(axis=1)) for other in (twin, fresh)]
            print(
                f"{name:24}{label:16}"
                + "".join(f"{part.mean():13.4f}" for part in parts)
                + "".join(f"{each:>22}" for each in ratios)
                + f"  {len(ours)} replications"
            )


def compared(results: dict[str, Regrets], part: slice, what: str) -> None:
    """Regret over that without a detector, scenario by scenario."""
    print(f"\n{what:24}{'':16}{'of a round':>12}   over no detector")
    for name, found in results.items():
        blind = np.array(found["no detector"])[:, part]
        for label, regrets in found.items():
            ours = np.array(regrets)[:, part]
            print(
                f"{name:26}{label:14}{ours.mean():12.4f} {ratio(ours.sum(axis=1), blind.sum(axis=1))}"
                f"  {len(ours)} replications"
            )


def cost(results: dict[str, Regrets]) -> None:
    """Geometric mean, over scenarios, of the regret with the detector over that without."""
    rng, logs = np.random.default_rng(0), np.zeros((len(results), 4001))
    for row, found in zip(logs, results.values(), strict=True):
        ours, blind = (np.sum(found[label], axis=1) for label in ("the default", "no detector"))
        drawn = rng.integers(len(ours), size=(4000, len(ours)))
        row[0] = np.log(ours.sum() / blind.sum())
        row[1:] = np.log(ours[drawn].sum(axis=1) / blind[drawn].sum(axis=1))
    mean, *others = np.exp(logs.mean(axis=0))
    low, high = np.quantile(others, [0.05, 0.95])
    print(f"geometric mean {mean:.3f} ({low:.3f} to {high:.3f})")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--part", choices=(*SCENARIOS, "attainable"), default="sudden")
    parser.add_argument("--backbone", default="embedded")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--rounds", type=int, default=2 * CHANGE)
    parser.add_argument("--scenarios", nargs="*", help="all of the part when left out")
    parser.add_argument("--blind", action="store_true", help="sudden: play without a detector as well")
    parser.add_argument("--minutes", type=float, default=float("inf"))
    options = parser.parse_args()
    if options.part == "attainable":
        attainable(options)
        return
    names = options.scenarios or SCENARIOS[options.part]
    begun = time.monotonic()
    results = {
        # Scenarios share the time evenly.
        name: replications(name, options, begun + 60 * options.minutes * (i + 1) / len(names))
        for i, name in enumerate(names)
    }
    if options.part == "sudden":
        sudden(results, options.rounds)
    elif options.part == "lasting":
        compared(results, slice(options.rounds // 4, None), "after a quarter")
    else:
        compared(results, slice(None), "all rounds")
        cost(results)


if __name__ == "__main__":
    main()
