"""Tree ensembles fitted by other libraries, read into arrays with the statistics of their leaves."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pfnts.arrays import Matrix, Vector
from pfnts.policies.arguments import check_count
from pfnts.policies.baselines.leaf_statistics import Indices, LeafStatistics, Trees, grouped


@dataclass(frozen=True)
class Ensemble:
    """Fitted trees and the statistics of their leaves."""

    trees: Trees
    statistics: LeafStatistics

    def leaves(self, X: Matrix) -> Indices:
        """Leaf of each row of ``X`` (q, P) in each tree, (q, M)."""
        return self.trees.leaves(X)

    def observe(self, X: Matrix, rewards: Vector) -> None:
        """Add rewards (n,) one after the other to the leaves that their rows ``X`` (n, P) fall into."""
        for leaves, reward in zip(self.leaves(X), rewards.tolist(), strict=True):
            self.statistics.observe(leaves, reward)


def fit_forest(X: Matrix, y: Vector, *, n_trees: int, min_leaf: int, seed: int) -> Ensemble:
    """Fit scikit-learn's random forest; leaf statistics are over each tree's bootstrap sample.

    So the mean of a draw is the forest's prediction.
    """
    # Single precision is what a forest compares in, and centred targets lose nothing to large offsets.
    offset = float(y.mean())
    fitted = _forest(X.astype(np.float32), y - offset, n_trees=n_trees, min_leaf=min_leaf, seed=seed)
    trees = Trees.joined(
        [
            {
                "feature": tree.feature,
                # in single precision, rounded down: v <= t and v <= floor(t) say the same of a single v
                "threshold": _round_down(tree.threshold),
                "left": tree.children_left,
                "right": tree.children_right,
                "missing_left": tree.missing_go_to_left.astype(np.bool_),
            }
            for tree in fitted
        ]
    )
    count, mean, scatter = (np.zeros(trees.left.shape) for _ in range(3))
    for m, tree in enumerate(fitted):
        nodes = slice(tree.node_count)
        count[m, nodes] = tree.weighted_n_node_samples
        mean[m, nodes] = tree.value[:, 0, 0] + offset
        # The impurity of a leaf with equal targets may be rounded to below zero.
        scatter[m, nodes] = np.maximum(tree.impurity, 0.0) * tree.weighted_n_node_samples
        count[m, nodes][tree.children_left >= 0] = 0
    scatter[count == 0] = 0
    statistics = LeafStatistics(
        count=count, mean=mean, scatter=scatter, offset=0.0, scale=1 / n_trees, penalty=0.0, boosted=False
    )
    return Ensemble(trees, statistics)


@dataclass(frozen=True)
class BoostingSettings:
    """What XGBoost is asked to do.

    Examples
    --------
    >>> BoostingSettings(rounds=20)
    BoostingSettings(rounds=20, learning_rate=0.3, max_depth=6)
    """

    rounds: int = 100
    """Trees of an ensemble."""
    learning_rate: float = 0.3
    """Share of each tree's fit that is added."""
    max_depth: int = 6
    """Depth of a tree."""

    def __post_init__(self) -> None:
        check_count("rounds", self.rounds)
        check_count("max_depth", self.max_depth)
        if not 0 < self.learning_rate <= 1:
            raise ValueError(f"learning_rate must be above 0 and at most 1, got {self.learning_rate}")


