"""Best-arm probabilities against Monte Carlo, an adaptive integrator and cases known by hand."""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import pairwise, repeat

import numpy as np
import pytest
from numpy.random import Generator
from scipy import stats
from scipy.integrate import quad
from scipy.special import ndtr, ndtri, stdtr, stdtrit

from pfnts.posterior import GaussianPosterior, StudentPosterior


def gaussian(mean: np.ndarray, sd: np.ndarray) -> GaussianPosterior:
    return GaussianPosterior(mean=mean, variance=np.square(sd), size=10)


def integrated(
    mean: Iterable[float], scale: Iterable[float], dof: Iterable[float] | None = None
) -> np.ndarray:
    """P(arm k is best) by adaptive integration of its definition, cut at quantiles of every arm."""
    arms = list(zip(mean, scale, dof or repeat(np.inf), strict=False))
    levels = np.array([1e-10, 1e-8, 1e-6, 1e-4, 0.01, 0.2])
    levels = np.concatenate([levels, [0.5], 1 - levels])
    standard = [stdtrit(nu, levels) if nu < np.inf else ndtri(levels) for _, _, nu in arms]
    cuts = np.unique([m + s * z for (m, s, _), z in zip(arms, standard, strict=True)])

    def below(u: float, m: float, s: float, nu: float) -> float:
        return float(ndtr((u - m) / s) if nu == np.inf else stdtr(nu, (u - m) / s))

    def density(u: float, m: float, s: float, nu: float) -> float:
        z2 = ((u - m) / s) ** 2
        if nu == np.inf:
            return math.exp(-z2 / 2) / (s * math.sqrt(2 * math.pi))
        constant = math.exp(math.lgamma((nu + 1) / 2) - math.lgamma(nu / 2)) / math.sqrt(nu * math.pi)
        return constant * (1 + z2 / nu) ** (-(nu + 1) / 2) / s

    def integrand(u: float, k: int) -> float:
        return density(u, *arms[k]) * math.prod(below(u, *arm) for j, arm in enumerate(arms) if j != k)

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


@pytest.mark.parametrize("dof", [1.0, 2.5, 11.0, 200.0])
def test_student_quadrature_is_good_to_a_millionth(rng: Generator, dof: float) -> None:
    mean, scale = rng.standard_normal(3), rng.uniform(0.05, 2.0, 3)
    freedom = np.array([dof, 4.0, dof])
    posterior = StudentPosterior(mean=mean, variance=scale**2, size=10, dof=freedom)
    exact = integrated(mean, scale, freedom.tolist())
    np.testing.assert_allclose(posterior.best_arm_probabilities(), exact, atol=1e-6)


def test_two_students_use_quadrature_as_well() -> None:
    posterior = StudentPosterior(mean=[0.0, 1.0], variance=[1.0, 4.0], size=10, dof=[3.0, 5.0])
    exact = integrated([0.0, 1.0], [1.0, 2.0], [3.0, 5.0])
    np.testing.assert_allclose(posterior.best_arm_probabilities(), exact, atol=1e-6)


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


@pytest.mark.parametrize("dof", [None, 3.0])
def test_certain_arms_are_a_threshold_for_the_others(dof: float | None) -> None:
    # One uncertain arm N(1, 2) or its Student against arms that are exactly 0 and, twice, exactly 2.
    posterior = gaussian(np.array([1.0, 0.0, 2.0, 2.0]), np.array([2.0, 0.0, 0.0, 0.0]))
    above = stats.norm.sf(0.5) if dof is None else stats.t(dof).sf(0.5)
    probabilities = (posterior if dof is None else posterior.student(dof)).best_arm_probabilities()
    np.testing.assert_allclose(probabilities, [above, 0.0, (1 - above) / 2, (1 - above) / 2], atol=1e-8)


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


