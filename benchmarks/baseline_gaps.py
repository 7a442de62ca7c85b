"""Why some baselines end elsewhere than in the paper's table: three small experiments, minutes each.

    python benchmarks/baseline_gaps.py lock-in    # friedman: does the first arm pulled decide the run?
    python benchmarks/baseline_gaps.py traps      # friedman: RFTS and XGBoostTS with known mistakes put in
    python benchmarks/baseline_gaps.py draws      # linear: how much depends on the draws of coefficients?

docs/baselines.md says what came of them.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from unittest.mock import patch

import numpy as np

from pfnts import environments
from pfnts.experiments import PolicySpec, RunSpec, run
from pfnts.policies import Policy
from pfnts.policies.baselines.forest_ts import RFTS, XGBoostTS
from pfnts.policies.baselines.leaf_statistics import Indices, LeafStatistics
from pfnts.simulation import Trajectory, simulate

BARE = {"intercept": False, "warmup": 0}
TUNED = {"penalty": 0.1, "nu": 0.001}


def lock_in(replications: int | None, horizon: int | None) -> None:
    """Count runs that still pull arm 0, the worse at every context, by the arm they pulled first."""
    for policy, runs, rounds in (
        (PolicySpec.of("lin-ts", **BARE), 60, 200),
        (PolicySpec.of("lin-ucb", **BARE), 60, 200),
        (PolicySpec.of("lin-ts", warmup=0), 60, 200),
        (PolicySpec.of("lin-ts"), 60, 200),
        (PolicySpec.of("lin-ucb"), 60, 200),
        (PolicySpec.of("neural-ts", **TUNED, warmup=0), 10, 150),
        (PolicySpec.of("neural-ts", **TUNED), 10, 150),
    ):
        runs, rounds = replications or runs, horizon or rounds
        found = np.zeros((2, 2), dtype=int)
        for replication in range(runs):
            done = run(RunSpec("friedman", policy, horizon=rounds, replication=replication, seed=7))
            found[done.arms[0], int((done.arms[-50:] == 0).mean() > 0.9)] += 1
        print(
            f"{policy.label}: of {found[0].sum()} runs that began with arm 0, {found[0, 1]} end with it; "
            f"of {found[1].sum()} that began with arm 1, {found[1, 1]}",
            flush=True,
        )


def with_placeholders(policy: Policy) -> Policy:
    """Put five rewards of 0 at random contexts into each arm's history before the first true one."""
    rows = 5 * policy.n_arms
    contexts = np.random.default_rng(0).random((rows, environments.describe("friedman").n_features))
    policy.update(contexts, arm=[policy.arms[i % policy.n_arms] for i in range(rows)], reward=[0.0] * rows)
    return policy


@contextmanager
def variance_by_prediction() -> Iterator[None]:
    """Let rewards between refits widen a leaf by the ensemble's prediction, not by their residual."""
    observe: Callable[[LeafStatistics, Indices, float], None] = LeafStatistics.observe

    def mistaken(self: LeafStatistics, leaves: Indices, reward: float) -> None:
        at = self._trees, leaves
        scatter, prediction = self._scatter[at].copy(), self._offset + self._values(leaves).sum()
        observe(self, leaves, reward)
        self._scatter[at] = scatter + (prediction - self._mean[at]) ** 2

    with patch.object(LeafStatistics, "observe", mistaken):
        yield


def traps(replications: int | None, horizon: int | None) -> None:
    """Print the regret on friedman of RFTS and XGBoostTS as they are, joint, bolder, and misled."""
    policies: tuple[type[RFTS] | type[XGBoostTS], ...] = (RFTS, XGBoostTS)
    for policy in policies:
        variants: dict[str, Callable[..., Policy]] = {
            "as it is": lambda arms, policy=policy: policy(arms),
            "joint": lambda arms, policy=policy: policy(arms, layout="joint"),
            "nu = 3": lambda arms, policy=policy: policy(arms, nu=3.0),
            "placeholder rewards": lambda arms, policy=policy: with_placeholders(policy(arms)),
        }
        for name, make in variants.items():
            print(f"{policy.name}, {name}: {_regrets(make, replications or 2, horizon or 2000)}", flush=True)
        with variance_by_prediction():
            found = _regrets(variants["as it is"], replications or 2, horizon or 2000)
        print(f"{policy.name}, variance by prediction: {found}", flush=True)


def _regrets(make: Callable[[int], Policy], replications: int, horizon: int) -> list[int]:
    def one(replication: int) -> Trajectory:
        spec = RunSpec("friedman", PolicySpec("ts"), horizon=10_000, replication=replication, seed=42)
        for_environment, for_policy = spec.generators()
        rounds = environments.make(spec.scenario, horizon=spec.horizon, rng=for_environment)
        return simulate(make(rounds.n_arms), rounds, rng=for_policy, horizon=horizon)

    return [round(one(replication).total_regret) for replication in range(replications)]


def draws(replications: int | None, horizon: int | None) -> None:
    """Print the regret of LinTS on linear for two sets of five environments."""
    for options in ({"nu": 0.1}, {"nu": 0.1, **BARE}):
        policy = PolicySpec.of("lin-ts", **options)
        for seed in (42, 7):
            specs = [
                RunSpec("linear", policy, horizon=horizon or 10_000, replication=replication, seed=seed)
                for replication in range(replications or 5)
            ]
            print(
                f"{policy.label}, seed {seed}: {[round(run(spec).total_regret) for spec in specs]}",
                flush=True,
            )


def main() -> None:
    experiments = {"lock-in": lock_in, "traps": traps, "draws": draws}
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("experiment", choices=list(experiments))
    parser.add_argument("--replications", type=int)
    parser.add_argument("--horizon", type=int)
    arguments = parser.parse_args()
    experiments[arguments.experiment](arguments.replications, arguments.horizon)


if __name__ == "__main__":
    main()
