"""Functions drawn from a sparse BART prior on the unit cube."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

Matrix = NDArray[np.float64]
Vector = NDArray[np.float64]


@dataclass(frozen=True)
class BartPrior:
    """The sum-of-trees prior; the defaults are the paper's.

    Examples
    --------
    >>> BartPrior().leaf_scale
    0.025
    """

    n_trees: int = 100
    """Number of trees m that are summed."""
    split_base: float = 0.45
    """A node at depth d splits with probability ``split_base ** d``, so the root always does."""
    leaf_kappa: float = 2.0
    """Leaves are N(0, leaf_scale^2) with ``leaf_scale = 0.5 / (leaf_kappa sqrt(n_trees))``."""
    sparsity: tuple[float, float] = (1.0, 1.0)
    """(zeta, xi): split features ~ Dirichlet(theta / P, ...), theta / (theta + P) ~ Beta(zeta, xi)."""

    @property
    def leaf_scale(self) -> float:
        """Standard deviation of one leaf."""
        return float(0.5 / (self.leaf_kappa * np.sqrt(self.n_trees)))


@dataclass(frozen=True)
class _Leaf:
    value: float


@dataclass(frozen=True)
class _Split:
    feature: int
    threshold: float
    below: _Node
    above: _Node


_Node = _Leaf | _Split


def draw_bart(
    *, n_features: int, rng: Generator, prior: BartPrior | None = None
) -> Callable[[Matrix], Vector]:
    """Draw one function of contexts (T, P) to (T,) from the prior.

    Parameters
    ----------
    n_features
        Number of features P, each between 0 and 1.
    rng
        Where the draw comes from.
    prior
        The prior; the paper's when left out.

    Examples
    --------
    >>> f = draw_bart(n_features=4, rng=np.random.default_rng(0))
    >>> f(np.full((3, 4), 0.5)).shape
    (3,)
    """
    prior = prior or BartPrior()
    probabilities = draw_split_probabilities(n_features, prior.sparsity, rng)
    trees = [
        _draw_tree(prior, probabilities, rng, depth=0, lower=np.zeros(n_features), upper=np.ones(n_features))
        for _ in range(prior.n_trees)
    ]

    def function(x: Matrix) -> Vector:
        total = np.zeros(len(x))
        for tree in trees:
            _add(tree, x, np.arange(len(x)), total)
        return total

    return function


def draw_split_probabilities(n_features: int, sparsity: tuple[float, float], rng: Generator) -> Vector:
    """How likely each feature is to be split on, (P,): a Dirichlet whose concentration is drawn first."""
    zeta, xi = sparsity
    # Away from 0 and 1, where theta would underflow or be infinite.
    ratio = np.clip(rng.beta(zeta, xi), 1e-6, 1 - 1e-6)
    theta = n_features * ratio / (1 - ratio)
    return rng.dirichlet(np.full(n_features, theta / n_features))


def _draw_tree(
    prior: BartPrior, probabilities: Vector, rng: Generator, *, depth: int, lower: Vector, upper: Vector
) -> _Node:
    if rng.random() >= prior.split_base**depth:
        return _Leaf(prior.leaf_scale * rng.standard_normal())
    feature = int(rng.choice(len(probabilities), p=probabilities))
    # Uniform inside the node's own cell: the limit of BART's uniform choice among the available cut points.
    threshold = rng.uniform(lower[feature], upper[feature])
    cut = np.where(np.arange(len(lower)) == feature, threshold, upper)
    below = _draw_tree(prior, probabilities, rng, depth=depth + 1, lower=lower, upper=cut)
    cut = np.where(np.arange(len(lower)) == feature, threshold, lower)
    above = _draw_tree(prior, probabilities, rng, depth=depth + 1, lower=cut, upper=upper)
    return _Split(feature, threshold, below, above)


def _add(node: _Node, x: Matrix, rows: NDArray[np.intp], total: Vector) -> None:
    if isinstance(node, _Leaf):
        total[rows] += node.value
        return
    is_below = x[rows, node.feature] <= node.threshold
    _add(node.below, x, rows[is_below], total)
    _add(node.above, x, rows[~is_below], total)