@pytest.mark.parametrize("dof", [None, 4.0])
def test_batch_equals_one_by_one(rng: Generator, dof: float | None) -> None:
    posterior = gaussian(rng.standard_normal((3, 4, 5)), rng.uniform(0, 2, (3, 4, 5)).round(0))
    batch = posterior if dof is None else posterior.student(dof)
    single = [[batch[i, j].best_arm_probabilities() for j in range(4)] for i in range(3)]
    np.testing.assert_allclose(batch.best_arm_probabilities(), single, atol=1e-12)


@pytest.mark.parametrize("dof", [None, 4.0])
@pytest.mark.parametrize("coupled", [False, True])
def test_mask_equals_leaving_arms_out(rng: Generator, dof: float | None, coupled: bool) -> None:
    directions = rng.standard_normal((3, 2, 5))
    variance = (directions**2).sum(axis=0)
    mean = rng.standard_normal((2, 5))
    whole = GaussianPosterior(mean=mean, variance=variance, size=5, directions=directions, coupled=coupled)
    mask = np.array([True, False, True, True, False])
    part = GaussianPosterior(
        mean=mean[:, mask],
        variance=variance[:, mask],
        size=5,
        directions=directions[..., mask],
        coupled=coupled,
    )
    if dof is not None:
        whole, part = whole.student(dof), part.student(dof)
    masked = whole.best_arm_probabilities(mask)
    np.testing.assert_allclose(masked[:, mask], part.best_arm_probabilities(), atol=1e-8)
    np.testing.assert_array_equal(masked[:, ~mask], 0.0)


def test_a_single_eligible_arm_is_certain(rng: Generator) -> None:
    for arms in (1, 2, 5):
        posterior = gaussian(rng.standard_normal(arms), np.ones(arms))
        only = np.arange(arms) == arms - 1
        np.testing.assert_array_equal(posterior.best_arm_probabilities(only), only)


@pytest.mark.parametrize("arms", [2, 3, 8])
@pytest.mark.parametrize("student", [False, True])
def test_coupled_probabilities_agree_with_function_draws(rng: Generator, arms: int, student: bool) -> None:
    directions = rng.standard_normal((5, arms))
    posterior = GaussianPosterior(
        mean=rng.standard_normal(arms),
        variance=(directions**2).sum(axis=0),
        size=9,
        directions=directions,
        coupled=True,
    )
    z = rng.standard_normal((400_000, 5))
    if student:
        z *= np.sqrt(3 / rng.chisquare(3, (400_000, 1)))
    best = (posterior.mean + z @ directions).argmax(axis=1)
    seen = np.bincount(best, minlength=arms) / len(z)
    exact = (posterior.student(3.0) if student else posterior).best_arm_probabilities()
    # Five standard errors of the draws, and the error stated for the quasi Monte Carlo.
    np.testing.assert_allclose(exact, seen, atol=5 * 0.5 / np.sqrt(len(z)) + 4e-3)
    assert exact.sum() == pytest.approx(1, abs=1e-9)


def test_coupled_arms_without_spread_are_certain_and_split_ties() -> None:
    posterior = GaussianPosterior(
        mean=[0.0, 1.0, 1.0], variance=[1.0, 1.0, 1.0], size=3, directions=np.ones((1, 3)), coupled=True
    )
    np.testing.assert_allclose(posterior.best_arm_probabilities(), [0.0, 0.5, 0.5])


def test_bad_masks_are_named() -> None:
    posterior = gaussian(np.zeros((2, 3)), np.ones((2, 3)))
    with pytest.raises(ValueError, match="eligible must leave at least one arm in every row"):
        posterior.best_arm_probabilities([[True, True, True], [False, False, False]])
    with pytest.raises(ValueError, match=r"eligible must broadcast to the shape \(2, 3\), got \(2,\)"):
        posterior.best_arm_probabilities([True, False])
    with pytest.raises(ValueError, match="eligible must be a mask of booleans, got dtype int64"):
        posterior.best_arm_probabilities([0, 1, 2])
