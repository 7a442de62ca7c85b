"""Rows that leave: which, when, and what is left of the models."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from numpy.random import Generator

from pfnts.backbones import LinearBackbone
from pfnts.events import ActionSet, History, Observed
from pfnts.layouts import Learner, Sizes, selector
from pfnts.layouts.memory import Memory, uniform_hash
from pfnts.layouts.posteriors import posteriors, version_of
from pfnts.posterior import ShrunkSubCLT


def history_of(X: np.ndarray, arms: np.ndarray, rewards: np.ndarray) -> History:
    history = History([0, 1, 2])
    for x, arm, reward in zip(X, arms.tolist(), rewards.tolist(), strict=True):
        history.fold(Observed(x, arm, reward))
    return history


def models_of(layout: str, **options: Any) -> Learner:
    memory = Memory(**{"detector": None, **options})
    return Learner(selector(layout), backbone=LinearBackbone(), memory=memory, sizes=Sizes(3, 2, 5))


def test_cuts_come_at_multiples_from_the_second_on() -> None:
    assert [Memory(window=100).next_cut(n) for n in (0, 199, 200, 250, 300)] == [200, 200, 300, 300, 400]
    assert [Memory(half_life=64).next_cut(n) for n in (0, 127, 128)] == [128, 128, 192]
    assert Memory().next_cut(10) is None


def test_half_of_the_older_rows_leave_every_half_life() -> None:
    memory = Memory(half_life=2000)
    kept = [set(memory.kept(n).tolist()) for n in range(4000, 40_001, 2000)]
    for n, (before, after) in enumerate(pairwise(kept), start=3):
        assert {row for row in after if row < 2000 * (n - 1)} <= before  # what has left stays away
        assert set(range(2000 * (n - 1), 2000 * n)) <= after  # the newest are all there
        assert len(after) < 2.2 * 2000
        first = sum(row < 2000 for row in after)
        expected = 2000 * 0.5 ** (n - 1)
        assert abs(first - expected) <= 5 * np.sqrt(expected) + 1


def test_hash_is_uniform() -> None:
    found = uniform_hash(np.arange(100_000))
    counts = np.histogram(found, bins=50, range=(0, 1))[0]
    assert ((counts - 2000) ** 2 / 2000).sum() < 49 + 5 * np.sqrt(98)
    assert abs(np.corrcoef(found[:-1], found[1:])[0, 1]) < 0.02


@pytest.mark.parametrize("layout", ["disjoint", "joint", "adaptive"])
@pytest.mark.parametrize("options", [{"window": 64}, {"half_life": 64}])
def test_after_a_cut_models_are_those_of_the_rows_that_stay(
    layout: str, options: dict[str, int], rng: Generator
) -> None:
    X, arms, rewards = rng.normal(size=(256, 2)), rng.integers(3, size=256), rng.normal(size=256)
    queries = rng.normal(size=(4, 2))
    models = models_of(layout, **options)
    history = history_of(X, arms, rewards)
    models.advance(history, history.size)
    kept = Memory(**options).kept(256)
    fresh = models_of(models.answering.layout.name, refresh=1.001)  # after every row
    fresh.advance(history_of(X[kept], arms[kept], rewards[kept]), len(kept))
    ours, theirs = (
        posteriors(m, queries, ActionSet.of(range(3)), backbone=LinearBackbone(), estimator=ShrunkSubCLT())
        for m in (models, fresh)
    )
    for one, two in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(one.mean, two.mean, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(one.variance, two.variance, rtol=1e-9, atol=1e-12)
    assert sum(models.answering[arm].held[arm] for arm in range(3)) == len(kept)


@pytest.mark.parametrize("layout", ["disjoint", "joint", "adaptive"])
def test_no_sequence_reaches_twice_the_window(layout: str, rng: Generator) -> None:
    sizes: list[int] = []
    models = models_of(layout, window=64)
    X, arms, rewards = rng.normal(size=(400, 2)), rng.integers(3, size=400), rng.normal(size=400)
    for n in range(1, 401, 7):
        models.advance(history_of(X[:n], arms[:n], rewards[:n]), n)
        sizes.append(sum(one.size for one in models.answering.distinct))
    assert max(sizes) <= 128
    assert min(sizes[40:]) >= 64


@pytest.mark.parametrize("options", [{"window": 64}, {"detector": 50.0}])
def test_pieces_make_no_difference(options: dict[str, Any], rng: Generator) -> None:
    X, arms = rng.normal(size=(400, 2)), rng.integers(3, size=400)
    rewards = X @ [1.0, -1.0] * np.where(np.arange(400) < 200, 1, -1) + 0.1 * rng.normal(size=400)
    whole, pieces = models_of("adaptive", **options), models_of("adaptive", **options)
    whole.advance(history_of(X, arms, rewards), 400)
    for n in [1, 2, 50, 130, 131, 250, 400]:
        pieces.advance(history_of(X[:n], arms[:n], rewards[:n]), n)
    assert whole.changes == pieces.changes
    assert [version_of(whole, k) for k in range(3)] == [version_of(pieces, k) for k in range(3)]
    queries = rng.normal(size=(4, 2))
    for one, two in zip(
        *(
            posteriors(
                m, queries, ActionSet.of(range(3)), backbone=LinearBackbone(), estimator=ShrunkSubCLT()
            )
            for m in (whole, pieces)
        ),
        strict=True,
    ):
        np.testing.assert_array_equal(one.mean, two.mean)
        np.testing.assert_array_equal(one.variance, two.variance)
    assert bool(whole.changes) == ("detector" in options)
