"""Reward less cost under a budget, against the optimum of somebody who knows everything.

    python benchmarks/budget.py [--rounds 1000] [--seeds 5] [--backbone embedded]

Whom to write to (0.2) and whom to call (1), with money for 15 calls in 100 rounds
(`environments/budgeted.py`). Policies that know nothing of budgets are told which arms are still affordable.
Regret is the optimum of the linear programme less what was earned: no policy within the budget earns more.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from pfnts import PFNTS, Rewards
from pfnts.environments.budgeted import budgeted
from pfnts.policies import LinUCB, Uniform
from pfnts.policies.budget import affordable

POLICIES = {
    "pfn-ts, budget": lambda backbone, cost, budget: PFNTS(
        3, backbone=backbone, rewards=Rewards(cost=cost, budget=budget)
    ),
    "pfn-ts, costs alone": lambda backbone, cost, _: PFNTS(3, backbone=backbone, rewards=Rewards(cost=cost)),
    "lin-ucb": lambda *_: LinUCB(3),
    "uniform": lambda *_: Uniform(3),
}


def play(policy, problem, *, net, rng):
    """Play round by round; policies without costs of their own learn rewards less costs."""
    environment, rounds = problem.environment, problem.environment.horizon
    arms = np.empty(rounds, dtype=np.int64)
    left = problem.budget
    for t in range(rounds):
        eligible = affordable(problem.costs, left=left, rounds=rounds - t)
        decision = policy.decide(environment.contexts[t], rng=rng, eligible=eligible)
        arms[t] = decision.index
        left -= problem.costs[decision.index]
        policy.update(
            decision, reward=environment.rewards[t, decision.index] - net * problem.costs[decision.index]
        )
    return arms


def played(name, *, rounds, seed, backbone="embedded"):
    """What one replication of a policy lost against the optimum, and what part of the budget it spent."""
    problem = budgeted(horizon=rounds, rng=seed)
    cost = dict(enumerate(problem.costs.tolist()))
    policy = POLICIES[name](backbone, cost, (problem.budget, rounds))
    arms = play(policy, problem, net=not isinstance(policy, PFNTS), rng=np.random.default_rng(seed))
    spent = problem.spent(arms)
    assert spent <= problem.budget + 1e-6
    nothing = problem.earned(np.zeros(rounds, dtype=np.int64))
    return {
        "optimum": problem.optimum,
        "nothing": nothing,
        "regret": problem.optimum - problem.earned(arms),
        "spent": spent / problem.budget,
    }


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--backbone", default="embedded")
    given = parser.parse_args()
    print(f"{given.rounds:,} rounds, {given.seeds} replications; regret against the optimum")
    for name in POLICIES:
        start = time.perf_counter()
        found = [
            played(name, rounds=given.rounds, seed=seed, backbone=given.backbone)
            for seed in range(given.seeds)
        ]
        regret, optimum, nothing, spent = (
            np.array([each[what] for each in found]) for what in ("regret", "optimum", "nothing", "spent")
        )
        print(
            f"{name:22s} regret {regret.mean():8.1f} ± {regret.std():6.1f}"
            f"   {1 - regret.sum() / (optimum - nothing).sum():4.0%} of what can be won,"
            f" {spent.mean():4.0%} of the budget   {(time.perf_counter() - start) / given.seeds:.0f} s each",
            flush=True,
        )


if __name__ == "__main__":
    main()
