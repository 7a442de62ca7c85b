from __future__ import annotations

import numpy as np
import pytest
from numpy.random import Generator

from pfnts.backbones.network.columns import PROJECTED, ColumnReduction, association

WIDTH = 40
KEPT = WIDTH - PROJECTED


@pytest.mark.parametrize("features", [1, 7, WIDTH])
def test_narrow_tables_pass_as_they_are(rng: Generator, features: int) -> None:
    X = rng.standard_normal((20, features))
    assert ColumnReduction.of(X, X[:, 0], width=WIDTH)(X) is X


@pytest.mark.parametrize("features", [WIDTH + 1, 350])
def test_wide_tables_get_one_width(rng: Generator, features: int) -> None:
    X = rng.standard_normal((30, features))
    reduced = ColumnReduction.of(X, X[:, 5], width=WIDTH)(rng.standard_normal((4, features)))
    assert reduced.shape == (4, WIDTH)
    assert np.isfinite(reduced).all()


def test_columns_that_go_with_the_target_are_kept_unchanged(rng: Generator) -> None:
    X = rng.standard_normal((200, 100))
    y = X[:, 90] - X[:, 60] + 0.1 * rng.standard_normal(200)
    reduction = ColumnReduction.of(X, y, width=WIDTH)
    assert {60, 90} <= set(reduction.kept)
    np.testing.assert_array_equal(reduction(X)[:, list(reduction.kept).index(60)], X[:, 60])


def test_kept_and_mixed_columns_are_all_of_them(rng: Generator) -> None:
    X = rng.standard_normal((50, 77))
    reduction = ColumnReduction.of(X, X[:, 0], width=WIDTH)
    assert sorted([*reduction.kept, *reduction.rest]) == list(range(77))


def test_constant_target_keeps_the_columns_that_vary(rng: Generator) -> None:
    X = np.zeros((50, 100))
    X[:, 40:60] = rng.standard_normal((50, 20))
    reduction = ColumnReduction.of(X, np.ones(50), width=WIDTH)
    assert set(range(40, 60)) <= set(reduction.kept)
    assert np.isfinite(reduction(X)).all()


def test_mixed_columns_tell_different_rows_apart(rng: Generator) -> None:
    X = np.eye(120)
    reduced = ColumnReduction.of(X, rng.standard_normal(120), width=WIDTH)(X)
    assert len(np.unique(reduced.round(9), axis=0)) > 100


def test_missing_values_stay_in_kept_columns_and_leave_the_others_finite(rng: Generator) -> None:
    X = rng.standard_normal((40, 90))
    X[rng.random(X.shape) < 0.2] = np.nan
    reduction = ColumnReduction.of(X, rng.standard_normal(40), width=WIDTH)
    reduced = reduction(X)
    np.testing.assert_array_equal(np.isnan(reduced[:, :KEPT]), np.isnan(X[:, reduction.kept]))
    assert np.isfinite(reduced[:, KEPT:]).all()


def test_columns_to_keep_are_kept_whatever_they_say(rng: Generator) -> None:
    X = rng.standard_normal((50, 100))
    X[:, 77] = 0.0
    assert {11, 77} <= set(ColumnReduction.of(X, X[:, 0], width=WIDTH, keep=[77, 11]).kept)
    everything = ColumnReduction.of(X, X[:, 0], width=WIDTH, keep=range(60))
    assert set(range(60)) <= set(everything.kept)
    assert everything(X).shape == (50, 60 + PROJECTED)


def test_columns_that_matter_without_correlation_are_found(rng: Generator) -> None:
    X = rng.standard_normal((300, 200))
    y = X[:, 90] ** 2 + np.exp(3 * X[:, 60]) + 0.1 * rng.standard_normal(300)
    assert {60, 90} <= set(np.argsort(-association(X, y))[:8])


def test_huge_values_are_no_obstacle(rng: Generator) -> None:
    X = rng.standard_normal((50, 100))
    X[3] *= 1e300
    y = rng.standard_normal(50)
    y[7] = 1e300
    reduction = ColumnReduction.of(X, y, width=WIDTH)
    assert np.isfinite(association(X, y)).all()
    assert np.isfinite(reduction(X)).all()
