from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pfnts import PFNTS
from pfnts.backbones import LinearBackbone
from pfnts.backbones.base import Prediction, Question
from pfnts.backbones.network import EmbeddedBackbone
from pfnts.environments import Environment, make
from pfnts.policies import Decision, Memory
from pfnts.policies.pfn_model import room_for
from pfnts.policies.settings import gathered

ENCODINGS = ["disjoint", "joint", "block", "threshold", "adaptive"]


def pfnts(arms: Any = 2, **options: Any) -> PFNTS:
    return PFNTS(arms, **gathered(PFNTS, {"backbone": "linear", **options}))


def rounds(
    policy: PFNTS, environment: Environment, start: int, stop: int, *, seed: int = 0
) -> list[Decision]:
    rng, decisions = np.random.default_rng(seed), []
    for t in range(start, stop):
        decisions.append(policy.decide(environment.contexts[t], rng=rng))
        policy.update(decisions[-1], reward=environment.rewards[t, decisions[-1].index])
    return decisions


@pytest.fixture(scope="module")
def friedman() -> Environment:
    return make("friedman", horizon=600, rng=np.random.default_rng(7))


class Blind(LinearBackbone):
    """A backbone that does not know the standard deviation of the mean."""

    knows_mean_sd = False


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_added_arm_warms_up_and_is_found_to_be_best(encoding: str) -> None:
    policy, rng = pfnts(["a", "b"], encoding=encoding), np.random.default_rng(0)
    worth = {"a": 0.0, "b": 0.5, "c": 2.0}

    def go(n: int) -> list[Any]:
        decisions = []
        for _ in range(n):
            decision = policy.decide(rng.integers(2, size=2).astype(float), rng=rng)
            policy.update(decision, reward=worth[decision.arm] + 0.2 * rng.normal())
            decisions.append(decision)
        return decisions

    go(150)
    policy.add_arm("c")
    assert policy.arms == ("a", "b", "c")
    first = go(6)
    assert [d.arm for d in first[:5]] == ["c"] * 5
    assert [d.reason for d in first] == ["warmup"] * 5 + ["thompson"]
    assert [d.arm for d in go(150)].count("c") > 100
    assert policy.posterior(np.zeros(2)).mean.shape == (3,)


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_a_removed_arm_leaves_the_others_as_they_were(encoding: str, friedman: Environment) -> None:
    policy, rng = pfnts(["a", "b", "c"], encoding=encoding), np.random.default_rng(0)
    for x in friedman.contexts[:60]:
        decision = policy.decide(x, rng=rng)
        policy.update(decision, reward={"a": 0.0, "b": 1.0, "c": 2.0}[decision.arm] + rng.normal())
    kept = policy.posterior(friedman.contexts[:5]).mean[:, :2]
    policy.remove_arm("c")
    assert policy.arms == ("a", "b")
    np.testing.assert_allclose(policy.posterior(friedman.contexts[:5]).mean, kept, rtol=1e-12)
    assert {policy.decide(x, rng=rng).arm for x in friedman.contexts[:60]} <= {"a", "b"}


def test_removed_label_added_again_starts_afresh(friedman: Environment, tmp_path: Path) -> None:
    policy, rng = pfnts(["a", "b"]), np.random.default_rng(0)
    rounds(policy, friedman, 0, 40)
    policy.remove_arm("a")
    policy.add_arm("a")
    assert policy.arms == ("b", "a")
    assert [policy.decide(friedman.contexts[0], rng=rng).arm for _ in range(5)] == ["a"] * 5
    for x in friedman.contexts[:5]:
        policy.update(x, arm="a", reward=1.0)
    policy.save(tmp_path / "saved")
    loaded = PFNTS.load(tmp_path / "saved")
    one, two = (p.posterior(friedman.contexts[:3]) for p in (policy, loaded))
    np.testing.assert_array_equal(one.mean, two.mean)
    np.testing.assert_array_equal(one.variance, two.variance)


def test_arms_change_without_any_history() -> None:
    policy, rng = pfnts(["a", "b"]), np.random.default_rng(0)
    policy.add_arm("c")
    policy.remove_arm("a")
    for _ in range(20):
        decision = policy.decide([0.5], rng=rng)
        policy.update(decision, reward=1.0)
    assert decision.posterior is not None
    assert policy.arms == ("b", "c")


