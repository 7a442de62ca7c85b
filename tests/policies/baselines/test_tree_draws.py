"""Draws of sums of trees against a walk down each tree."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.random import Generator

from pfnts.policies.baselines.tree_draws import TreeDraws

CHAINS, DRAWS, TREES, P = 2, 30, 4, 6


def random_forest(rng: Generator, *, half: int, dtype: type) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Trees that mostly stay as they were in the draw before, with rubbish wherever nobody looks."""
    shape = (CHAINS, DRAWS, TREES, half)
    variables = rng.integers(P, size=shape).astype(dtype)
    splits = np.where(rng.random(shape) < 0.6, rng.integers(1, 200, size=shape), 0).astype(dtype)
    splits[..., 0] = 0
    for node in range(2, half):
        splits[..., node][splits[..., node // 2] == 0] = 0
    for s in range(1, DRAWS):
        stays = rng.random((CHAINS, TREES)) < 0.7
        splits[:, s][stays] = splits[:, s - 1][stays]
        variables[:, s][stays] = variables[:, s - 1][stays]
    variables = np.where(splits > 0, variables, rng.integers(P, size=shape)).astype(dtype)
    return variables, splits, rng.normal(size=(*shape[:-1], 2 * half)).astype(np.float32)


def walk(x: np.ndarray, variables: np.ndarray, splits: np.ndarray, leaves: np.ndarray) -> float:
    node = 1
    while node < len(splits) and splits[node] > 0:
        node = 2 * node + int(x[variables[node]] >= splits[node])
    return float(leaves[node])


@pytest.mark.parametrize(("half", "dtype"), [(2, np.uint8), (8, np.uint8), (32, np.uint8), (32, np.uint16)])
def test_values_are_those_of_a_walk_down_each_tree(rng: Generator, half: int, dtype: type) -> None:
    forest = random_forest(rng, half=half, dtype=dtype)
    X = rng.integers(201, size=(5, P)).astype(dtype)
    flat = [part.reshape(CHAINS * DRAWS, TREES, -1) for part in forest]
    expected = [
        [sum(walk(x, *(part[r, m] for part in flat)) for m in range(TREES)) for r in range(CHAINS * DRAWS)]
        for x in X
    ]
    draws = TreeDraws(*forest)
    np.testing.assert_allclose(draws.values(X), expected, rtol=1e-5, atol=1e-5)
    # Answers leave nothing behind for the next.
    np.testing.assert_array_equal(draws.values(X[::-1])[::-1], draws.values(X))


def test_trees_without_a_split_are_their_root(rng: Generator) -> None:
    variables, splits, leaves = random_forest(rng, half=4, dtype=np.uint8)
    draws = TreeDraws(variables, np.zeros_like(splits), leaves)
    expected = leaves[..., 1].sum(axis=-1).reshape(1, -1)
    np.testing.assert_allclose(draws.values(np.zeros((1, P), dtype=np.uint8)), expected, rtol=1e-6)
