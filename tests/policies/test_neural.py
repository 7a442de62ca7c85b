"""NeuralTS against automatic differentiation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from numpy.random import Generator

from pfnts.policies import make, network
from pfnts.policies.network import Precision, Weights, squared_gradients

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
    return double(network.start(n_arms=K, n_features=P, hidden=H, rng=rng))


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
        precision.add(squared_gradients(w, v, x), arm)
        slow = [u + g**2 for u, g in zip(slow, gradient(x, arm)[1], strict=True)]
    x = rng.normal(size=P)
    found = squared_gradients(w, v, x)
    for arm in range(K):
        f, slopes = gradient(x, arm)
        assert found.value[arm] == pytest.approx(f)
        expected = sum((g**2 / u).sum() for g, u in zip(slopes, slow, strict=True))
        assert precision.spread(found)[arm] == pytest.approx(expected)


def test_posterior_has_the_stated_variance() -> None:
    # lambda nu sum g^2 / U, with U = lambda before the first reward: nu sum g^2 whatever lambda is.
    decisions = [
        make("neural-ts", arms=2, nu=0.5, penalty=penalty, warmup=0).decide(
            [0.3, 0.8], rng=np.random.default_rng(0)
        )
        for penalty in (0.01, 1.0)
    ]
    np.testing.assert_allclose(decisions[0].posterior.variance, decisions[1].posterior.variance)
    doubled = make("neural-ts", arms=2, nu=1.0, warmup=0).decide([0.3, 0.8], rng=np.random.default_rng(0))
    np.testing.assert_allclose(doubled.posterior.variance, 2 * decisions[0].posterior.variance)


def test_trainings_are_one_per_reward_up_to_two_thousand(monkeypatch: pytest.MonkeyPatch) -> None:
    policy, rng = make("neural-ts", arms=2, hidden=2, steps=1, warmup=1), np.random.default_rng(0)
    sizes: list[int] = []
    monkeypatch.setattr(policy, "_train", lambda steps: sizes.append(policy._history.size))
    for t in range(3000):
        policy.update([0.5], arm=t % 2, reward=0.0)
        if t:
            policy.decide([0.5], rng=rng)
    assert sizes[:1998] == list(range(2, 2000))
    assert sizes[1998:] == list(range(2001, 3001, 2))


def test_a_batch_of_rewards_is_caught_up_with(monkeypatch: pytest.MonkeyPatch) -> None:
    policy, rng = make("neural-ts", arms=2, hidden=2, steps=3, warmup=1), np.random.default_rng(0)
    steps: list[int] = []
    monkeypatch.setattr(policy, "_train", steps.append)
    for n in (4, 500):
        policy.update(np.zeros((n, 1)), arm=[0, 1] * (n // 2), reward=np.zeros(n))
        policy.decide([0.5], rng=rng)
    assert steps == [12, 30]


def test_large_features_shorten_the_steps_instead_of_overflowing(rng: Generator) -> None:
    policy = make("neural-ts", arms=2, hidden=10, steps=10)
    X = rng.uniform(0, 1000, size=(40, 3))
    policy.update(X, arm=[0, 1] * 20, reward=rng.normal(size=40))
    decision = policy.decide(X[0], rng=rng)
    assert np.isfinite(decision.posterior.mean).all()
    assert np.abs(decision.posterior.mean).max() < 1e3


def test_learns_a_function_that_no_line_fits() -> None:
    rng = np.random.default_rng(0)
    policy = make("neural-ts", arms=2, hidden=30)
    X = rng.uniform(-1, 1, size=(300, 1))
    reward = np.where(np.arange(300) % 2, np.abs(X[:, 0]), 0.5)
    policy.update(X, arm=[0, 1] * 150, reward=reward)
    for _ in range(3):
        policy.decide([0.0], rng=rng)
        policy.update([[0.0], [0.9]], arm=[0, 1], reward=[0.5, 0.9])
    policy.decide([0.0], rng=rng)
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


def test_posterior_before_the_first_decision_is_refused() -> None:
    with pytest.raises(ValueError, match="posterior needs a network"):
        make("neural-ts", arms=2).posterior([0.0])