def test_room_grows_by_powers_of_two() -> None:
    assert [room_for(n, 3) for n in (3, 4, 8, 9, 17)] == [3, 8, 8, 16, 32]
    assert [room_for(n, 20) for n in (20, 21, 33)] == [20, 32, 64]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"encoding": "sparse"}, r"encoding must be one of .* got 'sparse'"),
        ({"estimator": "tiny"}, r"estimator must be one of .* got 'tiny'"),
        ({"estimator": 3.0}, r"estimator must be one of .* got 3.0"),
        ({"exploration": -0.1}, "exploration must be a finite number from 0 on, got -0.1"),
        ({"exploration": float("inf")}, "exploration must be a finite number from 0 on"),
        ({"exploration": float("nan")}, "exploration must be a finite number from 0 on"),
        ({"refresh": 1.0}, r"refresh must be .* above 1, got 1.0"),
        ({"warmup": 2}, r"warmup must be at least 3.* got 2"),
        ({"warmup": 3.5}, "warmup must be a non-negative integer, got 3.5"),
        ({"backbone": "nothing"}, "got 'nothing'"),
        ({"backbone": 3}, "backbone must be one of"),
        ({"backbone": Blind(), "estimator": "network"}, "estimator must not need the standard deviation"),
    ],
)
def test_impossible_policies_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        pfnts(**options)


def test_the_learned_posterior_is_the_default_where_there_is_one(friedman: Environment) -> None:
    assert pfnts().estimator.needs_mean_sd
    assert not pfnts(backbone=Blind()).estimator.needs_mean_sd
    rounds(pfnts(backbone=Blind()), friedman, 0, 30)


def test_posterior_is_that_of_the_decisions_and_changes_nothing(friedman: Environment) -> None:
    policy, rng = pfnts(exploration=1.0), np.random.default_rng(0)
    with pytest.raises(ValueError, match="posterior needs at least 3 rewards"):
        policy.posterior(friedman.contexts[0])
    rounds(policy, friedman, 0, 100)
    events = len(policy.events)
    batch = policy.posterior(friedman.contexts[:7])
    assert batch.mean.shape == (7, 2)
    single = policy.posterior(friedman.contexts[3])
    np.testing.assert_allclose(single.mean, batch.mean[3], rtol=1e-9)
    assert len(policy.events) == events
    decision = policy.decide(friedman.contexts[3], rng=rng)
    np.testing.assert_array_equal(decision.posterior.mean, single.mean)  # type: ignore[union-attr]
    np.testing.assert_allclose(decision.propensities, single.best_arm_probabilities())


@pytest.mark.parametrize("exploration", [0.0, 0.5, 2.0])
@pytest.mark.parametrize("estimator", ["subclt", "network", "predictive"])
def test_exploring_is_apart_from_the_posterior_that_is_reported(
    exploration: float, estimator: str, friedman: Environment
) -> None:
    policy = pfnts(estimator=estimator, exploration=exploration)
    X, n = friedman.contexts, 100
    policy.update(X[:n], arm=[0, 1] * 50, reward=friedman.rewards[:n, 0])
    honest = policy.posterior(X[200])
    plain = pfnts(estimator=estimator, exploration=1.0)
    plain.update(X[:n], arm=[0, 1] * 50, reward=friedman.rewards[:n, 0])
    np.testing.assert_array_equal(honest.variance, plain.posterior(X[200]).variance)
    decision = policy.decide(X[200], rng=np.random.default_rng(0))
    np.testing.assert_allclose(
        decision.propensities, honest.scaled(exploration).best_arm_probabilities(), atol=1e-9
    )
    assert decision.reason == ("thompson" if exploration else "greedy")


def test_a_look_ahead_of_the_log_changes_no_decision(friedman: Environment, tmp_path: Path) -> None:
    one, two = pfnts(), pfnts()
    for policy in (one, two):
        rounds(policy, friedman, 0, 150)
    one.catch_up()
    left, right = rounds(one, friedman, 150, 170, seed=1), rounds(two, friedman, 150, 170, seed=1)
    assert [d.to_dict() for d in left] == [d.to_dict() for d in right]
    pfnts().catch_up()


