"""Normal posteriors: draws, intervals, joining and cutting."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.random import Generator
from scipy import stats

from pfnts.posterior import GaussianPosterior, stack

N = 20_000


def some(rng: Generator, *shape: int) -> GaussianPosterior:
    mean, variance = rng.standard_normal(shape), rng.uniform(0.1, 4.0, shape)
    return GaussianPosterior(mean=mean, variance=variance, size=rng.integers(3, 99, shape))


def test_draws_are_independent_with_the_stated_moments(rng: Generator) -> None:
    one = some(rng, 1, 3)
    many = one[np.zeros(N, dtype=int)]
    for draws in (many.draw(rng.random((N, 4))), many.sample(rng)):
        deviations = draws - one.mean
        products = deviations[:, :, None] * deviations[:, None, :]
        error = 5 * products.std(axis=0) / np.sqrt(N)
        assert (np.abs(deviations.mean(axis=0)) < 5 * np.sqrt(one.variance[0] / N)).all()
        assert (np.abs(products.mean(axis=0) - np.diag(one.variance[0])) <= error).all()


def test_many_draws_are_one_after_the_other(rng: Generator) -> None:
    posterior, uniforms = some(rng, 5, 3), rng.random((5, 4))
    single = [posterior[i].draw(uniforms[i]) for i in range(5)]
    np.testing.assert_array_equal(posterior.draw(uniforms), single)


def test_a_draw_from_the_median_is_the_mean_and_the_ends_are_finite() -> None:
    one = GaussianPosterior(mean=[1.0, 2.0], variance=[1.0, 4.0], size=3)
    np.testing.assert_allclose(one.draw(np.full(2, 0.5)), one.mean, atol=1e-12)
    assert np.isfinite(one.draw(np.zeros(2))).all()
    assert np.isfinite(one.draw(np.full(2, np.nextafter(1.0, 0.0)))).all()
    assert (one.draw(np.zeros(2)) < one.mean).all()


def test_sample_consumes_one_normal_for_each_entry() -> None:
    posterior = GaussianPosterior(mean=np.zeros((3, 2)), variance=np.ones((3, 2)), size=4)
    draw = posterior.sample(np.random.default_rng(5))
    np.testing.assert_array_equal(draw, np.random.default_rng(5).standard_normal((3, 2)))


@pytest.mark.parametrize("level", [0.5, 0.9, 0.95])
def test_intervals_are_quantiles_and_invert_the_distribution_function(level: float) -> None:
    gaussian = GaussianPosterior(mean=[1.0, 2.0], variance=[4.0, 0.0], size=9)
    lower, upper = gaussian.interval(level)
    np.testing.assert_allclose([lower[0], upper[0]], stats.norm(1, 2).interval(level))
    np.testing.assert_array_equal([lower[1], upper[1]], [2.0, 2.0])
    np.testing.assert_allclose(gaussian.cdf(upper) - gaussian.cdf(lower), [level, 0.0])
    np.testing.assert_array_equal(gaussian.cdf([-np.inf, 1.9]), [0.0, 0.0])  # a step where all is certain
    np.testing.assert_array_equal(gaussian.cdf([np.inf, 2.0]), [1.0, 1.0])


def test_stack_joins_arms(rng: Generator) -> None:
    arms = [some(rng, 5) for _ in range(3)]
    joined = stack(arms)
    for k, arm in enumerate(arms):
        np.testing.assert_array_equal(joined.mean[:, k], arm.mean)
        np.testing.assert_array_equal(joined.variance[:, k], arm.variance)
        np.testing.assert_array_equal(joined.size[:, k], arm.size)
    np.testing.assert_array_equal(stack(arms, axis=0).mean, joined.mean.T)


def test_index_cuts_contexts_and_take_keeps_arms(rng: Generator) -> None:
    posterior = some(rng, 6, 3)
    np.testing.assert_array_equal(posterior[2].mean, posterior.mean[2])
    assert posterior[1:3].mean.shape == (2, 3)
    kept = posterior.take(np.array([2, 0]))
    np.testing.assert_array_equal(kept.variance, posterior.variance[:, [2, 0]])
    np.testing.assert_array_equal(kept.size, posterior.size[:, [2, 0]])
    with pytest.raises(IndexError, match="leading axes"):
        posterior[2][0]


def test_scaled_multiplies_standard_deviations_and_shifted_moves_means(rng: Generator) -> None:
    posterior = some(rng, 6, 3)
    wide = posterior.scaled(3.0)
    np.testing.assert_allclose(wide.variance, 9 * posterior.variance)
    costs = rng.normal(size=3)
    np.testing.assert_allclose(posterior.shifted(costs).mean, posterior.mean - costs)
    certain = posterior.scaled(0.0)
    np.testing.assert_array_equal(certain.draw(rng.random((6, 4))), posterior.mean)
    np.testing.assert_array_equal(
        certain.best_arm_probabilities().argmax(axis=1), posterior.mean.argmax(axis=1)
    )
    for factor in (-1.0, float("nan")):
        with pytest.raises(ValueError, match="factor must not be negative"):
            posterior.scaled(factor)


def test_arrays_are_read_only() -> None:
    posterior = GaussianPosterior(mean=[0.0], variance=[1.0], size=3)
    with pytest.raises(ValueError, match="read-only"):
        posterior.mean[0] = 1.0


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"mean": [0.0, np.nan]}, "mean must be finite, got nan"),
        ({"mean": 1.0}, "mean must have at least one axis"),
        ({"variance": [1.0]}, r"variance must have the shape of mean, \(2,\), got \(1,\)"),
        ({"variance": [1.0, -1.0]}, "variance must not be negative, got -1.0"),
        ({"variance": [1.0, np.inf]}, "variance must be finite, got inf"),
        ({"size": 0}, "size must be at least 1, got 0"),
        ({"size": [1, 2, 3]}, "size must broadcast to the shape of mean"),
    ],
)
def test_bad_fields_are_named(change: dict[str, object], words: str) -> None:
    fields = {"mean": [0.0, 1.0], "variance": [1.0, 1.0], "size": 5} | change
    with pytest.raises(ValueError, match=words):
        GaussianPosterior(**fields)


def test_misuse_is_explained() -> None:
    plain = GaussianPosterior(mean=[0.0], variance=[1.0], size=3)
    with pytest.raises(ValueError, match="level must be strictly between 0 and 1, got 95"):
        plain.interval(95)
    with pytest.raises(ValueError, match="posteriors must be at least one, all of one shape"):
        stack([plain, GaussianPosterior(mean=[0.0, 0.0], variance=[1.0, 1.0], size=3)])
