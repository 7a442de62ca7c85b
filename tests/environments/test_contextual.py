"""The scenarios of our own against their definitions."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.random import Generator
from scipy.special import logit

from pfnts.environments import make
from pfnts.environments.contextual import draw_tree, draw_waves, on_disk, wheel
from pfnts.environments.synthetic import friedman1


def test_each_quarter_outside_has_its_own_arm() -> None:
    """The arms of Riquelme et al. (2018), section "The wheel bandit"."""
    corners = 0.7 * np.array([[1, 1], [1, -1], [-1, 1], [-1, -1]])
    np.testing.assert_array_equal(wheel(corners, delta=0.9).argmax(axis=1), [1, 2, 3, 4])
    assert wheel(corners, delta=0.9).max() == 50
    np.testing.assert_array_equal(wheel(0.5 * corners, delta=0.9), np.tile([1.2, 1, 1, 1, 1], (4, 1)))


@pytest.mark.parametrize("delta", [0.5, 0.9, 0.99])
def test_prizes_have_their_share_of_the_disk(delta: float, rng: Generator) -> None:
    environment = make(f"wheel-{delta}", horizon=20_000, rng=rng)
    radius = np.hypot(*environment.contexts.T)
    assert radius.max() <= 1
    share = 1 - delta**2
    prizes = (environment.means == 50).any(axis=1)
    np.testing.assert_array_equal(prizes, radius > delta)
    assert prizes.mean() == pytest.approx(share, abs=5 * math.sqrt(share / 20_000))
    assert (environment.rewards - environment.means).std() == pytest.approx(0.01, rel=0.02)


def test_points_are_uniform_on_the_disk(rng: Generator) -> None:
    points = on_disk(rng.random((20_000, 2)))
    # In the unit disk the mean is 0 and the variance of a coordinate 1/4.
    assert np.abs(points.mean(axis=0)).max() < 5 * 0.5 / math.sqrt(20_000)
    np.testing.assert_allclose(np.cov(points.T), np.eye(2) / 4, atol=0.012)


def test_second_arm_of_friedman_disjoint_reads_backwards(rng: Generator) -> None:
    environment = make("friedman-disjoint", horizon=100, rng=rng)
    x = environment.contexts
    np.testing.assert_allclose(environment.means[:, 0], friedman1(x))
    np.testing.assert_allclose(environment.means[:, 1], friedman1(x[:, [4, 3, 2, 1, 0]]))


@pytest.mark.parametrize("name", ["steps", "sines"])
def test_all_arms_are_worth_the_same_on_average(name: str, rng: Generator) -> None:
    means = make(name, horizon=20_000, rng=rng).means
    standard_error = means.std(axis=0) / math.sqrt(len(means))
    assert (np.abs(means.mean(axis=0)) < 5 * standard_error).all()


def test_every_arm_of_steps_and_sines_is_best_somewhere(rng: Generator) -> None:
    for name, arms in (("steps", 5), ("sines", 10)):
        best = make(name, horizon=20_000, rng=rng).means.argmax(axis=1)
        assert (np.bincount(best, minlength=arms) > 0).all()


def test_a_tree_has_its_leaves_and_no_more(rng: Generator) -> None:
    for depth in (1, 3):
        function = draw_tree(rng, n_features=6, depth=depth, scale=2.0)
        values = function(rng.random((20_000, 6)))
        assert len(np.unique(values)) == 2**depth


def test_one_tree_by_hand() -> None:
    """A tree of depth 1 splits one feature once, and its two leaves balance."""
    function = draw_tree(np.random.default_rng(3), n_features=1, depth=1, scale=1.0)
    grid = (np.arange(100_000) + 0.5)[:, None] / 100_000
    values = function(grid)
    cut = grid[np.flatnonzero(np.diff(values))[0], 0]
    assert 0.25 < cut < 0.75
    assert cut * values[0] + (1 - cut) * values[-1] == pytest.approx(0, abs=1e-4)


def test_waves_have_mean_0_and_no_kinks(rng: Generator) -> None:
    function = draw_waves(rng, n_features=2, waves=3)
    side = (np.arange(400) + 0.5) / 400
    grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    values = function(grid)
    assert values.mean() == pytest.approx(0, abs=1e-4)
    # The slope of a wave is at most its amplitude times its frequency.
    assert np.abs(np.diff(values.reshape(400, 400))).max() < 3 * 8 / 400


def test_logistic_log_odds_are_linear_and_successes_rare(rng: Generator) -> None:
    environment = make("logistic", horizon=5000, rng=rng)
    assert set(np.unique(environment.rewards)) == {0.0, 1.0}
    design = np.column_stack([np.ones(5000), environment.contexts - 0.5])
    coefficients, _, _, _ = np.linalg.lstsq(design, logit(environment.means), rcond=None)
    np.testing.assert_allclose(design @ coefficients, logit(environment.means), atol=1e-8)
    np.testing.assert_allclose(coefficients[0], -3.5)
    assert 0.02 < environment.rewards.mean() < 0.15
