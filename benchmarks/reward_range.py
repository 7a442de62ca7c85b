"""What a known range of rewards is worth: prizes in corners of the contexts, and what looking for them costs.

    python benchmarks/reward_range.py [--rounds 1000] [--seeds 2] [--family box ...] [--wheels]

Corners of four shapes, none of them the wheel's, on which the method was chosen: an arm pays a prize in a
box, a ball, beyond a plane or in a thin slab, which holds 1 to 5 % of the contexts. And two families without
corners, for the price: smooth functions, and yes/no rewards. Compared are PFN-TS as it comes, with a range,
with each half of what a range does, and LinUCB. With ``--wheels`` the wheels are played as well.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from pfnts import PFNTS, Rewards, simulate
from pfnts.environments import Environment, make
from pfnts.policies import LinUCB, unexplored

SHAPES = {"box": (2, 0.05), "slab": (3, 0.02), "plane": (5, 0.03), "ball": (3, 0.01)}
"""Features, and the share of the contexts in each arm's corner."""


def inside(X, shape, mass, rng):
    if shape == "box":
        side = mass ** (1 / X.shape[1])
        begin = rng.random(X.shape[1]) * (1 - side)
        return (np.abs(X - begin - side / 2) <= side / 2).all(axis=1)
    centre, direction = rng.random(X.shape[1]), rng.standard_normal(X.shape[1])
    along = X @ direction
    far = {
        "plane": -along,
        "slab": np.abs(along - np.quantile(along, rng.uniform(0.1, 0.9))),
        "ball": ((X - centre) ** 2).sum(axis=1),
    }[shape]
    return far < np.quantile(far, mass)


def cornered(shape, rounds, seed):
    """The first arm is a little better than three others, each of which has a corner with a prize."""
    features, mass = SHAPES[shape]
    rng = np.random.default_rng([seed, *shape.encode()])
    X = rng.random((rounds, features))
    slopes = X @ rng.normal(0, 0.02, (features, 4))
    means = 0.2 + slopes - slopes.mean(axis=0) + [0.02, 0.0, 0.0, 0.0]
    for arm in (1, 2, 3):
        means[inside(X, shape, mass, rng), arm] = 0.9
    rewards = means + 0.01 * rng.standard_normal(means.shape)
    return Environment(shape, X, means, np.clip(rewards, 0, 1))


def plain(name, rounds, seed):
    rng = np.random.default_rng([seed, *name.encode()])
    X = rng.random((rounds, 4))
    waves = sum(np.sin(3 * X @ rng.standard_normal((4, 3)) + rng.uniform(0, 6.3, 3)) for _ in range(2))
    if name == "smooth":
        means = 0.5 + 0.12 * waves
        return Environment(name, X, means, np.clip(means + 0.05 * rng.standard_normal(means.shape), 0, 1))
    means = 1 / (1 + np.exp(2 - waves))
    return Environment(name, X, means, (rng.random(means.shape) < means).astype(float))


@contextmanager
def settings(**values: float) -> Iterator[None]:
    before = {name: getattr(unexplored, name) for name in values}
    for name, value in values.items():
        setattr(unexplored, name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(unexplored, name, value)


def contestants(backbone, range_):
    def known(arms):
        return PFNTS(arms, backbone=backbone, rewards=Rewards(range=range_))

    return {
        "no range": ({}, lambda arms: PFNTS(arms, backbone=backbone)),
        "range": ({}, known),
        "looks, does not follow": ({"_USUAL": 0.0}, known),
        "follows, does not look": ({"_TAIL": 0.0}, known),
        "lin-ucb": ({}, LinUCB),
    }


def played(environments, options, maker):
    regrets, start = [], time.perf_counter()
    with settings(**options):
        for seed, environment in enumerate(environments):
            trajectory = simulate(maker(environment.n_arms), environment, rng=np.random.default_rng(seed))
            regrets.append(trajectory.total_regret)
    return regrets, (time.perf_counter() - start) / len(regrets)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--backbone", default="embedded")
    parser.add_argument("--family", nargs="*", default=[*SHAPES, "smooth", "yes-no"])
    parser.add_argument("--only", nargs="*", help="contestants")
    parser.add_argument("--wheels", action="store_true")
    given = parser.parse_args()
    problems = {
        family: (
            [
                (cornered if family in SHAPES else plain)(family, given.rounds, seed)
                for seed in range(given.seeds)
            ],
            (0.0, 1.0),
        )
        for family in given.family
    }
    for name in ("wheel-0.9", "wheel-0.99") if given.wheels else ():
        problems[name] = (
            [make(name, horizon=given.rounds, rng=seed) for seed in range(given.seeds)],
            (0.0, 51.0),
        )
    print(f"regret after {given.rounds:,} rounds, {given.seeds} replications, {given.backbone}")
    for family, (environments, range_) in problems.items():
        for name, (options, maker) in contestants(given.backbone, range_).items():
            if given.only and name not in given.only:
                continue
            regrets, seconds = played(environments, options, maker)
            each = ", ".join(f"{regret:.1f}" for regret in regrets)
            print(
                f"{family:10s} {name:24s} {np.mean(regrets):10.1f}   ({each}; {seconds:.0f} s each)",
                flush=True,
            )


if __name__ == "__main__":
    main()
