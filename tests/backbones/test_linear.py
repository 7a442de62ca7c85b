"""The linear backbone against the textbook, prefix by prefix."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from numpy.random import Generator
from scipy import stats

from pfnts.backbones import InverseGamma, LinearBackbone
from pfnts.posterior import ShrunkSubCLT, SubCLT

LEVELS = np.array([0.05, 0.5, 0.9])


def data(rng: Generator, *, n: int = 40, columns: int = 3) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    X = rng.standard_normal((n, columns)) * np.arange(1, columns + 1)
    y = 2 + X @ rng.standard_normal(columns) + rng.standard_normal(n)
    return X, y, rng.standard_normal((6, columns))


def textbook(
    X: np.ndarray, y: np.ndarray, queries: np.ndarray, *, precision: float, shape: float, rate: float
) -> tuple[np.ndarray, np.ndarray, float, float]:
    """Normal-inverse-gamma regression by inverting the matrix: mean, leverage, shape and rate."""
    Z, Q = (np.column_stack([A, np.ones(len(A))]) for A in (X, queries))
    inverse = np.linalg.inv(Z.T @ Z + precision * np.eye(Z.shape[1]))
    coefficients = inverse @ Z.T @ y
    residual = y @ y - coefficients @ (Z.T @ Z + precision * np.eye(Z.shape[1])) @ coefficients
    leverage = np.einsum("qi,ij,qj->q", Q, inverse, Q)
    return Q @ coefficients, leverage, shape + len(y) / 2, rate + residual / 2


@pytest.mark.parametrize("size", [1, 2, 7, 40])
def test_fixed_prior_equals_the_textbook_after_every_prefix(rng: Generator, size: int) -> None:
    X, y, queries = data(rng)
    noise = InverseGamma(shape=1.5, rate=0.7)
    sequence = LinearBackbone(precision=0.3, noise=noise, standardize=False).sequence(X, y)
    mean, leverage, shape, rate = textbook(X[:size], y[:size], queries, precision=0.3, shape=1.5, rate=0.7)
    np.testing.assert_allclose(sequence.means(queries, [size])[0], mean)
    predictive = stats.t(2 * shape, mean, np.sqrt(rate / shape * (1 + leverage)))
    np.testing.assert_allclose(sequence.quantiles(queries, size, LEVELS), predictive.ppf(LEVELS[:, None]))
    exact = sequence.exact_posterior(queries, size)
    np.testing.assert_allclose(exact.mean, mean)
    np.testing.assert_allclose(exact.variance, rate / shape * leverage)


def test_known_noise_gives_gaussian_answers(rng: Generator) -> None:
    X, y, queries = data(rng)
    sequence = LinearBackbone(precision=2.0, noise=0.5, standardize=False).sequence(X, y)
    mean, leverage, *_ = textbook(X, y, queries, precision=2.0, shape=1, rate=1)
    predictive = stats.norm(mean, 0.5 * np.sqrt(1 + leverage))
    np.testing.assert_allclose(sequence.quantiles(queries, 40, LEVELS), predictive.ppf(LEVELS[:, None]))
    exact = sequence.exact_posterior(queries, 40)
    np.testing.assert_allclose(exact.variance, 0.25 * leverage)


@pytest.mark.parametrize("size", [2, 7, 40])
def test_default_prior_equals_standardising_the_prefix_by_hand(rng: Generator, size: int) -> None:
    X, y, queries = data(rng)
    x, t = X[:size], y[:size]
    scale = x.std(axis=0)
    Z, Q = (x - x.mean(axis=0)) / scale, (queries - x.mean(axis=0)) / scale
    inverse = np.linalg.inv(Z.T @ Z + np.eye(3))
    coefficients = inverse @ Z.T @ (t - t.mean())
    residual = ((t - t.mean()) ** 2).sum() - coefficients @ (Z.T @ Z + np.eye(3)) @ coefficients
    variance = (t.var() + residual) / size
    leverage = 1 / size + np.einsum("qi,ij,qj->q", Q, inverse, Q)
    predictive = stats.t(size, t.mean() + Q @ coefficients, np.sqrt(variance * (1 + leverage)))
    sequence = LinearBackbone().sequence(X, y)
    np.testing.assert_allclose(sequence.quantiles(queries, size, LEVELS), predictive.ppf(LEVELS[:, None]))
    np.testing.assert_allclose(sequence.exact_posterior(queries, size).variance, variance * leverage)


def test_exact_posterior_covers_truths_from_the_prior_as_often_as_it_says(rng: Generator) -> None:
    # Draw the truth from the prior, then check that the exact posterior covers it as often as it says.
    covered = []
    for _ in range(600):
        coefficients = rng.standard_normal(4)
        X, queries = rng.standard_normal((12, 3)), rng.standard_normal((1, 3))
        y = X @ coefficients[:3] + coefficients[3] + rng.standard_normal(12)
        exact = LinearBackbone(noise=1.0, standardize=False).sequence(X, y).exact_posterior(queries, 12)
        lower, upper = exact.interval(0.8)
        covered.append(lower[0] <= queries[0] @ coefficients[:3] + coefficients[3] <= upper[0])
    assert abs(np.mean(covered) - 0.8) <= 5 * np.sqrt(0.8 * 0.2 / 600)


def test_default_predictions_follow_shift_and_scale_of_targets_and_features(rng: Generator) -> None:
    X, y, queries = data(rng)
    known = LinearBackbone().sequence(X, y).quantiles(queries, 30, LEVELS)
    targets = LinearBackbone().sequence(X, 1e6 + 1e-3 * y).quantiles(queries, 30, LEVELS)
    np.testing.assert_allclose(targets, 1e6 + 1e-3 * known, rtol=0, atol=1e-8)
    units = np.array([1e6, 1e-6, 3.0])
    features = LinearBackbone().sequence(1e3 * units + X * units, y)
    np.testing.assert_allclose(
        features.quantiles(1e3 * units + queries * units, 30, LEVELS), known, rtol=1e-6
    )


def test_fixed_prior_makes_the_means_a_martingale(rng: Generator) -> None:
    # Averaging the next mean over the predictive distribution of the next target gives the present mean.
    X, y, queries = data(rng, n=9)
    backbone = LinearBackbone(noise=InverseGamma(shape=3.0, rate=2.0), standardize=False)
    sequence = backbone.sequence(X[:8], y[:8])
    present = sequence.means(queries, [8])[0]
    outcomes = sequence.quantiles(X[8:], 8, np.linspace(0.01, 0.99, 99))[:, 0]
    future = [backbone.sequence(X, np.append(y[:8], outcome)).means(queries, [9])[0] for outcome in outcomes]
    np.testing.assert_allclose(np.mean(future, axis=0), present, rtol=1e-6, atol=1e-9)


def test_missing_value_counts_as_the_running_mean_of_its_column(rng: Generator) -> None:
    X, y, queries = data(rng, n=10)
    holes = X.copy()
    holes[6, 1] = np.nan
    filled = X.copy()
    filled[6, 1] = X[:6, 1].mean()
    np.testing.assert_allclose(
        LinearBackbone().sequence(holes, y).means(queries, [10]),
        LinearBackbone().sequence(filled, y).means(queries, [10]),
    )


def test_missing_query_value_counts_as_the_mean_of_the_prefix(rng: Generator) -> None:
    X, y, queries = data(rng)
    sequence = LinearBackbone().sequence(X, y)
    holes = queries.copy()
    holes[:, 2] = np.nan
    for size in (3, 40):
        filled = queries.copy()
        filled[:, 2] = X[:size, 2].mean()
        np.testing.assert_allclose(sequence.means(holes, [size]), sequence.means(filled, [size]))
        np.testing.assert_allclose(
            sequence.quantiles(holes, size, LEVELS), sequence.quantiles(filled, size, LEVELS)
        )


def test_all_prefixes_agree_with_single_ones_across_checkpoints(rng: Generator) -> None:
    X, y, queries = data(rng, n=300)
    sequence = LinearBackbone().sequence(X, y)
    together = sequence.means(queries, range(1, 301))
    for size in (1, 63, 64, 65, 128, 129, 300):
        alone = LinearBackbone().sequence(X[:size], y[:size]).means(queries, [size])[0]
        np.testing.assert_allclose(together[size - 1], alone, rtol=1e-9, atol=1e-9)


def test_constant_target_has_a_width_of_its_own_size(rng: Generator) -> None:
    X, _, queries = data(rng, n=20)
    for constant, width in ((0.0, 1.0), (-50.0, 50.0)):
        sequence = LinearBackbone().sequence(X, np.full(20, constant))
        low, middle, high = sequence.quantiles(queries, 20, [0.25, 0.5, 0.75])
        np.testing.assert_allclose(middle, constant)
        assert (high - low > 0.1 * width).all()
        assert (high - low < 2 * width).all()


def test_posteriors_can_be_computed_from_it(rng: Generator) -> None:
    X, y, queries = data(rng)
    sequence = LinearBackbone().sequence(X, y)
    for estimator in (SubCLT(), ShrunkSubCLT()):
        asked = estimator.asks(sequence.size)
        answer = sequence.predict(queries, sizes=asked.sizes, levels=asked.levels)
        posterior = estimator.posterior(answer, size=sequence.size, own=sequence.size, reward_variance=1.0)
        assert posterior.mean.shape == (6,)
        assert (posterior.variance > 0).all()


def test_long_wide_history_stays_small_in_memory(rng: Generator) -> None:
    X, y = rng.standard_normal((10_000, 50)), rng.standard_normal(10_000)
    tracemalloc.start()
    sequence = LinearBackbone().sequence(X, y)
    sequence.predict(X[:5], sizes=SubCLT().asks(10_000).sizes)
    held, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held < 10 * X.nbytes
    assert peak < 15 * X.nbytes


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"precision": 0.0}, "precision must be positive and finite, got 0.0"),
        ({"precision": np.inf}, "precision must be positive and finite, got inf"),
        ({"noise": -1.0}, "noise must be positive and finite, or None to learn it, got -1.0"),
    ],
)
def test_bad_priors_are_named(options: dict[str, float], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        LinearBackbone(**options)
    with pytest.raises(ValueError, match="rate must be positive and finite, got 0"):
        InverseGamma(shape=1.0, rate=0)
