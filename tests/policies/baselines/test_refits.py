"""When models are fitted, to which rows, and with which seed."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.random import Generator

from pfnts.arrays import Counts, Matrix, Vector
from pfnts.events import ActionSet, History
from pfnts.layouts.schedule import next_refresh
from pfnts.policies import Model, Policy, Shape, Traffic
from pfnts.policies.baselines.refits import REFITTED, Refits, check_refitted, check_warmup
from pfnts.policies.rules import Thompson
from pfnts.posterior import GaussianPosterior


class MeansModel(Model):
    """The model of an arm is a list of its rewards; fits are noted, and fail on demand."""

    def __init__(self, noted: Means, refits: Refits[list[float]]) -> None:
        self._noted, self._refits, self._fits = noted, refits, refits.begin()

    def fresh(self, shape: Shape) -> MeansModel:
        return MeansModel(self._noted, self._refits)

    def observe(self, history: History, start: int, end: int) -> None:
        self._fits.observe(history, start, end)

    def predict(self, X: Matrix, arms: ActionSet, eligible: Any) -> GaussianPosterior:
        rewards = self._fits.rewards()
        models = [self._fits.current(arm) for arm in arms]
        means = [np.mean(rewards if model is None else model or [0.0]) for model in models]
        return GaussianPosterior(
            mean=np.tile(means, (len(X), 1)), variance=np.ones((len(X), len(arms))), size=1
        )

    def make_room(self, n_arms: int) -> bool:
        return not self._refits.shared


class Means(Policy):
    """Notes the fits of its model, which fails on demand."""

    def __init__(self, arms: int = 2, *, shared: bool = False, warmup: int = 2, **memory: Any):
        remembered = check_refitted(replace(REFITTED, **memory), policy="Means")
        traffic = check_warmup(Traffic(warmup=warmup))
        self.fits: list[tuple[int, int, int]] = []
        self.fails = False

        def fit(arm: int, X: Matrix, arms: Counts, rewards: Vector, seed: int) -> list[float]:
            self.fits.append((arm, len(X), seed))
            return [] if shared else rewards[arms == arm].tolist()

        def extend(model: list[float], arm: int, X: Matrix, arms: Counts, rewards: Vector) -> None:
            for own, reward in zip(arms.tolist(), rewards.tolist(), strict=True):
                if shared or own == arm:
                    model.append(reward)
                if self.fails:
                    raise RuntimeError("half-way")

        refits = Refits(fit, extend, shared=shared, memory=remembered, warmup=warmup)
        super().__init__(arms, model=MeansModel(self, refits), rule=Thompson(), traffic=traffic)

    @property
    def fitted_rows(self) -> list[int]:
        """Sizes of the fits of arm 0."""
        return [size for arm, size, _ in self.fits if arm == 0]


def rows(rng: Generator, n: int, arms: int = 2) -> tuple[np.ndarray, list[int], list[float]]:
    return rng.random((n, 1)), (np.arange(n) % arms).tolist(), rng.normal(size=n).tolist()


def test_refits_at_the_refresh_points_and_where_warm_up_ends(rng: Generator) -> None:
    policy = Means()
    X, arms, rewards = rows(rng, 300)
    points, wanted = [next_refresh(0, REFITTED.refresh)], set()
    while points[-1] < 300:
        points.append(next_refresh(points[-1], REFITTED.refresh))
    for t in range(300):
        policy.update(X[t], arm=arms[t], reward=rewards[t])
        if t >= 3:
            policy.posterior(X[t])
            point = max(p for p in [3, *points] if p <= t + 1)
            wanted.add(point - (point % 2 == 0))  # every other row, the first among them, is of arm 0
    assert policy.fitted_rows == sorted(wanted)


def test_an_arm_without_new_rows_is_not_fitted_anew(rng: Generator) -> None:
    policy = Means()
    policy.update([[0.5]] * 4, arm=[0, 0, 1, 1], reward=[1.0, 2.0, 3.0, 4.0])
    for _ in range(300):
        policy.update([0.5], arm=1, reward=5.0)
        policy.posterior([0.5])
    assert policy.fitted_rows == [2]
    assert len(policy.fits) > 20
    policy.update([0.5], arm=0, reward=6.0)
    for _ in range(60):
        policy.update([0.5], arm=1, reward=5.0)
    np.testing.assert_allclose(policy.posterior([0.5]).mean[0], 3.0)
    assert policy.fitted_rows == [2, 305]


def test_the_default_refits_as_often_as_the_papers_rule() -> None:
    point, refits = 10, 0
    while (point := next_refresh(point, REFITTED.refresh)) <= 10_000:
        refits += 1
    assert abs(refits - (math.ceil(8 * math.log(10_000)) - math.ceil(8 * math.log(10)))) <= 1


def test_a_batch_costs_one_fit_of_each_arm(rng: Generator) -> None:
    policy = Means()
    X, arms, rewards = rows(rng, 5000)
    policy.update(X, arm=arms, reward=rewards)
    policy.decide(X[0], rng=rng)
    assert [arm for arm, _, _ in policy.fits] == [0, 1]


@pytest.mark.parametrize("shared", [False, True])
def test_any_cut_of_the_rows_gives_the_same_model_and_the_same_seeds(rng: Generator, shared: bool) -> None:
    X, arms, rewards = rows(rng, 120, 3)
    whole = Means(3, shared=shared)
    whole.update(X, arm=arms, reward=rewards)
    cut = Means(3, shared=shared)
    for start in range(0, 120, 7):
        few = slice(start, start + 7)
        cut.update(X[few], arm=arms[few], reward=rewards[few])
        if start:
            cut.posterior(X[0])
    np.testing.assert_array_equal(cut.posterior(X[0]).mean, whole.posterior(X[0]).mean)
    assert set(whole.fits) <= set(cut.fits)
    assert len({seed for _, _, seed in cut.fits}) == len(cut.fits)


def test_learning_that_fails_half_way_leaves_no_trace(rng: Generator) -> None:
    X, arms, rewards = rows(rng, 60)
    policy, twin = Means(refresh=2.0), Means(refresh=2.0)
    for one in (policy, twin):
        one.update(X, arm=arms, reward=rewards)
    policy.posterior(X[0])
    for one in (policy, twin):
        one.update(X[:3], arm=[0, 0, 0], reward=[1.0, 2.0, 3.0])
    policy.fails = True
    with pytest.raises(RuntimeError, match="half-way"):
        policy.decide(X[0], rng=rng)
    policy.fails = False
    np.testing.assert_array_equal(policy.posterior(X[0]).mean, twin.posterior(X[0]).mean)


def test_an_arm_that_leaves_warm_up_late_is_fitted_then_and_alone(rng: Generator) -> None:
    policy = Means(refresh=2.0, warmup=3)
    policy.update(rng.random((99, 1)), arm=[0] * 99, reward=[1.0] * 99)
    for _ in range(3):
        policy.update([0.5], arm=1, reward=5.0)
        policy.posterior([0.5])
    # 64 is the last refresh point up to 102; the second arm is warm from the 102nd row on.
    assert [(arm, size) for arm, size, _ in policy.fits] == [(0, 64), (1, 102)]
    np.testing.assert_allclose(policy.posterior([0.5]).mean, [1.0, 5.0])


def test_an_arm_in_warm_up_is_like_a_reward_of_any_arm(rng: Generator) -> None:
    policy = Means(3)
    policy.update(rng.random((8, 1)), arm=[0, 1] * 4, reward=[1.0, 4.0] * 4)
    np.testing.assert_allclose(policy.posterior([0.5]).mean, [1.0, 4.0, 2.5])


def test_a_new_arm_leaves_the_models_of_others_alone(rng: Generator) -> None:
    policy = Means()
    X, arms, rewards = rows(rng, 50)
    policy.update(X, arm=arms, reward=rewards)
    before = policy.posterior(X[0]).mean
    policy.add_arm("new")
    np.testing.assert_array_equal(policy.posterior(X[0]).mean[:2], before)
    assert len(policy.fits) == 2


def test_posterior_before_any_arm_is_warm_is_refused() -> None:
    policy = Means()
    policy.update([0.5], arm=0, reward=1.0)
    with pytest.raises(ValueError, match=r"posterior needs an arm with 2 rewards \(warmup\)"):
        policy.posterior([0.5])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"window": 100}, "window must be None, Means is fitted to all rows, got 100; write Memory"),
        ({"detector": 2000.0}, "detector must be None, Means is fitted to all rows, got 2000"),
        ({"warmup": 0}, "warmup must be at least 1, a model needs a reward of each arm, got 0"),
        ({"refresh": 1.0}, r"refresh must be a finite number above 1, got 1\.0"),
    ],
)
def test_settings_are_checked(options: dict[str, float], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Means(**options)
