"""Products of context and features: what they are, when they join, and that they are worth it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.random import Generator

from pfnts import PFNTS, Memory
from pfnts.backbones import LinearBackbone
from pfnts.layouts import Features
from pfnts.layouts.interactions import Interactions, Scaling
from pfnts.layouts.schedule import last_refresh

P, A, ARMS = 3, 2, 12
WARMUP = 2 * (P + A)


def rows_of(rng: Generator, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Contexts far from zero, arms, and rewards that are products of context and features."""
    X, arms = 50 + 4 * rng.normal(size=(n, P)), rng.integers(ARMS, size=n)
    return X, arms, (X[:, 0] - 50) * (features_of()[arms, 0] - 2000) + 0.1 * rng.normal(size=n)


def features_of() -> np.ndarray:
    return np.asarray(2000 + 10 * np.random.default_rng(5).normal(size=(ARMS, A)))


def policy_of(**options: Any) -> PFNTS:
    return PFNTS(dict(enumerate(features_of())), backbone="linear", encoding=Features(**options))


def test_products_are_those_of_a_slow_way(rng: Generator) -> None:
    X = rng.normal(size=(30, P + A)) * [1, 10, 100, 3, 4] + [5, 0, -1e6, 2, 7]
    X[3, 1] = X[4, 4] = np.nan
    found = Interactions(Scaling.of(X), width=P)(X)
    for i in range(30):
        for j in range(P):
            for k in range(A):
                scaled = []
                for column in (j, P + k):
                    seen = [value for value in X[:, column] if not np.isnan(value)]
                    scaled.append((X[i, column] - np.mean(seen)) / np.std(seen))
                expected = 0.0 if np.isnan(scaled).any() else scaled[0] * scaled[1]
                assert found[i, j * A + k] == pytest.approx(expected, rel=1e-6, abs=1e-9)


def test_a_column_that_never_varied_and_one_that_is_huge_do_no_harm() -> None:
    scaling = Scaling.of(np.array([[3.0, 1e300], [3.0, -1e300]]) * [1, 1e-150])
    assert np.isfinite(Interactions(scaling, width=1)(np.array([[1e300, 1e300], [3.0, np.nan]]))).all()


def test_from_the_end_of_the_warm_up_on_the_model_is_told_of_products(rng: Generator) -> None:
    X, arms, rewards = rows_of(rng, 40)
    policy = policy_of()
    policy.update(X, arm=arms.tolist(), reward=rewards)
    policy.catch_up()
    rows = np.concatenate([X, features_of()[arms]], axis=1)
    products = Interactions(Scaling.of(rows[:WARMUP]), width=P)
    told = np.concatenate([rows, products(rows)], axis=1)
    at = np.concatenate([np.repeat(X[:1], ARMS, axis=0), features_of()], axis=1)
    size = last_refresh(40, Memory().refresh)
    expected = LinearBackbone().sequence(told, rewards).means(np.concatenate([at, products(at)], 1), [size])
    np.testing.assert_allclose(policy.posterior(X[0]).mean, expected[0], rtol=1e-6)


@pytest.mark.parametrize("pieces", [[40], [WARMUP - 1, 2, 40], [1] * 40, [WARMUP, 40]])
def test_the_pieces_in_which_rows_come_do_not_matter(pieces: list[int], rng: Generator) -> None:
    X, arms, rewards = rows_of(rng, 40)
    whole, cut = policy_of(), policy_of()
    whole.update(X, arm=arms.tolist(), reward=rewards)
    begin = 0
    for piece in pieces:
        part = slice(begin, begin + piece)
        if len(X[part]):
            cut.update(X[part], arm=arms[part].tolist(), reward=rewards[part])
            cut.catch_up()
        begin += piece
    np.testing.assert_array_equal(whole.posterior(X).mean, cut.posterior(X).mean)
    np.testing.assert_array_equal(whole.posterior(X).variance, cut.posterior(X).variance)


def test_a_line_learns_what_depends_on_both(rng: Generator) -> None:
    X, arms, rewards = rows_of(rng, 200)
    context, slope = np.array([54.0, 50.0, 50.0]), features_of()[:, 0]
    errors = {}
    for interactions in (False, True):
        policy = policy_of(interactions=interactions)
        policy.update(X, arm=arms.tolist(), reward=rewards)
        means = policy.posterior(context).mean
        errors[interactions] = np.std(means - 4 * slope) / np.std(4 * slope)
    assert errors[True] < 0.1 < 0.5 < errors[False]


@pytest.mark.parametrize(("width", "features", "there"), [(8, 8, True), (13, 5, False), (3, 0, False)])
def test_there_are_none_where_they_would_be_many(width: int, features: int, there: bool) -> None:
    assert Features().interacts(width, features) is there
    assert not Features(interactions=False).interacts(width, features)


def test_a_saved_policy_goes_on_alike(rng: Generator, tmp_path: Path) -> None:
    X, arms, rewards = rows_of(rng, 40)
    for interactions in (True, False):
        policy = policy_of(interactions=interactions)
        policy.update(X, arm=arms.tolist(), reward=rewards)
        policy.save(tmp_path / "policy")
        loaded = PFNTS.load(tmp_path / "policy")
        np.testing.assert_array_equal(policy.posterior(X).mean, loaded.posterior(X).mean)
