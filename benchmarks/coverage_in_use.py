"""How often 95 % intervals hold an arm's mean reward, by how often the policy had pulled that arm.

    python benchmarks/coverage_in_use.py [--seeds 3] [--rounds 40 120 400 1200]

PFN-TS with its defaults plays the families of ``benchmarks/exploration.py``, with seeds of their own. After
so many rounds every arm is asked about at contexts that are yet to come, whoever they would be given to.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from exploration import FAMILIES, draw

from pfnts import simulate
from pfnts.policies import make

CONTEXTS = 100
BINS = (8, 16, 32, 64, 128, 256)


@dataclass(frozen=True)
class Asked:
    """An arm after some rounds."""

    family: str
    seed: int
    rounds: int
    arm: int
    pulls: int
    coverage: float
    sd: float
    error: float


def ask(family: str, seed: int, rounds: int) -> Iterator[Asked]:
    longest = draw(family, rounds=rounds + CONTEXTS, seed=seed)
    played = replace(
        longest,
        contexts=longest.contexts[:rounds],
        means=longest.means[:rounds],
        rewards=longest.rewards[:rounds],
    )
    policy = make("pfn-ts", arms=longest.n_arms)
    arms = simulate(policy, played, rng=np.random.default_rng(seed)).arms
    posterior = policy.posterior(longest.contexts[rounds:])
    sd, errors = np.sqrt(posterior.variance), posterior.mean - longest.means[rounds:]
    for arm in range(longest.n_arms):
        yield Asked(
            family,
            seed,
            rounds,
            arm,
            int((arms == arm).sum()),
            float((np.abs(errors[:, arm]) < 1.96 * sd[:, arm]).mean()),
            float(sd[:, arm].mean()),
            float(np.sqrt((errors[:, arm] ** 2).mean())),
        )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rounds", type=int, nargs="+", default=[40, 120, 400, 1200])
    parser.add_argument("--out", help="a file for a line of each arm")
    chosen = parser.parse_args()
    jobs = [(f, 90_000 + s, n) for s in range(chosen.seeds) for f in FAMILIES for n in chosen.rounds]
    found: list[Asked] = []
    for number, job in enumerate(jobs):
        print(f"\r{number} of {len(jobs)} runs", end="", file=sys.stderr)
        found += ask(*job)
    print(file=sys.stderr)
    if chosen.out:
        with open(chosen.out, "w", newline="") as file:
            writer = csv.DictWriter(file, list(vars(found[0])))
            writer.writeheader()
            writer.writerows(map(vars, found))
    groups = defaultdict(list)
    for one in found:
        groups[int(np.searchsorted(BINS, one.pulls))].append(one)
    print("pulls           arms   95 % intervals hold   less than half   mean sd   error")
    for place, group in sorted(groups.items()):
        lower, upper = (0, *BINS)[place], (*BINS, None)[place]
        pulls = f"{lower + 1} to {upper}" if upper else f"over {lower}"
        held = np.array([one.coverage for one in group])
        sd, error = (np.mean([getattr(one, name) for one in group]) for name in ("sd", "error"))
        print(
            f"{pulls:14s}  {len(group):4d}   {held.mean():19.3f}   {(held < 0.5).mean():14.3f}   "
            f"{sd:7.2f}   {error:5.2f}"
        )


if __name__ == "__main__":
    main()
