"""What every policy must do. A policy joins by one line in CASES."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from pfnts.policies import Policy, make


@dataclass(frozen=True)
class Case:
    """A policy under contract."""

    name: str
    """Shown by pytest."""
    make: Callable[[Any], Policy]
    """From arms (a number or labels) to a fresh policy."""
    learns: bool = True
    """Whether it is meant to."""
    seeds: int = 20
    """How many seeds the learning check takes in a row; fewer only where a run takes seconds."""
    draws: int = 2000
    """Decisions in the comparison of propensities with frequencies."""


def small_bart() -> Any:
    from pfnts.policies.bart import BartSettings

    return BartSettings(trees=10, burn_in=30, draws=40, chains=1, smallest=512)


CASES = [
    Case("uniform", lambda arms: make("uniform", arms=arms), learns=False),
    Case("pfn-ts adaptive", lambda arms: make("pfn-ts", arms=arms, backbone="linear")),
    Case("pfn-ts disjoint", lambda arms: make("pfn-ts", arms=arms, backbone="linear", encoding="disjoint")),
    Case(
        "pfn-ts joint coupled",
        lambda arms: make("pfn-ts", arms=arms, backbone="linear", encoding="joint", coupling="joint"),
        seeds=5,
    ),
    Case("pfn-ts shrunk", lambda arms: make("pfn-ts", arms=arms, backbone="linear", variance="shrunk")),
    Case("pfn-ts greedy", lambda arms: make("pfn-ts", arms=arms, backbone="linear", rule="greedy")),
    Case("pfn-ts exploring", lambda arms: make("pfn-ts", arms=arms, backbone="linear", explore=0.1)),
    Case("pfn-ts predictive", lambda arms: make("pfn-ts", arms=arms, backbone="linear", rule="predictive")),
    Case("lin-ts", lambda arms: make("lin-ts", arms=arms)),
    Case("lin-ucb", lambda arms: make("lin-ucb", arms=arms)),
    Case("ts", lambda arms: make("ts", arms=arms)),
    Case("epsilon-greedy", lambda arms: make("epsilon-greedy", arms=arms, backbone="linear")),
    # Fewer trees and rarer refits than the defaults, for time.
    Case("rf-ts", lambda arms: make("rf-ts", arms=arms, n_trees=10, refresh=2.0), draws=1000),
    Case(
        "rf-ts joint",
        lambda arms: make("rf-ts", arms=arms, n_trees=10, refresh=2.0, layout="joint"),
        seeds=3,
        draws=1000,
    ),
    Case("xgboost-ts", lambda arms: make("xgboost-ts", arms=arms, rounds=20, refresh=4.0), draws=1000),
    # A smaller network on larger steps, and a few short chains on tables of one size.
    Case(
        "neural-ts",
        lambda arms: make("neural-ts", arms=arms, nu=0.01, hidden=10, steps=5, learning_rate=0.05),
        draws=1000,
    ),
    Case("bf-ts", lambda arms: make("bf-ts", arms=arms, bart=small_bart(), refresh=2.0), seeds=2, draws=300),
]

LEARNERS = [case for case in CASES if case.learns]


def every(cases: list[Case]) -> Any:
    return pytest.mark.parametrize("case", cases, ids=lambda case: case.name)


def play(
    policy: Policy, rounds: int, *, seed: int, gap: float = 1.0, noise: float = 0.5, delay: int = 1
) -> np.ndarray:
    """Decide, and hand in rewards ``delay`` rounds at a time in random order; the last arm is best."""
    environment, own = (np.random.default_rng([seed, i]) for i in range(2))
    contexts = environment.integers(2, size=(rounds, 2)).astype(float)
    arms = np.empty(rounds, dtype=int)
    waiting = []
    for t in range(rounds):
        decision = policy.decide(contexts[t], rng=own)
        arms[t] = decision.index
        best = decision.index == policy.n_arms - 1
        waiting.append((contexts[t], decision.arm, gap * best + noise * environment.standard_normal()))
        if len(waiting) == delay:
            for i in environment.permutation(delay):
                context, arm, reward = waiting[i]
                policy.update(context, arm=arm, reward=reward)
            waiting = []
    return arms


def trained(case: Case, *, arms: Any = 2, rounds: int = 60, seed: int = 0, gap: float = 0.1) -> Policy:
    """Train on so small a gap that the policy is left undecided."""
    policy = case.make(arms)
    play(policy, rounds, seed=seed, gap=gap)
    return policy


@every(LEARNERS)
def test_learns_a_constant_gap(case: Case) -> None:
    # Uniform loses half of 300 gaps.
    for seed in range(case.seeds):
        lost = (play(case.make(2), 300, seed=seed, noise=0.2) == 0).sum()
        assert lost < 50, f"seed {seed}: {lost} wrong pulls of 300"


@every(LEARNERS)
def test_learns_from_late_rewards_in_any_order(case: Case) -> None:
    for seed in range(min(case.seeds, 3)):
        lost = (play(case.make(2), 300, seed=seed, noise=0.2, delay=20) == 0).sum()
        assert lost < 75, f"seed {seed}: {lost} wrong pulls of 300"


@every(CASES)
def test_respects_eligible(case: Case) -> None:
    policy, rng = case.make(4), np.random.default_rng(0)
    for _ in range(60):
        eligible = rng.random(4) < 0.5
        eligible[rng.integers(4)] = True
        context = rng.uniform(size=2)
        decision = policy.decide(context, rng=rng, eligible=eligible)
        assert eligible[decision.index]
        assert not decision.propensities[~eligible].any()
        assert decision.propensities.sum() == pytest.approx(1, abs=1e-9)
        assert decision.propensities[decision.index] > 0
        policy.update(context, arm=decision.arm, reward=rng.normal())


@every(CASES)
def test_same_seed_same_decisions(case: Case) -> None:
    one, two = (play(case.make(3), 60, seed=5) for _ in range(2))
    np.testing.assert_array_equal(one, two)


@every(CASES)
def test_labels_and_indices_agree(case: Case) -> None:
    labels = ["none", "standard", "tailored"]
    policy, rng = case.make(labels), np.random.default_rng(0)
    assert policy.arms == tuple(labels)
    for _ in range(30):
        decision = policy.decide([0.5, 0.5], rng=rng)
        assert labels[decision.index] == decision.arm
        assert decision.propensities.shape == (3,)
        policy.update([0.5, 0.5], arm=decision.arm, reward=1.0)


@every(CASES)
def test_mappings_with_categories_and_missing_values(case: Case) -> None:
    policy, rng = case.make(2), np.random.default_rng(0)
    for t in range(40):
        context = {
            "age": None if t % 7 == 3 else float(rng.uniform(20, 70)),
            "vip": bool(rng.integers(2)),
            "plan": ["free", "paid", f"trial {t}"][rng.integers(3)],
        }
        decision = policy.decide(context, rng=rng)
        policy.update(context, arm=decision.arm, reward=rng.normal())
    assert np.isfinite(decision.propensities).all()


@every(CASES)
def test_batch_equals_one_by_one(case: Case) -> None:
    contexts = np.random.default_rng(1).uniform(size=(12, 2))
    for rounds in (0, 60):
        one, two = (trained(case, arms=3, rounds=rounds) for _ in range(2))
        together = one.decide(contexts, rng=np.random.default_rng(2))
        rng = np.random.default_rng(2)
        singly = [two.decide(context, rng=rng) for context in contexts]
        assert [d.index for d in together] == [d.index for d in singly]
        np.testing.assert_allclose(
            [d.propensities for d in together], [d.propensities for d in singly], atol=1e-6
        )


@every(CASES)
def test_batch_update_is_accepted(case: Case) -> None:
    policy, rng = case.make(["a", "b"]), np.random.default_rng(0)
    contexts = rng.uniform(size=(40, 2))
    arms = ["a", "b"] * 20
    policy.update(contexts, arm=arms, reward=[float(arm == "b") for arm in arms])
    assert isinstance(policy.decide(contexts, rng=rng), list)


@every([case for case in CASES if not case.make(2).explore])
def test_warm_up_goes_round_also_before_any_reward(case: Case) -> None:
    policy, rng = case.make(3), np.random.default_rng(0)
    rounds = 3 * policy.warmup
    pulled = [policy.decide(rng.uniform(size=2), rng=rng) for _ in range(rounds)]
    assert [d.index for d in pulled] == [0, 1, 2] * policy.warmup
    assert all(d.propensities[d.index] == 1 for d in pulled)


@every(CASES)
def test_errors_leave_the_policy_as_it_was(case: Case) -> None:
    policy, twin = (trained(case, arms=["a", "b"]) for _ in range(2))
    x, rng = np.array([0.5, 0.5]), np.random.default_rng(0)
    bad: list[tuple[str, Callable[[], Any]]] = [
        ("reward must be a finite number, got nan", lambda: policy.update(x, arm="a", reward=np.nan)),
        ("reward must be a finite number, got inf", lambda: policy.update(x, arm="a", reward=np.inf)),
        ("reward must be a finite number, got 'much'", lambda: policy.update(x, arm="a", reward="much")),
        (r"arm must be one of \['a', 'b'\], got 'c'", lambda: policy.update(x, arm="c", reward=1.0)),
        (r"arm must be one of", lambda: policy.update(x, arm=["a"], reward=1.0)),
        ("context must have", lambda: policy.update(np.ones(3), arm="a", reward=1.0)),
        ("context must have", lambda: policy.decide(np.ones(3), rng=rng)),
        ("context must have", lambda: policy.decide({"age": 3}, rng=rng)),
        ("must be finite or missing", lambda: policy.decide(np.array([np.inf, 0]), rng=rng)),
        ("eligible must leave at least one", lambda: policy.decide(x, rng=rng, eligible=[False, False])),
        ("eligible must be a boolean mask", lambda: policy.decide(x, rng=rng, eligible=[True])),
        ("eligible must be a boolean mask", lambda: policy.decide(x, rng=rng, eligible=[0, 1])),
        (
            "reward must be a finite number, got nan",
            lambda: policy.update(np.ones((2, 2)), arm=["a", "b"], reward=[1.0, np.nan]),
        ),
        (
            "context, arm and reward must have one length",
            lambda: policy.update(np.ones((2, 2)), arm=["a"], reward=[1.0, 2.0]),
        ),
    ]
    for words, call in bad:
        with pytest.raises(ValueError, match=words):
            call()
    with pytest.raises(TypeError, match="rng must be a numpy"):
        policy.decide(x, rng=3)
    np.testing.assert_array_equal(play(policy, 30, seed=3, gap=0.1), play(twin, 30, seed=3, gap=0.1))


@every(CASES)
def test_errors_on_the_first_call_leave_no_schema(case: Case) -> None:
    policy = case.make(2)
    with pytest.raises(ValueError, match="reward must be"):
        policy.update([1.0, 2.0, 3.0], arm=0, reward=np.nan)
    with pytest.raises(ValueError, match="eligible must"):
        policy.decide([1.0, 2.0, 3.0], rng=np.random.default_rng(0), eligible=[False, False])
    assert policy.schema is None
    policy.update([1.0, 2.0], arm=0, reward=1.0)


@every(CASES)
@pytest.mark.parametrize("mask", [None, [True, False, True]])
def test_propensities_match_the_frequency_of_decisions(case: Case, mask: list[bool] | None) -> None:
    policy = trained(case, arms=3)
    x = np.tile([0.3, 0.6], (case.draws, 1))
    eligible = None if mask is None else np.array(mask)
    decisions = policy.decide(x, rng=np.random.default_rng(4), eligible=eligible)
    propensities = np.array([d.propensities for d in decisions])
    np.testing.assert_allclose(propensities.sum(axis=1), 1, atol=1e-9)
    expected = propensities.mean(axis=0)
    frequency = np.bincount([d.index for d in decisions], minlength=3) / case.draws
    error = np.sqrt(expected * (1 - expected) / case.draws)
    assert (np.abs(frequency - expected) < 5 * error + 1e-3).all(), (frequency, expected)


@every(CASES)
def test_prefetch_changes_no_decision(case: Case) -> None:
    contexts = np.random.default_rng(0).uniform(size=(80, 2))
    runs = []
    for ahead in (False, True):
        policy, rng, noise = case.make(2), np.random.default_rng(1), np.random.default_rng(2)
        arms = []
        for t, context in enumerate(contexts):
            if ahead and t % 16 == 0:
                policy.prefetch(contexts[t : t + 16])
            decision = policy.decide(context, rng=rng)
            policy.update(context, arm=decision.arm, reward=0.2 * decision.index + noise.normal())
            arms.append(decision.index)
        runs.append(arms)
    assert runs[0] == runs[1]


@every([case for case in CASES if hasattr(case.make(2), "save")])
def test_loaded_policy_continues_to_the_same_decisions(case: Case, tmp_path: Any) -> None:
    policy = trained(case, arms=["a", "b"])
    policy.save(tmp_path / "policy")
    loaded = type(policy).load(tmp_path / "policy")
    assert loaded.arms == policy.arms
    np.testing.assert_array_equal(play(loaded, 40, seed=3, gap=0.1), play(policy, 40, seed=3, gap=0.1))
