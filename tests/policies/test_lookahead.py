"""How much work announced contexts cost, counted at the variance estimator."""

from __future__ import annotations

from typing import Any

import numpy as np
from pfnts.encodings.schedule import Schedule

from pfnts import PFNTS
from pfnts.posterior import SubCLT


class Counting:
    """SubCLT that writes down how many queries it was asked at a time."""

    def __init__(self) -> None:
        self.batches: list[int] = []

    def posterior(self, sequence: Any, queries: Any) -> Any:
        self.batches.append(len(queries))
        return SubCLT().posterior(sequence, queries)


def test_a_refresh_asks_one_arm_about_the_contexts_of_the_block_still_to_come() -> None:
    rng, counting = np.random.default_rng(0), Counting()
    policy = PFNTS(2, encoding="disjoint", backbone="linear", variance=counting)
    X = rng.uniform(size=(200, 2))
    # Sixteen rewards each, so both arms stand at a refresh point.
    policy.update(X[:32], arm=[0, 1] * 16, reward=rng.normal(size=32))
    policy.prefetch(X[:100])
    policy.decide(X[0], rng=rng)
    assert counting.batches == [64, 64]
    for x in X[1:40]:
        policy.decide(x, rng=rng)
    assert counting.batches == [64, 64]
    policy.update(X[40:56], arm=[1] * 16, reward=rng.normal(size=16))
    policy.decide(X[40], rng=rng)
    assert counting.batches == [64, 64, 24]
    # A context that was not announced is computed alone, for every arm.
    policy.decide(X[150], rng=rng)
    assert counting.batches == [64, 64, 24, 1, 1]
    # One that was announced and has already come is still known while nothing moves.
    policy.decide(X[40], rng=rng)
    assert counting.batches == [64, 64, 24, 1, 1]
    # The first context beyond the block begins another.
    policy.decide(X[64], rng=rng)
    assert counting.batches == [64, 64, 24, 1, 1, 36, 36]


def test_a_whole_run_asks_for_few_batches() -> None:
    rng, counting = np.random.default_rng(0), Counting()
    policy = PFNTS(2, encoding="disjoint", backbone="linear", variance=counting)
    X = rng.uniform(size=(1000, 2))
    pulled = []
    for t, x in enumerate(X):
        if t % 100 == 0:
            policy.prefetch(X[t : t + 100])
        arm = policy.decide(x, rng=rng).arm
        policy.update(x, arm=arm, reward=rng.normal())
        pulled.append(arm)
    # At most two blocks of each of ten chunks for two arms, and one batch for each refresh of an arm.
    refreshes = sum(len(Schedule().points(n)) for n in np.bincount(pulled))
    assert len(counting.batches) <= 2 * 2 * 10 + refreshes
    assert sum(counting.batches) <= 2 * 2 * 1000
