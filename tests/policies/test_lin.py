"""LinTS and LinUCB against the textbook, and what their settings do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.random import Generator

from pfnts.environments import make as make_environment
from pfnts.policies import make
from pfnts.policies.ridge import RidgeRegressions
from pfnts.simulation import simulate


class Textbook:
    """Ridge regression per arm that inverts its matrix whenever it is asked."""

    def __init__(self, n_arms: int, width: int, penalty: float) -> None:
        self.A = [penalty * np.eye(width) for _ in range(n_arms)]
        self.b = [np.zeros(width) for _ in range(n_arms)]

    def predict(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        inverses = [np.linalg.inv(A) for A in self.A]
        mean = np.array([x @ inverse @ b for inverse, b in zip(inverses, self.b, strict=True)])
        return mean, np.array([x @ inverse @ x for inverse in inverses])

    def update(self, x: np.ndarray, arm: int, reward: float) -> None:
        self.A[arm] += np.outer(x, x)
        self.b[arm] += reward * x


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("penalty", [1.0, 0.01])
def test_lin_ts_equals_the_textbook_in_every_round(intercept: bool, penalty: float, rng: Generator) -> None:
    policy = make("lin-ts", arms=3, nu=0.3, penalty=penalty, intercept=intercept, warmup=0)
    textbook = Textbook(3, 4 + intercept, penalty)
    own = np.random.default_rng(1)
    for _ in range(600):
        context = rng.uniform(-1, 1, size=4)
        decision = policy.decide(context, rng=own)
        x = np.concatenate([np.ones(int(intercept)), context])
        mean, spread = textbook.predict(x)
        np.testing.assert_allclose(decision.posterior.mean, mean, atol=1e-8)
        np.testing.assert_allclose(decision.posterior.variance, 0.09 * spread, atol=1e-8)
        reward = context[0] * (decision.arm - 1) + rng.normal()
        policy.update(context, arm=decision.arm, reward=reward)
        textbook.update(x, decision.arm, reward)


@pytest.mark.parametrize("intercept", [True, False])
def test_lin_ucb_takes_the_largest_textbook_bound(intercept: bool, rng: Generator) -> None:
    policy = make("lin-ucb", arms=3, alpha=0.7, intercept=intercept, warmup=0)
    textbook = Textbook(3, 4 + intercept, 1.0)
    for t in range(600):
        context = rng.uniform(-1, 1, size=4)
        decision = policy.decide(context, rng=rng)
        x = np.concatenate([np.ones(int(intercept)), context])
        mean, spread = textbook.predict(x)
        bounds = mean + 0.7 * np.sqrt(spread)
        assert bounds[decision.arm] == pytest.approx(bounds.max(), abs=1e-8)
        if t > 30:  # the first bounds are ties
            assert decision.propensities.max() == 1
        reward = context[0] * (decision.arm - 1) + rng.normal()
        policy.update(context, arm=decision.arm, reward=reward)
        textbook.update(x, decision.arm, reward)


def test_ties_are_split_evenly() -> None:
    policy, rng = make("lin-ucb", arms=4, warmup=0), np.random.default_rng(0)
    decisions = policy.decide_batch(np.ones((4000, 2)), rng=rng, eligible=[True, True, False, True])
    np.testing.assert_allclose(decisions[0].propensities, [1 / 3, 1 / 3, 0, 1 / 3])
    counts = np.bincount([d.index for d in decisions], minlength=4)
    assert counts[2] == 0
    assert abs(counts[[0, 1, 3]] - 4000 / 3).max() < 5 * np.sqrt(4000 * 2 / 9)


def test_rank_one_updates_stay_exact_over_ten_thousand(rng: Generator) -> None:
    models, X = RidgeRegressions(n_arms=1, width=11, penalty=1.0), rng.uniform(size=(10_000, 11))
    y = X @ rng.normal(size=11) + rng.normal(size=len(X))
    for x, reward in zip(X, y, strict=True):
        models.observe(x, arm=0, reward=reward)
    inverse = np.linalg.inv(np.eye(11) + X.T @ X)
    mean, spread = models.predict(X[:50])
    np.testing.assert_allclose(mean[:, 0], X[:50] @ inverse @ X.T @ y, atol=1e-8)
    np.testing.assert_allclose(spread[:, 0], ((X[:50] @ inverse) * X[:50]).sum(1), atol=1e-10)


def test_missing_values_count_as_zero() -> None:
    one, two = (make("lin-ts", arms=2, warmup=0) for _ in range(2))
    one.update([np.nan, 1.0], arm=0, reward=2.0)
    two.update([0.0, 1.0], arm=0, reward=2.0)
    np.testing.assert_array_equal(one.posterior([1.0, np.nan]).mean, two.posterior([1.0, 0.0]).mean)


def test_without_warm_up_and_intercept_lin_ts_locks_onto_an_arm_of_friedman() -> None:
    # Both arms pay about 14: the first reward makes its arm look best by far, and a small nu keeps it so.
    environment = make_environment("friedman", horizon=1000, rng=np.random.default_rng(0))
    lost = []
    for seed in range(6):
        policy = make("lin-ts", arms=2, nu=0.1, intercept=False, warmup=0)
        lost.append(simulate(policy, environment, rng=np.random.default_rng(seed)).regret.sum())
    honest = simulate(make("lin-ts", arms=2), environment, rng=np.random.default_rng(0)).regret.sum()
    assert honest < 300
    assert max(lost) > 2000


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"nu": -1.0}, "nu must be a number from 0 on, got -1.0"),
        ({"penalty": 0.0}, "penalty must be a positive number, got 0.0"),
        ({"warmup": -1}, "warmup must be a non-negative integer, got -1"),
    ],
)
def test_settings_are_checked(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        make("lin-ts", arms=2, **options)


def test_damaged_or_foreign_files_are_refused(tmp_path: Any) -> None:
    policy = make("lin-ts", arms=2)
    policy.update([1.0, 2.0], arm=0, reward=1.0)
    policy.save(tmp_path / "saved")
    with pytest.raises(ValueError, match="must be a saved 'lin-ucb' policy"):
        type(make("lin-ucb", arms=2)).load(tmp_path / "saved")
    (tmp_path / "cut").write_bytes((tmp_path / "saved").read_bytes()[:200])
    with pytest.raises(ValueError, match="path must be a saved policy"):
        type(policy).load(tmp_path / "cut")


def test_a_policy_saved_before_its_first_context_loads(tmp_path: Any) -> None:
    make("lin-ucb", arms=["a", "b"], alpha=0.5).save(tmp_path / "saved")
    loaded = type(make("lin-ucb", arms=2)).load(tmp_path / "saved")
    assert loaded.arms == ("a", "b")
    assert loaded.decide([1.0], rng=np.random.default_rng(0)).propensities.tolist() == [0.5, 0.5]
