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


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--backbone", default="embedded")
    given = parser.parse_args()
    problems = [budgeted(horizon=given.rounds, rng=seed) for seed in range(given.seeds)]
    cost = dict(enumerate(problems[0].costs.tolist()))
    priced = Rewards(cost=cost, budget=(problems[0].budget, given.rounds))
    contestants = {
        "pfn-ts, budget": (False, lambda: PFNTS(3, backbone=given.backbone, rewards=priced)),
        "pfn-ts, costs alone": (False, lambda: PFNTS(3, backbone=given.backbone, rewards=Rewards(cost=cost))),
        "lin-ucb": (True, lambda: LinUCB(3)),
        "uniform": (True, lambda: Uniform(3)),
    }
    optima = [problem.optimum for problem in problems]
    nobody = [problem.earned(np.zeros(given.rounds, dtype=np.int64)) for problem in problems]
    print(f"{given.rounds:,} rounds, {given.seeds} replications")
    print(f"the optimum earns {np.mean(optima):,.0f}, doing nothing {np.mean(nobody):,.0f}")
    for name, (net, make) in contestants.items():
        start, regrets, spent = time.perf_counter(), [], []
        for seed, problem in enumerate(problems):
            arms = play(make(), problem, net=net, rng=np.random.default_rng(seed))
            assert problem.spent(arms) <= problem.budget + 1e-6
            regrets.append(optima[seed] - problem.earned(arms))
            spent.append(problem.spent(arms) / problem.budget)
        share = 1 - np.sum(regrets) / np.sum(np.subtract(optima, nobody))
        print(
            f"{name:22s} regret {np.mean(regrets):8.1f} ± {np.std(regrets):6.1f}"
            f"   {share:4.0%} of what can be won, {np.mean(spent):4.0%} of the budget"
            f"   {(time.perf_counter() - start) / len(regrets):.0f} s each",
            flush=True,
        )


if __name__ == "__main__":
    main()
