"""Whether a simulation by stretches takes the decisions of one round at a time, and what it saves.

    python benchmarks/stretches.py [--rounds 2000] [--policies pfn-ts lin-ts ...]

Every policy, and PFN-TS under every encoding and estimator, on three scenarios. Models are smaller than their
defaults where only the loop around them matters. The exit status is 1 if any trajectory differs.
"""

from __future__ import annotations

import argparse
import sys
import time

import numpy as np

from pfnts import policies, simulate
from pfnts.environments import Environment, make
from pfnts.policies.bart import BartSettings
from pfnts.policies.ensembles import BoostingSettings

SCENARIOS = ("friedman", "synbart", "steps")
LINEAR = {"backbone": "linear"}
CASES = [
    ("uniform", {}),
    ("ts", {}),
    ("lin-ts", {}),
    ("lin-ucb", {}),
    ("epsilon-greedy", LINEAR),
    ("rf-ts", {"n_trees": 10}),
    ("rf-ts", {"n_trees": 10, "layout": "joint"}),
    ("xgboost-ts", {"boosting": BoostingSettings(rounds=10)}),
    ("neural-ts", {"hidden": 10, "steps": 3}),
    (
        "bf-ts",
        {"bart": BartSettings(trees=10, burn_in=20, draws=30, chains=1, smallest=2048), "refresh": 2.0},
    ),
    *(("pfn-ts", {**LINEAR, "encoding": e}) for e in ("adaptive", "disjoint", "joint", "block", "threshold")),
    ("pfn-ts", {**LINEAR, "encoding": "joint", "estimator": "subclt"}),
    ("pfn-ts", {**LINEAR, "estimator": "shrunk"}),
    ("pfn-ts", {**LINEAR, "estimator": "predictive"}),
    ("pfn-ts", {**LINEAR, "exploration": 0.0}),
    ("pfn-ts", {**LINEAR, "explore": 0.1, "warmup": 20, "refresh": 2.0}),
    ("pfn-ts", {}),
]


def one_by_one(policy: policies.Policy, environment: Environment) -> tuple[list[int], list[np.ndarray], dict]:
    """Arms, propensities and the generator's state at the end."""
    rng, arms, shares = np.random.default_rng(1), [], []
    for t, x in enumerate(environment.contexts):
        if t % 2048 == 0:
            policy.prefetch(environment.contexts[t : t + 2048])
        decision = policy.decide(x, rng=rng)
        policy.update(decision, reward=float(environment.rewards[t, decision.index]))
        arms.append(decision.index)
        shares.append(decision.propensities)
    return arms, shares, rng.bit_generator.state


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=2000)
    parser.add_argument("--policies", nargs="*", default=sorted({name for name, _ in CASES}))
    chosen = parser.parse_args()
    different = 0
    for name, options in CASES:
        if name not in chosen.policies:
            continue
        for scenario in SCENARIOS:
            environment = make(scenario, horizon=chosen.rounds, rng=np.random.default_rng(0))
            begun = time.process_time()
            arms, shares, state = one_by_one(
                policies.make(name, arms=environment.n_arms, **options), environment
            )
            between, rng = time.process_time(), np.random.default_rng(1)
            policy = policies.make(name, arms=environment.n_arms, **options)
            trajectory = simulate(policy, environment, rng=rng)
            slow, fast = between - begun, time.process_time() - between
            same = np.array_equal(trajectory.arms, arms) and rng.bit_generator.state == state
            error = np.abs(trajectory.propensities - shares).max()
            different += not same
            said = "the same decisions" if same else "OTHER DECISIONS"
            print(
                f"{name} {options or ''} on {scenario}: {said}, propensities within {error:.0e}; "
                f"{slow:.2f} s one by one, {fast:.2f} s by stretches",
                flush=True,
            )
    return int(different > 0)


if __name__ == "__main__":
    sys.exit(main())
