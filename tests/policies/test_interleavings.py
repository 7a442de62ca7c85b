"""Decisions, rewards, arms, files in any order: what a policy knows is what its log says."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from pfnts import Schema
from pfnts.contexts import Column
from pfnts.events import Decided, Observed, Rewarded, from_dict
from pfnts.events.event import to_dict
from pfnts.layouts import Adaptive, Features, Threshold
from pfnts.policies import Policy, make

SCHEMA = Schema((Column("age", "numeric"), Column("plan", "categorical", (), 4)))
POLICIES: dict[str, Callable[[], Policy]] = {
    "adaptive": lambda: make(
        "pfn-ts",
        arms=["a", "b"],
        backbone="linear",
        schema=SCHEMA,
        encoding=Adaptive(switch_times=(12, 20, 30)),
        warmup=3,
    ),
    "joint": lambda: make(
        "pfn-ts",
        arms=["a", "b"],
        backbone="linear",
        schema=SCHEMA,
        encoding="joint",
        estimator="shrunk",
        warmup=3,
    ),
    "threshold": lambda: make(
        "pfn-ts",
        arms=["a", "b"],
        backbone="linear",
        schema=SCHEMA,
        encoding=Threshold(limit=9),
        explore=0.2,
        warmup=3,
    ),
    "disjoint": lambda: make(
        "pfn-ts",
        arms=["a", "b"],
        backbone="linear",
        schema=SCHEMA,
        encoding="disjoint",
        estimator="predictive",
        warmup=3,
    ),
    "features": lambda: make(
        "pfn-ts",
        arms={label: FEATURES[label] for label in ("a", "b")},
        backbone="linear",
        schema=SCHEMA,
        encoding=Features(identity=True, shortlist=3, explore=0.2),
        warmup=3,
    ),
    "lin-ts": lambda: make("lin-ts", arms=["a", "b"], warmup=2, schema=SCHEMA),
    "lin-ucb": lambda: make("lin-ucb", arms=["a", "b"], warmup=2, schema=SCHEMA),
    "ts": lambda: make("ts", arms=["a", "b"], warmup=2, schema=SCHEMA),
}
LABELS = ["a", "b", "c", "d", 1]
FEATURES = {
    label: {"price": price, "kind": kind}
    for label, price, kind in zip(LABELS, [1, 2.5, None, 0, 7], ["x", "y", "z", "x", None], strict=True)
}
PLANS = ["free", "paid", "gift", "trial", None]
PROBES = [{"age": float(i), "plan": plan} for i, plan in enumerate(["free", "paid", "gift"])]

contexts = st.fixed_dictionaries({"age": st.integers(0, 9), "plan": st.sampled_from(PLANS)})
rewards = st.integers(-20, 20).map(lambda value: value / 4)
places = st.integers(0, 10_000)


def table(rng: np.random.Generator, n: int) -> list[dict[str, Any]]:
    return [{"age": float(rng.uniform()), "plan": PLANS[rng.integers(5)]} for _ in range(n)]


def shares(policy: Policy, seed: int = 0) -> tuple[Any, ...]:
    """What a policy would do at the probes, without a trace in its log."""
    rng = np.random.default_rng(seed)
    said = [policy.propose(probe, rng=rng)[0] for probe in PROBES]
    return tuple((d.arm, d.reason, tuple(d.propensities.tolist())) for d in said)


def replayed(policy: Policy, fresh: Policy) -> Policy:
    """A fresh policy that is told the log, written down and read again."""
    fresh.append([from_dict(json.loads(json.dumps(to_dict(event)))) for event in policy.events])
    return fresh


class Interleaving(RuleBasedStateMachine):
    """One policy, and a plain account of what it was told."""

    make: Callable[[], Policy]

    def __init__(self) -> None:
        super().__init__()
        self.policy = type(self).make()
        self.rng = np.random.default_rng(7)
        self.prefetched = False
        self.decisions: list[Any] = []
        self.rewarded: set[str] = set()
        self.rows: list[tuple[Any, Any, float]] = []
        self.live: list[Any] = ["a", "b"]
        self.contexts: dict[str, Any] = {}

    @rule(context=contexts)
    def decide(self, context: Any) -> None:
        decision = self.policy.decide(context, rng=self.rng)
        self.decisions.append(decision)
        self.contexts[decision.id] = context

    @rule(batch=st.lists(contexts, min_size=1, max_size=4))
    def decide_batch(self, batch: Any) -> None:
        for decision, context in zip(self.policy.decide_batch(batch, rng=self.rng), batch, strict=True):
            self.decisions.append(decision)
            self.contexts[decision.id] = context

    @precondition(lambda self: self.decisions)
    @rule(place=places, reward=rewards, by_id=st.booleans())
    def reward(self, place: int, reward: float, by_id: bool) -> None:
        """Early, late, twice: any decision, in any order; some never come."""
        decision = self.decisions[place % len(self.decisions)]
        outcome = self.policy.update(decision.id if by_id else decision, reward=reward)
        assert outcome == ("duplicate" if decision.id in self.rewarded else "learned")
        if outcome == "learned":
            self.rewarded.add(decision.id)
            self.rows.append((self.contexts[decision.id], decision.arm, reward))

    @rule(reward=rewards)
    def reward_of_nobody(self, reward: float) -> None:
        with pytest.raises(ValueError, match="none with the id 'nobody'"):
            self.policy.update("nobody", reward=reward)

    @rule(batch=st.lists(st.tuples(contexts, places, rewards), min_size=1, max_size=5))
    def observe(self, batch: Any) -> None:
        arms = [self.live[place % len(self.live)] for _, place, _ in batch]
        if len(batch) == 1:
            assert self.policy.update(batch[0][0], arm=arms[0], reward=batch[0][2]) == "learned"
        else:
            self.policy.update([row[0] for row in batch], arm=arms, reward=[row[2] for row in batch])
        self.rows += [(row[0], arm, row[2]) for row, arm in zip(batch, arms, strict=True)]

    @precondition(lambda self: len(self.live) < len(LABELS))
    @rule(place=places)
    def add(self, place: int) -> None:
        free = [label for label in LABELS if label not in self.live]
        label = free[place % len(free)]
        self.policy.add_arm(label, self.features(label))
        self.live.append(label)

    def features(self, label: Any) -> Any:
        """Those of an arm that is added."""
        return None

    @precondition(lambda self: len(self.live) > 1)
    @rule(place=places)
    def remove(self, place: int) -> None:
        self.policy.remove_arm(self.live.pop(place % len(self.live)))

    @rule(batch=st.lists(contexts, max_size=6, min_size=1))
    def prefetch(self, batch: Any) -> None:
        self.policy.prefetch([*PROBES, *batch])
        self.prefetched = True

    @rule()
    def look(self) -> None:
        if len(self.rows) >= 3 and self.policy.name != "lin-ucb":  # which has no posterior
            self.policy.posterior(PROBES)

    @rule()
    def save_and_load(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            self.policy.save(Path(folder) / "policy")
            loaded = type(self.policy).load(Path(folder) / "policy")
        assert list(map(to_dict, loaded.events)) == list(map(to_dict, self.policy.events))
        assert shares(loaded) == shares(replayed(self.policy, type(self).make()))
        self.policy = loaded

    @invariant()
    def arms_are_those_that_are_there(self) -> None:
        assert self.policy.arms == tuple(self.live)

    @invariant()
    def rows_are_those_that_were_told_in_their_order(self) -> None:
        history = self.policy.history
        assert history.size == len(self.rows)
        assert history.rewards.tolist() == [reward for _, _, reward in self.rows]
        assert [history.labels[arm] if arm >= 0 else None for arm in history.arms] == [
            arm for _, arm, _ in self.rows
        ]
        ages = [float(context["age"]) for context, _, _ in self.rows]
        assert not ages or history.contexts[:, 0].tolist() == ages

    def teardown(self) -> None:
        """Replay equals live."""
        prefetched = self.prefetched
        live = shares(self.policy)
        again = shares(replayed(self.policy, type(self).make()))
        if not prefetched:
            assert live == again
        else:  # a batch may round otherwise
            for one, two in zip(live, again, strict=True):
                assert one[:2] == two[:2]
                np.testing.assert_allclose(one[2], two[2], rtol=0, atol=1e-9)


class FeaturesInterleaving(Interleaving):
    """Arms have features, and some decisions candidates of their own."""

    def __init__(self) -> None:
        super().__init__()
        self.chosen: dict[str, Any] = {}
        self.prices: list[Any] = []

    def features(self, label: Any) -> Any:
        return FEATURES[label]

    @rule(context=contexts, labels=st.lists(st.sampled_from(LABELS), min_size=1, max_size=6))
    def decide_among_candidates(self, context: Any, labels: list[Any]) -> None:
        candidates = [FEATURES[label] for label in labels]
        decision = self.policy.decide(context, rng=self.rng, candidates=candidates)
        self.contexts[decision.id], self.chosen[decision.id] = context, candidates[decision.index]
        self.decisions.append(replace(decision, arm=None))  # type: ignore[arg-type]

    @precondition(lambda self: self.decisions)
    @rule(place=places, reward=rewards, by_id=st.just(True))
    def reward(self, place: int, reward: float, by_id: bool) -> None:
        super().reward(place, reward, by_id)

    @rule(context=contexts, label=st.sampled_from(LABELS), reward=rewards)
    def observe_candidate(self, context: Any, label: Any, reward: float) -> None:
        self.policy.update(context, features=FEATURES[label], reward=reward)
        self.rows.append((context, None, reward))

    @invariant()
    def features_are_those_of_the_arms(self) -> None:
        history = self.policy.history
        if not history.size:
            return
        known = [FEATURES[history.labels[arm]]["price"] for arm in history.arms if arm >= 0]
        np.testing.assert_array_equal(
            history.features[history.arms >= 0, 0], np.array(known, dtype=np.float64), strict=True
        )
        rows = [event for event in self.policy.events if isinstance(event, Rewarded)]
        if all(isinstance(event, Rewarded | Decided) for event in self.policy.events):
            brought = [self.chosen.get(event.id) for event in rows]
            for i, features in enumerate(brought):
                if features is not None:
                    expected = np.nan if features["price"] is None else features["price"]
                    np.testing.assert_array_equal(history.features[i, 0], expected)


def machine(name: str) -> Any:
    base = FeaturesInterleaving if name == "features" else Interleaving
    kind = type(f"Interleaving_{name}", (base,), {"make": staticmethod(POLICIES[name])})
    case = kind.TestCase
    case.settings = settings(
        max_examples=8,
        stateful_step_count=35,
        deadline=None,
        derandomize=True,
        phases=[Phase.explicit, Phase.generate],  # a failure is short enough to read as it is
        suppress_health_check=list(HealthCheck),
    )
    return case


TestAdaptive = machine("adaptive")
TestJoint = machine("joint")
TestThreshold = machine("threshold")
TestDisjoint = machine("disjoint")
TestFeatures = machine("features")
TestLinTS = machine("lin-ts")
TestLinUCB = machine("lin-ucb")
TestContextFree = machine("ts")


def test_the_order_of_rewards_is_the_order_of_the_rows() -> None:
    # Two policies, the same decisions; rewards in order and in reverse. Each equals the rows in its order.
    rng = np.random.default_rng(0)
    X, y = table(rng, 30), rng.normal(size=30)
    for name, make_one in POLICIES.items():
        for order in (np.arange(30), np.arange(30)[::-1], rng.permutation(30)):
            policy, plain, own = make_one(), make_one(), np.random.default_rng(1)
            decisions = policy.decide_batch(X, rng=own)
            for i in order:
                policy.update(decisions[i], reward=y[i])
            plain.update([X[i] for i in order], arm=[decisions[i].arm for i in order], reward=y[order])
            one, two = (p.decide_batch(X[:5], rng=np.random.default_rng(2)) for p in (policy, plain))
            for left, right in zip(one, two, strict=True):
                assert left.arm == right.arm, name
                # Categories get their places in the order of decisions: the columns are others, and round so.
                np.testing.assert_allclose(left.propensities, right.propensities, atol=1e-9, err_msg=name)


def test_lost_rewards_are_as_if_never_decided() -> None:
    # Apart from warm-up, which counts decisions under way.
    rng = np.random.default_rng(0)
    X, y = table(rng, 60), rng.normal(size=60)
    policy, plain = POLICIES["adaptive"](), POLICIES["adaptive"]()
    decisions = policy.decide_batch(X, rng=rng)
    for i in range(0, 60, 2):
        policy.update(decisions[i], reward=y[i])
    plain.update(X[::2], arm=[d.arm for d in decisions[::2]], reward=y[::2])
    means = [p.posterior(X).mean for p in (policy, plain)]  # type: ignore[attr-defined]
    np.testing.assert_allclose(*means, rtol=1e-9, atol=1e-9)


def test_the_first_batch_of_contexts_decides_what_the_columns_are(tmp_path: Path) -> None:
    # Inferred from a batch, the columns may be others than from its first row alone.
    for first in (
        [{"x": None, "y": 1}, {"x": "b", "y": 2}],
        [{"x": f"c{i % 6}", "y": i} for i in range(12)],
    ):
        policy = make("lin-ts", arms=["a", "b"], warmup=0)
        policy.update(first, arm=["a", "b"] * (len(first) // 2), reward=[1.0, 2.0] * (len(first) // 2))
        policy.save(tmp_path / "policy")
        loaded = type(policy).load(tmp_path / "policy")
        assert loaded.schema == policy.schema
        one, two = (p.posterior(first[0]) for p in (policy, loaded))  # type: ignore[attr-defined]
        np.testing.assert_array_equal(one.mean, two.mean)


def test_labels_of_arms_that_came_back_keep_their_rows_apart() -> None:
    policy = make("lin-ts", arms=["a", "b"], warmup=2)
    policy.update([[0.0], [0.0]], arm=["a", "b"], reward=[5.0, 1.0])
    decision = policy.decide([0.0], rng=np.random.default_rng(0), eligible=[True, False], id="old")
    policy.remove_arm("a")
    policy.add_arm("a")
    policy.update("old", reward=7.0)
    policy.update([0.0], arm="a", reward=-3.0)
    posterior = policy.posterior([0.0])  # type: ignore[attr-defined]
    assert decision.arm == "a"
    assert policy.arms == ("b", "a")
    assert posterior.mean[1] == -1.5  # one row, penalty 1: the old arm's 5 and 7 are not its own
    rows = [event for event in policy.events if isinstance(event, Observed)]
    assert len(rows) == 3
