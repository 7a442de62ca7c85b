"""Posteriors inside a range: moments, intervals and propensities against plain draws."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from pfnts.posterior import BoundedPosterior, GaussianPosterior

FIELDS = ("location", "scale", "low", "high", "size", "tail", "outlier", "outlier_weight")


def some(rng: np.random.Generator, arms: int = 4) -> BoundedPosterior:
    return BoundedPosterior(
        location=rng.uniform(-1, 2, arms),  # some outside
        scale=10 ** rng.uniform(-4, 0.5, arms),
        low=np.asarray(0.0),
        high=np.asarray(1.0),
        size=np.asarray(5),
        tail=np.where(rng.random(arms) < 0.7, 0.1 * rng.random(arms), 0.0),
        outlier=rng.random(arms),
        outlier_weight=rng.random(arms) * (rng.random(arms) < 0.7),
    )


def drawn(posterior: BoundedPosterior, rng: np.random.Generator, count: int = 100_000) -> np.ndarray:
    shape = count, *posterior.location.shape
    return BoundedPosterior(**{n: np.broadcast_to(getattr(posterior, n), shape) for n in FIELDS}).sample(rng)


@pytest.mark.parametrize("seed", range(4))
def test_draws_agree_with_moments_intervals_and_propensities(seed: int) -> None:
    rng = np.random.default_rng(seed)
    posterior = some(rng)
    if seed % 2:  # bounds that differ between arms
        posterior = posterior.shifted(rng.uniform(0, 0.5, 4))
    draws = drawn(posterior, rng)
    assert (draws >= posterior.low).all()
    assert (draws <= posterior.high).all()
    error = np.sqrt(posterior.variance / len(draws))
    assert (np.abs(draws.mean(axis=0) - posterior.mean) < 5 * error + 1e-9).all()
    np.testing.assert_allclose(draws.std(axis=0), np.sqrt(posterior.variance), rtol=0.03, atol=1e-8)
    low, high = posterior.interval(0.8)
    inside = ((draws >= low) & (draws <= high)).mean(axis=0)
    np.testing.assert_allclose(inside, 0.8, atol=5 * np.sqrt(0.16 / len(draws)))
    for mask in (np.ones(4, dtype=bool), np.array([True, False, True, True])):
        shares = posterior.best_arm_probabilities(mask)
        assert shares.sum() == pytest.approx(1)
        assert not shares[~mask].any()
        counts = np.bincount(np.where(mask, draws, -np.inf).argmax(axis=1), minlength=4)[mask]
        expected = shares[mask] * len(draws)
        few = expected < 5
        chi2 = ((counts - expected)[~few] ** 2 / expected[~few]).sum()
        assert chi2 < stats.chi2.ppf(1 - 1e-6, max((~few).sum() - 1, 1))
        assert counts[few].sum() <= 40


def test_with_nothing_open_and_far_bounds_it_is_the_gaussian() -> None:
    rng = np.random.default_rng(0)
    mean, sd = rng.normal(size=(3, 5)), 10 ** rng.uniform(-2, 0, (3, 5))
    wide = BoundedPosterior(mean, sd, np.asarray(-1e3), np.asarray(1e3), np.asarray(9))
    gauss = GaussianPosterior(mean=mean, variance=sd**2, size=9)
    np.testing.assert_allclose(wide.mean, gauss.mean, atol=1e-9)
    np.testing.assert_allclose(wide.variance, gauss.variance, rtol=1e-9)
    np.testing.assert_allclose(wide.best_arm_probabilities(), gauss.best_arm_probabilities(), atol=1e-6)
    np.testing.assert_allclose(wide.interval(0.9), gauss.interval(0.9), atol=1e-9)
    uniforms = rng.random((3, 5))
    np.testing.assert_allclose(wide.draw(uniforms), gauss.draw(uniforms), atol=1e-9)


def test_a_batch_is_so_many_single_ones() -> None:
    rng = np.random.default_rng(1)
    rows = [some(rng) for _ in range(5)]
    batch = BoundedPosterior(**{n: np.stack([getattr(row, n) for row in rows]) for n in FIELDS})
    together = batch.best_arm_probabilities()
    for i, row in enumerate(rows):
        np.testing.assert_array_equal(batch[i].mean, row.mean)
        np.testing.assert_allclose(together[i], row.best_arm_probabilities(), rtol=0, atol=1e-12)
    np.testing.assert_array_equal(batch.take(np.array([2, 0])).mean, batch.mean[:, [2, 0]])


def test_scaling_touches_the_model_alone_and_zero_takes_the_largest_location() -> None:
    posterior = some(np.random.default_rng(2))
    half = posterior.scaled(0.5)
    np.testing.assert_array_equal(half.scale, 0.5 * posterior.scale)
    np.testing.assert_array_equal(half.tail, posterior.tail)
    greedy = posterior.scaled(0.0).best_arm_probabilities()
    assert greedy[posterior.location.argmax()] == pytest.approx(
        1 / (posterior.location == posterior.location.max()).sum()
    )
    with pytest.raises(ValueError, match="factor must not be negative"):
        posterior.scaled(-1.0)
    with pytest.raises(ValueError, match="low must be below high"):
        BoundedPosterior(np.zeros(2), np.ones(2), np.asarray(1.0), np.asarray(1.0), np.asarray(3))
