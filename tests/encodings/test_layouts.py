"""Disjoint, joint and block against models refitted from scratch."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.random import Generator
from pfnts.encodings import History, Threshold, start
from pfnts.encodings.schedule import Schedule

from pfnts.backbones import LinearBackbone
from pfnts.policies import Shrunk
from pfnts.posterior import SubCLT

BACKBONE = LinearBackbone()
ARMS = 3
LEVELS = np.array([0.1, 0.5, 0.9])


def filled(rng: Generator, n: int) -> History:
    history = History(width=2, n_arms=ARMS)
    X, arms = rng.uniform(size=(n, 2)), rng.integers(ARMS, size=n)
    history.append(X, arms, X[:, 0] * arms + 0.3 * rng.normal(size=n))
    return history


def row(layout: str, x: np.ndarray, arm: int) -> np.ndarray:
    """A row of the sequence, written out once more."""
    if layout == "disjoint":
        return x
    if layout == "joint":
        return np.array([*x, *(float(k == arm) for k in range(ARMS))])
    return np.concatenate([x if k == arm else np.zeros_like(x) for k in range(ARMS)])


def refitted(layout: str, history: History, arm: int, size: int) -> object:
    """A sequence of the first ``size`` rows that the arm's predictions rest on."""
    rows = [i for i in range(history.size) if layout != "disjoint" or history.arms[i] == arm][:size]
    X = np.array([row(layout, history.contexts[i], history.arms[i]) for i in rows])
    return BACKBONE.sequence(X, history.rewards[rows])


def last_point(layout: str, history: History, arm: int) -> int:
    n = int((history.arms == arm).sum()) if layout == "disjoint" else history.size
    return 2 ** int(np.log2(n))


