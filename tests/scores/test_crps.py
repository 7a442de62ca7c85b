"""CRPS against closed forms and a direct integral."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from numpy.random import Generator
from scipy import stats
from scipy.integrate import quad

from pfnts.scores import crps


def normal_crps(y: np.ndarray) -> np.ndarray:
    """Closed form for N(0, 1) (Gneiting and Raftery 2007)."""
    return y * (2 * stats.norm.cdf(y) - 1) + 2 * stats.norm.pdf(y) - 1 / np.sqrt(np.pi)


def test_uniform_is_exact_inside_and_outside() -> None:
    y = np.array([-2.0, 0.0, 0.3, 1.0, 1.5])
    inside = 1 / 3 - y * (1 - y)
    expected = np.where(y < 0, 1 / 3 - y, np.where(y > 1, y - 2 / 3, inside))
    np.testing.assert_allclose(crps([0, 1], [[0.0] * 5, [1.0] * 5], y), expected)


def test_uniform_does_not_depend_on_how_many_quantiles_give_it(rng: Generator) -> None:
    levels = np.concatenate([[0], np.sort(rng.uniform(size=7)), [1]])
    y = rng.uniform(-0.5, 1.5, 20)
    few, many = ([0.0, 1.0], levels)
    scores = [crps(tau, np.repeat(np.array(tau)[:, None], 20, axis=1), y) for tau in (few, many)]
    np.testing.assert_allclose(scores[0], scores[1])


def test_many_quantiles_of_a_normal_approach_its_closed_form() -> None:
    levels = (np.arange(20_000) + 0.5) / 20_000
    y = np.array([-2.5, -0.4, 0.0, 1.0, 3.0])
    quantiles = np.repeat(stats.norm.ppf(levels)[:, None], 5, axis=1)
    np.testing.assert_allclose(crps(levels, quantiles, y), normal_crps(y), atol=1e-5)


def test_one_quantile_is_the_absolute_error() -> None:
    np.testing.assert_allclose(crps([0.5], [[1.0, 1.0]], [0.0, 3.5]), [1.0, 2.5])


def test_agrees_with_direct_integration_of_the_distribution_function(rng: Generator) -> None:
    levels = np.array([0.05, 0.3, 0.5, 0.9])
    values = np.sort(rng.standard_normal(4))

    def distribution(u: float) -> float:
        inside = np.interp(u, values, levels)
        return 0.0 if u < values[0] else 1.0 if u > values[-1] else inside

    for y in (-4.0, values[0], float(values.mean()), 5.0):
        cuts = np.sort([*values, y, -6.0, 6.0])
        direct = sum(
            quad(lambda u, y=y: (distribution(u) - (u >= y)) ** 2, a, b)[0] for a, b in pairwise(cuts)
        )
        assert crps(levels, values[:, None], [y])[0] == pytest.approx(direct, abs=1e-7)


def test_score_moves_with_the_scale_and_not_with_the_shift(rng: Generator) -> None:
    levels = np.linspace(0.01, 0.99, 99)
    values, y = np.sort(rng.standard_normal((99, 4)), axis=0), rng.standard_normal(4)
    np.testing.assert_allclose(crps(levels, 5 + 3 * values, 5 + 3 * y), 3 * crps(levels, values, y))


def test_the_true_distribution_scores_best_on_average(rng: Generator) -> None:
    levels = np.linspace(0.005, 0.995, 100)
    y = rng.standard_normal(4_000)
    scores = {
        (shift, scale): crps(
            levels, np.broadcast_to((shift + scale * stats.norm.ppf(levels))[:, None], (100, len(y))), y
        ).mean()
        for shift in (-0.5, 0.0, 0.5)
        for scale in (0.5, 1.0, 2.0)
    }
    assert min(scores, key=scores.get) == (0.0, 1.0)


def test_equal_and_crossing_quantiles_are_accepted() -> None:
    np.testing.assert_allclose(crps([0.2, 0.5, 0.8], [[1.0], [1.0], [1.0]], [3.0]), [2.0])
    ordered = crps([0.2, 0.5, 0.8], [[0.0], [1.0], [2.0]], [0.4])
    np.testing.assert_allclose(crps([0.2, 0.5, 0.8], [[1.0], [0.0], [2.0]], [0.4]), ordered)


@pytest.mark.parametrize(
    ("levels", "quantiles", "y", "words"),
    [
        ([0.5, 0.2], np.zeros((2, 1)), [0.0], "levels must be increasing probabilities"),
        ([0.5, 1.2], np.zeros((2, 1)), [0.0], "levels must be increasing probabilities"),
        ([0.2, 0.5], np.zeros((3, 1)), [0.0], "quantiles must have shape"),
        ([0.2, 0.5], np.zeros((2, 1)), [np.nan], "y must be finite, got nan"),
        ([0.2, 0.5], np.full((2, 1), np.inf), [0.0], "quantiles must be finite, got inf"),
    ],
)
def test_bad_arguments_are_named(
    levels: list[float], quantiles: np.ndarray, y: list[float], words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        crps(levels, quantiles, y)
