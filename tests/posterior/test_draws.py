"""Draws from uniform numbers, distributions of rewards, and estimators by name."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from numpy.random import Generator

from pfnts.backbones import Prediction
from pfnts.posterior import (
    Estimator,
    GaussianPosterior,
    NetworkPosterior,
    Predictive,
    PredictiveCLT,
    RewardDistribution,
    ShrunkSubCLT,
    StudentPosterior,
    SubCLT,
    described,
    load,
)
from pfnts.posterior.rewards import largest_draw

N = 40_000


def posterior(rng: Generator, kind: str, coupled: bool, arms: int = 3, blocks: int = 5) -> Any:
    directions = rng.standard_normal((blocks, arms))
    gaussian = GaussianPosterior(
        mean=rng.standard_normal(arms),
        variance=(directions**2).sum(axis=0),
        size=9,
        directions=directions,
        coupled=coupled,
    )
    return gaussian if kind == "gaussian" else gaussian.student(12.0)


@pytest.mark.parametrize("kind", ["gaussian", "student"])
@pytest.mark.parametrize("coupled", [False, True])
@pytest.mark.parametrize("blocks", [1, 2, 3, 7])
def test_draws_have_the_mean_and_covariance_they_should(
    kind: str, coupled: bool, blocks: int, rng: Generator
) -> None:
    one = posterior(rng, kind, coupled, blocks=blocks)
    many = one.__class__(
        **{name: np.broadcast_to(getattr(one, name), (N, 3)) for name in one._fields},
        directions=np.broadcast_to(one.directions[:, None], (blocks, N, 3)),
        coupled=coupled,
    )
    draws = many.draw(rng.random((N, 4)))
    shared = one.directions.T @ one.directions
    covariance = (shared if coupled else np.diag(one.variance)) * (1.0 if kind == "gaussian" else 12 / 10)
    deviations = draws - one.mean
    assert (np.abs(deviations.mean(axis=0)) < 5 * np.sqrt(np.diag(covariance) / N)).all()
    products = deviations[:, :, None] * deviations[:, None, :]
    error = products.std(axis=0) / np.sqrt(N)
    assert (np.abs(products.mean(axis=0) - covariance) <= 6 * error + 1e-12).all()


@pytest.mark.parametrize("kind", ["gaussian", "student"])
@pytest.mark.parametrize("coupled", [False, True])
def test_the_share_of_draws_within_an_interval_is_its_level(kind: str, coupled: bool, rng: Generator) -> None:
    one = posterior(rng, kind, coupled)
    draws = np.stack([one.draw(u) for u in rng.random((5000, 4))])
    for level in (0.5, 0.95):
        lower, upper = one.interval(level)
        inside = ((draws > lower) & (draws < upper)).mean(axis=0)
        assert (np.abs(inside - level) < 5 * np.sqrt(level * (1 - level) / 5000)).all()


@pytest.mark.parametrize("kind", ["gaussian", "student"])
@pytest.mark.parametrize("coupled", [False, True])
def test_the_largest_draw_is_as_often_each_arms_as_its_probability(
    kind: str, coupled: bool, rng: Generator
) -> None:
    one = posterior(rng, kind, coupled)
    draws = np.stack([one.draw(u) for u in rng.random((8000, 4))])
    seen = np.bincount(draws.argmax(axis=1), minlength=3) / 8000
    expected = one.best_arm_probabilities()
    assert (np.abs(seen - expected) < 5 * np.sqrt(expected * (1 - expected) / 8000) + 4e-3).all()


def test_a_draw_from_the_median_is_the_mean_and_the_ends_are_finite() -> None:
    for one in (
        GaussianPosterior(mean=[1.0, 2.0], variance=[1.0, 4.0], size=3),
        StudentPosterior(mean=[1.0, 2.0], variance=[1.0, 4.0], size=3, dof=2.0),
    ):
        np.testing.assert_allclose(one.draw(np.full(2, 0.5)), one.mean, atol=1e-12)
        assert np.isfinite(one.draw(np.zeros(2))).all()
        assert np.isfinite(one.draw(np.full(2, np.nextafter(1.0, 0.0)))).all()
        assert (one.draw(np.zeros(2)) < one.mean).all()


@pytest.mark.parametrize("kind", ["gaussian", "student"])
@pytest.mark.parametrize("coupled", [False, True])
def test_scaled_by_zero_is_the_mean_and_ties_are_split(kind: str, coupled: bool, rng: Generator) -> None:
    one = posterior(rng, kind, coupled).scaled(0.0)
    np.testing.assert_array_equal(one.draw(rng.random(4)), one.mean)
    np.testing.assert_allclose(one.best_arm_probabilities(), np.eye(3)[one.mean.argmax()], atol=1e-12)
    wide = posterior(rng, kind, coupled)
    np.testing.assert_allclose(
        wide.scaled(3.0).interval(0.9)[1] - wide.mean, 3 * (wide.interval(0.9)[1] - wide.mean)
    )
    with pytest.raises(ValueError, match="factor must not be negative, got -1"):
        wide.scaled(-1.0)
    with pytest.raises(ValueError, match="factor must not be negative, got nan"):
        wide.scaled(float("nan"))


def test_the_error_about_degrees_of_freedom_names_the_bad_one() -> None:
    with pytest.raises(ValueError, match="dof must be positive and finite, got -3"):
        StudentPosterior(mean=np.zeros(3), variance=np.ones(3), size=2, dof=[5.0, -3.0, 5.0])
    with pytest.raises(ValueError, match="dof must be positive and finite, got nan"):
        StudentPosterior(mean=np.zeros(3), variance=np.ones(3), size=2, dof=[5.0, 5.0, np.nan])


def by_enumeration(points: np.ndarray, eligible: np.ndarray) -> np.ndarray:
    """Every combination of draws, ties split evenly."""
    shares = np.zeros(len(eligible))
    arms = np.flatnonzero(eligible)
    for draws in itertools.product(*(points[:, arm] for arm in arms)):
        best = arms[np.flatnonzero(np.array(draws) == max(draws))]
        shares[best] += 1 / len(best)
    return shares / len(points) ** len(arms)


@pytest.mark.parametrize("discrete", [True, False])
def test_the_largest_reward_is_that_of_an_enumeration(discrete: bool, rng: Generator) -> None:
    for arms in (1, 2, 3, 4):
        for _ in range(5):
            points = rng.normal(size=(6, arms))  # in no order
            points = np.round(points) if discrete else points
            eligible = rng.random(arms) < 0.7
            eligible[rng.integers(arms)] = True
            expected = by_enumeration(points, eligible)
            np.testing.assert_allclose(largest_draw(points, eligible), expected, atol=1e-12)
            rewards = RewardDistribution(points[:, None], np.full((1, arms), 8))
            np.testing.assert_allclose(rewards.best_arm_probabilities(eligible)[0], expected, atol=1e-12)


def test_rewards_are_drawn_alike_and_cut_like_posteriors(rng: Generator) -> None:
    points = rng.normal(size=(7, 4, 3))
    rewards = RewardDistribution(points, np.full((4, 3), 5))
    np.testing.assert_allclose(rewards.mean, points.mean(axis=0))
    np.testing.assert_allclose(rewards.variance, points.var(axis=0))
    uniforms = (np.arange(7) + 0.5) / 7
    drawn = np.stack([rewards.draw(np.full((4, 3), u)) for u in uniforms])
    np.testing.assert_array_equal(np.sort(drawn, axis=0), np.sort(points, axis=0))
    assert np.isfinite(rewards.draw(np.full((4, 3), np.nextafter(1.0, 0.0)))).all()
    np.testing.assert_array_equal(rewards[2].points, points[:, 2])
    np.testing.assert_array_equal(rewards.take(np.array([2, 0])).points, points[..., [2, 0]])
    half = rewards.scaled(0.5)
    np.testing.assert_allclose(half.mean, rewards.mean)
    np.testing.assert_allclose(half.variance, rewards.variance / 4)
    lower, upper = rewards.interval(0.8)
    np.testing.assert_allclose(lower, np.quantile(points, 0.1, axis=0))
    np.testing.assert_allclose(upper, np.quantile(points, 0.9, axis=0))


def test_what_estimators_ask() -> None:
    assert SubCLT().asks(16).sizes == (2, 4, 8, 16)
    assert SubCLT().asks(21).sizes == (2, 4, 8, 16, 21)
    assert SubCLT(base=3.0).asks(5).sizes == (2, 5)
    assert SubCLT().asks(3).sizes == (2, 3)
    assert ShrunkSubCLT().asks(21).sizes == SubCLT().asks(21).sizes
    assert PredictiveCLT().asks(4).sizes == (1, 2, 3, 4)
    assert NetworkPosterior().asks(21).sizes == Predictive().asks(21).sizes == (21,)
    for estimator in (SubCLT(), PredictiveCLT(), NetworkPosterior()):
        assert estimator.asks(9).levels == ()
    for estimator in (ShrunkSubCLT(), Predictive()):
        levels = np.array(estimator.asks(9).levels)
        np.testing.assert_allclose(levels, (np.arange(len(levels)) + 0.5) / len(levels))


def test_the_networks_posterior_is_its_own_mean_and_deviation() -> None:
    answer = Prediction(np.array([[1.0, 2.0]]), np.empty((0, 2)), np.array([0.5, 3.0]))
    made = NetworkPosterior().posterior(answer, size=900, own=900, reward_variance=7.0)
    np.testing.assert_array_equal(made.mean, [1.0, 2.0])
    np.testing.assert_array_equal(made.variance, [0.25, 9.0])
    with pytest.raises(ValueError, match="must have a backbone that knows the standard deviation"):
        NetworkPosterior().posterior(
            Prediction(np.ones((1, 2)), np.empty((0, 2))), size=9, own=9, reward_variance=1.0
        )


@pytest.mark.parametrize("estimator", [NetworkPosterior(), ShrunkSubCLT()])
def test_no_arm_is_surer_of_itself_than_its_own_rows_allow(estimator: Estimator) -> None:
    means, quantiles = np.ones((len(estimator.asks(64).sizes), 1)), np.ones((50, 1))
    sure = Prediction(means, quantiles, np.zeros(1))
    for own in (1, 6, 64):  # of 64 rows of a sequence that arms share
        made = estimator.posterior(sure, size=64, own=own, reward_variance=2.0)
        np.testing.assert_allclose(made.variance, 9 * 2.0 / own**2)
    seldom = estimator.posterior(sure, size=64, own=0, reward_variance=2.0)
    np.testing.assert_allclose(seldom.variance, 9 * 2.0)


def test_predictive_rewards_are_the_quantiles(rng: Generator) -> None:
    quantiles = rng.normal(size=(200, 3))
    made = Predictive().posterior(Prediction(np.ones((1, 3)), quantiles), size=9, own=9, reward_variance=1.0)
    np.testing.assert_array_equal(made.points, quantiles)
    assert made.size.tolist() == [9, 9, 9]


@pytest.mark.parametrize(
    "estimator",
    [
        SubCLT(),
        SubCLT(base=1.0 + 1e-9, weights="root", coupled=True),
        SubCLT(base=0.1 + 1.2),
        ShrunkSubCLT(),
        ShrunkSubCLT(prior_dof=1 / 3, floor=0.0, tails="student", base=3, coupled=True),
        NetworkPosterior(),
        Predictive(),
        PredictiveCLT(coupled=True),
    ],
)
def test_estimators_come_back_from_their_descriptions(estimator: Any) -> None:
    text = described(estimator)
    assert text is not None
    assert load(text) == estimator
    assert load(estimator) is estimator


def test_an_estimator_of_the_users_own_has_no_description() -> None:
    class Own(SubCLT):
        pass

    assert described(Own()) is None
    assert load(Own()) == Own()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("evil", "estimator must be one of"),
        ("evil.B", "estimator must be one of"),
        ("subclt(base=1.5", "estimator must be one of"),
        ("subclt(base)", "must be written like"),
        ("subclt(base=1)", "base must be a finite number above 1"),
        ("subclt(base=nan)", "base must be a finite number above 1"),
        ("subclt(colour=red)", "must be given options that it has"),
        ("subclt(coupled=1)", "coupled must be true or false"),
        ("shrunk(prior_dof=many)", "must"),
        ("network(base=2)", "must be given options that it has"),
        (3, "estimator must be one of"),
        (None, "estimator must be one of"),
    ],
)
def test_impossible_estimators_are_refused(text: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        load(text)
