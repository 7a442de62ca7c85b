"""The adaptive encoding: scores that no row has leaked into, and the layouts they choose."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.random import Generator

from pfnts.backbones import LinearBackbone, load
from pfnts.backbones.base import Backbone, piece_around
from pfnts.events import ActionSet, History, Observed
from pfnts.layouts import Adaptive, Learner, Sizes, selector
from pfnts.layouts.memory import Memory
from pfnts.layouts.posteriors import posteriors
from pfnts.posterior import SubCLT
from pfnts.scores import crps

LEVELS = np.arange(1, 100) / 100


def history_of(rng: Generator, n: int, *, shared: bool, width: int = 3) -> History:
    """Arms that differ by a shift only, so that joint is better, or have opposite slopes."""
    history = History([0, 1])
    for _ in range(n):
        x, arm = rng.uniform(-1, 1, size=width), int(rng.integers(2))
        slope = 1.0 if shared else 2.0 * arm - 1
        history.fold(Observed(x.tolist(), arm, float(3 * slope * x[:3].sum() + arm + 0.5 * rng.normal())))
    return history


def grown(
    history: History,
    encoding: Adaptive,
    *,
    refresh: float = 2.0,
    backbone: Any = None,
    end: int | None = None,
) -> Learner:
    width = history.contexts.shape[1] if history.size else 3
    made = Learner(
        encoding,
        backbone=backbone or LinearBackbone(),
        memory=Memory(refresh, detector=None),
        sizes=Sizes(2, width, 5),
    )
    made.advance(history, history.size if end is None else end)
    return made


def behind(rows: int, backbone: Backbone) -> int:
    """The rows that a forecast rests on, of the ``rows`` before it; 0 where these are too few."""
    if rows < 3:
        return 0
    return piece_around(rows)[0] if type(backbone).append is Backbone.append else rows


def slow_totals(history: History, upto: int, backbone: Any) -> list[float]:
    """Every reward scored by a sequence of rows before it, and of nothing else."""
    totals = [0.0, 0.0]
    for i in range(upto):
        arm, x = int(history.arms[i]), history.contexts[i]
        own = [j for j in range(i) if history.arms[j] == arm]
        everyone = list(range(i))
        sizes = behind(len(own), backbone), behind(len(everyone), backbone)
        if not all(sizes):
            continue
        for place, (rows, size) in enumerate(zip((own, everyone), sizes, strict=True)):
            X, query = history.contexts[rows[:size]], x
            if place == 1:
                X = np.hstack([X, np.eye(2)[history.arms[rows[:size]]]])
                query = np.concatenate([x, np.eye(2)[arm]])
            keep = range(len(x), len(x) + 2) if place else ()
            sequence = backbone.sequence(X, history.rewards[rows[:size]], keep=keep)
            quantiles = sequence.quantiles(query[None], size, LEVELS)
            totals[place] += float(crps(LEVELS, quantiles, history.rewards[[i]])[0])
    return totals


def test_totals_equal_a_slow_prequential_score(rng: Generator) -> None:
    history = history_of(rng, 140, shared=True)
    models = grown(history, Adaptive(switch_times=(40, 128)))
    np.testing.assert_allclose(models.totals, slow_totals(history, 128, LinearBackbone()), rtol=1e-9)


def test_totals_of_the_embedded_network_are_prequential_too(rng: Generator) -> None:
    # More columns than it sees at a time: the choice among them must not have seen the reward either.
    backbone = load("embedded")
    history = history_of(rng, 25, shared=False, width=40)
    models = grown(history, Adaptive(switch_times=(12, 24)), backbone=backbone)
    np.testing.assert_allclose(models.totals, slow_totals(history, 24, backbone), rtol=2e-3)


@pytest.mark.parametrize(("shared", "winner"), [(True, "joint"), (False, "disjoint")])
@pytest.mark.parametrize("arm_threshold", [1, 10])
def test_the_better_layout_answers_after_the_first_switch_time(
    shared: bool, winner: str, arm_threshold: int, rng: Generator
) -> None:
    whole, growing = history_of(rng, 140, shared=shared), History([0, 1])
    models = grown(growing, Adaptive(arm_threshold=arm_threshold))
    for i in range(140):
        growing.fold(Observed(whole.contexts[i].tolist(), int(whole.arms[i]), float(whole.rewards[i])))
        models.advance(growing, growing.size)
        first = "disjoint" if arm_threshold == 10 else "joint"
        assert models.answering.layout.name == (first if i + 1 < 128 else winner)


def test_totals_stand_still_after_the_last_switch_time(rng: Generator) -> None:
    history = history_of(rng, 300, shared=True)
    early, late = grown(history_of(rng, 1, shared=True), Adaptive()), None
    part = History([0, 1])
    models = grown(part, Adaptive(switch_times=(32, 64)))
    for i in range(300):
        part.fold(Observed(history.contexts[i].tolist(), int(history.arms[i]), float(history.rewards[i])))
        models.advance(part, part.size)
        if i + 1 == 64:
            late = models.totals
    assert late == models.totals
    assert early.totals == (0.0, 0.0)
    # From then on it is the plain layout, to the last bit.
    plain = Learner(
        selector(models.answering.layout.name),
        backbone=LinearBackbone(),
        memory=Memory(2.0, detector=None),
        sizes=Sizes(2, 3, 5),
    )
    plain.advance(part, part.size)
    for one, two in zip(
        *(
            posteriors(
                m, history.contexts[:5], ActionSet.of([0, 1]), backbone=LinearBackbone(), estimator=SubCLT()
            )
            for m in (models, plain)
        ),
        strict=True,
    ):
        np.testing.assert_array_equal(one.mean, two.mean)
        np.testing.assert_array_equal(one.variance, two.variance)


def test_garbage_that_comes_later_changes_no_score(rng: Generator) -> None:
    history = history_of(rng, 64, shared=True)
    spoiled = History([0, 1])
    for i in range(64):
        x, y = history.contexts[i], history.rewards[i]
        bad = i >= 50
        spoiled.fold(
            Observed((1e6 * x if bad else x).tolist(), int(history.arms[i]), float(-1e4 * y if bad else y))
        )
    one, two = (grown(h, Adaptive(switch_times=(50, 400)), end=50) for h in (history, spoiled))
    assert one.totals == two.totals
    assert one.answering.layout == two.answering.layout


def test_equal_totals_change_nothing() -> None:
    assert Adaptive().choose(1, [2.0, 2.0]) == 1
    assert Adaptive().choose(0, [2.0, 2.0]) == 0
    assert Adaptive().choose(0, [2.0, 1.0]) == 1


@pytest.mark.parametrize("times", [(), (0, 5), (5, 5), (8, 4)])
def test_switch_times_must_increase(times: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="switch_times must be positive and increasing"):
        Adaptive(switch_times=times)


def test_a_model_that_is_started_anew_equals_one_of_the_rows_since(rng: Generator) -> None:
    # Arms of opposite slopes until row 640, then of the same: another layout is the better one.
    before, since = (history_of(rng, 640, shared=shared) for shared in (False, True))
    history = History([0, 1])
    for part in (before, since):
        for x, arm, reward in zip(part.contexts, part.arms, part.rewards, strict=True):
            history.fold(Observed(x.tolist(), int(arm), float(reward)))
    options: dict[str, Any] = {"backbone": LinearBackbone(), "sizes": Sizes(2, 3, 5)}
    watched = Learner(Adaptive(), memory=Memory(2.0, detector=2000), **options)
    watched.advance(history, history.size)
    [change] = [each for each in watched.changes if each.restarted]
    assert 630 <= change.since <= 800
    alone = History([0, 1])
    for row in range(change.since, history.size):
        x, arm, reward = history.contexts[row], history.arms[row], history.rewards[row]
        alone.fold(Observed(x.tolist(), int(arm), float(reward)))
    plain = Learner(Adaptive(), memory=Memory(2.0, detector=None), **options)
    plain.advance(alone, alone.size)
    assert watched.answering.layout.name == plain.answering.layout.name == "joint"
    # Its refresh at the restart lets a few rewards be predicted a little better.
    np.testing.assert_allclose(watched.totals, plain.totals, rtol=0.05)
    ours, theirs = (
        posteriors(
            m, history.contexts[:5], ActionSet.of([0, 1]), backbone=LinearBackbone(), estimator=SubCLT()
        )
        for m in (watched, plain)
    )
    for one, two in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(one.mean, two.mean, atol=0.1)
