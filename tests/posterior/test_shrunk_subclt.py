from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.random import Generator
from scipy.stats import t as student

from pfnts.backbones import LinearBackbone, Prediction
from pfnts.posterior import Estimator, ShrunkSubCLT, SubCLT


def answered(estimator: Estimator, sequence: Any, queries: Any, *, reward_variance: float = 1.3) -> Any:
    """Ask what the estimator asks, and give it the answer."""
    asks = estimator.asks(sequence.size)
    answer = sequence.predict(queries, sizes=asks.sizes, levels=asks.levels)
    return estimator.posterior(answer, size=sequence.size, own=sequence.size, reward_variance=reward_variance)


def sequence(rng: Generator, n: int = 16) -> Any:
    X = rng.uniform(size=(n, 2))
    return LinearBackbone().sequence(X, X[:, 0] + rng.normal(size=n))


class Flat:
    """A model whose mean never moves: SubCLT's variance collapses."""

    size = 8

    def predict(self, queries: Any, *, sizes: Any, levels: Any = ()) -> Prediction:
        quantiles = np.tile(student.ppf(levels, 5)[:, None] * 2.0, (1, len(queries)))
        return Prediction(np.ones((len(sizes), len(queries))), quantiles)


@pytest.mark.parametrize("n", [3, 16, 21])
def test_without_prior_and_floor_it_is_subclt(n: int, rng: Generator) -> None:
    history, queries = sequence(rng, n), rng.uniform(size=(6, 2))
    shrunk = answered(ShrunkSubCLT(prior_dof=0.0, floor=0.0), history, queries, reward_variance=0.0)
    plain = answered(SubCLT(), history, queries)
    np.testing.assert_allclose(shrunk.mean, plain.mean)
    np.testing.assert_allclose(shrunk.variance, plain.variance, rtol=1e-12)


def test_variance_is_the_average_by_degrees_of_freedom(rng: Generator) -> None:
    history, queries = sequence(rng), rng.uniform(size=(6, 2))
    plain = answered(SubCLT(), history, queries)
    # The same predictive variance from many more levels: 3 blocks, 2 prior degrees of freedom.
    v0 = history.quantiles(queries, 16, (np.arange(4000) + 0.5) / 4000).var(axis=0)
    expected = (3 * plain.variance + 2 * v0 / 16) / 5
    shrunk = answered(ShrunkSubCLT(prior_dof=2.0, floor=0.0), history, queries, reward_variance=0.0)
    np.testing.assert_allclose(shrunk.variance, expected, rtol=0.03)


def test_floor_holds_where_everything_else_collapses() -> None:
    queries = np.zeros((3, 1))
    assert answered(SubCLT(), Flat(), queries).variance.max() == 0
    floored = answered(ShrunkSubCLT(prior_dof=0.0, floor=0.1), Flat(), queries, reward_variance=4.0)
    np.testing.assert_allclose(floored.variance, (3 / 8) ** 2 * 4.0)  # of the arm's mean; V's is lower
    floored = answered(ShrunkSubCLT(prior_dof=0.0, floor=2.0), Flat(), queries, reward_variance=4.0)
    np.testing.assert_allclose(floored.variance, 2.0 * 4.0 / 8)
    assert answered(ShrunkSubCLT(prior_dof=1.0, floor=0.0), Flat(), queries).variance.min() > 0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"prior_dof": -1.0}, "prior_dof must be finite and not negative, got -1.0"),
        ({"floor": np.nan}, "floor must be finite and not negative, got nan"),
        ({"base": 0.5}, "base must be .* got 0.5"),
    ],
)
def test_impossible_settings_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        ShrunkSubCLT(**options)
