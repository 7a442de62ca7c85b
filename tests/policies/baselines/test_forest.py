"""Tree ensemble Thompson sampling against the libraries that fit the trees, and a slow recomputation."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.random import Generator

from pfnts.policies import make
from pfnts.policies.baselines.ensembles import BoostingSettings, fit_boosted, fit_forest
from pfnts.policies.baselines.leaf_statistics import LeafStatistics, grouped, lonely_variance

FOREST = {"n_trees": 12, "min_leaf": 2}
BOOSTED = BoostingSettings(rounds=12, learning_rate=0.3, max_depth=4)


def data(rng: Generator, n: int, *, missing: float = 0.1) -> tuple[np.ndarray, np.ndarray]:
    """Features on a coarse grid, so that values fall on thresholds, some of them missing."""
    X = rng.integers(6, size=(n, 3)) / 5
    X[rng.random(X.shape) < missing] = np.nan
    return X, 100 + 3 * np.nan_to_num(X[:, 0]) - np.nan_to_num(X[:, 1]) + rng.normal(size=n)


def forest(X: np.ndarray, y: np.ndarray, seed: int) -> Any:
    from sklearn.ensemble import RandomForestRegressor

    return RandomForestRegressor(n_estimators=12, min_samples_leaf=2, random_state=seed).fit(X, y - y.mean())


def booster(X: np.ndarray, y: np.ndarray) -> Any:
    xgboost = pytest.importorskip("xgboost")

    parameters = {"learning_rate": 0.3, "max_depth": 4, "base_score": 0.0, "tree_method": "hist"}
    return xgboost.train(parameters, xgboost.DMatrix(X, label=y - y.mean()), num_boost_round=12)


@pytest.mark.parametrize(("n", "missing"), [(1, 0.0), (2, 0.0), (7, 0.0), (200, 0.0), (7, 0.1), (200, 0.1)])
def test_forest_leaves_and_mean_equal_scikit_learn(n: int, missing: float, rng: Generator) -> None:
    X, y = data(rng, n, missing=missing)
    queries, _ = data(rng, 300, missing=missing)
    library = forest(X, y, seed=4)
    ensemble = fit_forest(X, y, **FOREST, seed=4)
    leaves = ensemble.leaves(queries)
    np.testing.assert_array_equal(leaves, library.apply(queries))
    mean, variance = ensemble.statistics.moments(leaves)
    np.testing.assert_allclose(mean, library.predict(queries) + y.mean(), atol=1e-9)
    assert (variance >= 0).all()


def test_forest_variance_equals_a_slow_recomputation(rng: Generator) -> None:
    X, y = data(rng, 80)
    library = forest(X, y, seed=4)
    ensemble = fit_forest(X, y, **FOREST, seed=4)
    queries, _ = data(rng, 20)
    _, variance = ensemble.statistics.moments(ensemble.leaves(queries))
    leaf_of_data, leaf_of_query = library.apply(X), library.apply(queries)
    for i in range(len(queries)):
        expected = 0.0
        for m, sample in enumerate(library.estimators_samples_):
            own = y[sample][leaf_of_data[sample, m] == leaf_of_query[i, m]]
            expected += own.var(ddof=1) / len(own) / 12**2
        assert variance[i] == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("n", [1, 2, 7, 200])
def test_boosted_leaves_and_mean_equal_xgboost(n: int, rng: Generator) -> None:
    xgboost = pytest.importorskip("xgboost")

    X, y = data(rng, n)
    queries, _ = data(rng, 300)
    library = booster(X, y)
    ensemble = fit_boosted(X, y, settings=BOOSTED, seed=4)
    leaves = ensemble.leaves(queries)
    np.testing.assert_array_equal(leaves, library.predict(xgboost.DMatrix(queries), pred_leaf=True))
    mean, variance = ensemble.statistics.moments(leaves)
    np.testing.assert_allclose(mean, library.predict(xgboost.DMatrix(queries)) + y.mean(), atol=1e-4)
    assert (variance >= 0).all()


def test_boosted_variance_is_that_of_the_residuals_at_each_stage(rng: Generator) -> None:
    xgboost = pytest.importorskip("xgboost")

    X, y = data(rng, 200)
    library, matrix = booster(X, y), xgboost.DMatrix(X)
    ensemble = fit_boosted(X, y, settings=BOOSTED, seed=4)
    leaves = library.predict(matrix, pred_leaf=True).astype(int)
    _, variance = ensemble.statistics.moments(leaves)
    expected = np.zeros(len(X))
    for m in range(12):
        before = library.predict(matrix, iteration_range=(0, m)) if m else np.zeros(len(X))
        residual = y - y.mean() - before
        # Leaves with one residual have no variance of their own; they take the tree's within leaves.
        groups = [residual[leaves[:, m] == leaf] for leaf in np.unique(leaves[:, m])]
        within = sum(((g - g.mean()) ** 2).sum() for g in groups) / sum(len(g) - 1 for g in groups)
        for i in range(len(X)):
            own = residual[leaves[:, m] == leaves[i, m]]
            expected[i] += 0.09 * (own.var(ddof=1) if len(own) > 1 else within) / len(own)
    np.testing.assert_allclose(variance, expected, rtol=1e-4)


def test_forest_leaves_updated_one_by_one_equal_leaves_made_at_once(rng: Generator) -> None:
    leaves, y = rng.integers(5, size=(60, 3)), rng.normal(50, 1, size=60)
    settings = {"offset": 0.0, "scale": 1 / 3, "penalty": 0.0, "boosted": False}

    def made(n: int) -> LeafStatistics:
        count, mean, scatter = grouped(leaves[:n], np.tile(y[:n, None], 3), 5)
        return LeafStatistics(count=count, mean=mean, scatter=scatter, **settings)

    updated = made(30)
    for i in range(30, 60):
        updated.observe(leaves[i], y[i])
    for one, two in zip(updated.moments(leaves), made(60).moments(leaves), strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-9)


def test_boosted_leaves_take_the_residual_of_the_trees_before() -> None:
    # Two stumps with one leaf each; the second sees what the first has left over.
    statistics = LeafStatistics(
        count=np.array([[3.0], [3.0]]),
        mean=np.array([[2.0], [1.0]]),
        scatter=np.zeros((2, 1)),
        offset=10.0,
        scale=0.5,
        penalty=1.0,
        boosted=True,
    )
    leaves = np.zeros(2, dtype=np.int64)
    # values: 0.5 * 3 * 2 / 4 = 0.75 and 0.5 * 3 * 1 / 4 = 0.375
    assert statistics.moments(leaves)[0] == pytest.approx(11.125)
    statistics.observe(leaves, 14.0)
    # targets 4 and 3.25 make the means 2.5 and 1.5625, the values 0.5 * 4 / 5 of them
    assert statistics.moments(leaves)[0] == pytest.approx(10 + 0.4 * (2.5 + 1.5625))
    scatter = np.array([3 * 0.5**2 + 1.5**2, 3 * 0.5625**2 + 1.6875**2])
    assert statistics.moments(leaves)[1] == pytest.approx(0.25 * (scatter / 3 / 4).sum())


def test_lonely_leaves_take_the_variance_within_leaves_or_overall() -> None:
    count, mean, scatter = np.array([[1.0, 3.0]]), np.array([[0.0, 4.0]]), np.array([[0.0, 6.0]])
    assert lonely_variance(count, mean, scatter) == pytest.approx(3.0)
    alone = lonely_variance(np.array([[1.0, 1.0]]), np.array([[0.0, 4.0]]), np.zeros((1, 2)))
    assert alone == pytest.approx(4.0)


@pytest.mark.parametrize("name", ["rf-ts", "xgboost-ts"])
@pytest.mark.parametrize("layout", ["disjoint", "joint"])
def test_draws_centre_on_the_posterior_and_learn_between_refits(name: str, layout: str) -> None:
    rng = np.random.default_rng(0)
    policy = make(name, arms=2, layout=layout)
    X = rng.random((40, 2))
    policy.update(X, arm=[0, 1] * 20, reward=X[:, 0] + rng.normal(size=40))
    decision = policy.decide(X[0], rng=rng)
    before = policy.posterior(X[0])
    np.testing.assert_allclose(decision.posterior.mean, before.mean)
    policy.update(X[0], arm=1, reward=9.0)
    after = policy.posterior(X[0])
    assert after.mean[1] > before.mean[1]
    if layout == "disjoint":
        assert after.mean[0] == before.mean[0]


@pytest.mark.parametrize("layout", ["disjoint", "joint"])
def test_the_model_is_a_fit_to_the_rows_of_the_refit_with_later_rows_in_its_leaves(
    layout: str, rng: Generator
) -> None:
    policy = make("rf-ts", arms=2, layout=layout, refresh=2.0, **FOREST)
    X, y = data(rng, 50)
    arms = rng.integers(2, size=50)
    for t in range(50):  # one by one, asked now and then
        policy.update(X[t], arm=int(arms[t]), reward=y[t])
        if t in (20, 35, 40):
            policy.posterior(X[t])
    found = policy.posterior(X)
    for k in range(2):
        key = 0 if layout == "joint" else k
        own = np.ones(50, dtype=bool) if layout == "joint" else arms == k
        table = X if layout == "disjoint" else np.concatenate([np.eye(2)[arms], X], axis=1)
        asked = X if layout == "disjoint" else np.concatenate([np.tile(np.eye(2)[k], (50, 1)), X], axis=1)
        early = own & (np.arange(50) < 32)  # 32 is the last refresh point
        seed = int(np.random.default_rng([np.flatnonzero(early)[-1] + 1, key]).integers(2**31))
        ensemble = fit_forest(table[early], y[early], **FOREST, seed=seed)
        for i in np.flatnonzero(own & ~early):
            ensemble.statistics.observe(ensemble.leaves(table[i : i + 1])[0], y[i])
        mean, variance = ensemble.statistics.moments(ensemble.leaves(asked))
        np.testing.assert_array_equal(found.mean[:, k], mean)
        np.testing.assert_array_equal(found.variance[:, k], variance)


@pytest.mark.parametrize("name", ["rf-ts", "xgboost-ts"])
@pytest.mark.parametrize("layout", ["disjoint", "joint"])
def test_loaded_policy_with_an_arm_more_says_the_same(
    name: str, layout: str, rng: Generator, tmp_path: Path
) -> None:
    options = FOREST if name == "rf-ts" else {"boosting": BOOSTED}
    policy = make(name, arms=2, layout=layout, nu=2.0, refresh=1.5, **options)
    X, y = data(rng, 40)
    policy.update(X, arm=[0, 1] * 20, reward=y)
    policy.prefetch(X)
    policy.decide(X[0], rng=rng)
    policy.add_arm("new")  # what was prefetched is of trees that did not know it
    for _ in range(2):
        policy.save(tmp_path / "policy")
        loaded = type(policy).load(tmp_path / "policy")
        assert loaded.settings == policy.settings
        np.testing.assert_array_equal(loaded.posterior(X).mean, policy.posterior(X).mean)
        np.testing.assert_array_equal(loaded.posterior(X).variance, policy.posterior(X).variance)
        policy.update(X[:7], arm=["new"] * 7, reward=y[:7])


@pytest.mark.parametrize("name", ["rf-ts", "xgboost-ts"])
def test_exploration_factor_is_not_ignored(name: str) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.random((40, 2)), rng.normal(size=40)
    variances = []
    for nu in (1.0, 3.0):
        policy = make(name, arms=2, nu=nu)
        policy.update(X, arm=[0, 1] * 20, reward=y)
        variances.append(policy.decide(X[0], rng=np.random.default_rng(1)).posterior.variance)
    np.testing.assert_allclose(variances[1], 9 * variances[0])


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("rf-ts", {"n_trees": 0}, "n_trees must be a positive integer, got 0"),
        ("rf-ts", {"nu": -1.0}, "nu must be a number from 0 on, got -1.0"),
        ("rf-ts", {"warmup": 0}, "warmup must be at least 1"),
        ("rf-ts", {"refresh": 1.0}, "refresh must be a finite number above 1, got 1.0"),
        ("xgboost-ts", {"layout": "one-hot"}, 'layout must be "disjoint" or "joint", got \'one-hot\''),
    ],
)
def test_settings_are_checked(name: str, options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        make(name, arms=2, **options)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"rounds": 0}, "rounds must be a positive integer, got 0"),
        ({"learning_rate": 2.0}, "learning_rate must be above 0 and at most 1, got 2.0"),
        ({"max_depth": 1.5}, "max_depth must be a positive integer, got 1.5"),
    ],
)
def test_boosting_settings_are_checked(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        BoostingSettings(**options)


@pytest.mark.parametrize(("name", "module"), [("rf-ts", "sklearn.ensemble"), ("xgboost-ts", "xgboost")])
def test_a_missing_extra_is_named(name: str, module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    policy = make(name, arms=2, warmup=1)
    policy.update([[0.0], [1.0]], arm=[0, 1], reward=[0.0, 1.0])
    with pytest.raises(ImportError, match=r"pfnts\[baselines\]") as caught:
        policy.decide([0.5], rng=np.random.default_rng(0))
    assert isinstance(caught.value.__cause__, ImportError)


@pytest.mark.parametrize("name", ["rf-ts", "xgboost-ts"])
def test_huge_rewards_are_learned_in_any_unit(name: str, rng: Generator) -> None:
    X, y = rng.random((40, 2)), rng.normal(size=40)
    posteriors = []
    for unit in (2.0**200, 2.0**300):
        policy = make(name, arms=2)
        policy.update(X, arm=[0, 1] * 20, reward=unit * y)
        posteriors.append(policy.posterior(X))
    np.testing.assert_allclose(posteriors[1].mean, 2.0**100 * posteriors[0].mean, rtol=1e-9)
    np.testing.assert_allclose(posteriors[1].variance, 2.0**200 * posteriors[0].variance, rtol=1e-9)


def test_leaves_of_equal_rewards_have_no_negative_variance(rng: Generator) -> None:
    X, y = rng.normal(size=(400, 4)), (rng.random(400) < 0.1).astype(float)
    ensemble = fit_forest(X, y, n_trees=50, min_leaf=2, seed=0)
    _, variance = ensemble.statistics.moments(ensemble.leaves(rng.normal(size=(300, 4))))
    assert variance.min() >= 0
    assert ensemble.statistics._scatter.min() >= 0
