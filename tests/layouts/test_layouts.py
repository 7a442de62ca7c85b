"""Disjoint, joint, block and a user's own layout against models refitted from scratch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.random import Generator

from pfnts import PFNTS
from pfnts.backbones import LinearBackbone
from pfnts.events import ActionSet, History, Observed
from pfnts.layouts import (
    Block,
    Disjoint,
    Fixed,
    Joint,
    Learner,
    Sizes,
    Threshold,
    described,
    from_description,
    selector,
)
from pfnts.layouts.memory import Memory
from pfnts.layouts.posteriors import posteriors, version_of
from pfnts.posterior import Predictive, ShrunkSubCLT, SubCLT
from pfnts.posterior.estimator import join

BACKBONE = LinearBackbone()
ARMS = 3


def filled(rng: Generator, n: int, n_arms: int = ARMS) -> History:
    history = History(list(range(n_arms)))
    for _ in range(n):
        x, arm = rng.uniform(size=2), int(rng.integers(n_arms))
        history.fold(Observed(x.tolist(), arm, float(x[0] * arm + 0.3 * rng.normal())))
    return history


def models(encoding: Any, *, refresh: float = 2.0, warmup: int = 1000, n_arms: int = ARMS) -> Learner:
    """Warm-up is far away, so that refresh points are those of the growth factor."""
    return Learner(
        selector(encoding),
        backbone=BACKBONE,
        memory=Memory(refresh, detector=None),
        sizes=Sizes(n_arms, 2, warmup),
    )


def columns_of(learner: Learner, queries: Any, arms: Any, estimator: Any) -> list[Any]:
    return posteriors(learner, queries, ActionSet.of(arms), backbone=BACKBONE, estimator=estimator)


def row(layout: str, x: np.ndarray, arm: int) -> np.ndarray:
    """A row of the sequence, written out once more."""
    if layout == "disjoint":
        return x
    if layout == "joint":
        return np.array([*x, *(float(k == arm) for k in range(ARMS))])
    return np.concatenate([x if k == arm else np.zeros_like(x) for k in range(ARMS)])


def refitted(layout: str, history: History, arm: int, size: int) -> Any:
    """A sequence of the first ``size`` rows that the arm's predictions rest on."""
    rows = [i for i in range(history.size) if layout != "disjoint" or history.arms[i] == arm][:size]
    X = np.array([row(layout, history.contexts[i], history.arms[i]) for i in rows])
    return BACKBONE.sequence(X, history.rewards[rows])


