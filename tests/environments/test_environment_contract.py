"""Every environment, visited by the same checks."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.random import Generator

from pfnts.environments import Environment, describe, make, names

pytestmark = pytest.mark.usefixtures("data")
every_scenario = pytest.mark.parametrize("name", names())
# An OpenML table may have any shape, and its rewards no noise.
drawn = pytest.mark.parametrize("name", [name for name in names() if not name.startswith("openml-")])


@every_scenario
def test_arrays_have_the_rounds_asked_for(name: str, rng: Generator) -> None:
    environment = make(name, horizon=50, rng=rng)
    assert environment.name == describe(name).name == name
    assert environment.horizon == len(environment.means) == len(environment.rewards) == 50


@drawn
def test_shapes_are_those_it_describes(name: str, rng: Generator) -> None:
    scenario = describe(name)
    environment = make(name, horizon=50, rng=rng)
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


@drawn
def test_rewards_scatter_around_the_means(name: str, rng: Generator) -> None:
    environment = make(name, horizon=4000, rng=rng)
    noise = environment.rewards - environment.means
    standard_error = noise.std(axis=0) / np.sqrt(environment.horizon)
    assert (np.abs(noise.mean(axis=0)) < 5 * standard_error).all()
    assert (noise.std(axis=0) > 0).all()


@every_scenario
def test_needs_context_where_no_arm_is_best_at_every_context(name: str, rng: Generator) -> None:
    """Whoever knows the best single arm beforehand loses nothing, or a share of what any policy can lose."""
    losses = []
    for child in rng.spawn(8):
        means = make(name, horizon=2000, rng=child).means
        lost = (means.max(axis=1, keepdims=True) - means).mean(axis=0)
        losses.append(lost.min() / lost.mean())
    needs_context = describe(name).needs_context
    assert needs_context is not None
    assert np.mean(losses) > 0.02 if needs_context else max(losses) == 0


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


def test_data_is_no_matter_to_scenarios_without_tables(rng: Generator) -> None:
    assert make("linear", horizon=5, rng=rng, data="no such folder").horizon == 5


def test_arrays_that_disagree_are_refused() -> None:
    with pytest.raises(ValueError, match=r"must agree, got \(3, 1\), \(3, 2\) and \(4, 2\)"):
        Environment(name="x", contexts=np.zeros((3, 1)), means=np.zeros((3, 2)), rewards=np.zeros((4, 2)))


def test_names_must_be_as_many_as_arms_and_features() -> None:
    arrays = {"contexts": np.zeros((3, 1)), "means": np.zeros((3, 2)), "rewards": np.zeros((3, 2))}
    with pytest.raises(ValueError, match="arms must name all 2 arms, got 1 names"):
        Environment(name="x", **arrays, arms=("a",))
    with pytest.raises(ValueError, match="features must name all 1 features, got 2 names"):
        Environment(name="x", **arrays, features=("a", "b"))
