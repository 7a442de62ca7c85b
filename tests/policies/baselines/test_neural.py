"""NeuralTS against automatic differentiation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.random import Generator

from pfnts.policies import make
from pfnts.policies.baselines import network
from pfnts.policies.baselines.network import Precision, Weights, squared_gradients

K, P, H = 3, 4, 7


def value(block: torch.Tensor, bias: torch.Tensor, output: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """Output of the plain network for rows x of one arm."""
    return torch.relu(x @ block.T + bias) @ output[:-1] + output[-1]


def leaves(weights: Weights) -> list[torch.Tensor]:
    """The weights proper: blocks, one bias, the output layer."""
    parts = (weights.input[:, :, :-1], weights.input[0, :, -1], weights.output)
    return [part.detach().clone().requires_grad_() for part in parts]


def double(weights: Weights) -> Weights:
    return Weights(weights.input.double(), weights.output.double())


@pytest.fixture
def weights(rng: Generator) -> Weights:
    return double(network.start(n_arms=K, n_features=P, hidden=H, fan_in=K * P, rng=rng))


def test_training_is_gradient_descent_on_the_objective(weights: Weights, rng: Generator) -> None:
    counts, penalty = (20, 0, 11), 0.7
    tables = [
        (torch.cat([torch.as_tensor(rng.random((n, P))), torch.ones(n, 1, dtype=torch.double)], 1), y)
        for n in counts
        for y in [torch.as_tensor(rng.normal(5, 3, size=n))]
    ]
    blocks, bias, output = leaves(weights)
    starts = [part.detach().clone() for part in (blocks, bias, output)]
    for _ in range(6):
        errors = [value(blocks[k], bias, output, rows[:, :-1]) - y for k, (rows, y) in enumerate(tables)]
        objective = sum((error**2).sum() for error in errors)
        for part, begun in zip((blocks, bias, output), starts, strict=True):
            objective = objective + penalty * ((part - begun) ** 2).sum()
        objective = objective / sum(counts)
        slopes = torch.autograd.grad(objective, [blocks, bias, output])
        with torch.no_grad():
            for part, slope in zip((blocks, bias, output), slopes, strict=True):
                part -= 0.02 * slope
    trained, reached = network.train(weights, weights, tables, steps=6, learning_rate=0.02, penalty=penalty)
    np.testing.assert_allclose(trained.input[:, :, :-1].numpy(), blocks.detach().numpy(), atol=1e-12)
    for k in range(K):
        np.testing.assert_allclose(trained.input[k, :, -1].numpy(), bias.detach().numpy(), atol=1e-12)
    np.testing.assert_allclose(trained.output.numpy(), output.detach().numpy(), atol=1e-12)
    assert reached == pytest.approx(float(objective.detach()))


def test_variance_is_the_sum_of_squared_gradients_over_u(weights: Weights, rng: Generator) -> None:
    precision = Precision.prior(n_arms=K, n_features=P, hidden=H, penalty=0.3)
    slow = [np.full(part.shape, 0.3) for part in leaves(weights)]
    w, v = weights.input.numpy(), weights.output.numpy()

    def gradient(x: np.ndarray, arm: int) -> tuple[float, list[np.ndarray]]:
        blocks, bias, output = leaves(weights)
        f = value(blocks[arm], bias, output, torch.as_tensor(x))
        return float(f.detach()), [g.numpy() for g in torch.autograd.grad(f, [blocks, bias, output])]

    for _ in range(5):
        x, arm = rng.normal(size=P), int(rng.integers(K))
        precision.add(squared_gradients(w[arm : arm + 1], v, x), arm)
        slow = [u + g**2 for u, g in zip(slow, gradient(x, arm)[1], strict=True)]
    x = rng.normal(size=P)
    found = squared_gradients(w, v, x)
    for arm in range(K):
        f, slopes = gradient(x, arm)
        assert found.value[arm] == pytest.approx(f)
        expected = sum((g**2 / u).sum() for g, u in zip(slopes, slow, strict=True))
        assert precision.spread(found, range(K))[arm] == pytest.approx(expected)
        alone = squared_gradients(w[arm : arm + 1], v, x)
        assert precision.spread(alone, [arm])[0] == precision.spread(found, range(K))[arm]


def test_posterior_has_the_stated_variance() -> None:
    # nu^2 lambda sum g^2 / U, with U = lambda before the first reward: nu^2 sum g^2 whatever lambda is.
    def variance(**options: float) -> np.ndarray:
        return make("neural-ts", arms=2, warmup=0, **options).posterior([0.3, 0.8]).variance

    np.testing.assert_allclose(variance(nu=0.5, penalty=0.01), variance(nu=0.5, penalty=1.0))
    np.testing.assert_allclose(variance(nu=1.0), 4 * variance(nu=0.5))
    np.testing.assert_allclose(variance(), 0.1 * variance(nu=1.0))


def test_trainings_are_one_per_reward_up_to_two_thousand(monkeypatch: pytest.MonkeyPatch) -> None:
    policy = make("neural-ts", arms=2, hidden=2, steps=1, warmup=1)
    sizes: list[int] = []

    def counted(weights: Any, anchor: Any, tables: Any, **options: Any) -> tuple[Any, float]:
        sizes.append(sum(len(rewards) for _, rewards in tables))
        return weights, 0.0

    monkeypatch.setattr(network, "train", counted)
    policy.update(np.zeros((4000, 1)), arm=[0, 1] * 2000, reward=np.zeros(4000))
    policy.posterior([0.5])
    assert sizes == [*range(1, 2000), *range(2000, 3000, 2), *range(3000, 4000, 3), 4000]


def learned(rng: Generator, arms: list[int], *, n_arms: int) -> tuple[Any, np.ndarray]:
    X = rng.normal(size=(len(arms), 3))
    policy = make("neural-ts", arms=n_arms, hidden=H, steps=5, learning_rate=0.05)
    policy.update(X, arm=arms, reward=X[:, 0] + np.array(arms))
    return policy, X


def test_the_model_is_u_then_training_row_by_row() -> None:
    """Against a loop over the rows with automatic differentiation for g."""
    arms = [0, 1, 1, 0, 1, 0]
    policy, X = learned(np.random.default_rng(3), arms, n_arms=2)
    found = policy.posterior(X[0])
    design = np.concatenate([X, np.ones((6, 1))], axis=1)
    first = network.start(n_arms=2, n_features=4, hidden=H, fan_in=8, rng=np.random.default_rng(0))
    weights, u = first, [np.full(part.shape, 0.1) for part in leaves(first)]

    def gradient(x: np.ndarray, arm: int) -> tuple[float, list[np.ndarray]]:
        blocks, bias, output = leaves(double(weights))
        f = value(blocks[arm], bias, output, torch.as_tensor(x))
        return float(f.detach()), [g.numpy() for g in torch.autograd.grad(f, [blocks, bias, output])]

    tables: list[list[list[float]]] = [[], []]
    rewards: list[list[float]] = [[], []]
    for x, arm in zip(design, arms, strict=True):
        u = [have + g**2 for have, g in zip(u, gradient(x, arm)[1], strict=True)]
        tables[arm].append([*x, 1.0])
        rewards[arm].append(x[0] + arm)
        both = [
            (torch.tensor(rows, dtype=torch.float32).reshape(-1, 5), torch.tensor(y, dtype=torch.float32))
            for rows, y in zip(tables, rewards, strict=True)
        ]
        weights, _ = network.train(weights, first, both, steps=5, learning_rate=0.05, penalty=0.1)
    for arm in range(2):
        f, slopes = gradient(design[0], arm)
        assert found.mean[arm] == pytest.approx(f, rel=1e-6)
        spread = sum((g**2 / have).sum() for g, have in zip(slopes, u, strict=True))
        assert found.variance[arm] == pytest.approx(0.1 * 0.1 * spread, rel=1e-5)


def test_any_cut_of_the_rows_gives_the_same_model(rng: Generator) -> None:
    arms = rng.integers(3, size=40).tolist()
    whole, X = learned(rng, arms, n_arms=3)
    cut = make("neural-ts", arms=3, hidden=H, steps=5, learning_rate=0.05)
    for start in range(0, 40, 7):
        few = slice(start, start + 7)
        cut.update(X[few], arm=arms[few], reward=X[few, 0] + np.array(arms[few]))
        cut.decide(X[0], rng=rng)
    for part in ("mean", "variance"):
        np.testing.assert_array_equal(getattr(cut.posterior(X), part), getattr(whole.posterior(X), part))


def test_a_new_arm_is_what_it_would_be_from_the_start(rng: Generator, tmp_path: Path) -> None:
    policy, X = learned(rng, [0, 1] * 15, n_arms=2)
    before = policy.posterior(X)
    policy.add_arm("new")
    np.testing.assert_array_equal(policy.posterior(X).mean[:, :2], before.mean)
    policy.update(X[:5], arm=["new"] * 5, reward=[2.0] * 5)
    asked = policy.posterior(X)
    policy.save(tmp_path / "policy")
    # The loaded policy makes its network for three arms at once.
    loaded = type(policy).load(tmp_path / "policy").posterior(X)
    np.testing.assert_array_equal(loaded.mean, asked.mean)
    np.testing.assert_array_equal(loaded.variance, asked.variance)
    policy.remove_arm(0)
    np.testing.assert_array_equal(policy.posterior(X).mean, asked.mean[:, 1:])
    np.testing.assert_array_equal(policy.posterior(X).variance, asked.variance[:, 1:])


def test_large_features_shorten_the_steps_instead_of_overflowing(rng: Generator) -> None:
    policy = make("neural-ts", arms=2, hidden=10, steps=10)
    X = rng.uniform(0, 1000, size=(40, 3))
    policy.update(X, arm=[0, 1] * 20, reward=rng.normal(size=40))
    decision = policy.decide(X[0], rng=rng)
    assert np.isfinite(decision.posterior.mean).all()
    assert np.abs(decision.posterior.mean).max() < 1e3


def test_a_first_reward_of_zero_does_not_end_the_learning() -> None:
    # All rewards 0 so far: any network that is not exactly 0 has a larger error than that of predicting 0.
    rng = np.random.default_rng(3)
    X = rng.uniform(-1, 1, size=(120, 2))
    rewards = (X[:, 0] > 0).astype(float)
    X, rewards = np.concatenate([[[-0.5, 0.3]] * 3, X]), np.concatenate([[0.0] * 3, rewards])
    policy = make("neural-ts", arms=1)
    policy.update(X, arm=[0] * len(X), reward=rewards)
    mean = policy.posterior([[-0.8, 0.0], [0.8, 0.0]]).mean[:, 0]
    assert mean[0] < 0.3
    assert mean[1] > 0.7


def test_rewards_beyond_single_precision_leave_the_network_at_its_start(rng: Generator) -> None:
    policy = make("neural-ts", arms=2, hidden=5, steps=2)
    start = policy.posterior([0.5]).mean
    policy.update(np.full((10, 1), 0.5), arm=[0, 1] * 5, reward=[1e100] * 10)
    np.testing.assert_array_equal(policy.posterior([0.5]).mean, start)
    assert policy.decide([0.5], rng=rng).reason == "thompson"


def test_learns_a_function_that_no_line_fits() -> None:
    rng = np.random.default_rng(0)
    policy = make("neural-ts", arms=2, hidden=30, steps=30, learning_rate=0.05)
    X = rng.uniform(-1, 1, size=(200, 1))
    reward = np.where(np.arange(200) % 2, np.abs(X[:, 0]), 0.5)
    policy.update(X, arm=[0, 1] * 100, reward=reward)
    means = policy.posterior([[-0.9], [0.0], [0.9]]).mean
    np.testing.assert_array_equal(means.argmax(axis=1), [1, 0, 1])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"penalty": 0.0}, "penalty must be a positive number, got 0.0"),
        ({"nu": -1.0}, "nu must be a number from 0 on, got -1.0"),
        ({"hidden": 0}, "hidden must be a positive integer, got 0"),
        ({"steps": 1.5}, "steps must be a positive integer, got 1.5"),
    ],
)
def test_settings_are_checked(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        make("neural-ts", arms=2, **options)
