"""A world that changes: noticed, forgotten, and all of it a function of the log."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pfnts import PFNTS, Memory
from pfnts.events import Rewarded
from pfnts.policies import make
from pfnts.policies.settings import gathered

MEMORIES: list[dict[str, Any]] = [
    {"detector": 200},
    {"detector": 200, "window": 100},
    {"detector": None, "half_life": 64},
]


def policy_of(encoding: str = "adaptive", **memory: Any) -> PFNTS:
    options = {"backbone": "linear", "encoding": encoding, **memory}
    return PFNTS(["a", "b"], **gathered(PFNTS, options))


def world(rounds: int, *, change: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Contexts, means and rewards of two arms whose coefficients are exchanged at a round."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rounds, 3))
    first = X @ [1.0, -1.0, 0.5]
    means = np.stack([first, -first], axis=1)
    means[change:] = means[change:, ::-1]
    return X, means, means + 0.3 * rng.normal(size=means.shape)


def played(policy: PFNTS, X: np.ndarray, rewards: np.ndarray, *, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng, index, shares = np.random.default_rng(seed), [], []
    while len(index) < len(X):
        t = len(index)
        chosen, propensities = policy.play(X[t : t + 300], rewards[t : t + 300], rng=rng)
        index += chosen.tolist()
        shares += list(propensities)
    return np.array(index), np.array(shares)


def test_a_late_change_is_noticed_in_every_second_reward() -> None:
    X, _, rewards = world(3000, change=2600, seed=0)
    arms = np.random.default_rng(0).integers(2, size=3000)
    whole, pieces = policy_of("disjoint", detector=2000), policy_of("disjoint", detector=2000)
    labels, values = [["a", "b"][arm] for arm in arms], rewards[np.arange(3000), arms]
    whole.update(X, arm=labels, reward=values)
    for begin in range(0, 3000, 77):
        rows = slice(begin, begin + 77)
        pieces.update(X[rows], arm=labels[rows], reward=values[rows])
        assert len(pieces.changes) <= len(whole.changes)
    assert pieces.changes == whole.changes
    [restart] = [change for change in whole.changes if change.restarted]
    assert 2600 < restart.row <= 2760
    assert 2590 <= restart.since <= 2620


@pytest.mark.parametrize("seed", range(3))
def test_a_sudden_change_is_noticed_and_the_model_starts_anew(seed: int) -> None:
    X, means, rewards = world(1200, change=600, seed=seed)
    losses = []
    for detector in (2000, None):
        policy = policy_of("disjoint", detector=detector)
        index, _ = played(policy, X, rewards, seed=seed)
        regret = means.max(axis=1) - means[np.arange(1200), index]
        losses.append(regret[800:].mean())
        if detector:
            [restart, *_] = [c for c in policy.changes if c.restarted]
            assert 600 < restart.row <= 800
            assert 550 <= restart.since <= 640
        else:
            assert policy.changes == ()
    assert losses[0] < 0.2 * losses[1]


@pytest.mark.parametrize("encoding", ["adaptive", "disjoint"])
def test_every_arm_is_warmed_up_again_after_a_restart(encoding: str) -> None:
    # The rows since the change are where the old model preferred their arms.
    X, _, rewards = world(900, change=600, seed=2)
    policy, rng, reasons, arms = policy_of(encoding, detector=2000), np.random.default_rng(2), [], []
    for t in range(900):
        decision = policy.decide(X[t], rng=rng)
        reasons.append(decision.reason)
        arms.append(decision.index)
        policy.update(decision, reward=rewards[t, decision.index])
    [restart] = [change.row for change in policy.changes if change.restarted]
    warm = reasons.index("thompson", restart)
    assert reasons[restart:warm] == ["warmup"] * (warm - restart)
    assert np.bincount(arms[restart:warm], minlength=2).min() == 5
    assert "warmup" not in [*reasons[20:restart], *reasons[warm:]]


@pytest.mark.parametrize("memory", MEMORIES, ids=str)
@pytest.mark.parametrize("encoding", ["adaptive", "disjoint"])
def test_stretches_equal_single_rounds(memory: dict[str, Any], encoding: str) -> None:
    X, _, rewards = world(500, change=250, seed=5)
    one, two = policy_of(encoding, **memory), policy_of(encoding, **memory)
    _, shares = played(one, X, rewards, seed=1)
    rng = np.random.default_rng(1)
    for t in range(500):
        decision = two.decide(X[t], rng=rng)
        np.testing.assert_allclose(decision.propensities, shares[t], rtol=1e-9, atol=1e-12)
        two.update(decision, reward=rewards[t, decision.index])
    paid, singly = ([e for e in p.events if isinstance(e, Rewarded)] for p in (one, two))
    assert paid == singly
    assert one.changes == two.changes
    assert bool(one.changes) == (memory["detector"] is not None)


@pytest.mark.parametrize("memory", MEMORIES, ids=str)
def test_replay_from_the_log_or_a_file_equals_live(memory: dict[str, Any], tmp_path: Path) -> None:
    X, _, rewards = world(420, change=200, seed=7)
    live = policy_of(**memory)
    played(live, X, rewards, seed=3)
    again = policy_of(**memory)
    again.append(live.events)
    live.save(tmp_path / "saved")
    loaded = PFNTS.load(tmp_path / "saved")
    assert live.changes == again.changes == loaded.changes
    for policy in (again, loaded):
        ours = live.posterior(X[:20])
        np.testing.assert_array_equal(policy.posterior(X[:20]).mean, ours.mean)
        np.testing.assert_array_equal(policy.posterior(X[:20]).variance, ours.variance)


def test_announced_contexts_are_asked_again_after_a_restart() -> None:
    X, _, rewards = world(400, change=200, seed=9)
    announced, plain = (policy_of("joint", detector=None, window=64) for _ in range(2))
    announced.prefetch(X)
    for one, two in zip(
        played(announced, X, rewards, seed=2), played(plain, X, rewards, seed=2), strict=True
    ):
        np.testing.assert_array_equal(one, two)


def test_an_arm_whose_rows_have_left_is_warmed_up_again() -> None:
    policy, rng = policy_of("joint", detector=None, window=64), np.random.default_rng(0)
    policy.update(rng.normal(size=(20, 3)), arm=["a", "b"] * 10, reward=[0.0, 1.0] * 10)
    policy.update(rng.normal(size=(108, 3)), arm=["b"] * 108, reward=rng.normal(1.0, 0.1, 108))
    decision = policy.decide(rng.normal(size=3), rng=rng)
    assert (decision.arm, decision.reason) == ("a", "warmup")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"window": 10}, "window must be a number of rows from 64 on, or None, got 10"),
        ({"half_life": 100.5}, "half_life must be a number of rows from 64 on, or None, got 100.5"),
        ({"window": 100, "half_life": 100}, "window must be None beside half_life=100, got 100"),
        ({"detector": 0}, "detector must be a number of rows from 1 on, or None, got 0"),
    ],
)
def test_settings_are_checked(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Memory(**options)
    with pytest.raises(ValueError, match=words):
        make("pfn-ts", arms=2, backbone="linear", **options)


@pytest.mark.parametrize("memory", MEMORIES, ids=str)
@pytest.mark.parametrize("encoding", ["disjoint", "joint"])
def test_late_rewards_and_arms_that_come_and_go_leave_it_a_function_of_the_log(
    memory: dict[str, Any], encoding: str
) -> None:
    X, _, rewards = world(360, change=150, seed=11)
    live, rng, late = policy_of(encoding, **memory), np.random.default_rng(4), []
    for t in range(360):
        if t == 140:
            live.add_arm("c")
        if t == 220:
            live.remove_arm("a")
        decision = live.decide(X[t], rng=rng)
        late.append((decision, float(rewards[t, "abc".index(str(decision.arm)) % 2])))
        while len(late) > 30 or (late and rng.random() < 0.7):
            waiting, reward = late.pop(int(rng.integers(len(late))))
            assert live.update(waiting, reward=reward) == "learned"
            assert live.update(waiting.id, reward=reward) == "duplicate"
    again = policy_of(encoding, **memory)
    again.append(live.events)
    assert again.changes == live.changes
    ours, theirs = live.posterior(X[:10]), again.posterior(X[:10])
    np.testing.assert_array_equal(ours.mean, theirs.mean)
    np.testing.assert_array_equal(ours.variance, theirs.variance)
