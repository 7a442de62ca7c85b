"""Arms with features, and decisions among candidates of their own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pfnts import PFNTS
from pfnts.contexts import read
from pfnts.events import ArmAdded, Decided, Observed, Rewarded, from_dict
from pfnts.events.event import to_dict
from pfnts.layouts import Features
from pfnts.policies import Policy, Uniform, make

OFFERS = {
    "cheap book": {"price": 1.0, "kind": "book"},
    "dear book": {"price": 9.0, "kind": "book"},
    "cheap toy": {"price": 1.0, "kind": "toy"},
    "dear toy": {"price": 9.0, "kind": "toy"},
}
CONTEXT = {"age": 30.0}


def pfn(arms: Any = OFFERS, **options: Any) -> PFNTS:
    return PFNTS(arms, backbone="linear", **options)


def worth(features: dict[str, Any]) -> float:
    """Books are better, cheap ones best."""
    return (features["kind"] == "book") - 0.1 * features["price"]


def taught(policy: Policy, rounds: int, *, seed: int = 0, noise: float = 0.1) -> Policy:
    rng = np.random.default_rng(seed)
    for _ in range(rounds):
        decision = policy.decide({"age": float(rng.uniform(20, 70))}, rng=rng)
        policy.update(decision, reward=worth(OFFERS[str(decision.arm)]) + noise * rng.normal())
    return policy


def random_candidates(rng: np.random.Generator, count: int) -> list[dict[str, Any]]:
    return [
        {"price": float(rng.uniform(1, 9)), "kind": ["book", "toy", None][rng.integers(3)]}
        for _ in range(count)
    ]


def test_an_arm_never_pulled_is_judged_by_its_features() -> None:
    policy = taught(pfn(), 100)
    policy.add_arm("cheaper book", {"price": 0.0, "kind": "book"})
    policy.add_arm("worst", {"price": 12.0, "kind": "toy"})
    decision = policy.decide(CONTEXT, rng=np.random.default_rng(0))
    assert decision.reason == "thompson"
    assert decision.propensities[policy.arms.index("cheaper book")] > 0.9
    assert decision.propensities[policy.arms.index("worst")] < 1e-6


@pytest.mark.parametrize("arms", [4, 1000])
def test_warm_up_is_pooled_and_bounded_whatever_the_number_of_arms(arms: int) -> None:
    rng = np.random.default_rng(0)
    policy = pfn({i: rng.random(3) for i in range(arms)})
    reasons = []
    for _ in range(120):
        decision = policy.decide(rng.random(2), rng=rng)
        policy.update(decision, reward=rng.normal())
        if decision.reason != "explore":  # a share of decisions among many
            reasons.append(decision.reason)
    ends = reasons.index("thompson")
    assert set(reasons[:ends]) == {"warmup"}
    assert "warmup" not in reasons[ends:]
    assert ends == 2 * (2 + 3)  # two rows a column


def test_warm_up_takes_any_eligible_arm_alike() -> None:
    decision = pfn().decide(CONTEXT, rng=np.random.default_rng(0), eligible=[True, False, True, True])
    np.testing.assert_allclose(decision.propensities, [1 / 3, 0, 1 / 3, 1 / 3])


def test_candidates_equal_arms_with_the_same_features() -> None:
    policy = taught(pfn(), 100)
    arms = policy.propose(CONTEXT, rng=np.random.default_rng(3))[0]
    same = policy.propose(CONTEXT, rng=np.random.default_rng(3), candidates=list(OFFERS.values()))[0]
    assert (same.arm, same.index) == (arms.index, arms.index)
    np.testing.assert_array_equal(same.propensities, arms.propensities)
    assert same.arms == (0, 1, 2, 3)


def test_a_policy_without_arms_learns_from_candidates() -> None:
    policy, rng = pfn(None), np.random.default_rng(0)
    lost = []
    for _ in range(150):
        candidates = random_candidates(rng, int(rng.integers(1, 9)))
        decision = policy.decide(CONTEXT, rng=rng, candidates=candidates)
        values = [worth(candidate) + 0.5 * (candidate["kind"] is None) for candidate in candidates]
        policy.update(decision, reward=values[decision.index] + 0.1 * rng.normal())
        lost.append(max(values) - values[decision.index])
    assert policy.arms == ()
    assert np.mean(lost[-50:]) < 0.05 < np.mean(lost[:20])


def test_candidates_are_learned_like_rows_without_a_decision() -> None:
    # An undisturbed twin is told the same rows in the same order.
    rng = np.random.default_rng(0)
    policy, plain = pfn(None), pfn(None)
    waiting = []
    for i in range(60):
        candidates = random_candidates(rng, 3)
        decision = policy.decide(CONTEXT, rng=rng, candidates=candidates, id=f"d{i}")
        waiting.append((decision, candidates[decision.index], float(rng.normal())))
    for i in rng.permutation(60):
        decision, features, reward = waiting[i]
        assert policy.update(decision, reward=reward) == "learned"
        assert policy.update(decision.id, reward=99.0) == "duplicate"
        plain.update(CONTEXT, features=features, reward=reward)
    asked = random_candidates(rng, 5)
    one, two = (p.posterior(CONTEXT, candidates=asked) for p in (policy, plain))
    # Categories have their places in the order of decisions: the columns are others, and round so.
    np.testing.assert_allclose(one.mean, two.mean, rtol=1e-9)
    np.testing.assert_allclose(one.variance, two.variance, rtol=1e-9)


@pytest.mark.parametrize("arms", [OFFERS, None], ids=["arms", "candidates"])
def test_saved_loaded_and_replayed_policies_go_on_alike(arms: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    policy = pfn(arms, encoding=Features(identity=True, shortlist=16))
    late = []
    for t in range(80):
        candidates = random_candidates(rng, 4) if arms is None or t % 2 else None
        decision = policy.decide(CONTEXT, rng=rng, candidates=candidates)
        late.append(decision)
        if t % 3 == 0:
            policy.update(late.pop(rng.integers(len(late))), reward=rng.normal())
        if t == 40:
            policy.add_arm("new", {"price": None, "kind": "cd"})
    policy.update(CONTEXT, features={"price": 3, "kind": "toy"}, reward=1.0)
    policy.save(tmp_path / "policy")
    loaded = PFNTS.load(tmp_path / "policy")
    replayed = pfn(arms, encoding=Features(identity=True, shortlist=16))
    replayed.append([from_dict(to_dict(event)) for event in policy.events])
    for other in (loaded, replayed):
        assert list(map(to_dict, other.events)) == list(map(to_dict, policy.events))
        assert (other.arms, other.arm_schema) == (policy.arms, policy.arm_schema)
        for asked in (random_candidates(rng, 5), *([None] if arms else [])):
            one, two = (
                p.propose(CONTEXT, rng=np.random.default_rng(5), candidates=asked)[0] for p in (policy, other)
            )
            np.testing.assert_array_equal(one.propensities, two.propensities)
        assert [other.update(d, reward=1.0) for d in late[:3]] == ["learned"] * 3


def test_features_may_be_rows_frames_and_matrices() -> None:
    rng = np.random.default_rng(0)
    matrix = rng.random((6, 2))
    pandas = pytest.importorskip("pandas")
    named = [{"0": a, "1": b} for a, b in matrix]
    for candidates in (matrix, matrix.tolist(), named, pandas.DataFrame(named), matrix.astype(np.float32)):
        policy = Uniform(None)
        decision = policy.decide(CONTEXT, rng=np.random.default_rng(1), candidates=candidates)
        policy.update(decision, reward=1.0)
        np.testing.assert_allclose(policy.history.features, matrix[[decision.index]], atol=1e-6)
        again = Uniform(None)
        again.append([from_dict(to_dict(event)) for event in policy.events])
        np.testing.assert_allclose(again.history.features, matrix[[decision.index]], atol=1e-6)


def test_the_log_does_not_change_with_the_callers_arrays() -> None:
    candidates = np.random.default_rng(0).random((3, 2))
    policy = Uniform(None)
    policy.decide(CONTEXT, rng=np.random.default_rng(0), candidates=candidates)
    before = to_dict(policy.events[0])
    candidates[:] = 7.0
    assert to_dict(policy.events[0]) == before


def test_old_logs_have_no_features() -> None:
    assert from_dict({"kind": "arm_added", "arm": "b"}) == ArmAdded("b")
    assert "features" not in to_dict(ArmAdded("b"))
    event = Decided("0", [0.5], "a", {"a": 1.0}, "warmup")
    assert "candidates" not in to_dict(event)
    assert from_dict(to_dict(event)) == event


GARBAGE: dict[str, tuple[str, Callable[[Policy], Any]]] = {
    "lacks a column": ("it lacks", lambda p: ask(p, [{"price": 1}])),
    "unknown column": ("unknown are", lambda p: ask(p, [{"price": 1, "kind": "toy", "size": 3}])),
    "wrong kind": ("must be numeric", lambda p: ask(p, [{"price": "much", "kind": "toy"}])),
    "infinite": ("must be finite", lambda p: ask(p, [{"price": np.inf, "kind": "toy"}])),
    "object": ("must be", lambda p: ask(p, [{"price": object(), "kind": "toy"}])),
    "unequal": ("must all have the keys", lambda p: ask(p, [{"price": 1, "kind": "toy"}, {"price": 1}])),
    "none": ("candidates must be a list", lambda p: ask(p, [])),
    "empty matrix": ("candidates must be a list", lambda p: ask(p, np.empty((0, 2)))),
    "one": ("put a single one into a list", lambda p: ask(p, {"price": 1, "kind": "toy"})),
    "text": ("candidates must be a list", lambda p: ask(p, "toys")),
    "number": ("candidates must be a list", lambda p: ask(p, 3)),
    "mask of another length": ("eligible must be", lambda p: ask(p, list(OFFERS.values()), eligible=[True])),
    "arm and features": ("must not both", lambda p: p.update(CONTEXT, arm="a", features={}, reward=1.0)),
    "bad reward": ("reward", lambda p: p.update(CONTEXT, features=OFFERS["dear toy"], reward=np.nan)),
    "too many": ("at most 1,000,000 features", lambda p: ask(p, np.zeros((600_000, 2)))),
}


def ask(policy: Policy, candidates: Any, **options: Any) -> Any:
    return policy.decide(CONTEXT, rng=np.random.default_rng(0), candidates=candidates, **options)


@pytest.mark.parametrize("name", GARBAGE)
@pytest.mark.parametrize("arms", [OFFERS, None], ids=["arms", "candidates"])
def test_garbage_is_refused_and_leaves_no_trace(name: str, arms: Any) -> None:
    words, act = GARBAGE[name]
    policy = pfn(arms)
    ask(policy, list(OFFERS.values()))
    before = [to_dict(event) for event in policy.events], policy.arm_schema
    with pytest.raises(ValueError, match=words):
        act(policy)
    assert ([to_dict(event) for event in policy.events], policy.arm_schema) == before
    assert policy.update("0", reward=1.0) == "learned"


@pytest.mark.parametrize(
    ("words", "act"),
    [
        ("which does not judge arms by features", lambda: make("lin-ts", arms=OFFERS)),
        ("which does not judge arms by features", lambda: make("ts", arms=None)),
        ("must all have the keys", lambda: pfn({"a": {"price": 1}, "b": {"kind": "toy"}})),
        ("mapping of labels to features", lambda: pfn({"a": 3, "b": 4})),
        ("features must be given", lambda: pfn().add_arm("new")),
        ("must not be given", lambda: pfn(2).add_arm("new", {"price": 1})),
        ("candidates must be given to a policy", lambda: ask(pfn(2), [{"price": 1}])),
        ("candidates must be given to a policy", lambda: ask(pfn(encoding="joint"), [OFFERS["dear toy"]])),
        ("candidates must be given", lambda: pfn(None).decide(CONTEXT, rng=np.random.default_rng(0))),
        ("all that tells arms apart", lambda: pfn(3, encoding="features")),
        ("shortlist must be", lambda: Features(shortlist=0)),
        ("explore must be", lambda: Features(explore=2.0)),
    ],
)
def test_what_does_not_fit_together_is_said(words: str, act: Callable[[], Any]) -> None:
    with pytest.raises(ValueError, match=words):
        act()


@pytest.mark.parametrize(
    "event",
    [
        {"kind": "arm_added", "arm": "b", "features": "toy"},
        {"kind": "observed", "context": [1.0], "arm": None, "value": 1.0, "features": 3},
        to_dict(Decided("0", [1.0], 0, {0: 1.0}, "warmup")) | {"candidates": [3]},
        to_dict(Decided("0", [1.0], 0, {0: 1.0}, "warmup")) | {"candidates": 3},
    ],
)
def test_forged_events_are_refused(event: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="events must be those of a policy's log"):
        from_dict(event)


@pytest.mark.parametrize(
    "event",
    [
        Decided("0", [1.0], 2, {0: 0.5, 1: 0.5}, "warmup", candidates=read([[1.0], [2.0]])),
        Decided("0", [1.0], 0, {0: 1.0}, "warmup", candidates=read([[1.0], [2.0]])),
        Observed([1.0], None, 1.0),
        Observed([1.0], "a", 1.0, features=[1.0]),
        Rewarded("0", 1.0),
    ],
)
def test_events_that_do_not_fit_are_refused(event: Any) -> None:
    policy = pfn({"a": [1.0], "b": [2.0]})
    with pytest.raises(ValueError, match=r"must|has"):
        policy.append([event])
    assert policy.events == ()
