"""The network as a scikit-learn regressor."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pandas
import polars
import pyarrow
import pytest
from sklearn.datasets import load_diabetes
from sklearn.linear_model import Ridge
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from pfnts import PFNRegressor
from pfnts.backbones import LinearBackbone


def table(rng: np.random.Generator, n: int) -> tuple[pandas.DataFrame, np.ndarray]:
    frame = pandas.DataFrame(
        {
            "age": rng.uniform(20, 70, n),
            "plan": rng.choice(["free", "paid", "trial"], n),
            "vip": rng.random(n) < 0.3,
        }
    )
    y = 0.1 * frame["age"].to_numpy() + 3.0 * (frame["plan"] == "paid") + 0.3 * rng.normal(size=n)
    frame.loc[rng.random(n) < 0.1, "age"] = np.nan
    return frame, y.to_numpy()


def test_passes_every_check_of_scikit_learn() -> None:
    results = check_estimator(PFNRegressor(), on_fail=None)
    failed = {r["check_name"]: r["exception"] for r in results if r["status"] == "failed"}
    assert not failed
    assert sum(r["status"] == "passed" for r in results) > 40


def test_pickled_it_predicts_the_same_and_holds_no_network(rng: np.random.Generator) -> None:
    X, y = table(rng, 60)
    model = PFNRegressor().fit(X[:50], y[:50])
    expected = model.predict(X[50:])
    pickled = pickle.dumps(model)
    assert len(pickled) < 20_000  # the network has 10 MB
    np.testing.assert_array_equal(pickle.loads(pickled).predict(X[50:]), expected)
    np.testing.assert_array_equal(copy.deepcopy(model).predict(X[50:]), expected)


def test_frames_with_categories_booleans_and_missing_values(rng: np.random.Generator) -> None:
    X, y = table(rng, 300)
    model = PFNRegressor().fit(X[:200], y[:200])
    assert model.score(X[200:], y[200:]) > 0.7
    shuffled = X[200:][["vip", "age", "plan"]]
    with pytest.raises(ValueError, match="feature names"):
        model.predict(shuffled)
    new = X[200:203].copy()
    new["plan"] = "never seen"
    assert np.isfinite(model.predict(new)).all()


def test_agrees_with_the_closed_form_of_a_linear_model(rng: np.random.Generator) -> None:
    X = rng.normal(size=(80, 3))
    y = X @ [1.0, -2.0, 0.5] + 0.1 * rng.normal(size=80)
    ours = PFNRegressor(backbone=LinearBackbone(precision=1.0)).fit(X, y)
    ridge = make_pipeline(StandardScaler(), Ridge(alpha=1.0)).fit(X, y)
    queries = rng.normal(size=(150, 3))
    np.testing.assert_allclose(ours.predict(queries), ridge.predict(queries), atol=1e-9)
    low, high = ours.predict_mean_interval(queries, 0.9)
    assert (low < ours.predict(queries)).all()
    assert (ours.predict(queries) < high).all()
    wide = ours.predict_mean_interval(queries, 0.99)
    assert (wide[0] < low).all()


def test_quantiles_are_ordered_and_hold_new_targets(rng: np.random.Generator) -> None:
    X = rng.uniform(size=(600, 2))
    y = np.sin(4 * X[:, 0]) + 0.3 * rng.normal(size=600)
    model = PFNRegressor().fit(X[:300], y[:300])
    low, middle, high = model.predict_quantiles(X[300:], [0.05, 0.5, 0.95]).T
    assert (low <= middle).all()
    assert (middle <= high).all()
    assert 0.82 < ((low < y[300:]) & (y[300:] < high)).mean() < 0.97


def test_a_prediction_does_not_depend_on_what_stands_beside_it(rng: np.random.Generator) -> None:
    X, y = rng.normal(size=(100, 4)), rng.normal(size=100)
    model = PFNRegressor().fit(X, y)
    together = model.predict(X)
    np.testing.assert_array_equal(together[[3, 70]], [model.predict(X[[3]])[0], model.predict(X[[70]])[0]])


def test_works_in_cross_validation_on_a_table_of_scikit_learn() -> None:
    X, y = load_diabetes(return_X_y=True)
    scores = cross_val_score(PFNRegressor(), X, y, cv=3)
    assert scores.mean() > 0.4  # ridge regression with its penalty chosen reaches about .48


def test_codes_are_categories_where_the_schema_says_so(rng: np.random.Generator) -> None:
    frame = pandas.DataFrame({"clinic": rng.integers(1, 6, 300)})
    y = np.array([0.0, 3.0, -2.0, 4.0, 1.0])[frame["clinic"] - 1] + 0.1 * rng.normal(size=300)
    as_number = PFNRegressor(backbone="linear").fit(frame[:200], y[:200])
    as_code = PFNRegressor(backbone="linear", schema={"clinic": "categorical"}).fit(frame[:200], y[:200])
    assert as_code.score(frame[200:], y[200:]) > 0.98
    assert as_number.score(frame[200:], y[200:]) < 0.5
    with pytest.raises(ValueError, match="X must be a frame"):
        as_code.fit(frame.to_numpy(), y)


@pytest.mark.parametrize("schema", [None, {"shop": "categorical", "x": "numeric"}])
def test_hundreds_of_categories_predict(schema: Any, rng: np.random.Generator) -> None:
    shops = rng.integers(100, size=1200)
    frame = pandas.DataFrame(
        {"shop": shops if schema else [f"shop {i}" for i in shops], "x": rng.normal(size=1200)}
    )
    means = rng.normal(size=100)[shops]
    y = means + 0.3 * rng.normal(size=1200)
    model = PFNRegressor(schema=schema).fit(frame[:1000], y[:1000])
    assert np.mean((model.predict(frame[1000:]) - means[1000:]) ** 2) < 0.4 * means.var()


@pytest.mark.parametrize(
    "kind", [pandas.DataFrame, polars.DataFrame, pyarrow.table], ids=lambda k: k.__name__
)
def test_frames_of_every_library_are_the_same(kind: Any, rng: np.random.Generator) -> None:
    columns = {"a": rng.normal(size=50), "c": rng.choice(["x", "y"], 50)}
    y = columns["a"] + (columns["c"] == "x")
    ours = PFNRegressor(backbone="linear").fit(kind(columns), y).predict(kind(columns))
    theirs = PFNRegressor(backbone="linear").fit(pandas.DataFrame(columns), y)
    np.testing.assert_array_equal(ours, theirs.predict(pandas.DataFrame(columns)))


def test_wide_tables_and_few_rows(rng: np.random.Generator) -> None:
    X = rng.normal(size=(80, 300))
    y = 3 * X[:, 7] + 0.1 * rng.normal(size=80)
    model = PFNRegressor().fit(X[:60], y[:60])
    assert np.corrcoef(model.predict(X[60:]), y[60:])[0, 1] > 0.5
    assert np.isfinite(PFNRegressor().fit(X[:1], y[:1]).predict(X[:3])).all()


@pytest.mark.parametrize(
    ("rows", "targets", "rule"),
    [
        (0, 0, "X must have at least one row"),
        (5, 4, "y must have one number for each of the 5 rows"),
        (5, 6, "y must have one number for each of the 5 rows"),
    ],
)
def test_frames_that_do_not_fit_are_refused(rows: int, targets: int, rule: str) -> None:
    frame = pandas.DataFrame({"a": np.arange(rows, dtype=float)})
    with pytest.raises(ValueError, match=rule):
        PFNRegressor(backbone="linear").fit(frame, np.zeros(targets))


def test_missing_targets_and_empty_questions_are_refused() -> None:
    frame = pandas.DataFrame({"a": [1.0, 2.0, 3.0]})
    with pytest.raises(ValueError, match="finite"):
        PFNRegressor(backbone="linear").fit(frame, [1.0, np.nan, 2.0])
    model = PFNRegressor(backbone="linear").fit(frame, [1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="at least one row"):
        model.predict(frame[:0])
