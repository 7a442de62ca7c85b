"""Best-arm probabilities against Monte Carlo, an adaptive integrator and cases known by hand."""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import pairwise

import numpy as np
import pytest
from numpy.random import Generator
from scipy import stats
from scipy.integrate import quad
from scipy.special import ndtr, ndtri

from pfnts.posterior import GaussianPosterior


def gaussian(mean: np.ndarray, sd: np.ndarray) -> GaussianPosterior:
    return GaussianPosterior(mean=mean, variance=np.square(sd), size=10)


def integrated(mean: Iterable[float], scale: Iterable[float]) -> np.ndarray:
    """P(arm k is best) by adaptive integration of its definition, cut at quantiles of every arm."""
    arms = list(zip(mean, scale, strict=True))
    levels = np.array([1e-10, 1e-8, 1e-6, 1e-4, 0.01, 0.2])
    levels = np.concatenate([levels, [0.5], 1 - levels])
    cuts = np.unique([m + s * ndtri(levels) for m, s in arms])

    def integrand(u: float, k: int) -> float:
        m, s = arms[k]
        density = math.exp(-(((u - m) / s) ** 2) / 2) / (s * math.sqrt(2 * math.pi))
        return density * math.prod(ndtr((u - m) / s) for j, (m, s) in enumerate(arms) if j != k)

    return np.array(
        [
            sum(quad(integrand, *piece, args=(k,), epsabs=1e-11)[0] for piece in pairwise(cuts))
            for k in range(len(arms))
        ]
    )


