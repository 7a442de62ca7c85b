"""The test for surprises: its false alarms, its alarms, and what it must not depend on."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.random import Generator

from pfnts.layouts.surprise import _OTHERWISE, _SHARE, _TIMES, SurpriseTest


def alarms(scores: np.ndarray, *, rows: float = 500) -> list[int]:
    test = SurpriseTest(rows=rows)
    return [i for i, score in enumerate(scores) if test.add(np.array([i]), np.array([score]))]


def test_bets_are_densities() -> None:
    np.testing.assert_allclose(_SHARE * _TIMES + (1 - _SHARE) * _OTHERWISE, 1)
    assert (_OTHERWISE > 0).all()


@pytest.mark.parametrize("kind", ["heavy tails", "yes or no", "constant"])
def test_false_alarms_are_no_more_frequent_than_stated(kind: str, rng: Generator) -> None:
    scores = {
        "heavy tails": rng.standard_cauchy(8000) ** 2,
        "yes or no": (rng.random(8000) < 0.03).astype(float),
        "constant": np.ones(8000),
    }[kind]
    most = 8000 / 500
    assert len(alarms(scores)) <= most + 5 * np.sqrt(most)


def test_a_model_that_learns_raises_no_more_alarms(rng: Generator) -> None:
    scores = rng.exponential(size=8000) * (1 + 20 / np.sqrt(1 + np.arange(8000)))
    assert len(alarms(scores)) <= 8000 / 500 + 5 * np.sqrt(16)


@pytest.mark.parametrize("growth", ["all", "a tenth"])
def test_surprises_that_grow_are_noticed_soon(growth: str, rng: Generator) -> None:
    scores = rng.exponential(size=1400)
    scores[1000:] *= 4 if growth == "all" else np.where(rng.random(400) < 0.1, 30, 1)
    test = SurpriseTest(rows=5000)
    test.add(np.arange(1000), scores[:1000])
    [since, *_] = test.add(np.arange(1000, 1400), scores[1000:])
    assert 900 < since < 1400
    first = SurpriseTest(rows=5000)
    first.add(np.arange(1000), scores[:1000])
    alarm = next(i for i in range(1000, 1400) if first.add(np.array([i]), scores[i : i + 1]))
    assert alarm < (1100 if growth == "all" else 1400)
    assert test.add(np.arange(1400, 1400), scores[:0]) == []


def test_only_the_order_of_surprises_counts(rng: Generator) -> None:
    scores = np.concatenate([rng.random(700), rng.random(300) + 0.4])
    found = alarms(scores)
    assert found
    assert found == alarms(np.exp(7 * scores)) == alarms(scores**3)


def test_pieces_make_no_difference(rng: Generator) -> None:
    scores = np.concatenate([rng.random(700), rng.random(300) + 0.4])
    whole, pieces = SurpriseTest(rows=500), SurpriseTest(rows=500)
    found = whole.add(np.arange(1000), scores)
    parts = np.array_split(np.arange(1000), 13)
    assert found == [since for part in parts for since in pieces.add(part, scores[part])]
    np.testing.assert_array_equal(whole._evidence, pieces._evidence)
