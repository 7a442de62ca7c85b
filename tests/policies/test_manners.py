"""Copies, corrections, own random numbers, forks: what Python lets one expect of an object."""

from __future__ import annotations

import copy
import os
import pickle
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import chisquare

from pfnts import PFNTS, Memory, Rewards, Traffic
from pfnts.events import Corrected, from_dict
from pfnts.events.event import to_dict
from pfnts.policies import Policy, make
from pfnts.policies.registry import load

NAMES = ["pfn-ts", "pfn-ts-paper", "lin-ts", "lin-ucb", "ts", "uniform", "epsilon-greedy", "neural-ts"]


def made(name: str, **options: Any) -> Policy:
    backbone = {"backbone": "linear"} if name.startswith(("pfn-ts", "epsilon")) else {}
    return make(name, arms=["a", "b"], **backbone, **options)


def trained(policy: Policy, rounds: int = 40, seed: int = 0) -> Policy:
    rng = np.random.default_rng(seed)
    for _ in range(rounds):
        decision = policy.decide(rng.random(2), rng=rng)
        policy.update(decision, reward=decision.index + rng.normal())
    return policy


def shares(policy: Policy) -> list[float]:
    return policy.decide([0.3, 0.7], rng=np.random.default_rng(1)).propensities.tolist()


@pytest.mark.parametrize("name", NAMES)
def test_copies_go_on_alike_and_apart(name: str) -> None:
    policy = trained(made(name))
    copies = [copy.deepcopy(policy), pickle.loads(pickle.dumps(policy))]
    found = shares(policy)
    for one in copies:
        assert shares(one) == pytest.approx(found, abs=1e-9)
        trained(one, 5, seed=2)
    assert len(policy.events) == 81


@pytest.mark.parametrize("name", NAMES)
def test_a_seed_decides_what_calls_without_rng_draw_and_is_saved(name: str, tmp_path: Path) -> None:
    one, two, other = (made(name, seed=seed) for seed in (3, 3, 4))
    X = np.random.default_rng(0).random((40, 2))
    chosen = [[policy.decide(x).arm for x in X] for policy in (one, two, other)]
    assert chosen[0] == chosen[1] != chosen[2]
    one.save(tmp_path / "policy")
    again = load(tmp_path / "policy")
    assert [one.decide(x).arm for x in X] == [again.decide(x).arm for x in X]


@pytest.mark.parametrize("name", NAMES)
def test_a_corrected_reward_is_learned_live_and_replayed_alike(name: str) -> None:
    policy, twin, rng = made(name), made(name), np.random.default_rng(0)
    X, rewards = rng.random((60, 2)), rng.normal(size=60)
    for i, x in enumerate(X):
        for one in (policy, twin):
            decision = one.decide(x, rng=np.random.default_rng(i))
            one.update(decision, reward=100.0 if one is policy and i == 5 else rewards[i])
    assert policy.update("5", reward=rewards[5], replace=True) == "corrected"
    assert isinstance(policy.events[-1], Corrected)
    for one in (policy, twin):
        one.update(X[:4], arm=["a", "b", "a", "b"], reward=[0.0, 1.0, 0.5, 0.2])
    assert policy.history.rewards.tolist() == twin.history.rewards.tolist()
    replayed = made(name)
    replayed.append([from_dict(to_dict(event)) for event in policy.events])
    assert shares(replayed) == pytest.approx(shares(policy), abs=1e-9)
    with pytest.raises(ValueError, match="it has none with the id"):
        policy.update("never", reward=1.0, replace=True)
    waiting = policy.decide(X[0], rng=rng)
    assert policy.update(waiting, reward=1.0, replace=True) == "learned"


