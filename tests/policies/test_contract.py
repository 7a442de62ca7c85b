"""What every policy must do. A policy joins by one line in CASES."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pfnts.environments import Environment
from pfnts.events.event import to_dict
from pfnts.layouts import Features
from pfnts.policies import Decision, Policy, make
from pfnts.simulation import simulate


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
    features: Any = None
    """Those of an arm that is added; with them warm-up is pooled, none is cold alone."""
    library: str = ""
    """Module without which it is left out: one that is built from source may be missing."""
    weighs: bool = False
    """Whether it weighs a reward by the propensity of its decision."""


def small_bart() -> Any:
    from pfnts.policies.baselines.bart import BartSettings

    return BartSettings(trees=10, burn_in=30, draws=40, chains=1, smallest=512)


def small_boosting() -> Any:
    from pfnts.policies.baselines.ensembles import BoostingSettings

    return BoostingSettings(rounds=20)


def linear(**options: Any) -> Callable[[Any], Policy]:
    return lambda arms: make("pfn-ts", arms=arms, backbone="linear", **options)


def by_features(name: str = "pfn-ts", **options: Any) -> Callable[[Any], Policy]:
    """Arms told apart by two features, one of which says nothing."""

    def of(arms: Any) -> Policy:
        labels = range(arms) if isinstance(arms, int) else arms
        features = {label: {"place": i, "kind": "ab"[i % 2]} for i, label in enumerate(labels)}
        return make(name, arms=features, **({"backbone": "linear"} if name == "pfn-ts" else {}), **options)

    return of


CASES = [
    Case("uniform", lambda arms: make("uniform", arms=arms), learns=False),
    Case("pfn-ts averaged", linear(), seeds=8),
    Case("pfn-ts adaptive", linear(encoding="adaptive"), seeds=8),
    Case("pfn-ts disjoint", linear(encoding="disjoint"), seeds=5),
    Case("pfn-ts joint", linear(encoding="joint", estimator="subclt"), seeds=5),
    Case("pfn-ts shrunk", linear(estimator="shrunk"), seeds=5),
    Case("pfn-ts threshold", linear(encoding="threshold", refresh=2.0), seeds=5),
    Case("pfn-ts greedy", linear(exploration=0.0), seeds=5),
    Case("pfn-ts exploring", linear(explore=0.1), seeds=5),
    Case("pfn-ts limited", linear(holdout=0.05, max_share=0.9), seeds=5),
    Case("pfn-ts predictive", linear(estimator="predictive"), seeds=5),
    Case("pfn-ts features", by_features(), seeds=5, features={"place": 9, "kind": "c"}),
    Case(
        "pfn-ts features and identity",
        by_features(encoding=Features(identity=True)),
        seeds=5,
        features={"place": None, "kind": "b"},
    ),
    Case("lin-ts", lambda arms: make("lin-ts", arms=arms)),
    Case("lin-ucb", lambda arms: make("lin-ucb", arms=arms)),
    Case("lin-ucb-features", by_features("lin-ucb-features"), features={"place": 9, "kind": "c"}),
    Case("ts", lambda arms: make("ts", arms=arms)),
    Case("epsilon-greedy", lambda arms: make("epsilon-greedy", arms=arms, backbone="linear"), seeds=5),
    # Fewer trees and rarer refits than the defaults, for time.
    Case("rf-ts", lambda arms: make("rf-ts", arms=arms, n_trees=10, refresh=1.5), seeds=5, draws=1000),
    Case(
        "rf-ts joint",
        lambda arms: make("rf-ts", arms=arms, n_trees=10, refresh=1.5, layout="joint"),
        seeds=3,
        draws=1000,
    ),
    Case(
        "xgboost-ts",
        lambda arms: make("xgboost-ts", arms=arms, boosting=small_boosting(), refresh=1.5),
        seeds=5,
        draws=1000,
    ),
    # A smaller network on larger steps, and a few short chains on tables of one size.
    Case(
        "neural-ts",
        lambda arms: make("neural-ts", arms=arms, nu=0.01, hidden=10, steps=5, learning_rate=0.05),
        seeds=5,
        draws=1000,
    ),
    Case("bf-ts", lambda arms: make("bf-ts", arms=arms, bart=small_bart(), refresh=1.5), seeds=2, draws=300),
    Case("vw", lambda arms: make("vw", arms=arms), seeds=3, library="vowpalwabbit", weighs=True),
    Case(
        "vw squarecb",
        lambda arms: make("vw", arms=arms, arguments="--squarecb"),
        seeds=3,
        library="vowpalwabbit",
        weighs=True,
    ),
    Case(
        "mabwiser-linucb",
        lambda arms: make("mabwiser-linucb", arms=arms, intercept=True),
        seeds=2,
        draws=500,
        library="mabwiser",
    ),
    Case(
        "contextualbandits-linucb",
        lambda arms: make("contextualbandits-linucb", arms=arms, warmup=2),
        seeds=2,
        draws=500,
        library="contextualbandits",
    ),
    Case(
        "bayesianbandits-ts",
        lambda arms: make("bayesianbandits-ts", arms=arms, intercept=True),
        seeds=2,
        draws=500,
        library="bayesianbandits",
    ),
]

LEARNERS = [case for case in CASES if case.learns]
EMBEDDED = Case("pfn-ts embedded", lambda arms: make("pfn-ts", arms=arms))


def every(cases: list[Case]) -> Any:
    missing = {case.name: bool(case.library) and find_spec(case.library) is None for case in cases}
    skip = [pytest.mark.skipif(missing[case.name], reason=f"{case.library} is missing") for case in cases]
    listed = [pytest.param(case, id=case.name, marks=mark) for case, mark in zip(cases, skip, strict=True)]
    return pytest.mark.parametrize("case", listed)


def play(
    policy: Policy, rounds: int, *, seed: int, gap: float = 1.0, noise: float = 0.5, delay: int = 1
) -> list[Decision]:
    """Decide, and hand in rewards ``delay`` rounds at a time in random order; the last arm is best."""
    environment, own = (np.random.default_rng([seed, i]) for i in range(2))
    contexts = environment.integers(2, size=(rounds, 2)).astype(float)
    decisions, waiting = [], []
    for t in range(rounds):
        decision = policy.decide(contexts[t], rng=own)
        best = decision.index == policy.n_arms - 1
        decisions.append(decision)
        waiting.append((decision, gap * best + noise * environment.standard_normal()))
        if len(waiting) == delay:
            for i in environment.permutation(delay):
                assert policy.update(waiting[i][0], reward=waiting[i][1]) == "learned"
            waiting = []
    return decisions


def wrong(decisions: list[Decision]) -> int:
    return sum(decision.index == 0 for decision in decisions)


def trained(case: Case, *, arms: Any = 2, rounds: int = 60, seed: int = 0, gap: float = 0.1) -> Policy:
    """Train on so small a gap that the policy is left undecided."""
    policy = case.make(arms)
    play(policy, rounds, seed=seed, gap=gap)
    return policy


def same(one: list[Decision], two: list[Decision], *, atol: float = 0.0) -> None:
    """The same decisions, to the last bit unless allowed otherwise."""
    assert [d.arm for d in one] == [d.arm for d in two]
    assert [d.reason for d in one] == [d.reason for d in two]
    assert [d.id for d in one] == [d.id for d in two]
    np.testing.assert_allclose(
        [d.propensities for d in one], [d.propensities for d in two], rtol=0, atol=atol
    )


@every(LEARNERS)
def test_learns_a_constant_gap(case: Case) -> None:
    # Uniform loses half of 300 gaps.
    for seed in range(case.seeds):
        lost = wrong(play(case.make(2), 300, seed=seed, noise=0.2))
        assert lost < 50, f"seed {seed}: {lost} wrong pulls of 300"


@every(LEARNERS)
def test_learns_from_late_rewards_in_any_order(case: Case) -> None:
    for seed in range(min(case.seeds, 3)):
        lost = wrong(play(case.make(2), 300, seed=seed, noise=0.2, delay=20))
        assert lost < 75, f"seed {seed}: {lost} wrong pulls of 300"


@every(CASES)
def test_respects_eligible(case: Case) -> None:
    policy, rng = case.make(4), np.random.default_rng(0)
    for _ in range(60):
        eligible = rng.random(4) < 0.5
        eligible[rng.integers(4)] = True
        decision = policy.decide(rng.uniform(size=2), rng=rng, eligible=eligible)
        assert eligible[decision.index]
        assert not decision.propensities[~eligible].any()
        assert decision.propensities.sum() == pytest.approx(1, abs=1e-9)
        assert decision.propensities[decision.index] > 0
        policy.update(decision, reward=rng.normal())


@every(CASES)
def test_same_seed_same_decisions(case: Case) -> None:
    same(*(play(case.make(3), 60, seed=5) for _ in range(2)))


@every([case for case in CASES if not case.weighs])
def test_rows_without_decisions_teach_the_same_as_decisions(case: Case) -> None:
    # The way of logs: context, arm and reward instead of a decision's id.
    one, two = case.make(2), case.make(2)
    rng, twin, environment = (np.random.default_rng(i) for i in (0, 0, 1))
    for _ in range(50):
        context = environment.uniform(size=2)
        left, right = one.decide(context, rng=rng), two.decide(context, rng=twin)
        same([left], [right])
        reward = environment.normal() + left.index
        one.update(left, reward=reward)
        two.update(context, arm=right.arm, reward=reward)


@every(CASES)
def test_labels_and_indices_agree(case: Case) -> None:
    labels = ["none", "standard", 7]
    policy, rng = case.make(labels), np.random.default_rng(0)
    assert policy.arms == tuple(labels)
    assert policy.n_arms == 3
    for _ in range(30):
        decision = policy.decide([0.5, 0.5], rng=rng)
        assert labels[decision.index] == decision.arm
        assert decision.arms == tuple(labels)
        assert decision.propensities.shape == (3,)
        policy.update([0.5, 0.5], arm=decision.arm, reward=1.0)


@every(CASES)
def test_mappings_with_categories_and_missing_values(case: Case) -> None:
    policy, rng = case.make(2), np.random.default_rng(0)
    plans = ["free", "paid", "trial", "gift"]
    for t in range(40):
        context = {
            "age": None if t % 7 == 3 else float(rng.uniform(20, 70)),
            "vip": bool(rng.integers(2)),
            "plan": plans[rng.integers(1 + t // 10)],
        }
        decision = policy.decide(context, rng=rng)
        policy.update(decision, reward=rng.normal())
    assert np.isfinite(decision.propensities).all()


@every([*CASES, EMBEDDED])
def test_batch_equals_one_by_one(case: Case) -> None:
    contexts = np.random.default_rng(1).uniform(size=(12, 2))
    masks = np.random.default_rng(3).random((12, 3)) < 0.6
    masks[:, 0] |= ~masks.any(axis=1)
    for rounds in (0, 4, 60):
        for eligible in (None, masks) if case is not EMBEDDED or rounds == 60 else ():
            one, two = (trained(case, arms=3, rounds=rounds) for _ in range(2))
            rng, twin = np.random.default_rng(2), np.random.default_rng(2)
            together = one.decide_batch(contexts, rng=rng, eligible=eligible)
            singly = [
                two.decide(context, rng=twin, eligible=None if eligible is None else eligible[i])
                for i, context in enumerate(contexts)
            ]
            same(together, singly, atol=1e-3 if case is EMBEDDED else 1e-6)  # it computes in single precision
            assert rng.random() == twin.random()
            assert len(one.events) == len(two.events)


@every([*CASES, EMBEDDED])
def test_update_of_a_batch_equals_row_by_row(case: Case) -> None:
    rng = np.random.default_rng(0)
    n = 70 if case is EMBEDDED else 150
    contexts, arms, rewards = rng.uniform(size=(n, 2)), rng.integers(3, size=n), rng.normal(size=n)
    one, two, three = (case.make(3) for _ in range(3))
    assert one.update(contexts, arm=arms, reward=rewards) == ["learned"] * n
    for i in range(n):
        assert two.update(contexts[i], arm=arms[i], reward=rewards[i]) == "learned"
        if i % 13 == 0:
            new = slice(max(0, i - 12), i + 1)
            three.update(contexts[new], arm=arms[new], reward=rewards[new])
            if i > 20:  # a look at the model in between must not change what it becomes
                three.decide(contexts[0], rng=rng)
    rest = 13 * ((n - 1) // 13) + 1
    three.update(contexts[rest:], arm=arms[rest:], reward=rewards[rest:])
    probes = rng.uniform(size=(20, 2))
    decisions = [p.decide_batch(probes, rng=np.random.default_rng(4)) for p in (one, two, three)]
    for other in decisions[1:]:
        np.testing.assert_allclose(
            [d.propensities for d in decisions[0]],
            [d.propensities for d in other],
            rtol=0,
            atol=1e-3 if case is EMBEDDED else 1e-9,
        )
        assert [d.arm for d in decisions[0]] == [d.arm for d in other]


@every(CASES)
def test_warm_up_is_random_among_the_cold_and_never_too_far_ahead(case: Case) -> None:
    rng, seen = np.random.default_rng(0), np.zeros(3)
    policy = case.make(3)
    if not policy.traffic.warmup or policy.traffic.holdout:  # test_traffic.py has the holdout
        return
    for round_ in range(40):
        policy = case.make(3)
        pulled = np.zeros(3, dtype=int)
        for t in range(3 * policy.traffic.warmup):
            cold = (pulled < policy.traffic.warmup) / (pulled < policy.traffic.warmup).sum()
            decision = policy.decide(rng.uniform(size=2), rng=rng)
            expected = (1 - policy.traffic.explore) * cold + policy.traffic.explore / 3
            np.testing.assert_allclose(decision.propensities, expected, atol=1e-12)
            assert decision.reason in ("warmup", "explore")
            assert decision.posterior is None
            pulled[decision.index] += 1
            if t == 0:
                seen[decision.index] += 1
        if not policy.traffic.explore:
            np.testing.assert_array_equal(pulled, policy.traffic.warmup)
        if round_ == 0:
            # All wait for their rewards: any arm, each alike.
            over = policy.decide(rng.uniform(size=2), rng=rng)
            if not policy.traffic.explore:
                np.testing.assert_allclose(over.propensities, 1 / 3)
    assert (np.abs(seen - 40 / 3) < 5 * np.sqrt(40 * 2 / 9)).all()


@every(CASES)
def test_cold_arms_among_the_eligible_are_drawn_alike(case: Case) -> None:
    policy, rng = case.make(4), np.random.default_rng(0)
    if not policy.traffic.warmup or policy.traffic.holdout or case.features:
        return
    X = rng.uniform(size=(40, 2))
    policy.update(X, arm=[0, 1] * 20, reward=rng.normal(size=40))
    decision = policy.decide(X[0], rng=rng)
    share = policy.traffic.explore
    np.testing.assert_allclose(
        decision.propensities, (1 - share) * np.array([0, 0, 0.5, 0.5]) + share / 4, atol=1e-12
    )
    masked = policy.decide(X[0], rng=rng, eligible=[True, False, False, True])
    np.testing.assert_allclose(
        masked.propensities,
        (1 - share) * np.array([0, 0, 0, 1.0]) + share * np.array([0.5, 0, 0, 0.5]),
        atol=1e-12,
    )
    warm = policy.decide(X[0], rng=rng, eligible=[True, True, False, False])
    assert warm.reason in (policy.rule, "explore")


@every(CASES)
def test_errors_leave_the_policy_as_it_was(case: Case) -> None:
    policy, twin = (trained(case, arms=["a", "b"]) for _ in range(2))
    x, rng = np.array([0.5, 0.5]), np.random.default_rng(0)
    before = rng.bit_generator.state
    bad: list[tuple[str, Callable[[], Any]]] = [
        ("reward must be a finite number", lambda: policy.update(x, arm="a", reward=np.nan)),
        ("reward must be a finite number", lambda: policy.update(x, arm="a", reward=np.inf)),
        ("reward must be a finite number.* got 'much'", lambda: policy.update(x, arm="a", reward="much")),
        ("reward must be a finite number", lambda: policy.update("3", reward=np.nan)),
        (r"arm must be one of \['a', 'b'\], got 'c'", lambda: policy.update(x, arm="c", reward=1.0)),
        ("arm must be one of", lambda: policy.update(x, arm=["a"], reward=1.0)),
        ("arm must be one of", lambda: policy.update(x, reward=1.0)),
        ("it has none with the id 'never'", lambda: policy.update("never", reward=1.0)),
        ("context must have", lambda: policy.update(np.ones(3), arm="a", reward=1.0)),
        ("context must have", lambda: policy.decide(np.ones(3), rng=rng)),
        ("context must", lambda: policy.decide({"age": 3}, rng=rng)),
        ("must be finite or missing", lambda: policy.decide(np.array([np.inf, 0]), rng=rng)),
        ("eligible must leave at least one", lambda: policy.decide(x, rng=rng, eligible=[False, False])),
        ("eligible must be a boolean mask", lambda: policy.decide(x, rng=rng, eligible=[True])),
        ("eligible must be a boolean mask", lambda: policy.decide(x, rng=rng, eligible=[0, 1])),
        ("use decide_batch", lambda: policy.decide(np.ones((2, 2)), rng=rng)),
        ("use decide", lambda: policy.decide_batch(x, rng=rng)),
        ("id must be new", lambda: policy.decide(x, rng=rng, id="3")),
        ("id must be a string", lambda: policy.decide(x, rng=rng, id=3)),  # type: ignore[arg-type]
        ("context must", lambda: policy.prefetch(np.ones((2, 3)))),
        ("arm must be new", lambda: policy.add_arm("a")),
        ("arm must be one of", lambda: policy.remove_arm("z")),
        (
            "reward must be a finite number",
            lambda: policy.update(np.ones((2, 2)), arm=["a", "b"], reward=[1.0, np.nan]),
        ),
        (
            "context, arm and reward must have one length",
            lambda: policy.update(np.ones((2, 2)), arm=["a"], reward=[1.0, 2.0]),
        ),
        ("arm must be a list", lambda: policy.update(np.ones((2, 2)), arm="ab", reward=[1.0, 2.0])),
    ]
    for words, call in bad:
        with pytest.raises(ValueError, match=words):
            call()
    with pytest.raises(TypeError, match="rng must be a numpy"):
        policy.decide(x, rng=3)  # type: ignore[arg-type]
    assert rng.bit_generator.state == before
    assert len(policy.events) == len(twin.events)
    same(play(policy, 30, seed=3, gap=0.1), play(twin, 30, seed=3, gap=0.1))


@every(CASES)
def test_errors_on_the_first_call_leave_no_schema(case: Case) -> None:
    policy = case.make(2)
    with pytest.raises(ValueError, match="reward must be"):
        policy.update([1.0, 2.0, 3.0], arm=0, reward=np.nan)
    with pytest.raises(ValueError, match="eligible must"):
        policy.decide([1.0, 2.0, 3.0], rng=np.random.default_rng(0), eligible=[False, False])
    policy.prefetch([[1.0, 2.0, 3.0]])
    assert policy.schema is None
    assert policy.events == ()
    policy.update([1.0, 2.0], arm=0, reward=1.0)
    policy.decide([1.0, 2.0], rng=np.random.default_rng(0))


@every(CASES)
@pytest.mark.parametrize("mask", [None, [True, False, True]])
def test_propensities_match_the_frequency_of_decisions(case: Case, mask: list[bool] | None) -> None:
    policy = trained(case, arms=3)
    x = np.tile([0.3, 0.6], (case.draws, 1))
    eligible = None if mask is None else np.array(mask)
    decisions = policy.decide_batch(x, rng=np.random.default_rng(4), eligible=eligible)
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
        decisions = []
        for t, context in enumerate(contexts):
            if ahead and t % 16 == 0:
                policy.prefetch(contexts[t : t + 16])
            decision = policy.decide(context, rng=rng)
            policy.update(decision, reward=0.2 * decision.index + noise.normal())
            decisions.append(decision)
        runs.append(decisions)
    same(*runs, atol=1e-9)


@every(CASES)
def test_a_simulation_equals_deciding_and_updating_round_by_round(case: Case) -> None:
    rng = np.random.default_rng(0)
    contexts, means = rng.uniform(size=(200, 2)), rng.uniform(size=(200, 3))
    environment = Environment("made up", contexts, means, means + 0.3 * rng.normal(size=means.shape))
    slow, own, arms, shares = case.make(3), np.random.default_rng(1), [], []
    for t in range(200):
        decision = slow.decide(contexts[t], rng=own)
        slow.update(decision, reward=environment.rewards[t, decision.index])
        arms.append(decision.index)
        shares.append(decision.propensities)
    for prefetch in (0, 64):
        fast, twin = case.make(3), np.random.default_rng(1)
        trajectory = simulate(fast, environment, rng=twin, prefetch=prefetch)
        np.testing.assert_array_equal(trajectory.arms, arms)
        np.testing.assert_allclose(trajectory.propensities, shares, rtol=0, atol=1e-9)
        assert twin.bit_generator.state == own.bit_generator.state
        assert [e.kind for e in fast.events] == [e.kind for e in slow.events]
        # The last two events also agree: propensities apart, these are the same logs.
        for left, right in zip(fast.events, slow.events, strict=True):
            one, two = to_dict(left), to_dict(right)
            one.pop("propensities", None), two.pop("propensities", None)
            assert one == two


@every(CASES)
def test_rounds_of_a_stretch_keep_to_their_own_eligible_arms(case: Case) -> None:
    rng = np.random.default_rng(5)
    contexts, rewards = rng.random((80, 2)), rng.standard_normal((80, 3)) + np.arange(3)
    eligible = rng.random((80, 3)) < 0.6
    eligible[np.arange(80), rng.integers(3, size=80)] = True
    slow, fast = case.make(3), case.make(3)
    own, twin = np.random.default_rng(6), np.random.default_rng(6)
    arms, shares = [], []
    for x, mask, paid in zip(contexts, eligible, rewards, strict=True):
        decision = slow.decide(x, eligible=mask, rng=own)
        slow.update(decision, reward=paid[decision.index])
        arms.append(decision.index)
        shares.append(decision.propensities)
    t = 0
    while t < len(contexts):
        rounds = slice(t, t + 40)
        index, shared = fast.play(contexts[rounds], rewards[rounds], eligible=eligible[rounds], rng=twin)
        np.testing.assert_array_equal(index, arms[t : t + len(index)])
        np.testing.assert_allclose(shared, shares[t : t + len(index)], rtol=0, atol=1e-9)
        t += len(index)
    assert twin.bit_generator.state == own.bit_generator.state
    assert [getattr(e, "eligible", 0) for e in fast.events] == [
        getattr(e, "eligible", 0) for e in slow.events
    ]


@every([*CASES, EMBEDDED])
def test_loaded_policy_continues_to_the_same_decisions(case: Case, tmp_path: Path) -> None:
    policy = trained(case, arms=["a", "b"], rounds=30 if case is EMBEDDED else 60)
    if policy.settings is None:
        with pytest.raises(ValueError, match="policy must have settings to be saved"):
            policy.save(tmp_path / "policy")
        assert list(tmp_path.iterdir()) == []
        return
    rng = np.random.default_rng(8)
    late = [policy.decide(np.array([0.0, 1.0]), rng=rng) for _ in range(3)]
    policy.save(tmp_path / "policy")
    loaded = type(policy).load(tmp_path / "policy")
    assert loaded.arms == policy.arms
    assert loaded.schema == policy.schema
    assert (loaded.traffic, loaded.rule) == (policy.traffic, policy.rule)
    assert list(map(to_dict, loaded.events)) == list(map(to_dict, policy.events))
    assert [p.update(late[1].id, reward=1.0) for p in (policy, loaded)] == ["learned"] * 2
    assert [p.update("3", reward=1.0) for p in (policy, loaded)] == ["duplicate"] * 2
    atol = 1e-3 if case is EMBEDDED else 1e-12  # forecasts in larger batches round differently
    same(play(loaded, 40, seed=3, gap=0.1), play(policy, 40, seed=3, gap=0.1), atol=atol)


@every(CASES)
def test_late_doubled_and_removed_rewards_have_one_outcome_each(case: Case) -> None:
    policy, rng = trained(case, arms=["a", "b", "c"]), np.random.default_rng(0)
    decisions = [policy.decide([0.2, 0.4], rng=rng) for _ in range(30)]
    assert policy.update(decisions[4], reward=1) == "learned"
    before = len(policy.events)
    assert policy.update(decisions[4], reward=2.0) == "duplicate"
    assert policy.update(decisions[4].id, reward=2.0) == "duplicate"
    assert len(policy.events) == before
    gone = decisions[5].arm
    policy.remove_arm(gone)
    assert policy.update(decisions[5], reward=1.0) == "learned"
    with pytest.raises(ValueError, match=f"got '{gone}', which was removed"):
        policy.update([0.2, 0.4], arm=gone, reward=1.0)
    assert all(policy.decide([0.2, 0.4], rng=rng).arm != gone for _ in range(20))
    policy.add_arm(gone, case.features)
    fresh = policy.decide([0.2, 0.4], rng=rng)
    divided = policy.traffic.explore or policy.traffic.holdout
    if policy.traffic.warmup and not divided and not case.features:
        assert (fresh.arm, fresh.reason) == (gone, "warmup")


@every(CASES)
def test_a_decision_is_json_and_says_why(case: Case) -> None:
    policy = trained(case, arms=["a", "b"])
    decision = policy.decide([0.5, 0.5], rng=np.random.default_rng(0), id="visit 17")
    written = json.loads(json.dumps(decision.to_dict(), allow_nan=False))
    assert written["id"] == "visit 17"
    assert written["arm"] == decision.arm
    assert written["reason"] == decision.reason
    assert decision.reason in (policy.rule, "explore")
    assert list(written["propensities"]) == ["a", "b"]
    assert sum(written["propensities"].values()) == pytest.approx(1)
    for event in policy.events:
        json.dumps(to_dict(event), allow_nan=False)


@every(CASES)
def test_repr_says_what_it_is(case: Case) -> None:
    policy = trained(case, arms=["a", "b"], rounds=4)
    assert repr(policy) == f"{type(policy).__name__}(arms=['a', 'b'], 8 events, 4 rewards)"


@every(CASES)
def test_the_last_arm_stays(case: Case) -> None:
    policy = case.make(["a"])
    with pytest.raises(ValueError, match="must not be the only one left, got 'a'"):
        policy.remove_arm("a")
    assert policy.decide([0.0, 0.0], rng=np.random.default_rng(0)).propensities.tolist() == [1.0]
