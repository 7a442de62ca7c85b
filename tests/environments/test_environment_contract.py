"""Every environment, visited by the same checks."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.random import Generator

from pfnts.environments import Environment, describe, make, names

every_scenario = pytest.mark.parametrize("name", names())


@every_scenario
def test_shapes_are_those_it_describes(name: str, rng: Generator) -> None:
    scenario = describe(name)
    environment = make(name, horizon=50, rng=rng)
    assert environment.name == scenario.name == name
    assert environment.contexts.shape == (50, scenario.n_features)
    assert environment.means.shape == environment.rewards.shape == (50, scenario.n_arms)
    assert (environment.horizon, environment.n_arms) == (50, scenario.n_arms)


@every_scenario
def test_everything_is_finite(name: str, rng: Generator) -> None:
    environment = make(name, horizon=500, rng=rng)
    for array in (environment.contexts, environment.means, environment.rewards):
        assert array.dtype == np.float64
        assert np.isfinite(array).all()


@every_scenario
def test_same_seed_gives_the_same_environment(name: str) -> None:
    first, second, other = (make(name, horizon=40, rng=np.random.default_rng(seed)) for seed in (5, 5, 6))
    np.testing.assert_array_equal(first.contexts, second.contexts)
    np.testing.assert_array_equal(first.means, second.means)
    np.testing.assert_array_equal(first.rewards, second.rewards)
    assert not np.array_equal(first.rewards, other.rewards)


@every_scenario
def test_longer_horizon_continues_a_shorter_one(name: str) -> None:
    short, long = (make(name, horizon=horizon, rng=np.random.default_rng(5)) for horizon in (30, 90))
    np.testing.assert_array_equal(short.contexts, long.contexts[:30])
    np.testing.assert_allclose(short.means, long.means[:30], rtol=1e-12)
    np.testing.assert_allclose(short.rewards, long.rewards[:30], rtol=1e-12)


@every_scenario
def test_rewards_scatter_around_the_means(name: str, rng: Generator) -> None:
    environment = make(name, horizon=4000, rng=rng)
    noise = environment.rewards - environment.means
    standard_error = noise.std(axis=0) / np.sqrt(environment.horizon)
    assert (np.abs(noise.mean(axis=0)) < 5 * standard_error).all()
    assert (noise.std(axis=0) > 0).all()


@every_scenario
def test_description_is_one_line(name: str) -> None:
    assert 10 < len(describe(name).description) < 100
    assert "\n" not in describe(name).description


def test_unknown_scenario_is_named_with_the_known_ones(rng: Generator) -> None:
    with pytest.raises(ValueError, match=r"scenario must be one of linear, .*; got 'freidman'"):
        make("freidman", horizon=10, rng=rng)


@pytest.mark.parametrize("horizon", [0, -3, 2.5])
def test_horizon_must_be_a_positive_integer(horizon: int, rng: Generator) -> None:
    with pytest.raises(ValueError, match=f"horizon must be a positive integer, got {horizon}"):
        make("linear", horizon=horizon, rng=rng)


def test_arrays_that_disagree_are_refused() -> None:
    with pytest.raises(ValueError, match=r"must agree, got \(3, 1\), \(3, 2\) and \(4, 2\)"):
        Environment(name="x", contexts=np.zeros((3, 1)), means=np.zeros((3, 2)), rewards=np.zeros((4, 2)))