def monte_carlo(posterior: GaussianPosterior, rng: Generator, *, draws: int) -> np.ndarray:
    """Share of draws in which each arm of one context is best."""
    arms = posterior.mean.shape[-1]
    counts = np.zeros(arms)
    mean, sd = posterior.mean.astype(np.float32), np.sqrt(posterior.variance).astype(np.float32)
    for _ in range(draws // 100_000):
        values = mean + sd * rng.standard_normal((100_000, arms), dtype=np.float32)
        counts += np.bincount(values.argmax(axis=1), minlength=arms)
    return counts / draws


def test_agrees_with_a_million_draws_for_one_to_twenty_arms(rng: Generator) -> None:
    # Of 210 arms half a one is expected beyond three standard errors by chance; beyond six, none.
    deviations = []
    for arms in range(1, 21):
        posterior = gaussian(rng.standard_normal(arms), rng.uniform(0.2, 2.0, arms))
        exact = posterior.best_arm_probabilities()
        assert exact.sum() == pytest.approx(1, abs=1e-9)
        seen = monte_carlo(posterior, rng, draws=1_000_000)
        error = np.sqrt(np.maximum(exact * (1 - exact), 1e-6) / 1_000_000)
        deviations.append(np.abs(seen - exact) / error)
    deviation = np.concatenate(deviations)
    assert deviation.max() < 6
    assert (deviation > 3).sum() <= 6


@pytest.mark.parametrize("spread", [0.3, 3.0, 30.0])
def test_gaussian_quadrature_is_good_to_a_millionth(rng: Generator, spread: float) -> None:
    mean = rng.standard_normal(4)
    sd = np.exp(rng.uniform(-spread / 2, spread / 2, 4)) if spread < 30 else np.array([1e-6, 1.0, 1e-3, 30.0])
    exact = integrated(mean, sd)
    np.testing.assert_allclose(gaussian(mean, sd).best_arm_probabilities(), exact, atol=1e-6)


def test_two_gaussian_arms_have_the_closed_form() -> None:
    probabilities = gaussian(np.array([0.0, 1.0]), np.array([3.0, 4.0])).best_arm_probabilities()
    np.testing.assert_allclose(probabilities, stats.norm.cdf([-0.2, 0.2]))


def test_third_arm_out_of_reach_leaves_the_closed_form_of_two() -> None:
    probabilities = gaussian(np.array([0.0, 1.0, -1e6]), np.array([3.0, 4.0, 1.0])).best_arm_probabilities()
    np.testing.assert_allclose(probabilities, [*stats.norm.cdf([-0.2, 0.2]), 0.0], atol=1e-9)


@pytest.mark.parametrize("arms", [1, 2, 3, 20, 60])
def test_equal_arms_share_evenly(arms: int) -> None:
    for sd in (0.0, 1e-9, 1.0, 1e9):
        probabilities = gaussian(np.full(arms, 7.0), np.full(arms, sd)).best_arm_probabilities()
        np.testing.assert_allclose(probabilities, 1 / arms, atol=1e-9)


def test_certain_arms_win_by_their_mean_and_split_ties() -> None:
    certain = gaussian(np.array([1.0, 2.0, 2.0]), np.zeros(3))
    np.testing.assert_array_equal(certain.best_arm_probabilities(), [0.0, 0.5, 0.5])
    pair = gaussian(np.array([1.0, 2.0]), np.zeros(2))
    np.testing.assert_array_equal(pair.best_arm_probabilities(), [0.0, 1.0])


def test_certain_arms_are_a_threshold_for_the_others() -> None:
    # One uncertain arm N(1, 2) against arms that are exactly 0 and, twice, exactly 2.
    posterior = gaussian(np.array([1.0, 0.0, 2.0, 2.0]), np.array([2.0, 0.0, 0.0, 0.0]))
    above = stats.norm.sf(0.5)
    expected = [above, 0.0, (1 - above) / 2, (1 - above) / 2]
    np.testing.assert_allclose(posterior.best_arm_probabilities(), expected, atol=1e-8)


def test_nearly_certain_arms_approach_certain_ones(rng: Generator) -> None:
    mean = np.array([0.3, 0.1, -0.2, 1e-9])
    zero = gaussian(mean, np.array([1.0, 0.0, 2.0, 0.0])).best_arm_probabilities()
    tiny = gaussian(mean, np.array([1.0, 1e-150, 2.0, 1e-150])).best_arm_probabilities()
    np.testing.assert_allclose(tiny, zero, atol=1e-9)


def test_probabilities_follow_shift_scale_and_order(rng: Generator) -> None:
    mean, sd = rng.standard_normal(6), rng.uniform(0.1, 2.0, 6)
    known = gaussian(mean, sd).best_arm_probabilities()
    moved = gaussian(1e3 + 1e-3 * mean, 1e-3 * sd).best_arm_probabilities()
    np.testing.assert_allclose(moved, known, atol=1e-9)
    order = rng.permutation(6)
    np.testing.assert_allclose(
        gaussian(mean[order], sd[order]).best_arm_probabilities(), known[order], atol=1e-12
    )


def test_batch_equals_one_by_one(rng: Generator) -> None:
    batch = gaussian(rng.standard_normal((3, 4, 5)), rng.uniform(0, 2, (3, 4, 5)).round(0))
    single = [[batch[i, j].best_arm_probabilities() for j in range(4)] for i in range(3)]
    np.testing.assert_allclose(batch.best_arm_probabilities(), single, atol=1e-12)


def test_mask_equals_leaving_arms_out(rng: Generator) -> None:
    whole = gaussian(rng.standard_normal((2, 5)), rng.uniform(0.2, 2.0, (2, 5)))
    mask = np.array([True, False, True, True, False])
    masked = whole.best_arm_probabilities(mask)
    part = whole.take(np.flatnonzero(mask))
    np.testing.assert_allclose(masked[:, mask], part.best_arm_probabilities(), atol=1e-8)
    np.testing.assert_array_equal(masked[:, ~mask], 0.0)


def test_a_single_eligible_arm_is_certain(rng: Generator) -> None:
    for arms in (1, 2, 5):
        posterior = gaussian(rng.standard_normal(arms), np.ones(arms))
        only = np.arange(arms) == arms - 1
        np.testing.assert_array_equal(posterior.best_arm_probabilities(only), only)


def test_bad_masks_are_named() -> None:
    posterior = gaussian(np.zeros((2, 3)), np.ones((2, 3)))
    with pytest.raises(ValueError, match="eligible must leave at least one arm in every row"):
        posterior.best_arm_probabilities([[True, True, True], [False, False, False]])
    with pytest.raises(ValueError, match=r"of shape \(3,\) or \(2, 3\), got bool of shape \(2,\)"):
        posterior.best_arm_probabilities([True, False])
    with pytest.raises(ValueError, match=r"eligible must be a boolean mask over the 3 arms, .*, got int64"):
        posterior.best_arm_probabilities([0, 1, 2])
