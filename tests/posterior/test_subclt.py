"""SubCLT by hand and against an exact posterior."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.random import Generator
from scipy import stats

from pfnts.backbones import load
from pfnts.backbones.base import Matrix, Prediction, PredictiveSequence
from pfnts.posterior import Estimator, GaussianPosterior, SubCLT
from pfnts.scores import coverage


def given(estimator: Estimator, means: Matrix) -> GaussianPosterior:
    """The posterior from means after each prefix, written down as (n + 1, q)."""
    n = len(means) - 1
    answer = Prediction(means[list(estimator.asks(n).sizes)], np.empty((0, means.shape[1])))
    return estimator.posterior(answer, size=n, own=n, reward_variance=1.0)


def asked(estimator: Estimator, sequence: PredictiveSequence, queries: Matrix) -> GaussianPosterior:
    answer = sequence.predict(queries, sizes=estimator.asks(sequence.size).sizes)
    return estimator.posterior(answer, size=sequence.size, own=sequence.size, reward_variance=1.0)


def linear_data(rng: Generator, *, n: int) -> tuple[PredictiveSequence, Matrix, Matrix]:
    """Five features, coefficients and intercept from the prior; sequence, 200 queries, truth there."""
    coefficients, intercept = rng.standard_normal(5), rng.standard_normal()
    X, queries = rng.uniform(-1, 1, (n, 5)), rng.uniform(-1, 1, (200, 5))
    y = X @ coefficients + intercept + rng.standard_normal(n)
    oracle = load("linear", precision=1.0, noise=1.0, standardize=False)
    return oracle.sequence(X, y), queries, queries @ coefficients + intercept


def test_variance_is_the_papers_formula(rng: Generator) -> None:
    table = rng.standard_normal((17, 3))
    posterior = given(SubCLT(), table)
    blocks = [(2, 4), (4, 8), (8, 16)]
    v = sum(t * s / (t - s) * (table[t] - table[s]) ** 2 for s, t in blocks) / len(blocks)
    np.testing.assert_allclose(posterior.variance, v / 16)
    np.testing.assert_array_equal(posterior.mean, table[16])
    assert (posterior.size == 16).all()


def test_rows_after_the_last_grid_point_move_the_mean_and_lower_the_variance(rng: Generator) -> None:
    table = rng.standard_normal((21, 3))
    at_grid = given(SubCLT(), table[:17])
    later = given(SubCLT(), table)
    np.testing.assert_array_equal(later.mean, table[20])
    np.testing.assert_allclose(later.variance, at_grid.variance * 16 / 20)
    assert (later.size == 20).all()


def test_root_weights_follow_the_square_root_of_the_block_end() -> None:
    method = SubCLT(weights="root")
    np.testing.assert_allclose(method.averaging([2, 4, 16]), [2 / 6, 4 / 6])
    assert method.dof(16) == pytest.approx((2 + 8**0.5 + 4) ** 2 / (4 + 8 + 16))


def test_equal_weights_count_blocks_as_degrees_of_freedom() -> None:
    assert SubCLT().dof(4096) == pytest.approx(11)


def test_means_at_hand_may_have_any_trailing_shape(rng: Generator) -> None:
    means = rng.standard_normal((4, 5, 3))
    whole = SubCLT().from_means(means, [2, 4, 8, 16], 16)
    column = SubCLT().from_means(means[..., 1], [2, 4, 8, 16], 16)
    np.testing.assert_allclose(whole.variance[:, 1], column.variance)


@pytest.mark.parametrize("weights", ["equal", "root"])
def test_subclt_agrees_with_the_exact_posterior(rng: Generator, weights: str) -> None:
    # 400 replications leave four standard errors of room for any seed.
    method = SubCLT(weights=weights)
    ratios, covered = [], []
    for _ in range(400):
        sequence, queries, truth = linear_data(rng, n=4096)
        posterior = asked(method, sequence, queries)
        exact = sequence.exact_posterior(queries, sequence.size)
        ratios.append((posterior.variance / exact.variance).mean())
        half = stats.t(method.dof(sequence.size)).ppf(0.975) * np.sqrt(posterior.variance)
        covered.append(coverage(posterior.mean - half, posterior.mean + half, truth))
    assert 0.85 <= np.mean(ratios) <= 1.15
    assert 0.92 <= np.mean(covered) <= 0.98


def test_bad_arguments_are_named() -> None:
    with pytest.raises(ValueError, match='weights must be "equal" or "root", got \'flat\''):
        SubCLT(weights="flat")
    with pytest.raises(ValueError, match="base must be a finite number above 1, got 1"):
        SubCLT(base=1)
    with pytest.raises(ValueError, match=r"n must be at least 3.*got 2"):
        SubCLT().asks(2)
    with pytest.raises(
        ValueError, match=r"means must have one row for each of >= 2 sizes up to 4, got 3 for"
    ):
        SubCLT().from_means(np.zeros((3, 1)), [2, 4], 4)
