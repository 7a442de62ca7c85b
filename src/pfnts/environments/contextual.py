"""Scenarios of our own in which no arm is best everywhere: a policy that ignores contexts cannot do well."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy
from numpy.random import Generator
from numpy.typing import NDArray

from pfnts.environments.synthetic import (
    Matrix,
    MeanRewards,
    SyntheticScenario,
    Vector,
    constant_noise,
    disjoint,
)

# The wheel of Riquelme, Tucker and Snoek (2018): the safe arm, the others, the prize outside.
_SAFE, _OTHER, _PRIZE = 1.2, 1.0, 50.0
# Log odds of a success at the centre of the cube.
_RARE = -3.5


def wheel(x: Matrix, *, delta: float) -> Matrix:
    """Mean rewards (T, 5) on the unit disk: beyond radius ``delta`` each quarter has an arm with a prize.

    Examples
    --------
    >>> wheel(np.array([[0.1, 0.1], [-0.7, 0.7]]), delta=0.5)
    array([[ 1.2,  1. ,  1. ,  1. ,  1. ],
           [ 1.2,  1. ,  1. , 50. ,  1. ]])
    """
    quarter = 2 * (x[:, 0] < 0) + (x[:, 1] < 0)
    outside = np.hypot(x[:, 0], x[:, 1]) > delta
    means = np.full((len(x), 5), _OTHER)
    means[:, 0] = _SAFE
    means[outside, 1 + quarter[outside]] = _PRIZE
    return means


def on_disk(uniform: Matrix) -> Matrix:
    """Move points (T, 2) uniform on the unit square to points uniform on the unit disk."""
    radius, angle = np.sqrt(uniform[:, 0]), 2 * np.pi * uniform[:, 1]
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])


def draw_tree(rng: Generator, *, n_features: int, depth: int, scale: float) -> Callable[[Matrix], Vector]:
    """Draw a step function of contexts (T, P) to (T,): a full tree whose mean over the unit cube is 0.

    Examples
    --------
    >>> f = draw_tree(np.random.default_rng(0), n_features=4, depth=2, scale=1.0)
    >>> len(np.unique(f(np.random.default_rng(1).random((500, 4)))))
    4
    """
    # Node i has the children 2i + 1 and 2i + 2. No feature is split on twice on the way to a leaf, so that
    # a leaf's share of the cube is the product of the shares of its sides.
    inner = 2**depth - 1
    paths: list[list[int]] = [[]]
    shares = [1.0]
    features = np.empty(inner, dtype=np.intp)
    cuts = rng.uniform(0.25, 0.75, size=inner)
    for node in range(inner):
        features[node] = rng.choice(np.setdiff1d(np.arange(n_features), paths[node]))
        paths += [[*paths[node], int(features[node])]] * 2
        shares += [shares[node] * cuts[node], shares[node] * (1 - cuts[node])]
    leaves = scale * rng.standard_normal(2**depth)
    leaves -= np.average(leaves, weights=shares[inner:])

    def function(x: Matrix) -> Vector:
        node: NDArray[np.intp] = np.zeros(len(x), dtype=np.intp)
        for _ in range(depth):
            node = 2 * node + 1 + (x[np.arange(len(x)), features[node]] > cuts[node])
        return np.asarray(leaves[node - inner], dtype=np.float64)

    return function


def draw_waves(rng: Generator, *, n_features: int, waves: int) -> Callable[[Matrix], Vector]:
    """Draw a sum of plane waves of contexts (T, P) to (T,), of mean 0 over the unit cube.

    Examples
    --------
    >>> f = draw_waves(np.random.default_rng(0), n_features=8, waves=2)
    >>> f(np.full((3, 8), 0.5)).shape
    (3,)
    """
    directions = rng.standard_normal((waves, n_features))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    # With this many radians over a side, the cube holds about a period and a half of each wave.
    directions *= rng.uniform(4.0, 8.0, size=(waves, 1))
    phases = rng.uniform(0, 2 * np.pi, size=waves)
    # The mean of exp(i a x) for x uniform on (0, 1) is exp(i a / 2) sinc(a / 2); numpy's sinc includes pi.
    centre = np.sin(phases + directions.sum(axis=1) / 2) @ np.sinc(directions / (2 * np.pi)).prod(axis=1)
    return lambda x: np.sin(x @ directions.T + phases).sum(axis=1) - centre


def _wheel(delta: float) -> SyntheticScenario:
    return SyntheticScenario(
        name=f"wheel-{delta}",
        description=f"a safe arm within radius {delta} of a disk; a prize in each quarter outside",
        n_features=2,
        n_arms=5,
        draw_means=lambda _: lambda x: wheel(x, delta=delta),
        draw_noise=constant_noise(0.01**2, 5),
        place=on_disk,
    )


def _steps(rng: Generator) -> MeanRewards:
    arms = [draw_tree(child, n_features=10, depth=3, scale=2.0) for child in rng.spawn(5)]
    return lambda x: np.column_stack([arm(x) for arm in arms])


def _sines(rng: Generator) -> MeanRewards:
    arms = [draw_waves(child, n_features=8, waves=2) for child in rng.spawn(10)]
    return lambda x: np.column_stack([arm(x) for arm in arms])


def _logistic(rng: Generator) -> MeanRewards:
    coefficients = rng.standard_normal((20, 3))
    return lambda x: np.asarray(scipy.special.expit(_RARE + (x - 0.5) @ coefficients), dtype=np.float64)


SCENARIOS: tuple[SyntheticScenario, ...] = (
    *(_wheel(delta) for delta in (0.5, 0.9, 0.99)),
    SyntheticScenario(
        name="friedman-disjoint",
        description="Friedman's first function of five features; arm 2 reads them in reversed order",
        n_features=5,
        n_arms=2,
        draw_means=disjoint,
        draw_noise=constant_noise(1.0, 2),
    ),
    SyntheticScenario(
        name="steps",
        description="five trees of eight leaves over ten features, none better than another on average",
        n_features=10,
        n_arms=5,
        draw_means=_steps,
        draw_noise=constant_noise(1.0, 5),
    ),
    SyntheticScenario(
        name="sines",
        description="ten sums of two waves over eight features, none better than another on average",
        n_features=8,
        n_arms=10,
        draw_means=_sines,
        draw_noise=constant_noise(0.25, 10),
    ),
    SyntheticScenario(
        name="logistic",
        description="rewards 0 or 1, rarely 1: three logistic regressions on twenty features",
        n_features=20,
        n_arms=3,
        draw_means=_logistic,
        draw_noise=None,
    ),
)
"""Every scenario of our own."""
