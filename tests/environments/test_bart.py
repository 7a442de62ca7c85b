"""Draws from the BART prior."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.random import Generator

from pfnts.environments.bart import BartPrior, draw_bart, draw_split_probabilities


def test_leaf_scale_is_half_over_kappa_root_m() -> None:
    assert BartPrior(n_trees=100, leaf_kappa=2.0).leaf_scale == pytest.approx(0.5 / (2 * 10))


def test_value_at_a_point_has_the_prior_variance(rng: Generator) -> None:
    # One leaf of each of the m trees: variance m (0.25 / sqrt(m))^2 = 0.0625, whatever the trees are.
    point = np.full((1, 4), 0.37)
    prior = BartPrior(n_trees=20)
    values = np.array([draw_bart(n_features=4, rng=child, prior=prior)(point)[0] for child in rng.spawn(400)])
    assert values.var() == pytest.approx(0.0625, rel=5 * np.sqrt(2 / 400))
    assert abs(values.mean()) < 5 * 0.25 / np.sqrt(400)


def test_number_of_leaves_follows_the_split_probabilities(rng: Generator) -> None:
    # A node at depth d has l_d leaves below it on average: l_d = (1 - 0.45^d) + 0.45^d 2 l_{d+1}.
    expected = 1.0
    for depth in reversed(range(40)):
        expected = (1 - 0.45**depth) + 0.45**depth * 2 * expected
    x = rng.random((4000, 1))
    one_tree = BartPrior(n_trees=1)
    leaves = [len(np.unique(draw_bart(n_features=1, rng=c, prior=one_tree)(x))) for c in rng.spawn(400)]
    # Cells too thin to hold one of the 4000 points are missed; there are few.
    assert np.mean(leaves) == pytest.approx(expected, abs=0.35)
    assert np.mean(np.array(leaves) >= 2) > 0.97


def test_root_splits_uniformly(rng: Generator) -> None:
    stump = BartPrior(n_trees=1, split_base=0.0)
    grid = (np.arange(1000)[:, None] + 0.5) / 1000
    functions = [draw_bart(n_features=1, rng=child, prior=stump)(grid) for child in rng.spawn(400)]
    thresholds = [np.mean(values == values[0]) for values in functions]
    assert np.mean(thresholds) == pytest.approx(0.5, abs=5 * np.sqrt(1 / 12 / 400))
    assert np.var(thresholds) == pytest.approx(1 / 12, rel=0.35)


def test_split_probabilities_are_a_distribution_however_sparse(rng: Generator) -> None:
    for sparsity in [(1.0, 1.0), (1e-3, 1.0), (1.0, 1e-3)]:
        for _ in range(200):
            probabilities = draw_split_probabilities(4, sparsity, rng)
            assert probabilities.shape == (4,)
            assert (probabilities >= 0).all()
            assert probabilities.sum() == pytest.approx(1)


def test_small_concentration_is_sparser(rng: Generator) -> None:
    def largest(sparsity: tuple[float, float]) -> float:
        return float(np.mean([draw_split_probabilities(4, sparsity, rng).max() for _ in range(300)]))

    assert largest((1.0, 50.0)) > largest((1.0, 1.0)) + 0.1 > largest((50.0, 1.0)) + 0.2


def test_function_is_constant_where_no_feature_is_split_on(rng: Generator) -> None:
    prior = BartPrior(n_trees=30, sparsity=(1e-3, 1e3))
    x = rng.random((200, 3))
    changed = 0
    for feature in range(3):
        f = draw_bart(n_features=3, rng=np.random.default_rng(7), prior=prior)
        shuffled = x.copy()
        shuffled[:, feature] = rng.permutation(x[:, feature])
        changed += not np.array_equal(f(x), f(shuffled))
    # So concentrated a Dirichlet puts all of its weight on one feature.
    assert changed == 1
