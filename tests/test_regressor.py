"""The network as a scikit-learn regressor."""

from __future__ import annotations

import numpy as np
import pandas
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