def fit_boosted(X: Matrix, y: Vector, *, settings: BoostingSettings, seed: int) -> Ensemble:
    """Fit XGBoost's trees to squared error; leaf statistics are over the residuals at each stage."""
    try:
        import xgboost
    except ImportError as error:
        raise ImportError('xgboost is missing, install the extra: pip install "pfnts[baselines]"') from error
    penalty = 1.0
    offset = float(y.mean())
    reach = float(np.abs(y - offset).max())
    # Labels and their squares must fit into single precision; trees do not depend on the unit.
    unit = 1.0 if reach < 1e15 else 2.0 ** math.frexp(reach)[1]
    parameters = {
        "objective": "reg:squarederror",
        "tree_method": "hist",
        "learning_rate": settings.learning_rate,
        "max_depth": settings.max_depth,
        "reg_lambda": penalty,
        "base_score": 0.0,
        "seed": seed,
        "verbosity": 0,
    }
    table = xgboost.DMatrix(X.astype(np.float32), label=(y - offset) / unit)
    booster = xgboost.train(parameters, table, num_boost_round=settings.rounds)
    described = json.loads(booster.save_raw(raw_format="json").decode())
    trees = Trees.joined(
        [_boosted_tree(tree) for tree in described["learner"]["gradient_booster"]["model"]["trees"]]
    )
    leaves = trees.leaves(X)
    statistics = staged_statistics(
        leaves, y, size=trees.left.shape[1], offset=offset, scale=settings.learning_rate, penalty=penalty
    )
    return Ensemble(trees, statistics)


def staged_statistics(
    leaves: Indices, y: Vector, *, size: int, offset: float, scale: float, penalty: float
) -> LeafStatistics:
    """Leaf statistics of the residuals that each boosted tree was fitted to; ``leaves`` is (n, M).

    Residuals follow from the leaves alone: for squared error a leaf's value is
    scale * (sum of residuals) / (count + penalty).
    """
    parts = []
    residual = y - offset
    for m in range(leaves.shape[1]):
        own = leaves[:, m : m + 1]
        count, mean, scatter = grouped(own, residual[:, None], size)
        parts.append((count, mean, scatter))
        value = scale * count * mean / (count + penalty)
        residual = residual - value[0, own[:, 0]]
    count, mean, scatter = (np.concatenate(part) for part in zip(*parts, strict=True))
    return LeafStatistics(
        count=count, mean=mean, scatter=scatter, offset=offset, scale=scale, penalty=penalty, boosted=True
    )


def _forest(X: NDArray[np.float32], y: Vector, *, n_trees: int, min_leaf: int, seed: int) -> list[Any]:
    """Trees of scikit-learn's random forest with that seed, in a third of its time where rows are few."""
    try:
        import sklearn
        from sklearn.ensemble import RandomForestRegressor
        from sklearn.tree import DecisionTreeRegressor
    except ImportError as error:
        raise ImportError(
            'scikit-learn is missing, install the extra: pip install "pfnts[baselines]"'
        ) from error
    if np.isnan(X).any():
        # A single tree takes missing values only together with the checks that are left out below.
        forest = RandomForestRegressor(n_estimators=n_trees, min_samples_leaf=min_leaf, random_state=seed)
        return [tree.tree_ for tree in forest.fit(X, y).estimators_]
    # A forest makes its trees, their generators and its checks anew for each; here all trees share them.
    random = np.random.RandomState(seed)
    seeds = random.randint(np.iinfo(np.int32).max, size=n_trees)
    tree = DecisionTreeRegressor(min_samples_leaf=min_leaf, random_state=random)
    fitted = []
    with sklearn.config_context(assume_finite=True, skip_parameter_validation=True):
        for own in seeds.tolist():
            random.seed(own)
            drawn = np.bincount(random.randint(0, len(y), len(y)), minlength=len(y))
            random.seed(own)
            fitted.append(tree.fit(X, y, sample_weight=drawn.astype(np.float64), check_input=False).tree_)
    return fitted


def _boosted_tree(tree: dict[str, Any]) -> dict[str, Any]:
    # XGBoost sends a value left if it is below the condition, strictly.
    condition = np.asarray(tree["split_conditions"], dtype=np.float32)
    return {
        "feature": np.asarray(tree["split_indices"]),
        "threshold": np.nextafter(condition, np.float32(-np.inf)),
        "left": np.asarray(tree["left_children"]),
        "right": np.asarray(tree["right_children"]),
        "missing_left": np.asarray(tree["default_left"]).astype(np.bool_),
    }


def _round_down(threshold: Vector) -> Any:
    single = threshold.astype(np.float32)
    return np.where(single > threshold, np.nextafter(single, np.float32(-np.inf)), single)
