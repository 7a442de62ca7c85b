"""A policy that is shared by threads."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pfnts.events.event import to_dict
from pfnts.policies import Policy, make

X = np.random.default_rng(0).uniform(size=(64, 3))
POLICIES: dict[str, Callable[[], Policy]] = {
    "pfn-ts": lambda: make("pfn-ts", arms=["a", "b", "c"], backbone="linear"),
    "pfn-ts joint": lambda: make("pfn-ts", arms=["a", "b", "c"], backbone="linear", encoding="joint"),
    "lin-ts": lambda: make("lin-ts", arms=["a", "b", "c"]),
}


@pytest.fixture(autouse=True)
def _switch_often() -> Iterator[None]:
    """Threads take turns at almost every instruction, so that a gap in a lock is met."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def trained(policy: Policy) -> Policy:
    rng = np.random.default_rng(1)
    arms = [policy.arms[k] for k in rng.integers(3, size=64)]
    policy.update(X, arm=arms, reward=rng.normal(size=64))
    return policy


def in_threads(work: Callable[[int], Any], n: int = 8) -> list[Any]:
    """Do the work in so many threads at once; the first error is raised here."""
    results: list[Any] = [None] * n
    errors: list[BaseException] = []
    barrier = threading.Barrier(n)

    def run(i: int) -> None:
        try:
            barrier.wait()
            results[i] = work(i)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(n)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return results


def probes(policy: Policy) -> list[Any]:
    rng = np.random.default_rng(9)
    return [policy.propose(x, rng=rng)[0].propensities.tolist() for x in X[:10]]


@pytest.mark.parametrize("name", POLICIES)
def test_two_thousand_mixed_calls_leave_what_the_log_says(name: str, tmp_path: Path) -> None:
    policy = trained(POLICIES[name]())

    def work(i: int) -> int:
        rng, learned, decisions = np.random.default_rng(i), 0, []
        for t in range(250):
            action = rng.integers(9)
            x = X[rng.integers(64)]
            if action < 3:
                decisions.append(policy.decide(x, rng=rng, id=f"{i}/{t}"))
            elif action < 5 and decisions:
                decision = decisions[rng.integers(len(decisions))]
                learned += policy.update(decision, reward=rng.normal()) == "learned"
            elif action == 5:
                policy.update(X[:2], arm=["a", "b"], reward=[0.1, 0.2])
                learned += 2
            elif action == 6:
                policy.prefetch(X[:8])
                decisions += policy.decide_batch(X[:3], rng=rng)
            elif action == 7:
                policy.posterior(x)  # type: ignore[attr-defined]
                assert repr(policy)
                assert len(policy.arms) >= 3
            elif t % 5 == 0:
                policy.add_arm(f"new {i} {t}")
                policy.remove_arm(f"new {i} {t}")
        return learned

    learned = sum(in_threads(work))
    kinds = [event.kind for event in policy.events]
    ids = [event.id for event in policy.events if event.kind == "decided"]  # type: ignore[union-attr]
    assert len(ids) == len(set(ids))
    assert kinds.count("rewarded") + kinds.count("observed") == learned + 64
    policy.save(tmp_path / "policy")
    loaded, replayed = type(policy).load(tmp_path / "policy"), POLICIES[name]()
    replayed.append(policy.events)
    policy.prefetch(X[:1] + 1)  # what was computed in batches may round otherwise
    assert probes(policy) == probes(loaded) == probes(replayed)
    assert list(map(to_dict, loaded.events)) == list(map(to_dict, policy.events))


@pytest.mark.parametrize("name", POLICIES)
def test_readers_of_a_policy_just_loaded_decide_as_one_thread_does(name: str, tmp_path: Path) -> None:
    trained(POLICIES[name]()).save(tmp_path / "policy")
    kind = type(POLICIES[name]())
    alone = kind.load(tmp_path / "policy")
    expected = [
        [alone.propose(x, rng=np.random.default_rng([i, t]))[0] for t, x in enumerate(X[:20])]
        for i in range(8)
    ]
    for _ in range(3):
        shared = kind.load(tmp_path / "policy")
        said = in_threads(
            lambda i, shared=shared: [
                shared.decide(x, rng=np.random.default_rng([i, t])) for t, x in enumerate(X[:20])
            ]
        )
        for one, two in zip(expected, said, strict=True):
            assert [d.arm for d in one] == [d.arm for d in two]
            assert [d.propensities.tolist() for d in one] == [d.propensities.tolist() for d in two]
        assert probes(shared) == probes(alone)


def test_a_thread_that_only_looks_never_sees_half_of_a_change() -> None:
    policy, stop = trained(POLICIES["lin-ts"]()), threading.Event()

    def work(i: int) -> None:
        if i == 0:
            for t in range(200):
                policy.add_arm(f"new {t}")
                policy.remove_arm(f"new {t}")
            stop.set()
        while not stop.is_set():
            assert policy.arms[:3] == ("a", "b", "c")
            assert policy.n_arms in (3, 4)
            assert policy.schema is not None
            assert "rewards)" in repr(policy)

    in_threads(work, 4)