@pytest.mark.parametrize("layout", ["disjoint", "joint", "block"])
def test_posterior_and_quantiles_equal_models_refitted_from_scratch(layout: str, rng: Generator) -> None:
    history, queries = filled(rng, 90), rng.uniform(size=(5, 2))
    encoding = start(layout, backbone=BACKBONE, schedule=Schedule(refresh=2.0), n_arms=ARMS)
    encoding.advance(history)
    posterior = encoding.join(encoding.columns(queries, range(ARMS), SubCLT()), coupled=True)
    quantiles = encoding.quantiles(queries, range(ARMS), LEVELS)
    assert posterior.mean.shape == (5, ARMS)
    assert posterior.coupled is (layout != "disjoint")
    for arm in range(ARMS):
        size = last_point(layout, history, arm)
        means = []
        for t in [2**j for j in range(1, int(np.log2(size)) + 1)]:
            model = refitted(layout, history, arm, t)
            means.append(model.means(np.array([row(layout, x, arm) for x in queries]), [t])[0])
        increments = np.diff(means, axis=0)
        ends = 2.0 ** np.arange(2, len(means) + 1)
        slow = (ends[:, None] * increments**2).mean(axis=0) / size  # w_j = t_j for base 2
        np.testing.assert_allclose(posterior.mean[:, arm], means[-1], rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(posterior.variance[:, arm], slow, rtol=1e-6, atol=1e-12)
        assert (posterior.size[:, arm] == size).all()
        whole = refitted(layout, history, arm, size)
        expected = whole.quantiles(np.array([row(layout, x, arm) for x in queries]), size, LEVELS)
        np.testing.assert_allclose(quantiles[:, :, arm], expected, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("layout", ["disjoint", "joint"])
def test_between_grid_points_the_mean_is_that_of_the_last_refresh_point(layout: str, rng: Generator) -> None:
    history, queries = filled(rng, 90), rng.uniform(size=(5, 2))
    schedule = Schedule(refresh=1.25)
    encoding = start(layout, backbone=BACKBONE, schedule=schedule, n_arms=ARMS)
    encoding.advance(history)
    for arm, column in enumerate(encoding.columns(queries, range(ARMS), SubCLT())):
        n = int((history.arms == arm).sum()) if layout == "disjoint" else history.size
        size = schedule.points(n)[-1]
        asked = np.array([row(layout, x, arm) for x in queries])
        slow = SubCLT().posterior(refitted(layout, history, arm, size), asked)
        np.testing.assert_allclose(column.mean, slow.mean, rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(column.variance, slow.variance, rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("layout", ["disjoint", "joint", "block", "threshold", "adaptive"])
def test_rows_at_once_equal_rows_one_by_one(layout: str, rng: Generator) -> None:
    history = filled(rng, 300)
    at_once = start(layout, backbone=BACKBONE, schedule=Schedule(refresh=2.0), n_arms=ARMS)
    at_once.advance(history)
    growing, one_by_one = (
        History(width=2, n_arms=ARMS),
        start(layout, backbone=BACKBONE, schedule=Schedule(refresh=2.0), n_arms=ARMS),
    )
    for i in range(history.size):
        part = slice(i, i + 1)
        growing.append(history.contexts[part], history.arms[part], history.rewards[part])
        one_by_one.advance(growing)
    assert at_once.stamps(range(ARMS)) == one_by_one.stamps(range(ARMS))
    queries = rng.uniform(size=(4, 2))
    for fast, slow in zip(
        at_once.columns(queries, range(ARMS), SubCLT()),
        one_by_one.columns(queries, range(ARMS), SubCLT()),
        strict=True,
    ):
        np.testing.assert_array_equal(fast.mean, slow.mean)
        np.testing.assert_array_equal(fast.variance, slow.variance)


@pytest.mark.parametrize("layout", ["disjoint", "joint", "block"])
def test_posterior_stays_until_its_stamp_moves(layout: str, rng: Generator) -> None:
    history, queries = filled(rng, 20), rng.uniform(size=(3, 2))
    encoding = start(layout, backbone=BACKBONE, schedule=Schedule(refresh=2.0), n_arms=ARMS)
    encoding.advance(history)
    moved = 0
    for _ in range(120):
        stamps, columns = encoding.stamps(range(ARMS)), encoding.columns(queries, range(ARMS), SubCLT())
        history.append(rng.uniform(size=(1, 2)), rng.integers(ARMS, size=1), rng.normal(size=1))
        encoding.advance(history)
        fresh = encoding.columns(queries, range(ARMS), SubCLT())
        for k, stamp in enumerate(encoding.stamps(range(ARMS))):
            if stamp == stamps[k]:
                np.testing.assert_array_equal(columns[k].mean, fresh[k].mean)
                np.testing.assert_array_equal(columns[k].variance, fresh[k].variance)
            else:
                moved += 1
    assert moved > 3


def test_arm_without_three_rewards_stands_there_with_all_rewards(rng: Generator) -> None:
    history = History(width=1, n_arms=2)
    rewards = rng.normal(size=11)
    history.append(rng.uniform(size=(11, 1)), np.array([0] * 9 + [1] * 2), rewards)
    for variance in (SubCLT(), Shrunk(tails="student")):
        encoding = start("disjoint", backbone=BACKBONE, schedule=Schedule(refresh=2.0), n_arms=2)
        encoding.advance(history)
        assert encoding.stamps([0, 1]) == (("disjoint", 8), ("pooled", 8))
        posterior = encoding.join(encoding.columns(np.array([[0.5]]), [0, 1], variance), coupled=False)
        assert posterior.mean[0, 1] == pytest.approx(rewards[:8].mean())
        assert posterior.variance[0, 1] == pytest.approx(rewards[:8].var())
    quantiles = encoding.quantiles(np.array([[0.5]]), [1], LEVELS)
    np.testing.assert_allclose(quantiles[:, 0, 0], np.quantile(rewards[:8], LEVELS))


def test_no_rewards_no_posterior() -> None:
    for layout in ("disjoint", "joint"):
        encoding = start(layout, backbone=BACKBONE, schedule=Schedule(refresh=2.0), n_arms=2)
        encoding.advance(History(width=1, n_arms=2))
        with pytest.raises(ValueError, match="needs at least 3 rewards, got 0"):
            encoding.columns(np.array([[0.5]]), [0, 1], SubCLT())


def test_added_arm_widens_the_shared_sequence(rng: Generator) -> None:
    history = filled(rng, 50)
    grown = start("joint", backbone=BACKBONE, schedule=Schedule(refresh=2.0), n_arms=ARMS)
    grown.advance(history)
    history.n_arms = ARMS + 1
    grown.rebuild(history)
    fresh = start("joint", backbone=BACKBONE, schedule=Schedule(refresh=2.0), n_arms=ARMS + 1)
    fresh.advance(history)
    queries = rng.uniform(size=(3, 2))
    for one, two in zip(
        grown.columns(queries, range(ARMS + 1), SubCLT()),
        fresh.columns(queries, range(ARMS + 1), SubCLT()),
        strict=True,
    ):
        np.testing.assert_array_equal(one.mean, two.mean)


def test_added_arm_leaves_other_arms_own_sequences_alone(rng: Generator) -> None:
    history = filled(rng, 50)
    encoding = start("disjoint", backbone=BACKBONE, schedule=Schedule(refresh=2.0), n_arms=ARMS)
    encoding.advance(history)
    before = encoding.stamps(range(ARMS))
    history.n_arms = ARMS + 1
    encoding.rebuild(history)
    assert encoding.stamps(range(ARMS)) == before
    assert encoding.stamps([ARMS]) == (("pooled", 32),)


def test_threshold_changes_over_once_the_limit_is_passed(rng: Generator) -> None:
    history = filled(rng, 300)
    encoding, growing = (
        start("threshold", backbone=BACKBONE, schedule=Schedule(refresh=2.0), n_arms=ARMS),
        filled(rng, 0),
    )
    for i in range(130):
        part = slice(i, i + 1)
        growing.append(history.contexts[part], history.arms[part], history.rewards[part])
        encoding.advance(growing)
        assert encoding.layout == ("disjoint" if i + 1 <= 128 else "joint")
    early = start(Threshold(limit=10), backbone=BACKBONE, schedule=Schedule(refresh=2.0), n_arms=ARMS)
    early.advance(filled(rng, 11))
    assert early.layout == "joint"


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (
            lambda: start("shared", backbone=BACKBONE, schedule=Schedule(refresh=2.0), n_arms=2),
            "encoding must be one of .* got 'shared'",
        ),
        (lambda: Threshold(limit=-1), "limit must not be negative"),
    ],
)
def test_impossible_encodings_are_refused(make: object, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        make()  # type: ignore[operator]
