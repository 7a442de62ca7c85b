"""Mixtures against their one component, root finding on plain distribution functions, and draws."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.random import Generator
from scipy import stats
from scipy.optimize import brentq

from pfnts.policies.model import Shortlisted
from pfnts.policies.rules import Thompson
from pfnts.posterior import BoundedPosterior, GaussianPosterior, MixturePosterior

N, FEW = 40_000, 500
MASKS = [None, np.array([True, False, True, True])]


def gaussian(rng: Generator, contexts: int = 3, arms: int = 4) -> GaussianPosterior:
    shape = contexts, arms
    return GaussianPosterior(
        mean=rng.normal(size=shape),
        variance=10 ** rng.uniform(-2, 0.5, shape),
        size=rng.integers(3, 99, arms),
    )


def bounded(rng: Generator, contexts: int = 3, arms: int = 4) -> BoundedPosterior:
    shape = contexts, arms
    return BoundedPosterior(
        location=rng.uniform(-1, 2, shape),
        scale=10 ** rng.uniform(-2, 0.5, shape),
        low=np.asarray(-1.0),
        high=np.asarray(2.0),
        size=np.asarray(5),
        tail=0.1 * rng.random(shape),
        outlier=rng.random(shape),
        outlier_weight=rng.random(shape) * (rng.random(shape) < 0.5),
    )


def mixture(rng: Generator, kinds: Any = (gaussian, bounded, gaussian)) -> MixturePosterior:
    return MixturePosterior([kind(rng) for kind in kinds], rng.dirichlet(np.ones(len(kinds))))


def fits(index: np.ndarray, shares: np.ndarray) -> None:
    """Chi-square test, at a level of 1e-6, that positions ``index`` have probabilities ``shares``."""
    counts, expected = np.bincount(index, minlength=len(shares)), shares * len(index)
    often = expected >= 5
    statistic = ((counts - expected)[often] ** 2 / expected[often]).sum()
    assert statistic <= stats.chi2.ppf(1 - 1e-6, max(often.sum() - 1, 1))
    assert counts[~often].sum() <= 40
    assert not counts[shares == 0].any()


@pytest.mark.parametrize("kind", [gaussian, bounded])
def test_one_component_is_that_component(kind: Any, rng: Generator) -> None:
    alone = kind(rng)
    mixed = MixturePosterior([alone], [1.0])
    uniforms, mask = rng.random((3, 6)), MASKS[1]
    costs = rng.normal(size=4)
    changes = [
        (mixed, alone),
        (mixed[1:], alone[1:]),
        (mixed.take(np.array([2, 0, 1, 3])), alone.take(np.array([2, 0, 1, 3]))),
        (mixed.shifted(costs), alone.shifted(costs)),
        (mixed.scaled(0.3), alone.scaled(0.3)),
        (mixed.scaled(0.0), alone.scaled(0.0)),
    ]
    for ours, theirs in changes:
        np.testing.assert_array_equal(ours.mean, theirs.mean)
        np.testing.assert_array_equal(ours.variance, theirs.variance)
        np.testing.assert_array_equal(ours.size, theirs.size)
        np.testing.assert_array_equal(ours.interval(0.9), theirs.interval(0.9))
        np.testing.assert_array_equal(ours.cdf(0.3), theirs.cdf(0.3))
        u = uniforms[-len(theirs.mean) :]
        np.testing.assert_array_equal(ours.draw(u), theirs.draw(u[..., 1:]))
        np.testing.assert_array_equal(ours.best_arm_probabilities(mask), theirs.best_arm_probabilities(mask))


def test_moments_and_intervals_of_normal_components_are_those_of_their_sum(rng: Generator) -> None:
    mixed = mixture(rng, (gaussian, gaussian, gaussian))
    lower, upper = mixed.interval(0.8)
    for at in np.ndindex(mixed.mean.shape):
        parts = [stats.norm(c.mean[at], np.sqrt(c.variance[at])) for c in mixed.components]

        def expected(power: int, parts: Any = parts) -> float:
            return float(sum(w * part.moment(power) for w, part in zip(mixed.weights, parts, strict=True)))

        def below(u: float, parts: Any = parts) -> float:
            return float(sum(w * part.cdf(u) for w, part in zip(mixed.weights, parts, strict=True)))

        assert mixed.mean[at] == pytest.approx(expected(1))
        assert mixed.variance[at] == pytest.approx(expected(2) - expected(1) ** 2)
        assert mixed.cdf(0.4)[at] == pytest.approx(below(0.4))
        assert lower[at] == pytest.approx(brentq(lambda u: below(u) - 0.1, -50, 50), abs=1e-9)
        assert upper[at] == pytest.approx(brentq(lambda u: below(u) - 0.9, -50, 50), abs=1e-9)


def test_draws_agree_with_moments_and_intervals(rng: Generator) -> None:
    mixed = mixture(rng)
    draws = np.stack([mixed[np.full(N, i)].sample(rng) for i in range(3)], axis=1)
    error = np.sqrt(mixed.variance / N)
    assert (np.abs(draws.mean(axis=0) - mixed.mean) < 6 * error).all()
    fourth = ((draws - mixed.mean) ** 4).mean(axis=0)
    assert (np.abs(draws.var(axis=0) - mixed.variance) < 6 * np.sqrt(fourth / N)).all()
    low, high = mixed.interval(0.7)
    for end, level in ((low, 0.15), (high, 0.85)):
        assert (np.abs((draws <= end).mean(axis=0) - level) < 6 * np.sqrt(level * (1 - level) / N)).all()


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("kinds", [(gaussian, gaussian), (bounded, bounded), (gaussian, bounded, gaussian)])
def test_draws_follow_the_probabilities_of_the_best_arm(kinds: Any, mask: Any, rng: Generator) -> None:
    mixed = mixture(rng, kinds)
    for changed in (mixed, mixed.shifted(rng.normal(size=4)), mixed.scaled(0.4), mixed.scaled(1.7)):
        shares = changed.best_arm_probabilities(mask)
        np.testing.assert_allclose(shares.sum(axis=1), 1)
        for i in range(3):
            draws = changed[np.full(N, i)].sample(rng)
            fits(np.where(True if mask is None else mask, draws, -np.inf).argmax(axis=1), shares[i])


@pytest.mark.parametrize("exploration", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("shortlist", [None, [3, 0, 2]])
def test_thompson_chooses_with_exact_propensities(exploration: float, shortlist: Any, rng: Generator) -> None:
    mixed = mixture(rng)
    eligible = np.tile([True, False, True, True], (FEW, 1))
    costs = rng.normal(size=4)
    rule = Thompson(exploration, mixture=True)
    for i in range(3):
        posterior = mixed[np.full(FEW, i)]
        answer: Any = posterior
        if shortlist is not None:
            answer = Shortlisted(posterior.take(np.array(shortlist)), np.tile(shortlist, (FEW, 1)), 0.0)
        chosen = rule(answer, eligible, rng.random((FEW, rule.n_uniforms(4))), costs)
        np.testing.assert_allclose(
            chosen.propensities, chosen.propensities[:1].repeat(FEW, axis=0), atol=1e-12
        )
        fits(chosen.index, chosen.propensities[0])


@pytest.mark.parametrize("kinds", [(gaussian,), (gaussian, bounded)])
def test_a_shortlist_of_all_arms_chooses_as_without(kinds: Any, rng: Generator) -> None:
    alone = len(kinds) == 1
    posterior: Any = gaussian(rng, FEW) if alone else mixture(rng, [lambda r, k=k: k(r, FEW) for k in kinds])
    rule, eligible = Thompson(0.7, mixture=not alone), np.tile([True, False, True, True], (FEW, 1))
    uniforms, costs = rng.random((FEW, rule.n_uniforms(4))), rng.normal(size=4)
    listed = Shortlisted(posterior, np.tile(np.arange(4), (FEW, 1)), 0.0)
    ours, theirs = rule(listed, eligible, uniforms, costs), rule(posterior, eligible, uniforms, costs)
    np.testing.assert_array_equal(ours.index, theirs.index)
    np.testing.assert_array_equal(ours.propensities, theirs.propensities)


def test_without_exploration_the_largest_mean_of_the_mixture_is_taken(rng: Generator) -> None:
    mixed = mixture(rng, (gaussian, gaussian))
    np.testing.assert_allclose(mixed.scaled(0.0).best_arm_probabilities().argmax(1), mixed.mean.argmax(1))
    half = mixed.scaled(0.5)
    np.testing.assert_allclose(half.mean, mixed.mean)
    apart = sum(w * (c.mean - mixed.mean) ** 2 for w, c in zip(mixed.weights, mixed.components, strict=True))
    np.testing.assert_allclose(half.variance - apart, 0.25 * (mixed.variance - apart))
    with pytest.raises(ValueError, match="factor must not be negative"):
        mixed.scaled(-1.0)


def test_each_arm_may_have_a_factor_of_its_own(rng: Generator) -> None:
    mixed, factors = mixture(rng, (gaussian, gaussian)), np.array([0.15, 1.0, 0.5, 2.0])
    for arm, factor in enumerate(factors):
        one = mixed.scaled(factor).take(np.array([arm]))
        np.testing.assert_allclose(mixed.scaled(factors).take(np.array([arm])).variance, one.variance)


def test_all_arms_of_a_context_are_drawn_from_one_component(rng: Generator) -> None:
    apart = [
        GaussianPosterior(mean=np.full((N, 3), place), variance=np.ones((N, 3)), size=9)
        for place in (-1e3, 1e3)
    ]
    mixed = MixturePosterior(apart, [0.3, 0.7])
    uniforms = rng.random((N, 5))
    upper = mixed.draw(uniforms) > 0
    np.testing.assert_array_equal(upper, np.tile(uniforms[:, :1] >= 0.3, (1, 3)))
    one_by_one = np.stack([mixed[i].draw(uniforms[i]) for i in range(5)])
    np.testing.assert_array_equal(one_by_one, mixed.draw(uniforms)[:5])


def test_negligible_weights_change_nothing(rng: Generator) -> None:
    first, second = gaussian(rng), gaussian(rng)
    for weights in ([1.0, 0.0], [1 - 1e-15, 1e-15]):
        mixed = MixturePosterior([first, second], weights)
        np.testing.assert_allclose(mixed.interval(0.95), first.interval(0.95), atol=1e-9)
        np.testing.assert_allclose(mixed.best_arm_probabilities(), first.best_arm_probabilities(), atol=1e-12)
        np.testing.assert_allclose(mixed.variance, first.variance)


def test_impossible_mixtures_are_refused(rng: Generator) -> None:
    one = gaussian(rng)
    with pytest.raises(ValueError, match="components must have equal shapes"):
        MixturePosterior([one, gaussian(rng, arms=3)], [0.5, 0.5])
    for weights in ([0.5, 0.6], [1.5, -0.5], [np.nan, 1.0]):
        with pytest.raises(ValueError, match="weights must be probabilities that sum to one"):
            MixturePosterior([one, one], weights)
    for parts, weights in (([], []), ([one], [0.5, 0.5])):
        with pytest.raises(ValueError, match="weights must have one entry for each of >= 1 components"):
            MixturePosterior(parts, weights)


def test_a_description_fits_three_lines(rng: Generator) -> None:
    for posterior in (mixture(rng), gaussian(rng, contexts=500, arms=60), bounded(rng)):
        lines = repr(posterior).splitlines()
        assert len(lines) == 3
        assert all(len(line) <= 100 for line in lines)
        assert str(posterior.mean.shape) in lines[0]
