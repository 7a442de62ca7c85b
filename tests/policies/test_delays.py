"""Rewards that are late or never come, and arms that come late."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pfnts.policies import Policy, make

POLICIES: dict[str, Any] = {
    "pfn-ts": lambda arms: make("pfn-ts", arms=arms, backbone="linear"),
    "pfn-ts joint": lambda arms: make("pfn-ts", arms=arms, backbone="linear", encoding="joint"),
    "pfn-ts shrunk": lambda arms: make("pfn-ts", arms=arms, backbone="linear", estimator="shrunk"),
    "lin-ts": lambda arms: make("lin-ts", arms=arms),
    "lin-ucb": lambda arms: make("lin-ucb", arms=arms),
    "ts": lambda arms: make("ts", arms=arms),
    "epsilon-greedy": lambda arms: make("epsilon-greedy", arms=arms, backbone="linear"),
}
every = pytest.mark.parametrize("name", POLICIES)


def pulls(
    policy: Policy, rounds: int, *, means: dict[Any, float], delay: dict[Any, float], seed: int = 0
) -> list[Any]:
    """Play rounds in which an arm's rewards come so many rounds later; infinity is never."""
    rng, noise = np.random.default_rng([seed, 0]), np.random.default_rng([seed, 1])
    waiting: list[tuple[float, Any, float]] = []
    chosen = []
    for t in range(rounds):
        due = [entry for entry in waiting if entry[0] <= t]
        waiting = [entry for entry in waiting if entry[0] > t]
        for _, decision, reward in due:
            policy.update(decision, reward=reward)
        decision = policy.decide(noise.uniform(size=2), rng=rng)
        chosen.append(decision.arm)
        reward = means[decision.arm] + 0.3 * noise.standard_normal()
        waiting.append((t + 1 + delay[decision.arm], decision, reward))
    return chosen


@every
@pytest.mark.parametrize("arms", [2, 4])
def test_an_arm_that_never_answers_gets_its_warm_up_and_no_more(name: str, arms: int) -> None:
    policy = POLICIES[name](arms)
    silent = arms - 1
    means = {arm: float(arm == silent) for arm in range(arms)}
    delay = {arm: np.inf if arm == silent else 0 for arm in range(arms)}
    chosen = pulls(policy, 400, means=means, delay=delay)
    # Exploring at random is a share that it has a right to.
    most = (
        policy.traffic.warmup
        + 400 * policy.traffic.explore / arms
        + 5 * np.sqrt(400 * policy.traffic.explore / arms)
    )
    assert chosen.count(silent) <= most


@every
def test_two_silent_arms_leave_the_rest_to_the_third(name: str) -> None:
    policy = POLICIES[name](3)
    chosen = pulls(policy, 300, means=dict.fromkeys(range(3), 0.0), delay={0: 0, 1: np.inf, 2: np.inf})
    assert chosen.count(0) >= 300 - 2 * policy.traffic.warmup - 300 * policy.traffic.explore


@every
def test_if_no_reward_ever_comes_every_arm_has_its_share(name: str) -> None:
    policy = POLICIES[name](3)
    chosen = pulls(policy, 600, means=dict.fromkeys(range(3), 0.0), delay=dict.fromkeys(range(3), np.inf))
    for arm in range(3):
        assert abs(chosen.count(arm) - 200) < 5 * np.sqrt(600 * 2 / 9)


@every
def test_rewards_two_hundred_rounds_late_are_learned_from_when_they_come(name: str) -> None:
    policy = POLICIES[name](2)
    chosen = pulls(policy, 600, means={0: 0.0, 1: 1.0}, delay={0: 200, 1: 200})
    # Before the first reward nothing is known: half and half. Then the better arm, at once.
    assert abs(chosen[:200].count(1) - 100) < 5 * np.sqrt(50)
    assert chosen[210:].count(0) <= 0.1 * 390


@every
@pytest.mark.parametrize("slow", [0, 1])
def test_an_arm_whose_rewards_are_late_does_not_capture_the_traffic(name: str, slow: int) -> None:
    policy = POLICIES[name](2)
    chosen = pulls(policy, 600, means={0: 0.0, 1: 1.0}, delay={slow: 200, 1 - slow: 0})
    assert chosen[:200].count(slow) <= policy.traffic.warmup + 200 * policy.traffic.explore
    assert chosen[300:].count(1) > 0.8 * 300


@every
def test_rewards_of_the_past_may_be_handed_in_as_rows(name: str) -> None:
    # A log of earlier days ends the warm-up before the first decision.
    policy, rng = POLICIES[name](2), np.random.default_rng(0)
    X = rng.uniform(size=(40, 2))
    policy.update(X, arm=[0, 1] * 20, reward=np.tile([0.0, 2.0], 20) + 0.1 * rng.normal(size=40))
    decision = policy.decide(X[0], rng=rng)
    assert decision.reason != "warmup"
    assert decision.propensities[1] > 0.9


@pytest.mark.parametrize("encoding", ["joint", "disjoint", "block", "threshold", "adaptive"])
@pytest.mark.parametrize("estimator", ["network", "shrunk"])
def test_a_best_arm_that_comes_late_is_found(encoding: str, estimator: str) -> None:
    if (encoding, estimator) == ("block", "shrunk"):
        return  # blocks of a new arm begin as zeros, which this estimator takes for knowledge
    policy = make("pfn-ts", arms=["a", "b"], backbone="linear", encoding=encoding, estimator=estimator)
    assert late_arm(policy) > 150


def test_lin_ts_finds_a_best_arm_that_comes_late() -> None:
    assert late_arm(make("lin-ts", arms=["a", "b"])) > 150


def late_arm(policy: Policy) -> int:
    """Pulls of the best arm in the first 300 rounds that it is there, after 1,030 rounds of others."""
    rng, noise = np.random.default_rng(0), np.random.default_rng(1)
    X = noise.uniform(size=(1030, 2))
    arms = np.array(["a", "b"])[(noise.random(1030) < 0.9).astype(int)]
    policy.update(X, arm=arms, reward=(arms == "b") + 0.5 * noise.standard_normal(1030))
    policy.add_arm("c")
    means = {"a": 0.0, "b": 1.0, "c": 2.0}
    chosen = []
    for _ in range(300):
        decision = policy.decide(noise.uniform(size=2), rng=rng)
        policy.update(decision, reward=means[decision.arm] + 0.5 * noise.standard_normal())
        chosen.append(decision.arm)
    assert chosen[0] == "c"
    return chosen.count("c")


def test_a_shared_sequence_lets_an_arm_leave_warm_up_by_its_own_rows() -> None:
    # At 1,030 rows the next regular refresh is hundreds of rows away.
    policy = make("pfn-ts", arms=["a", "b"], backbone="linear", encoding="joint", warmup=5)
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(1030, 2))
    policy.update(X, arm=["a", "b"] * 515, reward=rng.normal(size=1030))
    policy.add_arm("c")
    reasons = []
    for _ in range(8):
        decision = policy.decide(rng.uniform(size=2), rng=rng)
        policy.update(decision, reward=5.0 + 0.1 * rng.normal())
        reasons.append(decision.reason)
    assert reasons == ["warmup"] * 5 + ["thompson"] * 3
