"""When a model is refitted, and what is remembered in between."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.random import Generator
from pfnts.policies.refresh import Announced, RefittingPolicy, refresh_index, rounds_to_refresh

from pfnts.policies.base import Choice, Mask, Matrix


class Counting(RefittingPolicy[float]):
    """Refits by noting when, and evaluates a context as its first feature."""

    name = "counting"

    def __init__(self) -> None:
        super().__init__(2, refresh=8.0, warmup=1, schema=None)
        self.refits: list[int] = []
        self.batches: list[int] = []

    def _refit(self, *, rng: Generator) -> None:
        self.refits.append(self._history.size)

    def _evaluate(self, X: Matrix) -> list[float]:
        self.batches.append(len(X))
        return list(X[:, 0])

    def _decide_at(self, value: float, eligible: Mask, *, rng: Generator) -> Choice:
        return Choice(int(value > 0.5), np.array([value <= 0.5, value > 0.5], dtype=float))


def test_refits_whenever_the_index_grows() -> None:
    policy, rng = Counting(), np.random.default_rng(0)
    for t in range(1000):
        policy.update([t / 1000], arm=t % 2, reward=0.0)
        if t:
            policy.decide([t / 1000], rng=rng)
    grown = [t for t in range(2, 1001) if refresh_index(t) > refresh_index(t - 1)]
    assert policy.refits == grown


def test_a_run_of_ten_thousand_rounds_refits_fifty_five_times() -> None:
    assert refresh_index(10_000) - refresh_index(10) == 55


def test_prefetched_contexts_are_evaluated_in_batches_that_end_at_a_refit() -> None:
    policy, rng = Counting(), np.random.default_rng(0)
    policy.update(np.zeros((100, 1)), arm=[0, 1] * 50, reward=[0.0] * 100)
    contexts = rng.random((100, 1))
    policy.prefetch(contexts)
    for context in contexts:
        decision = policy.decide(context, rng=rng)
        assert decision.arm == int(context[0] > 0.5)
        policy.update(context, arm=decision.arm, reward=0.0)
    assert policy.refits[0] == 100
    ends = [*policy.refits[1:], 200]
    assert policy.batches == [end - start for start, end in zip(policy.refits, ends, strict=True)]


def test_contexts_not_announced_and_repeated_ones_are_found() -> None:
    announced: Announced[float] = Announced(np.array([[1.0], [1.0], [2.0]]))
    seen: list[int] = []

    def compute(X: Matrix) -> list[float]:
        seen.append(len(X))
        return list(10 * X[:, 0])

    values = [announced.find(np.array([x]), limit=9, compute=compute) for x in (1.0, 2.0, 1.0, 5.0)]
    assert values == [10, 20, 10, 50]
    assert seen == [2, 1]
    announced.forget()
    announced.find(np.array([2.0]), limit=9, compute=compute)
    assert seen == [2, 1, 1]


def test_posterior_before_the_first_fit_is_refused() -> None:
    with pytest.raises(ValueError, match="posterior needs a fitted model"):
        Counting()._fitted_contexts([0.0])


@given(t=st.integers(1, 10**6), rate=st.floats(0.5, 20))
def test_rounds_to_refresh_end_where_the_index_grows(t: int, rate: float) -> None:
    ahead = rounds_to_refresh(t, rate)
    assert ahead >= 1
    assert refresh_index(t + ahead - 1, rate) == refresh_index(t, rate) < refresh_index(t + ahead, rate)