@pytest.mark.parametrize("layout", ["disjoint", "joint", "block"])
def test_posteriors_equal_models_refitted_from_scratch(layout: str, rng: Generator) -> None:
    history, queries = filled(rng, 90), rng.uniform(size=(5, 2))
    grown = models(layout)
    grown.advance(history, history.size)
    for arm, column in enumerate(columns_of(grown, queries, range(ARMS), SubCLT())):
        n = int((history.arms == arm).sum()) if layout == "disjoint" else 90
        size = 2 ** int(np.log2(n))
        means = []
        for t in [2**j for j in range(1, int(np.log2(size)) + 1)]:
            model = refitted(layout, history, arm, t)
            means.append(model.means(np.array([row(layout, x, arm) for x in queries]), [t])[0])
        ends = 2.0 ** np.arange(2, len(means) + 1)
        slow = (ends[:, None] * np.diff(means, axis=0) ** 2).mean(axis=0) / size  # w_j = t_j for base 2
        np.testing.assert_allclose(column.mean, means[-1], rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(column.variance, slow, rtol=1e-6, atol=1e-12)
        assert (column.size == size).all()
        assert version_of(grown, arm) == (layout, size, 0)


@pytest.mark.parametrize("layout", ["disjoint", "joint", "block", "threshold", "adaptive"])
@pytest.mark.parametrize("warmup", [3, 7])
def test_rows_at_once_equal_rows_one_by_one(layout: str, warmup: int, rng: Generator) -> None:
    history, queries = filled(rng, 300), rng.uniform(size=(4, 2))
    at_once, one_by_one = models(layout, warmup=warmup), models(layout, warmup=warmup)
    at_once.advance(history, history.size)
    growing = History(list(range(ARMS)))
    for x, arm, reward in zip(history.contexts, history.arms, history.rewards, strict=True):
        growing.fold(Observed(x.tolist(), int(arm), float(reward)))
        one_by_one.advance(growing, growing.size)
    assert at_once.totals == pytest.approx(one_by_one.totals, rel=1e-9)
    for arm in range(ARMS):
        assert version_of(at_once, arm) == version_of(one_by_one, arm)
    assert [m.held for m in at_once.answering.by_arm] == [m.held for m in one_by_one.answering.by_arm]
    for fast, slow in zip(
        columns_of(at_once, queries, range(ARMS), SubCLT()),
        columns_of(one_by_one, queries, range(ARMS), SubCLT()),
        strict=True,
    ):
        np.testing.assert_array_equal(fast.mean, slow.mean)
        np.testing.assert_array_equal(fast.variance, slow.variance)


def slow_points(n: int, arms: list[int], refresh: float, early: list[int]) -> int:
    """The last refresh point of a sequence, by the definition: the ladder, and an arm's own marks."""
    last, following, counts = 0, 3, dict.fromkeys(arms, 0)
    for t, arm in enumerate(arms[:n], start=1):
        counts[arm] += 1
        if (t >= following or counts[arm] in early) and t >= 3:
            last = t
            point = 4
            while point <= t:
                exact = max(point + 1, int(np.floor(refresh * point)))
                # Rounded down to the largest power of two, up to 64, that is at most a quarter of the step.
                fits = [u for u in (1, 2, 4, 8, 16, 32, 64) if u == 1 or 4 * u <= exact - point]
                point = exact - exact % fits[-1]
            following = point
    return last


@pytest.mark.parametrize("layout", ["disjoint", "joint"])
@pytest.mark.parametrize("refresh", [1.1, 1.5, 2.0, 4.0])
@pytest.mark.parametrize("warmup", [3, 8])
def test_refresh_points_follow_the_definition(
    layout: str, refresh: float, warmup: int, rng: Generator
) -> None:
    history, grown, growing = (
        filled(rng, 200),
        models(layout, refresh=refresh, warmup=warmup),
        History([0, 1, 2]),
    )
    arms = history.arms.tolist()
    for i, (x, arm, reward) in enumerate(zip(history.contexts, arms, history.rewards, strict=True)):
        if i % 17 == 0:
            # How long answers last is known in advance.
            lasting = grown.unchanged(np.array(arms[i:]))
            before = [version_of(grown, k) for k in range(3)] if i > 20 else []
            until = i + lasting
        growing.fold(Observed(x.tolist(), int(arm), float(reward)))
        grown.advance(growing, growing.size)
        for k in range(3):
            own = [a for a in arms[: i + 1] if a == k] if layout == "disjoint" else arms[: i + 1]
            early = [warmup] if layout == "disjoint" else [warmup, 2 * warmup, 4 * warmup]
            point = slow_points(len(own), own, refresh, early)
            held = grown.answering[k].held[k]
            assert held == own[:point].count(k)
            if point:
                assert version_of(grown, k) == (layout, point, 0)
        if before and i < until:
            assert [version_of(grown, k) for k in range(3)] == before
        elif before and i == until:
            assert [version_of(grown, k) for k in range(3)] != before
            before = []


def test_where_arms_share_a_sequence_the_next_refresh_is_known(rng: Generator) -> None:
    history, grown, growing = filled(rng, 120), models("joint", refresh=1.5), History([0, 1, 2])
    expected = 0
    for x, arm, reward in zip(history.contexts, history.arms.tolist(), history.rewards, strict=True):
        before = grown.answering[0].version
        growing.fold(Observed(x.tolist(), arm, float(reward)))
        grown.advance(growing, growing.size)
        assert (grown.answering[0].version > before) == (expected == 1)
        expected = grown.answering.likely_rounds()


def test_rounds_until_an_arm_is_refreshed_are_guessed_by_its_share() -> None:
    grown, growing = models("disjoint", refresh=2.0), History([0, 1, 2])
    for i in range(900):  # 600 of the first arm, 300 of the second, which both go on to 1,024 and 512
        growing.fold(Observed([0.1, 0.2], int(i % 3 == 2), float(i)))
        grown.advance(growing, growing.size)
    assert [model.due for model in grown.answering.by_arm] == [424, 212, 3]
    assert grown.answering.likely_rounds() == 636  # times 2 / 3, or 1 / 3


@pytest.mark.parametrize("layout", ["disjoint", "joint", "block", "adaptive", "threshold"])
def test_a_posterior_stays_until_its_version_moves(layout: str, rng: Generator) -> None:
    whole, queries = filled(rng, 200), rng.uniform(size=(3, 2))
    growing, grown, moved, before = History([0, 1, 2]), models(layout), 0, None
    for x, arm, reward in zip(whole.contexts, whole.arms, whole.rewards, strict=True):
        growing.fold(Observed(x.tolist(), int(arm), float(reward)))
        grown.advance(growing, growing.size)
        if growing.size < 20:
            continue
        now = [
            (version_of(grown, k), c)
            for k, c in enumerate(columns_of(grown, queries, range(3), ShrunkSubCLT()))
        ]
        for old, new in zip(before or [], now, strict=False):
            if old[0] == new[0]:
                np.testing.assert_array_equal(old[1].mean, new[1].mean)
                np.testing.assert_array_equal(old[1].variance, new[1].variance)
            else:
                moved += 1
        before = now
    assert moved > 3


def test_arm_without_three_rewards_stands_there_with_all_rewards(rng: Generator) -> None:
    rewards = rng.normal(size=11)
    history = History([0, 1])
    for i in range(11):
        history.fold(Observed([float(rng.uniform()), 0.0], int(i >= 9), float(rewards[i])))
    for estimator in (SubCLT(), ShrunkSubCLT(), Predictive()):
        grown = models("disjoint", n_arms=2)
        grown.advance(history, history.size)
        assert version_of(grown, 1) == ("pooled", 8, 0)
        for asked in ([0, 1], [1, 0]):
            columns = columns_of(grown, np.array([[0.5, 0.0]]), asked, estimator)
            joined = join(columns)
            place = asked.index(1)
            assert joined.mean[0, place] == pytest.approx(rewards[:8].mean())
            assert joined.variance[0, place] == pytest.approx(rewards[:8].var(), rel=0.02)
        # Alone, as a prefetch cache asks for it.
        [alone] = columns_of(grown, np.array([[0.5, 0.0]]), [1], estimator)
        [known] = columns_of(grown, np.array([[0.5, 0.0]]), [0], estimator)
        assert join([known, alone]).mean.shape == (1, 2)
        assert join([alone, known]).mean.shape == (1, 2)


def test_no_rewards_no_posterior() -> None:
    for layout in ("disjoint", "joint"):
        grown = models(layout)
        grown.advance(History([0, 1, 2]), 0)
        with pytest.raises(ValueError, match="needs at least 3 rewards, got 0"):
            columns_of(grown, np.array([[0.5, 0.0]]), [0, 1], SubCLT())


def test_threshold_changes_over_once_the_limit_is_passed(rng: Generator) -> None:
    whole, growing, grown = filled(rng, 130), History([0, 1, 2]), models("threshold")
    for i in range(130):
        growing.fold(Observed(whole.contexts[i].tolist(), int(whole.arms[i]), float(whole.rewards[i])))
        grown.advance(growing, growing.size)
        assert grown.answering.layout.name == ("disjoint" if i + 1 <= 128 else "joint")
    joint = models("joint")
    joint.advance(growing, growing.size)
    queries = rng.uniform(size=(4, 2))
    for one, two in zip(*(columns_of(m, queries, range(3), SubCLT()) for m in (grown, joint)), strict=True):
        np.testing.assert_array_equal(one.mean, two.mean)
    early = models(Threshold(limit=0))
    early.advance(filled(rng, 1), 1)
    assert early.answering.layout.name == "joint"


class Tagged:
    """A user's layout: one sequence, the arm as a number in front of the context."""

    name = "tagged"
    shared = True

    def features(self, X: Any, arms: Any, *, n_arms: int) -> Any:
        return np.concatenate([arms[:, None].astype(float), X], axis=1)

    def arm_columns(self, width: int, *, n_arms: int) -> range:
        return range(1)


class Mirrored:
    """A user's layout: a sequence for each arm, in which contexts have the other sign."""

    name = "mirrored"
    shared = False

    def features(self, X: Any, arms: Any, *, n_arms: int) -> Any:
        return -X

    def arm_columns(self, width: int, *, n_arms: int) -> range:
        return range(0)


def test_queries_look_like_the_rows_of_a_users_own_layout(rng: Generator) -> None:
    history = filled(rng, 64)
    queries = rng.uniform(size=(4, history.contexts.shape[1]))
    said = []
    for encoding in ("disjoint", Mirrored()):
        policy = PFNTS(3, encoding=encoding, backbone="linear", estimator="subclt")
        policy.update(history.contexts, arm=history.arms, reward=history.rewards)
        said.append(policy.posterior(queries))
    # A linear model does not mind the sign of its columns.
    np.testing.assert_allclose(said[0].mean, said[1].mean, rtol=1e-8)


def test_a_users_own_layout_answers(rng: Generator, tmp_path: Any) -> None:
    asked: list[Any] = []

    class Noting(LinearBackbone):
        def sequence(self, X: Any, y: Any, *, keep: Any = ()) -> Any:
            asked.append((np.asarray(X).shape[1], tuple(keep)))
            return super().sequence(X, y, keep=keep)

    policy = PFNTS(["a", "b", "c"], encoding=Tagged(), backbone=Noting(), estimator="subclt")
    history = filled(rng, 64)
    policy.update(history.contexts, arm=["abc"[k] for k in history.arms], reward=history.rewards)
    assert policy.layout == "tagged"
    posterior = policy.posterior(history.contexts[:4])
    assert set(asked) == {(3, (0,))}
    X = np.column_stack([history.arms, history.contexts])[: int(posterior.size[0, 0])]
    sequence = BACKBONE.sequence(X, history.rewards[: len(X)])
    for k in range(3):
        queries = np.column_stack([np.full(4, k), history.contexts[:4]])
        np.testing.assert_allclose(posterior.mean[:, k], sequence.means(queries, [len(X)])[0], rtol=1e-8)
    policy.save(tmp_path / "policy")
    with pytest.raises(ValueError, match="encoding must be passed to load"):
        PFNTS.load(tmp_path / "policy", backbone=Noting())
    loaded = PFNTS.load(tmp_path / "policy", backbone=Noting(), encoding=Tagged())
    np.testing.assert_array_equal(loaded.posterior(history.contexts[:4]).mean, posterior.mean)


def test_columns_that_name_the_arm_are_kept_apart(rng: Generator) -> None:
    assert list(Joint().arm_columns(5, n_arms=3)) == [5, 6, 7]
    assert list(Disjoint().arm_columns(5, n_arms=3)) == list(Block().arm_columns(5, n_arms=3)) == []
    X, arms = rng.uniform(size=(4, 5)), np.array([0, 2, 1, 2])
    features = Joint().features(X, arms, n_arms=3)
    np.testing.assert_array_equal(features[:, list(Joint().arm_columns(5, n_arms=3))], np.eye(3)[arms])


@pytest.mark.parametrize("name", ["disjoint", "joint", "block", "threshold", "adaptive"])
def test_descriptions_are_json_and_come_back(name: str) -> None:
    import json

    chosen = selector(name)
    assert from_description(json.loads(json.dumps(described(chosen)))) == chosen
    assert described(Fixed(Tagged())) is None
    assert from_description({"name": "threshold", "limit": 7}) == Threshold(limit=7)


@pytest.mark.parametrize("encoding", ["shared", 3, None, object()])
def test_impossible_encodings_are_refused(encoding: Any) -> None:
    with pytest.raises(ValueError, match="encoding must be one of"):
        selector(encoding)
    with pytest.raises(ValueError, match="limit must not be negative"):
        Threshold(limit=-1)
