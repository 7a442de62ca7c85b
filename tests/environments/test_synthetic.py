"""The synthetic scenarios against hand-computed values and the figures they must give."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.random import Generator

from pfnts.environments import describe, make
from pfnts.environments.synthetic import friedman1, friedman2, friedman3
from pfnts.simulation.loop import pseudo_regret

POINT = (0.3, 0.6, 0.2, 0.9, 0.4)


def test_friedman1_by_hand() -> None:
    expected = 10 * math.sin(math.pi * 0.18) + 20 * 0.09 + 9 + 2
    assert friedman1(np.array([POINT]))[0] == pytest.approx(expected)


def test_friedman2_and_3_by_hand() -> None:
    resistance, frequency, inductance, capacity = 30.0, math.pi * 352, 0.2, 10.0
    reactance = frequency * inductance - 1 / (frequency * capacity)
    point = np.array([POINT])
    assert friedman2(point)[0] == pytest.approx(math.sqrt(resistance**2 + reactance**2) / 125)
    assert friedman3(point)[0] == pytest.approx(10 * math.atan(reactance / resistance))


def test_friedman3_is_finite_without_resistance() -> None:
    point = np.array([(0.0, *POINT[1:])])
    assert friedman3(point)[0] == pytest.approx(10 * math.pi / 2)


@pytest.mark.parametrize(
    "name", ["friedman", "friedman2", "friedman3", "friedman-sparse", "friedman-heteroscedastic"]
)
def test_arm_2_adds_the_interaction(name: str, rng: Generator) -> None:
    environment = make(name, horizon=200, rng=rng)
    x = environment.contexts
    gap = environment.means[:, 1] - environment.means[:, 0]
    np.testing.assert_allclose(gap, 5 * np.sin(np.pi * x[:, 0] * x[:, 1]), atol=1e-9)


def test_disjoint_arms_read_opposite_ends_of_the_context(rng: Generator) -> None:
    environment = make("friedman-sparse-disjoint", horizon=100, rng=rng)
    x = environment.contexts
    np.testing.assert_allclose(environment.means[:, 0], friedman1(x[:, :5]))
    np.testing.assert_allclose(environment.means[:, 1], friedman1(x[:, [19, 18, 17, 16, 15]]))


def test_linear_means_are_linear_without_intercept(rng: Generator) -> None:
    environment = make("linear", horizon=200, rng=rng)
    coefficients, _, _, _ = np.linalg.lstsq(environment.contexts, environment.means, rcond=None)
    np.testing.assert_allclose(environment.contexts @ coefficients, environment.means, atol=1e-9)
    assert coefficients.shape == (10, 3)


@pytest.mark.parametrize(
    ("name", "variance"), [("linear", 1.0), ("friedman", 1.0), ("friedman-sparse", 1.0), ("synbart", 0.01)]
)
def test_noise_variance(name: str, variance: float, rng: Generator) -> None:
    environment = make(name, horizon=10_000, rng=rng)
    measured = (environment.rewards - environment.means).var(axis=0)
    np.testing.assert_allclose(measured, variance, rtol=0.08)


def test_heteroscedastic_noise_is_drawn_anew_for_each_replication_and_arm(rng: Generator) -> None:
    scenario = describe("friedman-heteroscedastic")
    environments = [scenario.environment(horizon=1000, rng=child) for child in rng.spawn(60)]
    variances = np.array([(each.rewards - each.means).var(axis=0) for each in environments])
    assert variances.min() > 0.08
    assert variances.max() < 12.5
    # Uniform on a logarithmic scale from 0.1 to 10: mean of log10 is 0, its variance 1/3.
    assert abs(np.log10(variances).mean()) < 5 * math.sqrt(1 / 3 / 120)
    assert abs(np.corrcoef(np.log10(variances).T)[0, 1]) < 0.6


def test_always_arm_1_on_friedman_costs_26_233(rng: Generator) -> None:
    means = make("friedman", horizon=10_000, rng=rng).means
    regret = pseudo_regret(means, np.zeros(10_000, dtype=np.int64)).sum()
    assert regret == pytest.approx(26_233, abs=600)


def test_uniform_arms_on_friedman_cost_13_117(rng: Generator) -> None:
    means = make("friedman", horizon=10_000, rng=rng).means
    regret = pseudo_regret(means, rng.integers(2, size=10_000)).sum()
    assert regret == pytest.approx(13_117, abs=600)
