"""Estimators against values worked out by hand, and against each other."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.random import Generator

from pfnts.environments.drinkless import expected_value
from pfnts.ope import (
    Log,
    Ridge,
    cross_fitted,
    dm,
    dr,
    effective_sample_size,
    ips,
    simulated_drinkless,
    snips,
    weight_diagnostics,
    weights,
)

# Probabilities of a policy in the five rounds; of the logged action: 0.5, 0.75, 0.25, 0.75, 0.
POLICY = np.array([[0.5, 0.5], [0.25, 0.75], [0.75, 0.25], [0.75, 0.25], [1.0, 0.0]])
PREDICTED = np.array([[1.0, 2.0], [0.0, 1.0], [1.0, 2.0], [0.0, 1.0], [2.0, 3.0]])


def test_weights_by_hand(five_rows: Log) -> None:
    np.testing.assert_allclose(weights(five_rows, POLICY), [1.0, 1.5, 1.0, 1.0, 0.0])


def test_ips_by_hand(five_rows: Log) -> None:
    assert ips(five_rows, POLICY).value == pytest.approx((1 * 1 + 1.5 * 0 + 1 * 2 + 1 * 1 + 0) / 5)


def test_snips_by_hand(five_rows: Log) -> None:
    assert snips(five_rows, POLICY).value == pytest.approx(4 / 4.5)


def test_dm_by_hand(five_rows: Log) -> None:
    # 0.5 + 1, 0.75, 0.75 + 0.5, 0.25, 2
    assert dm(five_rows, POLICY, predictions=PREDICTED).value == pytest.approx(
        (1.5 + 0.75 + 1.25 + 0.25 + 2) / 5
    )


def test_dr_by_hand(five_rows: Log) -> None:
    # The direct part, and weight times error: 1 * 0, 1.5 * -1, 1 * 0, 1 * 1, 0.
    assert dr(five_rows, POLICY, predictions=PREDICTED).value == pytest.approx((5.75 - 1.5 + 1) / 5)


def test_curves_by_hand(five_rows: Log) -> None:
    np.testing.assert_allclose(ips(five_rows, POLICY).curve, [1.0, 0.5, 1.0, 1.0, 0.8])
    np.testing.assert_allclose(snips(five_rows, POLICY).curve, [1.0, 0.4, 3 / 3.5, 4 / 4.5, 4 / 4.5])


def test_curve_is_unknown_until_a_weight_is_positive(five_rows: Log) -> None:
    only_b = np.tile([0.0, 1.0], (5, 1))
    curve = snips(five_rows, only_b).curve
    assert np.isnan(curve[0])
    assert np.isfinite(curve[1:]).all()


def test_standard_error_by_hand(five_rows: Log) -> None:
    terms = np.array([1.0, 0.0, 2.0, 1.0, 0.0])
    assert ips(five_rows, POLICY).standard_error == pytest.approx(terms.std(ddof=1) / np.sqrt(5))
    low, high = ips(five_rows, POLICY).interval(0.95)
    assert (high - low) / 2 == pytest.approx(1.959964 * terms.std(ddof=1) / np.sqrt(5))


def test_effective_sample_size_by_hand(five_rows: Log) -> None:
    diagnostics = weight_diagnostics(five_rows, POLICY)
    assert diagnostics.effective_sample_size == pytest.approx(4.5**2 / 5.25)
    assert effective_sample_size(np.ones(7)) == 7
    assert diagnostics.zero == pytest.approx(0.2)
    assert (diagnostics.maximum, diagnostics.bound) == (1.5, 4.0)


def test_logging_policy_is_worth_the_empirical_mean(rng: Generator) -> None:
    log = simulated_drinkless(rng=rng, people=20, days=10)
    assert log.design is not None
    np.testing.assert_array_equal(weights(log, log.design), np.ones(log.rounds))
    assert snips(log, log.design).value == pytest.approx(log.rewards.mean(), abs=1e-15)
    np.testing.assert_allclose(
        snips(log, log.design).curve, np.cumsum(log.rewards) / np.arange(1, log.rounds + 1)
    )


def test_constant_policies_are_worth_the_rate_of_their_action(rng: Generator) -> None:
    log = simulated_drinkless(rng=rng, people=20, days=10)
    for k in range(3):
        value = snips(log, np.tile(np.eye(3)[k], (log.rounds, 1))).value
        assert value == pytest.approx(log.rewards[log.actions == k].mean())


def test_dr_without_model_is_ips_and_with_the_truth_is_dm(five_rows: Log) -> None:
    zero = np.zeros((5, 2))
    assert dr(five_rows, POLICY, predictions=zero).value == pytest.approx(ips(five_rows, POLICY).value)
    truth = PREDICTED.copy()
    truth[np.arange(5), five_rows.actions] = five_rows.rewards
    assert dr(five_rows, POLICY, predictions=truth).value == pytest.approx(
        dm(five_rows, POLICY, predictions=truth).value
    )


def test_ridge_agrees_with_scikit_learn(rng: Generator) -> None:
    linear_model = pytest.importorskip("sklearn.linear_model")
    X, y = rng.normal(size=(30, 4)), rng.normal(size=30)
    Z = (X - X.mean(0)) / X.std(0)
    expected = linear_model.Ridge(alpha=2.0).fit(Z, y).predict(Z)
    np.testing.assert_allclose(Ridge(penalty=2.0).fit(X, y).predict(X), expected)


def test_any_scikit_learn_regressor_can_be_the_outcome_model(rng: Generator) -> None:
    tree = pytest.importorskip("sklearn.tree")
    log = simulated_drinkless(rng=rng, people=30, days=10)
    model = tree.DecisionTreeRegressor(max_depth=2, random_state=0)
    uniform = np.full((log.rounds, 3), 1 / 3)
    by_tree = dr(log, uniform, predictions=cross_fitted(log, model=model)).value
    assert by_tree == pytest.approx(dr(log, uniform).value, abs=0.05)
    assert not hasattr(model, "tree_"), "the regressor given is copied, not fitted"


def test_cross_fitting_never_sees_the_person_it_predicts(rng: Generator) -> None:
    log = simulated_drinkless(rng=rng, people=10, days=6)
    changed = log.rewards.copy()
    changed[log.clusters == 4] += 100.0
    other = Log(
        log.contexts, log.features, log.arms, log.actions, changed, log.propensities, clusters=log.clusters
    )
    same, moved = cross_fitted(log), cross_fitted(other)
    np.testing.assert_array_equal(same[log.clusters == 4], moved[log.clusters == 4])
    assert not np.allclose(same, moved)


def test_copies_of_a_person_stay_in_one_fold(rng: Generator) -> None:
    from pfnts.ope.outcome import dealt

    resampled = simulated_drinkless(rng=rng, people=30, days=3).resampled(rng=rng)
    assert resampled.origins is not None
    folds = dealt(resampled, folds=2)
    for person in np.unique(resampled.origins):
        assert len(np.unique(folds[resampled.origins == person])) == 1


@pytest.mark.parametrize(
    ("propensities", "message"),
    [
        (np.full((4, 2), 0.5), r"propensities must be \(5, 2\)"),
        (np.full((5, 2), 0.6), r"sum to one in each round, round 0 has"),
        (np.tile([1.5, -0.5], (5, 1)), "must be non-negative"),
        (np.full((5, 2), np.nan), "sum to one"),
    ],
)
def test_propensities_are_checked(five_rows: Log, propensities: np.ndarray, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        snips(five_rows, propensities)


def test_policy_that_the_log_says_nothing_about_is_refused(five_rows: Log) -> None:
    opposite = 1 - np.eye(2)[five_rows.actions]
    with pytest.raises(ValueError, match="probability 0 to every logged action"):
        snips(five_rows, opposite)
    assert ips(five_rows, opposite).value == 0


def prefers_by_score(contexts: np.ndarray) -> np.ndarray:
    """A fixed stochastic policy: new messages for heavier drinkers, fewer of them late."""
    new = 1 / (1 + np.exp(-contexts[:, 0]))
    none = 0.1 + 0.1 * (contexts[:, -1] > 0)
    return np.column_stack([none, (1 - none) * (1 - new), (1 - none) * new])


def test_estimators_are_unbiased_on_the_simulator(rng: Generator) -> None:
    truth = expected_value(prefers_by_score, days=10)
    errors: dict[str, list[float]] = {"ips": [], "snips": [], "dr": []}
    for child in rng.spawn(100):
        log = simulated_drinkless(rng=child, people=100, days=10)
        policy = prefers_by_score(log.contexts)
        for name, estimator in (("ips", ips), ("snips", snips), ("dr", dr)):
            errors[name].append(estimator(log, policy).value - truth)
    for values in map(np.array, errors.values()):
        # 4.5 standard errors: passes for every seed, and a bias of a tenth of the value does not.
        assert abs(values.mean()) < 4.5 * values.std(ddof=1) / 10
        assert values.std(ddof=1) / 10 < truth / 40


def test_standard_error_is_the_spread_over_logs(rng: Generator) -> None:
    estimates = []
    for child in rng.spawn(150):
        log = simulated_drinkless(rng=child, people=80, days=6)
        estimates.append(snips(log, prefers_by_score(log.contexts)))
    spread = np.std([estimate.value for estimate in estimates], ddof=1)
    claimed = np.mean([estimate.standard_error for estimate in estimates])
    assert 0.7 < claimed / spread < 1.35
