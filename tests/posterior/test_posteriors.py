"""Gaussian and Student posteriors: draws by their moments, intervals, joining and cutting."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.random import Generator
from scipy import stats

from pfnts.posterior import GaussianPosterior, StudentPosterior, SubCLT, stack

DRAWS = 20_000


def blocks(rng: Generator, *shape: int, coupled: bool) -> GaussianPosterior:
    directions = rng.standard_normal(shape)
    return GaussianPosterior(
        mean=rng.standard_normal(shape[1:]),
        variance=(directions**2).sum(axis=0),
        size=16,
        directions=directions,
        coupled=coupled,
    )


def assert_moments(draws: np.ndarray, mean: np.ndarray, covariance: np.ndarray) -> None:
    """Sample moments of draws (N, q) within five standard errors of mean (q,) and covariance (q, q)."""
    sd = np.sqrt(np.diag(covariance))
    n = len(draws)
    assert (np.abs(draws.mean(axis=0) - mean) <= 5 * sd / np.sqrt(n)).all()
    products = (draws - mean)[:, :, None] * (draws - mean)[:, None, :]
    error = products.std(axis=0) / np.sqrt(n)
    assert (np.abs(products.mean(axis=0) - covariance) <= 5 * error).all()


def test_function_draw_has_subclt_variance_and_covariance_between_queries(rng: Generator) -> None:
    posterior = SubCLT(weights="root").from_means(rng.standard_normal((5, 4)), [2, 4, 8, 16, 32], 32)
    draws = np.stack([posterior.sample_function(rng) for _ in range(DRAWS)])
    steps = posterior.directions
    assert steps is not None
    np.testing.assert_allclose(np.diag(steps.T @ steps), posterior.variance)
    assert_moments(draws, posterior.mean, steps.T @ steps)


def test_arms_of_their_own_are_drawn_apart_but_contexts_of_an_arm_together(rng: Generator) -> None:
    posterior = blocks(rng, 3, 2, 2, coupled=False)
    draws = np.stack([posterior.sample_function(rng) for _ in range(DRAWS)])
    steps = posterior.directions
    assert steps is not None
    covariance = np.einsum("jca,jdb->cadb", steps, steps) * np.eye(2)[None, :, None, :]
    assert_moments(draws.reshape(DRAWS, 4), posterior.mean.ravel(), covariance.reshape(4, 4))


def test_coupled_arms_share_every_draw(rng: Generator) -> None:
    posterior = blocks(rng, 3, 2, 2, coupled=True)
    draws = np.stack([posterior.sample_function(rng) for _ in range(DRAWS)])
    steps = posterior.directions
    assert steps is not None
    flat = steps.reshape(3, 4)
    assert_moments(draws.reshape(DRAWS, 4), posterior.mean.ravel(), flat.T @ flat)


def test_student_function_has_heavier_tails_by_the_known_factor(rng: Generator) -> None:
    dof = 12.0
    posterior = blocks(rng, 3, 2, coupled=True).student(dof)
    draws = np.stack([posterior.sample_function(rng) for _ in range(DRAWS)])
    steps = posterior.directions
    assert steps is not None
    assert_moments(draws, posterior.mean, steps.T @ steps * dof / (dof - 2))


def test_sample_draws_every_entry_independently(rng: Generator) -> None:
    posterior = blocks(rng, 3, 2, coupled=True)
    draws = np.stack([posterior.sample(rng) for _ in range(DRAWS)])
    assert_moments(draws, posterior.mean, np.diag(posterior.variance))
    tails = np.stack([posterior.student(12.0).sample(rng) for _ in range(DRAWS)])
    assert_moments(tails, posterior.mean, np.diag(posterior.variance) * 1.2)


def test_sample_consumes_one_normal_for_each_entry() -> None:
    posterior = GaussianPosterior(mean=np.zeros((3, 2)), variance=np.ones((3, 2)), size=4)
    draw = posterior.sample(np.random.default_rng(5))
    np.testing.assert_array_equal(draw, np.random.default_rng(5).standard_normal((3, 2)))


@pytest.mark.parametrize("level", [0.5, 0.9, 0.95])
def test_intervals_are_quantiles(level: float) -> None:
    gaussian = GaussianPosterior(mean=[1.0, 2.0], variance=[4.0, 0.0], size=9)
    lower, upper = gaussian.interval(level)
    np.testing.assert_allclose([lower[0], upper[0]], stats.norm(1, 2).interval(level))
    np.testing.assert_array_equal([lower[1], upper[1]], [2.0, 2.0])
    lower, upper = gaussian.student(3.0).interval(level)
    np.testing.assert_allclose([lower[0], upper[0]], stats.t(3, 1, 2).interval(level))


def test_stack_joins_arms_and_pads_directions_with_zeros(rng: Generator) -> None:
    arms = [SubCLT().from_means(rng.standard_normal((len(g), 5)), g, g[-1]) for g in ([2, 4], [2, 4, 8, 16])]
    joined = stack(arms)
    assert joined.mean.shape == (5, 2)
    assert joined.directions is not None
    assert joined.directions.shape == (3, 5, 2)
    np.testing.assert_allclose((joined.directions**2).sum(axis=0), joined.variance)
    np.testing.assert_array_equal(joined.size, [[4, 16]] * 5)
    assert not joined.coupled


def test_stack_keeps_degrees_of_freedom_and_drops_unknown_directions(rng: Generator) -> None:
    arms = [blocks(rng, 2, 3, coupled=True).student(dof) for dof in (2.0, 5.0)]
    np.testing.assert_array_equal(stack(arms).dof, [[2.0, 5.0]] * 3)
    plain = StudentPosterior(mean=np.zeros(3), variance=np.ones(3), size=3, dof=1.0)
    assert stack([arms[0], plain]).directions is None


def test_index_cuts_contexts(rng: Generator) -> None:
    posterior = blocks(rng, 4, 6, 3, coupled=False)
    one = posterior[2]
    np.testing.assert_array_equal(one.mean, posterior.mean[2])
    assert one.directions is not None
    assert posterior.directions is not None
    np.testing.assert_array_equal(one.directions, posterior.directions[:, 2])
    assert posterior[1:3].mean.shape == (2, 3)
    with pytest.raises(IndexError, match="leading axes"):
        one[0]


def test_scaled_multiplies_standard_deviations(rng: Generator) -> None:
    posterior = blocks(rng, 4, 6, coupled=True)
    wider = posterior.scaled(3.0)
    np.testing.assert_allclose(wider.variance, 9 * posterior.variance)
    assert wider.directions is not None
    np.testing.assert_allclose((wider.directions**2).sum(axis=0), wider.variance)


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
        ({"directions": np.ones((2, 3))}, "directions must have shape"),
        ({"coupled": True}, "directions must be given when coupled=True"),
    ],
)
def test_bad_fields_are_named(change: dict[str, object], words: str) -> None:
    fields = {"mean": [0.0, 1.0], "variance": [1.0, 1.0], "size": 5} | change
    with pytest.raises(ValueError, match=words):
        GaussianPosterior(**fields)


@pytest.mark.parametrize("dof", [0.0, -1.0, np.nan, np.inf])
def test_degrees_of_freedom_must_be_positive_and_finite(dof: float) -> None:
    with pytest.raises(ValueError, match="dof must be positive and finite"):
        StudentPosterior(mean=[0.0], variance=[1.0], size=2, dof=dof)


def test_misuse_is_explained(rng: Generator) -> None:
    plain = GaussianPosterior(mean=[0.0], variance=[1.0], size=3)
    with pytest.raises(ValueError, match=r"directions must be known.*sample\(rng\)"):
        plain.sample_function(rng)
    with pytest.raises(ValueError, match="level must be strictly between 0 and 1, got 95"):
        plain.interval(95)
    with pytest.raises(ValueError, match="dof must be equal along the last axis"):
        blocks(rng, 3, 2, coupled=True).student([1.0, 2.0])
    with pytest.raises(ValueError, match="posteriors must be at least one, all of one kind"):
        stack([plain, plain.student(2.0)])
    with pytest.raises(ValueError, match="posteriors must have equal shapes"):
        stack([plain, GaussianPosterior(mean=[0.0, 0.0], variance=[1.0, 1.0], size=3)])
