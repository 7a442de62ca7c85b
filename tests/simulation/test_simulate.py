"""The round loop against policies whose every move is known."""

from __future__ import annotations

import itertools
import time
from dataclasses import dataclass, field

import numpy as np
import pytest
from numpy.random import Generator
from numpy.typing import NDArray

from pfnts import policies
from pfnts.environments import Environment, make
from pfnts.simulation import Trajectory, simulate

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Pull:
    arm: object
    index: int
    propensities: Vector | None


@dataclass
class RoundRobin:
    """Pulls the arms in turn and writes down everything it is told."""

    labels: tuple[str, ...]
    says_propensities: bool = True
    told: list[tuple[Vector, object, float]] = field(default_factory=list)

    def decide(self, context: Vector, *, rng: Generator) -> Pull:
        index = len(self.told) % len(self.labels)
        propensities = np.eye(len(self.labels))[index] if self.says_propensities else None
        return Pull(self.labels[index], index, propensities)

    def update(self, context: Vector, *, arm: object, reward: float) -> None:
        self.told.append((context, arm, reward))


class Prefetching(policies.Uniform):
    def __init__(self) -> None:
        super().__init__(("a", "b"))
        self.shown: list[tuple[int, Vector]] = []

    def prefetch(self, contexts: Vector) -> None:
        self.shown.append((len(self.events) // 2, contexts.copy()))


@pytest.fixture
def environment() -> Environment:
    means = np.array([[1.0, 3.0], [2.0, 0.0], [0.0, 0.5], [4.0, 4.0], [1.0, 9.0]])
    return Environment(
        name="hand-made", contexts=np.arange(10.0).reshape(5, 2), means=means, rewards=means + 0.25
    )


def test_trajectory_by_hand(environment: Environment, rng: Generator) -> None:
    policy = RoundRobin(("a", "b"))
    trajectory = simulate(policy, environment, rng=rng)
    np.testing.assert_array_equal(trajectory.arms, [0, 1, 0, 1, 0])
    np.testing.assert_array_equal(trajectory.rewards, [1.25, 0.25, 0.25, 4.25, 1.25])
    np.testing.assert_array_equal(trajectory.regret, [2.0, 2.0, 0.5, 0.0, 8.0])
    np.testing.assert_array_equal(trajectory.cumulative_regret, [2.0, 4.0, 4.5, 4.5, 12.5])
    np.testing.assert_array_equal(trajectory.propensities, np.eye(2)[[0, 1, 0, 1, 0]])
    np.testing.assert_array_equal(trajectory.fixed, [10.5, 2.0])
    assert trajectory.total_regret == 12.5
    assert trajectory.horizon == 5
    assert trajectory.seconds > 0


def test_policy_is_told_context_label_and_reward(environment: Environment, rng: Generator) -> None:
    policy = RoundRobin(("a", "b"))
    simulate(policy, environment, rng=rng)
    contexts, labels, rewards = zip(*policy.told, strict=True)
    np.testing.assert_array_equal(contexts, environment.contexts)
    assert labels == ("a", "b", "a", "b", "a")
    assert rewards == (1.25, 0.25, 0.25, 4.25, 1.25)


def test_unknown_propensities_are_nan(environment: Environment, rng: Generator) -> None:
    trajectory = simulate(RoundRobin(("a", "b"), says_propensities=False), environment, rng=rng)
    assert np.isnan(trajectory.propensities).all()


def test_horizon_stops_early(environment: Environment, rng: Generator) -> None:
    policy = RoundRobin(("a", "b"))
    trajectory = simulate(policy, environment, rng=rng, horizon=3)
    assert trajectory.horizon == 3
    np.testing.assert_array_equal(trajectory.fixed, [2.5, 2.0])
    assert len(policy.told) == 3


@pytest.mark.parametrize("horizon", [0, -1, 6])
def test_horizon_outside_the_environment_is_refused(
    horizon: int, environment: Environment, rng: Generator
) -> None:
    with pytest.raises(ValueError, match=f"between 1 and the environment's 5 rounds, got {horizon}"):
        simulate(RoundRobin(("a", "b")), environment, rng=rng, horizon=horizon)


def test_prefetch_shows_each_context_once_and_in_time(environment: Environment, rng: Generator) -> None:
    policy = Prefetching()
    simulate(policy, environment, rng=rng, prefetch=2)
    assert [at for at, _ in policy.shown] == [0, 2, 4]
    np.testing.assert_array_equal(np.concatenate([chunk for _, chunk in policy.shown]), environment.contexts)


def test_prefetch_ends_with_the_horizon(environment: Environment, rng: Generator) -> None:
    policy = Prefetching()
    simulate(policy, environment, rng=rng, prefetch=2, horizon=3)
    np.testing.assert_array_equal(policy.shown[-1][1], environment.contexts[2:3])


def test_prefetch_zero_shows_nothing(environment: Environment, rng: Generator) -> None:
    policy = Prefetching()
    simulate(policy, environment, rng=rng, prefetch=0)
    assert policy.shown == []


def test_negative_prefetch_is_refused(environment: Environment, rng: Generator) -> None:
    with pytest.raises(ValueError, match=r"prefetch must be 0 .* got -1"):
        simulate(Prefetching(), environment, rng=rng, prefetch=-1)


def test_number_of_arms_must_agree(environment: Environment, rng: Generator) -> None:
    with pytest.raises(ValueError, match=r"policy must have the environment's 2 arms, got 3"):
        simulate(policies.make("uniform", arms=3), environment, rng=rng)


def test_progress_ends_with_all_rounds_and_the_whole_regret(environment: Environment, rng: Generator) -> None:
    reports: list[tuple[int, float]] = []
    simulate(RoundRobin(("a", "b")), environment, rng=rng, progress=lambda *report: reports.append(report))
    assert reports[-1] == (5, 12.5)


def test_progress_reports_regret_so_far_under_way(
    environment: Environment, rng: Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = itertools.count()
    monkeypatch.setattr(time, "perf_counter", lambda: float(next(clock) // 4))

    class Slow(RoundRobin):
        def decide(self, context: Vector, *, rng: Generator) -> Pull:
            for _ in range(4):
                next(clock)  # a decision takes a second
            return super().decide(context, rng=rng)

    reports: list[tuple[int, float]] = []
    simulate(Slow(("a", "b")), environment, rng=rng, progress=lambda *report: reports.append(report))
    assert reports == [(1, 2.0), (2, 4.0), (3, 4.5), (4, 4.5), (5, 12.5), (5, 12.5)]


def test_uniform_policy_on_friedman_costs_13_117(rng: Generator) -> None:
    for_environment, for_policy = rng.spawn(2)
    environment = make("friedman", horizon=10_000, rng=for_environment)
    trajectory = simulate(policies.make("uniform", arms=2), environment, rng=for_policy)
    assert trajectory.total_regret == pytest.approx(13_117, abs=600)
    assert (trajectory.propensities == 0.5).all()


def test_trajectory_arrays_must_have_one_length() -> None:
    with pytest.raises(ValueError, match="got lengths 2, 3, 2 and 2"):
        Trajectory(
            arms=np.zeros(2, dtype=np.int64),
            rewards=np.zeros(3),
            regret=np.zeros(2),
            propensities=np.zeros((2, 2)),
            fixed=np.zeros(2),
            seconds=0.0,
        )


def test_fixed_must_have_one_entry_an_arm() -> None:
    with pytest.raises(ValueError, match=r"fixed must have one entry an arm, \(2,\), got \(3,\)"):
        Trajectory(
            arms=np.zeros(2, dtype=np.int64),
            rewards=np.zeros(2),
            regret=np.zeros(2),
            propensities=np.zeros((2, 2)),
            fixed=np.zeros(3),
            seconds=0.0,
        )
