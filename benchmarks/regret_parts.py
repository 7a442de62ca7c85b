"""How much of PFN-TS's regret is prediction, and how much exploring.

    python benchmarks/regret_parts.py steps linear [--rounds 2000] [--replications 1] [--data FOLDER]

The same replications of a scenario are played in seven ways, and the regret of each is printed:

- *default*: as it comes;
- *draws*: the part of it that is lost because a draw did not take the likeliest arm;
- *greedy*: with ``exploration=0``;
- *full*: greedy, and told the rewards of all arms in every round: what is left is prediction alone;
- *disjoint*, *joint*: as it comes, with that encoding instead of choosing between them;
- *full disjoint*, *full joint*: with that encoding and told all rewards.

A greedy run that loses less than the default one explores too much; one that loses more, too little. What the
default loses beyond full information is the price of seeing one reward a round.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from pfnts import PFNTS, simulate
from pfnts.environments import Environment
from pfnts.experiments import PolicySpec, RunSpec
from pfnts.experiments.scenarios import make_environment
from pfnts.layouts.schedule import next_refresh
from pfnts.simulation.loop import pseudo_regret


def played(environment: Environment, rng: np.random.Generator, **options: object) -> tuple[float, float]:
    """Regret of a run, and how much of it comes of draws that did not take the likeliest arm."""
    policy = PFNTS(arms=environment.n_arms, **options)  # type: ignore[arg-type]
    done = simulate(policy, environment, rng=rng, prefetch=256)
    likeliest = pseudo_regret(environment.means, done.propensities.argmax(axis=1))
    return done.total_regret, float((done.regret - likeliest).sum())


def fully_informed(environment: Environment, rng: np.random.Generator, *, encoding: str) -> float:
    """Regret of the largest mean, told all rewards of every round; refreshed as often as PFN-TS is.

    The first rounds, before every arm has three rewards, are drawn at random.
    """
    policy = PFNTS(arms=environment.n_arms, encoding=encoding)
    arms = rng.integers(environment.n_arms, size=environment.horizon)
    told, rounds = 0, next_refresh(0, 1.5)
    while rounds < environment.horizon:
        new = slice(told, rounds)
        each = np.tile(np.arange(environment.n_arms), rounds - told).tolist()
        contexts = np.repeat(environment.contexts[new], environment.n_arms, axis=0)
        policy.update(contexts, arm=each, reward=environment.rewards[new].ravel())
        told, rounds = rounds, min(next_refresh(rounds, 1.5), environment.horizon)
        arms[told:rounds] = policy.posterior(environment.contexts[told:rounds]).mean.argmax(axis=1)
    return float(pseudo_regret(environment.means, arms).sum())


def parts(scenario: str, *, rounds: int, replication: int, data: Path | None) -> dict[str, float]:
    """Regret of one replication played in every way."""
    spec = RunSpec(scenario, PolicySpec("pfn-ts"), horizon=rounds, replication=replication, seed=42)
    environment = make_environment(scenario, horizon=rounds, rng=spec.generators()[0], data=data)

    def rng() -> np.random.Generator:
        return spec.generators()[1]

    total, draws = played(environment, rng())
    found = {"default": total, "draws": draws, "greedy": played(environment, rng(), exploration=0.0)[0]}
    found["full"] = fully_informed(environment, rng(), encoding="adaptive")
    for encoding in ("disjoint", "joint"):
        found[encoding] = played(environment, rng(), encoding=encoding)[0]
        found[f"full {encoding}"] = fully_informed(environment, rng(), encoding=encoding)
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("scenarios", nargs="+")
    parser.add_argument("--rounds", type=int, default=2000)
    parser.add_argument("--replications", type=int, default=1)
    parser.add_argument("--data", type=Path, help="folder with the tables of OpenML scenarios")
    chosen = parser.parse_args()
    for scenario in chosen.scenarios:
        rows = []
        for replication in range(chosen.replications):
            row = parts(scenario, rounds=chosen.rounds, replication=replication, data=chosen.data)
            if not rows:
                print(f"{scenario:26s}" + "".join(f"{name:>14s}" for name in row))
            rows.append(row)
            print(f"  {replication:<24d}" + "".join(f"{value:14.1f}" for value in row.values()), flush=True)
        means = np.mean([list(row.values()) for row in rows], axis=0)
        print(f"  {'mean':24s}" + "".join(f"{value:14.1f}" for value in means), flush=True)


if __name__ == "__main__":
    main()
