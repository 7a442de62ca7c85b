"""The adaptive encoding: scores that no row has leaked into, and the layouts they choose."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.random import Generator

from pfnts.arms import Adaptive, ArmModels, selector
from pfnts.arms.memory import Memory
from pfnts.backbones import LinearBackbone, load
from pfnts.events import ActionSet, History, Observed
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


def grown(history: History, encoding: Adaptive, *, refresh: float = 2.0, backbone: Any = None) -> ArmModels:
    width = history.contexts.shape[1] if history.size else 3
    made = ArmModels(
        encoding,
        backbone=backbone or LinearBackbone(),
        memory=Memory(refresh, detector=None),
        warmup=5,
        n_arms=2,
        width=width,
    )
    made.advance(history)
    return made


def last_refresh(arms: list[int], early: list[int]) -> int:
    """The last refresh point after these rows of a sequence, with doubling."""
    last, following, counts = 0, 3, [0, 0]
    for t, arm in enumerate(arms, start=1):
        counts[arm] += 1
        if t >= 3 and (t >= following or counts[arm] in early):
            last = t
            following = 4
            while following <= t:
                following *= 2
    return last


def slow_totals(history: History, upto: int, backbone: Any) -> list[float]:
    """Every reward scored by a sequence of the newest prefix that had not seen it, and of nothing else."""
    totals = [0.0, 0.0]
    for i in range(upto):
        arm, x = int(history.arms[i]), history.contexts[i]
        own = [j for j in range(i) if history.arms[j] == arm]
        everyone = list(range(i))
        sizes = (
            last_refresh([arm] * len(own), [5]),
            last_refresh(history.arms[:i].tolist(), [5, 10, 20]),
        )
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
        models.advance(growing)
        first = "disjoint" if arm_threshold == 10 else "joint"
        assert models.layout.name == (first if i + 1 < 128 else winner)


def test_totals_stand_still_after_the_last_switch_time(rng: Generator) -> None:
    history = history_of(rng, 300, shared=True)
    early, late = grown(history_of(rng, 1, shared=True), Adaptive()), None
    part = History([0, 1])
    models = grown(part, Adaptive(switch_times=(32, 64)))
    for i in range(300):
        part.fold(Observed(history.contexts[i].tolist(), int(history.arms[i]), float(history.rewards[i])))
        models.advance(part)
        if i + 1 == 64:
            late = list(models.totals)
    assert late == models.totals
    assert early.totals == [0.0, 0.0]
    # From then on it is the plain layout, to the last bit.
    plain = ArmModels(
        selector(models.layout.name),
        backbone=LinearBackbone(),
        memory=Memory(2.0, detector=None),
        warmup=5,
        n_arms=2,
        width=3,
    )
    plain.advance(part)
    for one, two in zip(
        *(m.posteriors(history.contexts[:5], ActionSet.of([0, 1]), SubCLT()) for m in (models, plain)),
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
    one, two = (grown(h, Adaptive(switch_times=(50, 400))) for h in (history, spoiled))
    # Rewards from the fifty-first on wait to be scored.
    assert one.totals == two.totals
    assert one.layout == two.layout


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
    options: dict[str, Any] = {"backbone": LinearBackbone(), "warmup": 5, "n_arms": 2, "width": 3}
    watched = ArmModels(Adaptive(), memory=Memory(2.0, detector=2000), **options)
    watched.advance(history)
    [change] = [each for each in watched.changes if each.restarted]
    assert 630 <= change.since <= 650
    alone = History([0, 1])
    for row in range(change.since, history.size):
        x, arm, reward = history.contexts[row], history.arms[row], history.rewards[row]
        alone.fold(Observed(x.tolist(), int(arm), float(reward)))
    plain = ArmModels(Adaptive(), memory=Memory(2.0, detector=None), **options)
    plain.advance(alone)
    assert watched.layout.name == plain.layout.name == "joint"
    # Its refresh at the restart lets a few rewards be predicted a little better.
    np.testing.assert_allclose(watched.totals, plain.totals, rtol=0.05)
    ours, theirs = (
        m.posteriors(history.contexts[:5], ActionSet.of([0, 1]), SubCLT()) for m in (watched, plain)
    )
    for one, two in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(one.mean, two.mean, atol=0.1)
