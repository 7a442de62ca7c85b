"""What every backbone must do, whatever its model; a new backbone joins by its name in conftest."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.random import Generator

from pfnts.backbones import Backbone, PredictiveSequence, load

LEVELS = np.array([0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99])
# Single precision networks reach this; exact backbones far less.
CLOSE = 1e-3

Table = tuple[np.ndarray, np.ndarray, np.ndarray]


def prefixes(name: str, n: int) -> list[int]:
    """Sizes to ask about: every one, but fewer where a model is fitted for each."""
    if name == "linear":
        return list(range(1, n + 1))
    return sorted({1, 2, 3, 4, 5, 8, (n + 1) // 2, n} & set(range(1, n + 1)))


def table(rng: Generator, *, n: int = 40, columns: int = 4) -> Table:
    """Rows, targets and queries of a smooth function with a little noise."""
    X = rng.standard_normal((n, columns))
    y = X[:, 0] - 0.5 * X[:, -1] + 0.1 * rng.standard_normal(n)
    return X, y, rng.standard_normal((5, columns))


def constant_target(rng: Generator) -> Table:
    X, y, queries = table(rng)
    return X, np.full_like(y, 3.0), queries


def zero_target(rng: Generator) -> Table:
    X, y, queries = table(rng)
    return X, np.zeros_like(y), queries


def one_row(rng: Generator) -> Table:
    X, y, queries = table(rng, n=1)
    return X, y, queries


def constant_columns(rng: Generator) -> Table:
    X, y, queries = table(rng)
    X[:, 1:3] = 7.0
    return X, y, queries


def duplicated_rows(rng: Generator) -> Table:
    X, y, queries = table(rng, n=4)
    return np.repeat(X, 10, axis=0), np.repeat(y, 10), queries


def huge_targets(rng: Generator) -> Table:
    X, y, queries = table(rng)
    return X, 1e6 * y, queries


def shifted_targets(rng: Generator) -> Table:
    X, y, queries = table(rng)
    return X, 1e6 + y, queries


def tiny_targets(rng: Generator) -> Table:
    X, y, queries = table(rng)
    return X, 1e-6 * y, queries


def outlying_target(rng: Generator) -> Table:
    X, y, queries = table(rng)
    y[3] = 1e6
    return X, y, queries


def outlying_features(rng: Generator) -> Table:
    X, y, queries = table(rng)
    X[5, 0] = -1e6
    queries[0, 1] = 1e6
    return X, y, queries


def missing_cells(rng: Generator) -> Table:
    X, y, queries = table(rng)
    X[rng.uniform(size=X.shape) < 0.3] = np.nan
    X[0, 0] = np.nan
    queries[0] = np.nan
    return X, y, queries


def missing_column(rng: Generator) -> Table:
    X, y, queries = table(rng)
    X[:, 2] = np.nan
    return X, y, queries


def many_columns(rng: Generator) -> Table:
    return table(rng, n=30, columns=350)


def enormous_target(rng: Generator) -> Table:
    X, y, queries = table(rng)
    y[30] = 1e200
    return X, y, queries


def enormous_targets(rng: Generator) -> Table:
    X, y, queries = table(rng)
    return X, 1e154 * (y - 3), queries


def binary_target(rng: Generator) -> Table:
    X, y, queries = table(rng)
    return X, (y > 1).astype(float), queries


TABLES = [
    constant_target,
    zero_target,
    one_row,
    constant_columns,
    duplicated_rows,
    huge_targets,
    shifted_targets,
    tiny_targets,
    outlying_target,
    outlying_features,
    missing_cells,
    missing_column,
    many_columns,
    enormous_target,
    enormous_targets,
    binary_target,
]


@pytest.mark.parametrize("make", TABLES)
def test_answers_are_finite_and_ordered(name: str, backbone: Backbone, make: object, rng: Generator) -> None:
    X, y, queries = make(rng)
    sequence = backbone.sequence(X, y)
    sizes = prefixes(name, len(y))
    means = sequence.means(queries, sizes)
    assert means.shape == (len(sizes), len(queries))
    assert np.isfinite(means).all()
    for size in {1, (len(y) + 1) // 2, len(y)}:
        quantiles = sequence.quantiles(queries, size, LEVELS)
        assert quantiles.shape == (len(LEVELS), len(queries))
        assert np.isfinite(quantiles).all()
        assert (np.diff(quantiles, axis=0) >= 0).all()


def test_is_a_backbone(name: str, options: dict[str, object], backbone: Backbone, rng: Generator) -> None:
    X, y, _ = table(rng)
    assert isinstance(backbone, Backbone)
    assert isinstance(backbone.sequence(X, y), PredictiveSequence)
    assert load(backbone.name, **options).name == backbone.name == name


def test_learns_a_linear_function(trained: Backbone, rng: Generator) -> None:
    X, y, _ = table(rng, n=200)
    queries = rng.standard_normal((200, 4))
    truth = queries[:, 0] - 0.5 * queries[:, -1]
    early, late = trained.sequence(X, y).means(queries, [3, 200])
    assert ((late - truth) ** 2).mean() < 0.2 * truth.var()
    assert ((late - truth) ** 2).mean() < ((early - truth) ** 2).mean()


def test_quantiles_hold_about_their_share_of_new_targets(trained: Backbone, rng: Generator) -> None:
    X, y, _ = table(rng, n=700)
    y += 0.5 * rng.standard_normal(700)
    low, high = trained.sequence(X[:200], y[:200]).quantiles(X[200:], 200, [0.1, 0.9])
    inside = ((low <= y[200:]) & (y[200:] <= high)).mean()
    assert 0.65 <= inside <= 0.95


@pytest.mark.parametrize("factor", [1e6, 1e-6])
def test_predictions_follow_the_scale_of_the_targets(
    backbone: Backbone, rng: Generator, factor: float
) -> None:
    X, y, queries = table(rng)
    plain = backbone.sequence(X, y).means(queries, [10, 40])
    scaled = backbone.sequence(X, factor * y).means(queries, [10, 40])
    np.testing.assert_allclose(scaled / factor, plain, atol=0.05 * y.std())


def test_small_differences_of_large_targets_are_learned(trained: Backbone, rng: Generator) -> None:
    X, y, _ = table(rng, n=200)
    queries = rng.standard_normal((200, 4))
    truth = queries[:, 0] - 0.5 * queries[:, -1]
    for shift in (1e6, -1e8):
        means = trained.sequence(X, y + shift).means(queries, [200])[0]
        assert ((means - shift - truth) ** 2).mean() < 0.2 * truth.var()


def test_constant_target_is_predicted(backbone: Backbone, rng: Generator) -> None:
    X, _, queries = table(rng)
    means = backbone.sequence(X, np.full(40, 3.0)).means(queries, [2, 40])
    np.testing.assert_allclose(means, 3.0, atol=1.0)


def test_appending_nothing_changes_nothing(backbone: Backbone, rng: Generator) -> None:
    X, y, queries = table(rng)
    sequence = backbone.sequence(X, y)
    before = sequence.means(queries, [40])
    sequence.append(X[:0], y[:0])
    assert sequence.size == 40
    np.testing.assert_allclose(sequence.means(queries, [40]), before, atol=0.1 * CLOSE * y.std())


def test_sizes_come_in_any_order_and_may_repeat(backbone: Backbone, rng: Generator) -> None:
    X, y, queries = table(rng)
    ordered = backbone.sequence(X, y).means(queries, [2, 8, 40])
    mixed = backbone.sequence(X, y).means(queries, [8, 40, 2, 8])
    np.testing.assert_allclose(mixed, ordered[[1, 2, 0, 1]], atol=CLOSE * y.std())
    assert backbone.sequence(X, y).means(queries, []).shape == (0, 5)


def test_queries_do_not_influence_each_other(backbone: Backbone, rng: Generator) -> None:
    X, y, queries = table(rng)
    sequence = backbone.sequence(X, y)
    together = sequence.means(queries, [4, 40])
    alone = np.concatenate([sequence.means(queries[i : i + 1], [4, 40]) for i in range(5)], axis=1)
    # One query is multiplied by other kernels than five, and TabPFN's layers magnify what these round.
    np.testing.assert_allclose(together, alone, atol=5 * CLOSE * y.std())


def test_levels_come_in_any_order(backbone: Backbone, rng: Generator) -> None:
    X, y, queries = table(rng)
    sequence = backbone.sequence(X, y)
    low, high = sequence.quantiles(queries, 40, [0.2, 0.8])
    np.testing.assert_allclose(sequence.quantiles(queries, 40, [0.8, 0.2]), [high, low], atol=CLOSE * y.std())


@pytest.mark.parametrize("size", [0, -1, 41])
def test_size_out_of_range_is_refused(backbone: Backbone, rng: Generator, size: int) -> None:
    X, y, queries = table(rng)
    sequence = backbone.sequence(X, y)
    with pytest.raises(ValueError, match=rf"size.*{size}"):
        sequence.means(queries, [2, size])
    with pytest.raises(ValueError, match=rf"size.*{size}"):
        sequence.quantiles(queries, size, LEVELS)


@pytest.mark.parametrize("level", [0.0, 1.0, -0.5, np.nan])
def test_level_out_of_range_is_refused(backbone: Backbone, rng: Generator, level: float) -> None:
    X, y, queries = table(rng)
    with pytest.raises(ValueError, match="level"):
        backbone.sequence(X, y).quantiles(queries, 40, [0.5, level])


@pytest.mark.parametrize(
    ("X", "y", "words"),
    [
        (np.zeros((2, 3)), [0.0, 1.0], "X must have 4 columns.*got 3"),
        (np.zeros(4), [0.0], "X must have two axes"),
        (np.zeros((2, 4)), [0.0], "y must have one number for each of the 2 rows"),
        (np.zeros((2, 4)), [0.0, np.nan], "y must be finite, got nan"),
        (np.zeros((2, 4)), [0.0, np.inf], "y must be finite, got inf"),
        (np.full((2, 4), np.inf), [0.0, 1.0], "X must not be infinite"),
    ],
)
def test_bad_rows_are_named_and_leave_the_sequence_as_it_was(
    backbone: Backbone, rng: Generator, X: np.ndarray, y: list[float], words: str
) -> None:
    rows, targets, queries = table(rng)
    sequence = backbone.sequence(rows, targets)
    before = sequence.means(queries, [4, 40])
    with pytest.raises(ValueError, match=words):
        sequence.append(X, y)
    assert sequence.size == 40
    np.testing.assert_allclose(sequence.means(queries, [4, 40]), before, atol=0.1 * CLOSE * targets.std())


def test_bad_queries_and_empty_histories_are_named(backbone: Backbone, rng: Generator) -> None:
    X, y, queries = table(rng)
    sequence = backbone.sequence(X, y)
    with pytest.raises(ValueError, match=r"queries must have 4 columns.*got 3"):
        sequence.means(queries[:, :3], [4])
    with pytest.raises(ValueError, match="queries must have two axes"):
        sequence.means(queries[0], [4])
    with pytest.raises(ValueError, match="X must have at least one row"):
        backbone.sequence(X[:0], y[:0])
