"""How much work announced contexts cost, counted at the backbone; and that they change nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from pfnts import PFNTS
from pfnts.backbones import LinearBackbone, Prediction, Question
from pfnts.policies import make
from pfnts.policies.prefetch import PrefetchCache
from pfnts.policies.settings import gathered


class Counting(LinearBackbone):
    """Writes down how many queries each question of a call had."""

    def __init__(self) -> None:
        super().__init__()
        object.__setattr__(self, "calls", [])

    def predict(self, questions: Sequence[Question]) -> list[Prediction]:
        self.calls.append([len(question.queries) for question in questions])  # type: ignore[attr-defined]
        return super().predict(questions)


def policy_of(backbone: Any, **options: Any) -> PFNTS:
    options = (
        {"encoding": "disjoint", "estimator": "subclt", "refresh": 2.0, "detector": None}
        | options
        | {"backbone": backbone}
    )
    return PFNTS(2, **gathered(PFNTS, options))


def test_a_decision_without_announcement_is_one_call() -> None:
    backbone, rng = Counting(), np.random.default_rng(0)
    policy = policy_of(backbone)
    policy.update(rng.uniform(size=(32, 2)), arm=[0, 1] * 16, reward=rng.normal(size=32))
    policy.decide([0.5, 0.5], rng=rng)
    assert backbone.calls == [[1, 1]]
    policy.decide_batch(rng.uniform(size=(7, 2)), rng=rng)
    assert backbone.calls == [[1, 1], [7, 7]]


def test_a_refresh_asks_one_arm_about_the_contexts_still_to_come() -> None:
    backbone, rng = Counting(), np.random.default_rng(0)
    policy, X = policy_of(backbone), np.random.default_rng(1).uniform(size=(200, 2))
    # Sixteen rewards each, so both arms stand at a refresh point.
    policy.update(X[:32], arm=[0, 1] * 16, reward=rng.normal(size=32))
    policy.prefetch(X[:100])
    policy.decide(X[0], rng=rng)
    assert backbone.calls == [[64, 64]]
    for x in X[1:40]:
        policy.decide(x, rng=rng)
    assert backbone.calls == [[64, 64]]
    policy.update(X[40:56], arm=[1] * 16, reward=rng.normal(size=16))
    policy.decide(X[40], rng=rng)
    assert backbone.calls == [[64, 64], [24]]
    # A context that was not announced is computed alone, for every arm.
    policy.decide(X[150], rng=rng)
    assert backbone.calls == [[64, 64], [24], [1, 1]]
    # One that was announced and has already come is still known while nothing moves.
    policy.decide(X[40], rng=rng)
    assert len(backbone.calls) == 3
    # The first context beyond the block begins another.
    policy.decide(X[64], rng=rng)
    assert backbone.calls[3:] == [[36, 36]]


def test_where_arms_share_a_sequence_no_context_is_asked_about_in_vain() -> None:
    backbone, rng = Counting(), np.random.default_rng(0)
    policy, X = policy_of(backbone, encoding="joint", detector=None), rng.uniform(size=(300, 2))
    policy.update(X[:64], arm=[0, 1] * 32, reward=rng.normal(size=64))
    policy.prefetch(X)
    done = 0
    while done < 300:
        done += len(policy.play(X[done:], rng.normal(size=(300 - done, 2)), rng=rng)[0])
    assert [sum(call) for call in backbone.calls] == [2 * 64, 2 * 128, 2 * 108]


@pytest.mark.parametrize("explore", [0.0, 0.5])
def test_exploring_keeps_what_was_computed(explore: float) -> None:
    backbone, rng = Counting(), np.random.default_rng(0)
    policy, X = policy_of(backbone, explore=explore), rng.uniform(size=(64, 2))
    policy.update(X[:32], arm=[0, 1] * 16, reward=rng.normal(size=32))
    policy.prefetch(X)
    policy.decide_batch(X[:10], rng=rng)
    for x in X[10:30]:
        policy.decide(x, rng=rng)
    policy.decide_batch(X[30:], rng=rng)
    assert backbone.calls == [[64, 64]]


@pytest.mark.parametrize("estimator", ["predictive", "shrunk", "network"])
def test_an_arm_without_rows_may_be_asked_about_alone(estimator: str) -> None:
    # Its stand-in changes with the rewards of others, whose own posteriors last longer.
    X = np.random.default_rng(1).uniform(size=(120, 2))
    said = []
    for announced in (False, True):
        rng, noise = np.random.default_rng(0), np.random.default_rng(2)
        policy = make("pfn-ts", arms=3, backbone="linear", encoding="disjoint", estimator=estimator)
        if announced:
            policy.prefetch(X)
        for x in X:
            decision = policy.decide(x, rng=rng, eligible=[True, True, False])
            policy.update(decision, reward=noise.normal())
            said.append((decision.arm, decision.propensities.round(9).tolist()))
    assert said[:120] == said[120:]


def test_contexts_that_repeat_or_never_come_do_no_harm() -> None:
    X = np.random.default_rng(1).integers(3, size=(150, 1)).astype(float)
    said = []
    for announced in (False, True):
        policy, rng = make("pfn-ts", arms=2, backbone="linear"), np.random.default_rng(3)
        noise = np.random.default_rng(4)
        for t, x in enumerate(X):
            if announced and t % 25 == 0:
                policy.prefetch(X[::-1][:15] + (t % 2))
            decision = policy.decide(x, rng=rng)
            policy.update(decision, reward=noise.normal())
            said.append((decision.arm, decision.propensities.round(9).tolist()))
    assert said[:150] == said[150:]


@pytest.mark.parametrize("encoding", ["disjoint", "joint", "block", "threshold", "adaptive"])
@pytest.mark.parametrize("estimator", ["subclt", "network", "shrunk"])
def test_prefetch_changes_the_time_only(encoding: str, estimator: str) -> None:
    X = np.random.default_rng(0).uniform(size=(300, 2))
    runs = []
    for chunk in (0, 50):
        policy = make("pfn-ts", arms=2, backbone="linear", encoding=encoding, estimator=estimator)
        rng, noise, decisions = np.random.default_rng(1), np.random.default_rng(2), []
        for t, x in enumerate(X):
            if chunk and t % chunk == 0:
                policy.prefetch(X[t : t + chunk])
            decisions.append(policy.decide(x, rng=rng))
            policy.update(decisions[-1], reward=x[0] * decisions[-1].index + noise.normal())
        runs.append(decisions)
    for one, other in zip(*runs, strict=True):
        assert (one.arm, one.reason) == (other.arm, other.reason)
        np.testing.assert_allclose(one.propensities, other.propensities, atol=1e-9)
        if one.posterior is not None:
            np.testing.assert_allclose(one.posterior.mean, other.posterior.mean, rtol=1e-7, atol=1e-9)


def test_found_values_belong_to_their_contexts() -> None:
    cache: PrefetchCache[Any] = PrefetchCache(np.array([[1.0], [1.0], [2.0], [np.nan], [3.0]]))
    asked: list[Any] = []

    def ask(keys: list[Any], X: Any) -> list[Any]:
        asked.append((keys, X.ravel().tolist()))
        return [10 * key + X.ravel() for key in keys]

    def find(x: Any, versions: dict[Any, Any], ahead: int = 3) -> Any:
        return cache.find(np.array(x, dtype=float).reshape(-1, 1), versions, ask, np.take, ahead=ahead)

    assert find([1.0], {1: 0, 2: 0})[2].tolist() == [21.0]
    assert find([2.0, 1.0], {1: 0})[1].tolist() == [12.0, 11.0]
    assert len(asked) == 1
    assert find([9.0], {1: 0})[1].tolist() == [19.0]
    assert asked[-1] == ([1], [9.0])
    assert find([3.0], {1: 0, 2: 1})[1].tolist() == [13.0]
    assert np.isnan(find([np.nan], {1: 0})[1]).all()
