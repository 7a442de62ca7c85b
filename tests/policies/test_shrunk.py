from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.random import Generator
from pfnts.encodings import History, start
from pfnts.encodings.schedule import Schedule
from pfnts.encodings.track import Snapshot
from scipy.stats import t as student

from pfnts.backbones import LinearBackbone
from pfnts.policies import Shrunk
from pfnts.posterior import StudentPosterior, SubCLT


def snapshot(rng: Generator, n: int = 16) -> Snapshot:
    X = rng.uniform(size=(n, 2))
    return Snapshot(LinearBackbone().sequence(X, X[:, 0] + rng.normal(size=n)), n, reward_variance=1.3)


class Flat:
    """A model whose mean never moves: SubCLT's variance collapses."""

    size = 8

    def means(self, queries: Any, sizes: Any) -> np.ndarray:
        return np.ones((len(sizes), len(queries)))

    def quantiles(self, queries: Any, size: int, levels: Any) -> np.ndarray:
        return np.tile(student.ppf(levels, 5)[:, None] * 2.0, (1, len(queries)))


@pytest.mark.parametrize("weights", ["equal", "root"])
def test_without_prior_and_floor_it_is_subclt(weights: Any, rng: Generator) -> None:
    history, queries = snapshot(rng), rng.uniform(size=(6, 2))
    shrunk = Shrunk(nu0=0.0, floor=0.0, weights=weights).posterior(history, queries)
    plain = SubCLT(weights=weights).posterior(history, queries)
    np.testing.assert_allclose(shrunk.mean, plain.mean)
    np.testing.assert_allclose(shrunk.variance, plain.variance, rtol=1e-12)


def test_variance_is_the_average_by_degrees_of_freedom(rng: Generator) -> None:
    history, queries = snapshot(rng), rng.uniform(size=(6, 2))
    plain = SubCLT().posterior(history, queries)
    # The same predictive variance from many more levels: 3 blocks, 2 prior degrees of freedom.
    v0 = history.quantiles(queries, 16, (np.arange(4000) + 0.5) / 4000).var(axis=0)
    expected = (3 * plain.variance + 2 * v0 / 16) / 5
    shrunk = Shrunk(nu0=2.0, floor=0.0).posterior(history, queries)
    np.testing.assert_allclose(shrunk.variance, expected, rtol=0.03)
    assert shrunk.directions is not None
    np.testing.assert_allclose((shrunk.directions**2).sum(axis=0), shrunk.variance, rtol=1e-12)


def test_floor_holds_where_everything_else_collapses() -> None:
    flat = Snapshot(Flat(), 8, reward_variance=4.0)  # type: ignore[arg-type]
    queries = np.zeros((3, 1))
    assert SubCLT().posterior(flat, queries).variance.max() == 0
    np.testing.assert_allclose(Shrunk(nu0=0.0, floor=0.1).posterior(flat, queries).variance, 0.1 * 4.0 / 8)
    assert Shrunk(nu0=1.0, floor=0.0).posterior(flat, queries).variance.min() > 0


def test_student_tails_have_the_blocks_and_the_prior_degrees_of_freedom(rng: Generator) -> None:
    history, queries = snapshot(rng), rng.uniform(size=(4, 2))
    posterior = Shrunk(nu0=1.5, tails="student").posterior(history, queries)
    assert isinstance(posterior, StudentPosterior)
    np.testing.assert_allclose(posterior.dof, 3 + 1.5)


def test_prior_share_is_drawn_for_each_arm_alone_where_blocks_are_shared(rng: Generator) -> None:
    history = History(width=2, n_arms=3)
    X, arms = rng.uniform(size=(40, 2)), rng.integers(3, size=40)
    history.append(X, arms, arms + rng.normal(size=40))
    encoding = start("joint", backbone=LinearBackbone(), schedule=Schedule(refresh=2.0), n_arms=3)
    encoding.advance(history)
    variance = Shrunk(nu0=4.0)
    columns = encoding.columns(X[:2], range(3), variance)
    posterior = encoding.join(columns, coupled=True, own=variance.own_directions)
    assert posterior.coupled
    directions = posterior.directions
    np.testing.assert_allclose((directions**2).sum(axis=0), posterior.variance, rtol=1e-12)
    blocks = len(columns[0].directions) - 1
    np.testing.assert_allclose(
        np.einsum("jqk,jql->qkl", directions[blocks:], directions[blocks:]),
        np.stack([np.diag(np.array([c.directions[-1, q] ** 2 for c in columns])) for q in range(2)]),
        atol=1e-15,
    )


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"nu0": -1.0}, "nu0 must be finite and not negative, got -1.0"),
        ({"floor": np.nan}, "floor must be finite and not negative, got nan"),
        ({"tails": "heavy"}, "tails must be .* got 'heavy'"),
        ({"weights": "cubic"}, "weights must be .* got 'cubic'"),
        ({"base": 0.5}, "base must be .* got 0.5"),
    ],
)
def test_impossible_settings_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Shrunk(**options)