def test_ids_name_the_decisions_of_a_batch() -> None:
    policy = made("lin-ts")
    decisions = policy.decide_batch(np.zeros((2, 2)), ids=["x", "y"])
    assert [decision.id for decision in decisions] == ["x", "y"]
    assert policy.update("y", reward=1.0) == "learned"
    for ids, words in ((["z"], "ids must be one for each of the 2 contexts"), (["z", "z"], "id must be new")):
        with pytest.raises(ValueError, match=words):
            policy.decide_batch(np.zeros((2, 2)), ids=ids)
    assert len(policy.events) == 3


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_frame_of_one_row_is_a_context(library: str) -> None:
    frame = pytest.importorskip(library).DataFrame({"age": [30.0], "plan": ["free"]})
    policy = made("lin-ts")
    policy.decide(frame)
    assert policy.events[0].context == {"age": 30.0, "plan": "free"}  # type: ignore[union-attr]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_child_forked_while_another_thread_decides_can_decide() -> None:
    policy, entered, done = trained(made("lin-ts")), threading.Event(), threading.Event()

    class Slow(list):  # type: ignore[type-arg]
        def __len__(self) -> int:
            entered.set()
            done.wait(20)
            return super().__len__()

    thread = threading.Thread(target=lambda: policy.decide_batch(np.zeros((2, 2)), ids=Slow(["p", "q"])))
    thread.start()
    entered.wait(20)
    child = os.fork()
    if not child:
        os._exit(0 if policy.decide([0.1, 0.2]).arm in ("a", "b") else 1)
    status = os.waitpid(child, 0)[1]
    done.set()
    thread.join()
    assert status == 0


def test_the_paper_in_one_call(tmp_path: Path) -> None:
    policy = trained(PFNTS.as_in_paper(["a", "b"], backbone="linear"))
    expected = trained(
        PFNTS(
            ["a", "b"],
            backbone="linear",
            encoding="adaptive",
            estimator="subclt",
            exploration=1.0,
            memory=Memory(refresh=2.0, detector=None),
        )
    )
    assert shares(policy) == shares(expected)
    policy.save(tmp_path / "policy")
    assert load(tmp_path / "policy").settings == policy.settings


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"traffic": Traffic(holdout=0.1, max_share=0.7, explore=0.1)},
        {"rewards": Rewards(cost={"a": 0.0, "b": 0.2, "c": 0.1})},
        {"rewards": Rewards(range=(-9.0, 9.0))},
    ],
)
@pytest.mark.parametrize("mask", [None, [True, False, True]])
def test_propensities_of_averaged_layouts_are_those_of_the_mixture(options: Any, mask: Any) -> None:
    policy = PFNTS(["a", "b", "c"], backbone="linear", encoding="averaged", exploration=1.0, **options)
    rng = np.random.default_rng(0)
    X = rng.random((90, 2))
    policy.update(
        X,
        arm=["a", "b", "c"] * 30,
        reward=np.clip(X[:, 0] * np.tile([1, 2, 3], 30) + rng.normal(size=90), -9, 9),
    )
    n = 1500
    decisions = policy.decide_batch(np.tile([0.1, 0.3], (n, 1)), rng=rng, eligible=mask)
    expected = decisions[0].propensities
    counts = np.bincount([decision.index for decision in decisions], minlength=3)
    assert not counts[expected < 1e-9].any()
    likely = expected > 1e-9
    assert chisquare(counts[likely], n * expected[likely] / expected[likely].sum()).pvalue > 1e-6


def test_averaged_layouts_are_those_of_the_log_and_the_better_one_wins() -> None:
    rng = np.random.default_rng(1)
    X, arms = rng.uniform(-1, 1, size=(500, 3)), rng.integers(2, size=500)
    rewards = 3 * (2.0 * arms - 1) * X.sum(axis=1) + 0.5 * rng.normal(size=500)
    whole, pieces = (PFNTS(2, backbone="linear", encoding="averaged") for _ in range(2))
    whole.update(X, arm=arms, reward=rewards)
    for start in range(0, 500, 37):
        few = slice(start, start + 37)
        pieces.update(X[few], arm=arms[few], reward=rewards[few])
        pieces.catch_up()
    one, two = (policy.posterior(X[:5]) for policy in (whole, pieces))
    np.testing.assert_allclose(one.mean, two.mean, rtol=1e-9)
    assert whole.layout == "disjoint"
