"""Environments in which arms have features, and in which they come and go."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pfnts.environments import Environment, describe, make
from pfnts.events import ArmAdded, ArmRemoved
from pfnts.experiments import PolicySpec, RunSpec
from pfnts.experiments.simulations import run
from pfnts.policies import Policy
from pfnts.policies import make as make_policy
from pfnts.simulation import simulate
from pfnts.simulation.loop import fixed_regret


def renewed(*, rounds: int = 60, every: int = 17) -> Environment:
    """Five arms, two of them new every so many rounds."""
    scenario = replace(describe("offers-renewed"), n_arms=5, every=every, renewed=2)  # type: ignore[type-var]
    return scenario.environment(horizon=rounds, rng=np.random.default_rng(3))


def policy_for(environment: Environment, name: str) -> Policy:
    features = name in ("pfn-ts", "lin-ucb-features", "uniform")
    options: dict[str, Any] = {"backbone": "linear"} if name == "pfn-ts" else {}
    return make_policy(name, arms=environment.first_arms(features=features), **options)


@pytest.mark.parametrize("name", ["pfn-ts", "lin-ucb-features", "lin-ts", "uniform"])
def test_a_simulation_is_what_add_decide_update_and_remove_do(name: str) -> None:
    environment = renewed()
    available, features = environment.available, environment.arm_features
    assert available is not None
    assert features is not None
    trajectory = simulate(policy_for(environment, name), environment, rng=np.random.default_rng(1))
    policy, rng = policy_for(environment, name), np.random.default_rng(1)
    for t, context in enumerate(environment.contexts):
        if t and (available[t] != available[t - 1]).any():
            for arm in np.flatnonzero(available[t] & ~available[t - 1]).tolist():
                policy.add_arm(arm, None if name == "lin-ts" else features[arm])
            for arm in np.flatnonzero(available[t - 1] & ~available[t]).tolist():
                policy.remove_arm(arm)
        decision = policy.decide(context, rng=rng)
        policy.update(decision, reward=environment.rewards[t, int(decision.arm)])
        assert trajectory.arms[t] == decision.arm
        shares = np.zeros(environment.n_arms)
        shares[list(decision.arms)] = decision.propensities
        np.testing.assert_allclose(trajectory.propensities[t], shares, atol=1e-9)
        best = environment.means[t][available[t]].max()
        assert trajectory.regret[t] == pytest.approx(best - environment.means[t, int(decision.arm)])
    kinds = [type(event) for event in policy.events]
    assert (kinds.count(ArmAdded), kinds.count(ArmRemoved)) == (6, 6)


def test_ten_of_fifty_arms_are_new_every_500_rounds() -> None:
    environment = make("offers-renewed", horizon=1200, rng=0)
    available = environment.available
    assert available is not None
    assert environment.n_arms == 70
    assert (available.sum(axis=1) == 50).all()
    assert [environment.there(t)[0] for t in (0, 499, 500, 999, 1000)] == [0, 0, 10, 10, 20]
    shorter = make("offers-renewed", horizon=700, rng=0)
    np.testing.assert_array_equal(shorter.rewards, environment.rewards[:700, :60])


def test_scenarios_with_features_run_by_name() -> None:
    for policy in ("uniform", "lin-ucb-features", "lin-ucb"):
        spec = RunSpec("offers-renewed", PolicySpec(policy), horizon=520, replication=0, seed=1)
        trajectory = run(spec)
        assert trajectory.propensities.shape == (520, 60)
        np.testing.assert_allclose(trajectory.propensities.sum(axis=1), 1)


def test_features_pay() -> None:
    environment = make("offers-linear-50", horizon=400, rng=0)
    by_features, chance = (
        simulate(policy_for(environment, name), environment, rng=np.random.default_rng(0)).total_regret
        for name in ("lin-ucb-features", "uniform")
    )
    assert by_features < 0.4 * chance


def test_an_arm_that_is_away_counts_as_one_drawn_at_random() -> None:
    means = np.array([[1.0, 3.0, -np.inf], [-np.inf, 3.0, 5.0]])
    np.testing.assert_allclose(fixed_regret(means), [2 + 1, 0 + 2, 1 + 0])


def test_what_does_not_fit_is_said() -> None:
    environment = renewed()
    with pytest.raises(ValueError, match="policy must have the environment's 5 arms, got 11"):
        simulate(make_policy("uniform", arms=11), environment, rng=np.random.default_rng(0))
    with pytest.raises(ValueError, match=r"must be a pfnts\.Policy where arms come and go"):
        simulate(object(), environment, rng=np.random.default_rng(0))  # type: ignore[arg-type]
    array = np.zeros((3, 2))
    with pytest.raises(ValueError, match="arm_features must have a row for each of 2 arms"):
        Environment("x", array, array, array, arm_features=np.zeros((3, 1)))
    with pytest.raises(ValueError, match="available must be"):
        Environment("x", array, array, array, available=np.zeros((3, 2), dtype=bool))
