"""Exceptions at every call of the backbone and of the log: afterwards, nothing has happened."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import ArrayLike

from pfnts.backbones import LinearBackbone
from pfnts.backbones.base import Backbone, Prediction, PredictiveSequence, Question
from pfnts.events import History
from pfnts.events.event import to_dict
from pfnts.policies import Policy, make


class Fuse:
    """Raises at the k-th call from now on, and counts calls."""

    def __init__(self) -> None:
        self.left: int | None = None
        self.error: type[BaseException] = RuntimeError
        self.calls = 0

    def set(self, left: int | None, error: type[BaseException] = RuntimeError) -> None:
        self.left, self.error, self.calls = left, error, 0

    def touch(self) -> None:
        self.calls += 1
        if self.left is not None:
            self.left -= 1
            if self.left < 0:
                self.left = None
                raise self.error("blown")


class FragileSequence(PredictiveSequence):
    def __init__(self, inner: PredictiveSequence, fuse: Fuse) -> None:
        self._inner, self._fuse = inner, fuse

    @property
    def size(self) -> int:
        return self._inner.size

    def append(self, X: ArrayLike, y: ArrayLike) -> None:
        self._fuse.touch()
        self._inner.append(X, y)
        self._fuse.touch()  # as if interrupted after the rows went in

    def predict(self, queries: ArrayLike, *, sizes: Sequence[int], levels: ArrayLike = ()) -> Prediction:
        self._fuse.touch()
        return self._inner.predict(queries, sizes=sizes, levels=levels)


class Fragile(Backbone):
    """The linear backbone with a fuse in every call."""

    name = "fragile"
    knows_mean_sd = True

    def __init__(self) -> None:
        self.fuse = Fuse()

    def sequence(self, X: ArrayLike, y: ArrayLike, *, keep: Sequence[int] = ()) -> PredictiveSequence:
        self.fuse.touch()
        return FragileSequence(LinearBackbone().sequence(X, y, keep=keep), self.fuse)

    def predict(self, questions: Sequence[Question]) -> list[Prediction]:
        self.fuse.touch()
        return super().predict(questions)


BACKBONE_POLICIES: dict[str, Callable[[Fragile], Policy]] = {
    "adaptive": lambda b: make(
        "pfn-ts", arms=["a", "b"], backbone=b, encoding=adaptive(), estimator="shrunk", refresh=1.5
    ),
    "joint": lambda b: make("pfn-ts", arms=["a", "b"], backbone=b, encoding="joint", refresh=1.5),
    "threshold": lambda b: make(
        "pfn-ts", arms=["a", "b"], backbone=b, encoding=threshold(), explore=0.2, refresh=1.5
    ),
    "epsilon-greedy": lambda b: make("epsilon-greedy", arms=["a", "b"], backbone=b),
}
LOG_POLICIES: dict[str, Callable[[], Policy]] = {
    "pfn-ts": lambda: make("pfn-ts", arms=["a", "b"], backbone="linear", explore=0.1, refresh=1.5),
    "lin-ts": lambda: make("lin-ts", arms=["a", "b"]),
    "lin-ucb": lambda: make("lin-ucb", arms=["a", "b"]),
    "ts": lambda: make("ts", arms=["a", "b"]),
    "uniform": lambda: make("uniform", arms=["a", "b"]),
}


def adaptive() -> Any:
    from pfnts.layouts import Adaptive

    return Adaptive(switch_times=(20, 30, 38))


def threshold() -> Any:
    from pfnts.layouts import Threshold

    return Threshold(limit=30)


HAVE_POSTERIORS = ("pfn-ts", "lin-ts", "lin-ucb", "ts")
X = np.random.default_rng(5).uniform(size=(60, 2))
REWARDS = np.random.default_rng(6).normal(size=(60, 3))


def trained(policy: Policy, action: str = "") -> Policy:
    """A policy with a model, rows that the model has not seen yet, and a decision without a reward."""
    policy.update(X[:36], arm=["a", "b"] * 18, reward=REWARDS[:36, 0])
    policy.decide(X[40], rng=np.random.default_rng(0), id="waiting")
    policy.update(X[36:40], arm=["a", "b", "b", "a"], reward=REWARDS[36:40, 0])
    if action == "decide prefetched":
        policy.prefetch(X[41:60])
    return policy


# What can be done to a policy; a generator comes with it.
ACTIONS: dict[str, Callable[[Policy, Any], Any]] = {
    "decide": lambda policy, rng: policy.decide(X[41], rng=rng),
    "decide_batch": lambda policy, rng: policy.decide_batch(X[41:49], rng=rng),
    "update": lambda policy, rng: policy.update("waiting", reward=0.5),
    "update rows": lambda policy, rng: policy.update(X[41:45], arm=["a", "b", "a", "b"], reward=[1, 2, 3, 4]),
    "add_arm": lambda policy, rng: policy.add_arm("c"),
    "remove_arm": lambda policy, rng: policy.remove_arm("a"),
    "prefetch": lambda policy, rng: policy.prefetch(X[41:60]),
    "decide prefetched": lambda policy, rng: policy.decide(X[41], rng=rng),
    "play": lambda policy, rng: policy.play(X[41:60], REWARDS[41:60], rng=rng),
    "posterior": lambda policy, rng: policy.posterior(X[41:44]) if policy.name in HAVE_POSTERIORS else None,
    "arms": lambda policy, rng: (policy.arms, policy.schema, repr(policy)),
}


def aftermath(policy: Policy, rng: np.random.Generator) -> list[Any]:
    """What a policy does next, bit for bit: decisions, log, generator."""
    said: list[Any] = [list(map(to_dict, policy.events)), policy.arms, str(policy.schema)]
    for t in range(50, 54):
        decision = policy.decide(X[t], rng=rng)
        said.append((decision.arm, decision.reason, decision.id, decision.propensities.tolist()))
        said.append(policy.update(decision, reward=REWARDS[t, decision.index]))
    said.append(policy.update("waiting", reward=1.0))
    said.append([d.propensities.tolist() for d in policy.decide_batch(X[:4], rng=rng)])
    return [*said, rng.random()]


def disturbed(
    make_one: Callable[[], tuple[Policy, Fuse]], action: str, error: type[BaseException]
) -> tuple[int, int]:
    """Blow the fuse at every call of an action in turn; compare with twins. Returns faults and calls."""
    policy, fuse = make_one()
    fuse.set(None)
    ACTIONS[action](policy, np.random.default_rng(1))
    calls = fuse.calls
    undisturbed = aftermath(make_one()[0], np.random.default_rng(1))
    done_first, own = make_one()[0], np.random.default_rng(1)
    ACTIONS[action](done_first, own)
    retried = aftermath(done_first, own)
    faults = 0
    for k in range(calls):
        (policy, fuse), (again, second) = make_one(), make_one()
        one, two = np.random.default_rng(1), np.random.default_rng(1)
        fuse.set(k, error)
        with pytest.raises(error, match="blown"):
            ACTIONS[action](policy, one)
        fuse.set(None)
        assert aftermath(policy, one) == undisturbed, f"call {k} of {calls}"
        # Doing it again is as good as doing it once.
        second.set(k, error)
        with pytest.raises(error, match="blown"):
            ACTIONS[action](again, two)
        second.set(None)
        ACTIONS[action](again, two)
        assert aftermath(again, two) == retried, f"call {k} of {calls}, once more"
        faults += 1
    return faults, calls


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("name", BACKBONE_POLICIES)
def test_a_fault_in_the_backbone_changes_nothing(name: str, action: str, error: type[BaseException]) -> None:
    def make_one() -> tuple[Policy, Fuse]:
        backbone = Fragile()
        return trained(BACKBONE_POLICIES[name](backbone), action), backbone.fuse

    if action in ("add_arm", "remove_arm", "update") and error is KeyboardInterrupt:
        # These touch the log alone; the model follows when it is next asked.
        assert disturbed(make_one, action, error) == (0, 0)
        return
    faults, calls = disturbed(make_one, action, error)
    assert faults == calls
    if action in ("decide", "decide_batch", "decide prefetched", "play"):
        assert faults >= 2


@pytest.mark.parametrize("error", [MemoryError, KeyboardInterrupt])
@pytest.mark.parametrize("action", ACTIONS)
@pytest.mark.parametrize("name", LOG_POLICIES)
def test_a_fault_in_the_log_changes_nothing(
    name: str, action: str, error: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    fuse, fold, check = Fuse(), History.fold, History.check

    def fragile_fold(history: History, event: Any) -> None:
        fuse.touch()
        fold(history, event)
        fuse.touch()  # as if interrupted after the event was applied

    def fragile_check(history: History, event: Any) -> None:
        fuse.touch()
        check(history, event)

    monkeypatch.setattr(History, "fold", fragile_fold)
    monkeypatch.setattr(History, "check", fragile_check)

    def make_one() -> tuple[Policy, Fuse]:
        return trained(LOG_POLICIES[name](), action), fuse

    faults, calls = disturbed(make_one, action, error)
    assert faults == calls
    if action not in ("posterior", "arms", "prefetch"):
        assert faults >= 2


# Rows learned once more are forecast in larger batches, which rounds the weights of layouts otherwise.
@pytest.mark.parametrize(("encoding", "atol"), [("adaptive", 0.0), ("averaged", 1e-12)])
def test_a_backbone_that_often_fails_costs_no_reward_and_doubles_none(encoding: str, atol: float) -> None:
    # One call of a hundred is interrupted, and everything tried again until it works.
    backbone, fuse_rng = Fragile(), np.random.default_rng(3)
    policy = make("pfn-ts", arms=2, backbone=backbone, encoding=encoding, refresh=1.5)
    twin = make("pfn-ts", arms=2, backbone=Fragile(), encoding=encoding, refresh=1.5)
    one, two, faults = np.random.default_rng(1), np.random.default_rng(1), 0

    def insist(call: Callable[[], Any]) -> Any:
        nonlocal faults
        while True:
            backbone.fuse.set(int(fuse_rng.exponential(100)), KeyboardInterrupt)
            try:
                return call()
            except KeyboardInterrupt:
                faults += 1

    for t in range(100):
        x = X[t % 60]
        decision, other = insist(lambda x=x: policy.decide(x, rng=one)), twin.decide(x, rng=two)
        assert decision.arm == other.arm
        np.testing.assert_allclose(decision.propensities, other.propensities, rtol=0, atol=atol)
        insist(lambda d=decision, t=t: policy.update(d, reward=REWARDS[t % 60, d.index]))
        twin.update(other, reward=REWARDS[t % 60, other.index])
    assert faults > 8
    ours, theirs = list(map(to_dict, policy.events)), list(map(to_dict, twin.events))
    if atol:
        for event in [*ours, *theirs]:
            event.pop("propensities", None)  # compared above
    assert ours == theirs


@pytest.mark.parametrize("name", LOG_POLICIES)
def test_a_bad_row_in_a_batch_leaves_out_the_whole_batch(name: str) -> None:
    policy, twin = trained(LOG_POLICIES[name]()), trained(LOG_POLICIES[name]())
    contexts, arms = X[:6], ["a", "b", "a", "b", "a", "b"]
    for rewards in ([1, 2, 3, np.nan, 5, 6], [1, 2, 3, "4", 5, 6], [1, 2, 3, 1e101, 5, 6]):
        with pytest.raises(ValueError, match="reward must be"):
            policy.update(contexts, arm=arms, reward=rewards)
    with pytest.raises(ValueError, match="arm must be one of"):
        policy.update(contexts, arm=[*arms[:5], "z"], reward=[1.0] * 6)
    assert aftermath(policy, np.random.default_rng(1)) == aftermath(twin, np.random.default_rng(1))


def test_a_failed_update_keeps_no_new_category() -> None:
    policy = make("lin-ts", arms=2)
    policy.update({"plan": "free"}, arm=0, reward=1.0)
    before = policy.schema
    with pytest.raises(ValueError, match="reward must be"):
        policy.update({"plan": "paid"}, arm=0, reward=np.nan)
    with pytest.raises(ValueError, match="eligible must"):
        policy.decide({"plan": "gift"}, rng=np.random.default_rng(0), eligible=[False, False])
    policy.posterior({"plan": "gift"})
    policy.prefetch([{"plan": "gift"}])
    assert policy.schema == before


def test_a_simulation_that_meets_a_bad_reward_stops_before_it() -> None:
    policy, twin = (trained(make("lin-ts", arms=["a", "b"])) for _ in range(2))
    one, two = np.random.default_rng(1), np.random.default_rng(1)
    with pytest.raises(ValueError, match="reward must be"):
        policy.play(X[41:60], np.full((19, 2), np.nan), rng=one)
    assert aftermath(policy, one) == aftermath(twin, two)