@pytest.mark.parametrize("detector", [None, 100.0])
def test_a_copy_that_adopts_what_another_learned_goes_on_like_one_that_learned_it(
    friedman: Environment, detector: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = Memory(detector=detector)
    one, two, alone = (PFNTS(2, memory=memory) for _ in range(3))
    answer = EmbeddedBackbone.predict
    asked: list[int] = []

    def counted(self: EmbeddedBackbone, questions: Sequence[Question]) -> list[Prediction]:
        asked.append(len(questions))
        return answer(self, questions)

    monkeypatch.setattr(EmbeddedBackbone, "predict", counted)
    for begin, end in ((0, 150), (150, 170), (170, 290)):
        before = len(one.events)
        rounds(one, friedman, begin, end, seed=begin)
        one.catch_up()
        new = one.events[before:]
        two.append(new)
        asked.clear()
        two.adopt(one)
        two.catch_up()
        assert asked == [], "nothing was left to be learned"
        alone.append(new)
        one, two = two, one
    # The one that was copied from goes its own way.
    rounds(two, friedman, 290, 400, seed=9)
    left, right = rounds(one, friedman, 290, 330, seed=1), rounds(alone, friedman, 290, 330, seed=1)
    assert [(d.arm, d.reason) for d in left] == [(d.arm, d.reason) for d in right]
    for one_decision, other in zip(left, right, strict=True):
        np.testing.assert_allclose(one_decision.propensities, other.propensities, rtol=0, atol=1e-3)
    with pytest.raises(ValueError, match="other must have the same log"):
        one.adopt(two)


def test_a_copy_adopts_a_model_without_rows() -> None:
    one, two = PFNTS(2), PFNTS(2)
    decision = one.decide([0.5], rng=np.random.default_rng(0))
    two.append(one.events)
    two.adopt(one)
    for policy in (one, two):
        policy.update(decision, reward=1.0)
    left, right = (policy.decide([0.1], rng=np.random.default_rng(1)) for policy in (one, two))
    assert left.arm == right.arm
    np.testing.assert_array_equal(left.propensities, right.propensities)


def test_arm_that_was_never_eligible_does_not_stop_the_others(friedman: Environment) -> None:
    policy, rng = pfnts(3, encoding="disjoint"), np.random.default_rng(0)
    for t in range(60):
        decision = policy.decide(friedman.contexts[t], rng=rng, eligible=[True, True, False])
        policy.update(decision, reward=friedman.rewards[t, decision.index])
    assert decision.propensities[2] == 0
    assert decision.posterior.size[2] == 1  # type: ignore[union-attr]
    assert policy.decide(friedman.contexts[0], rng=rng).index == 2  # its warm-up is due


def test_constant_rewards_leave_every_arm_its_share() -> None:
    # All rewards alike: every posterior is a point, and ties are split evenly, as the propensities say.
    policy, rng = pfnts(3, estimator="subclt"), np.random.default_rng(0)
    pulled = []
    for _ in range(400):
        decision = policy.decide(rng.uniform(size=2), rng=rng)
        policy.update(decision, reward=0.0)
        pulled.append(decision.index)
    np.testing.assert_allclose(decision.propensities, 1 / 3, atol=1e-9)
    assert np.bincount(pulled).min() > 80


def test_unseen_category_after_the_first_contexts_is_learned() -> None:
    policy, rng, wrong = pfnts(2), np.random.default_rng(0), 0
    # The better arm depends on the plan, and the first contexts show one plan only.
    for t in range(400):
        plan = "free" if t < 5 or rng.random() < 0.5 else "paid"
        decision = policy.decide({"plan": plan, "age": float(rng.uniform())}, rng=rng)
        best = int(plan == "paid")
        policy.update(decision, reward=(decision.index == best) + 0.1 * rng.normal())
        wrong += t >= 200 and decision.index != best
    assert wrong < 20


def test_integers_that_became_floats_are_the_same_category() -> None:
    import pandas as pd

    policy = pfnts(2, schema={"clinic": [1, 2, 3]})
    policy.update({"clinic": 3}, arm=0, reward=1.0)
    policy.update(pd.DataFrame({"clinic": [3.0, 1.0]}).iloc[0], arm=0, reward=1.0)
    history = policy.history
    np.testing.assert_array_equal(history.contexts, [[0, 0, 1], [0, 0, 1]])


def test_schema_may_be_given_as_a_mapping() -> None:
    policy = pfnts(2, schema={"age": "numeric", "plan": ["free", "paid"]})
    assert policy.schema is not None
    assert policy.schema.features == ("age", "plan=free", "plan=paid")


def test_intervals_of_the_default_posterior_cover_the_mean() -> None:
    # A linear truth, which the linear backbone may know: 95 of 100 means.
    covered = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        slope, X = rng.normal(size=2), rng.uniform(-1, 1, size=(120, 2))
        policy = pfnts(2, encoding="disjoint")
        policy.update(X, arm=[0, 1] * 60, reward=X @ slope + rng.normal(size=120))
        probes = rng.uniform(-1, 1, size=(20, 2))
        lower, upper = policy.posterior(probes).interval(0.95)
        truth = (probes @ slope)[:, None]
        covered.append(((lower < truth) & (truth < upper)).mean())
    assert np.mean(covered) > 0.88
