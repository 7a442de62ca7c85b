"""The answer after t rows is a function of these rows and the queries, whatever came or was asked."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.random import Generator

from pfnts.backbones import Backbone, Prediction, Question

LEVELS = (0.1, 0.5, 0.9)
ROWS = 170
# Below, at and above the sizes at which the embedded backbone takes another basis.
SIZES = [1, 7, 31, 32, 63, 64, 79, 80, 101, 159, 160, 169]


def table(rng: Generator, columns: int, rows: int = ROWS) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    X = rng.standard_normal((rows, columns))
    X[rng.uniform(size=X.shape) < 0.02] = np.nan
    y = np.nan_to_num(X[:, 0]) + 0.1 * rng.standard_normal(rows)
    return X, y, rng.standard_normal((2, columns))


def sizes_for(name: str) -> list[int]:
    return [1, 7, 40, 169] if name in ("tabicl", "tabpfn") else SIZES


def assert_same(name: str, y: np.ndarray, one: Prediction, other: Prediction) -> None:
    """Up to rounding: of double precision in closed forms, of single precision in the network."""
    rtol, atol = {"linear": (1e-11, 1e-11), "embedded": (0.0, 1e-4 * y.std())}.get(name, (0.0, 0.0))
    np.testing.assert_allclose(one.means, other.means, rtol=rtol, atol=atol)
    np.testing.assert_allclose(one.quantiles, other.quantiles, rtol=rtol, atol=atol)
    if one.mean_sd is not None:
        np.testing.assert_allclose(one.mean_sd, other.mean_sd, rtol=rtol, atol=atol)


@pytest.mark.parametrize("columns", [5, 200])
def test_later_rows_do_not_reach_back(name: str, backbone: Backbone, rng: Generator, columns: int) -> None:
    X, y, queries = table(rng, columns)
    for t in sizes_for(name) if columns == 5 else sizes_for(name)[1::3]:
        other_X, other_y = X.copy(), y.copy()
        other_X[t:] = 1e3 * rng.standard_normal(X[t:].shape) + 77  # values and scales,
        other_y[t:] = 1e5 * rng.standard_normal(ROWS - t) - 1e6
        other_X[t:, rng.integers(columns)] = np.nan
        other_X[t:, rng.integers(columns)] = other_y[t:]  # and which columns seem to matter
        disturbed = backbone.sequence(other_X, other_y)
        disturbed.predict(queries[:1], sizes=[ROWS])
        undisturbed = backbone.sequence(X[:t], y[:t])
        assert_same(
            name,
            y,
            disturbed.predict(queries, sizes=[t], levels=LEVELS),
            undisturbed.predict(queries, sizes=[t], levels=LEVELS),
        )


@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_how_rows_came_and_what_was_asked_changes_nothing(
    name: str, backbone: Backbone, data: st.DataObject
) -> None:
    X, y, queries = table(np.random.default_rng(3), 3, rows=100)
    step = st.integers(1, 40 if name in ("embedded", "linear") else 60)
    sequence, ends = backbone.sequence(X[:1], y[:1]), [1]
    while ends[-1] < 100:
        ends.append(min(100, ends[-1] + data.draw(step)))
        sequence.append(X[ends[-2] : ends[-1]], y[ends[-2] : ends[-1]])
        asked = data.draw(st.lists(st.integers(1, ends[-1]), max_size=2))
        sequence.predict(queries[: data.draw(st.integers(0, 2))], sizes=asked)
    t = data.draw(st.integers(1, 100))
    undisturbed = backbone.sequence(X[:t], y[:t])
    assert_same(
        name,
        y,
        sequence.predict(queries, sizes=[t], levels=LEVELS),
        undisturbed.predict(queries, sizes=[t], levels=LEVELS),
    )


def test_questions_together_are_answered_as_one_by_one(backbone: Backbone, rng: Generator) -> None:
    X, y, queries = table(rng, 4, rows=90)
    sequences = [backbone.sequence(X[:n], y[:n]) for n in (20, 50, 90)]
    many = rng.standard_normal((30, 4))
    questions = [
        Question(sequences[0], queries, (20,), LEVELS),
        Question(sequences[1], queries, (2, 32, 50)),
        Question(sequences[2], queries[:1], (90, 33), LEVELS),
        Question(sequences[2], many, (64, 90), (0.5,)),
        Question(sequences[1], many[:0], (50,)),
        Question(sequences[0], queries, ()),
    ]
    together = backbone.predict(questions)
    assert len(together) == len(questions)
    for question, said in zip(questions, together, strict=True):
        [alone] = backbone.predict([question])
        assert said.means.shape == (len(question.sizes), len(question.queries))
        assert said.quantiles.shape == (len(question.levels), len(question.queries))
        close = {"rtol": 0, "atol": 5e-5 * y.std()}  # other products of single precision round differently
        np.testing.assert_allclose(said.means, alone.means, **close)
        np.testing.assert_allclose(said.quantiles, alone.quantiles, **close)
    assert backbone.predict([]) == []


def test_what_it_knows_of_the_mean_is_declared(backbone: Backbone, rng: Generator) -> None:
    X, y, queries = table(rng, 3, rows=40)
    said = backbone.sequence(X, y).predict(queries, sizes=[10, 40])
    assert (said.mean_sd is not None) == backbone.knows_mean_sd
    if said.mean_sd is not None:
        assert said.mean_sd.shape == (2,)
        assert (said.mean_sd > 0).all()


def test_quantiles_need_a_size(backbone: Backbone, rng: Generator) -> None:
    X, y, queries = table(rng, 3, rows=10)
    with pytest.raises(ValueError, match="sizes must end with the prefix whose quantiles are wanted"):
        backbone.sequence(X, y).predict(queries, sizes=[], levels=[0.5])


@pytest.mark.parametrize("keep", [[3], [-1], [0, 7]])
def test_columns_to_keep_are_columns(backbone: Backbone, rng: Generator, keep: list[int]) -> None:
    X, y, _ = table(rng, 3, rows=10)
    with pytest.raises(ValueError, match=r"keep must name columns from 0 to 2, got"):
        backbone.sequence(X, y, keep=keep)
    assert backbone.sequence(X, y, keep=[0, 2]).size == 10
