from __future__ import annotations

import numpy as np
import pytest
from numpy.random import Generator
from pfnts.encodings import Adaptive, History, start
from pfnts.encodings.schedule import Schedule

from pfnts.backbones import LinearBackbone
from pfnts.scores import crps

BACKBONE = LinearBackbone()
LEVELS = np.arange(1, 100) / 100


def history_of(rng: Generator, n: int, *, shared: bool) -> History:
    """Arms that differ by a shift only, so that joint is better, or have opposite slopes."""
    history = History(width=3, n_arms=2)
    X, arms = rng.uniform(-1, 1, size=(n, 3)), rng.integers(2, size=n)
    slopes = np.ones(n) if shared else 2.0 * arms - 1
    history.append(X, arms, 3 * slopes * X.sum(axis=1) + arms + 0.5 * rng.normal(size=n))
    return history


def slow_totals(history: History, upto: int) -> dict[str, float]:
    """Every reward scored by a model refitted to the newest snapshot that had not seen it."""
    totals = {"disjoint": 0.0, "joint": 0.0}
    for i in range(upto):
        arm, x = history.arms[i], history.contexts[i]
        own = [j for j in range(i) if history.arms[j] == arm]
        if len(own) < 3:
            continue
        for name, rows in (("disjoint", own), ("joint", list(range(i)))):
            size = 3 if len(rows) == 3 else 2 ** int(np.log2(len(rows)))
            X, query = history.contexts[rows[:size]], x
            if name == "joint":
                X = np.hstack([X, np.eye(2)[history.arms[rows[:size]]]])
                query = np.concatenate([x, np.eye(2)[arm]])
            quantiles = BACKBONE.sequence(X, history.rewards[rows[:size]]).quantiles(
                query[None], size, LEVELS
            )
            totals[name] += crps(LEVELS, quantiles, history.rewards[[i]])[0]
    return totals


def test_totals_equal_a_slow_prequential_score(rng: Generator) -> None:
    history = history_of(rng, 140, shared=True)
    encoding = start(
        Adaptive(switch_times=(40, 128)), backbone=BACKBONE, schedule=Schedule(refresh=2.0), n_arms=2
    )
    encoding.advance(history)
    for name, total in slow_totals(history, 128).items():
        assert encoding.totals[name] == pytest.approx(total, rel=1e-9)  # type: ignore[attr-defined]


@pytest.mark.parametrize(("shared", "winner"), [(True, "joint"), (False, "disjoint")])
@pytest.mark.parametrize("arm_threshold", [1, 10])
def test_the_better_layout_answers_after_the_first_switch_time(
    shared: bool, winner: str, arm_threshold: int, rng: Generator
) -> None:
    history, whole = History(width=3, n_arms=2), history_of(rng, 140, shared=shared)
    encoding = start(
        Adaptive(arm_threshold=arm_threshold), backbone=BACKBONE, schedule=Schedule(refresh=2.0), n_arms=2
    )
    for i in range(140):
        history.append(whole.contexts[i : i + 1], whole.arms[i : i + 1], whole.rewards[i : i + 1])
        encoding.advance(history)
        if i + 1 < 128:
            assert encoding.layout == ("disjoint" if arm_threshold == 10 else "joint")
        else:
            assert encoding.layout == winner


def test_challenger_is_dropped_at_the_last_switch_time(rng: Generator) -> None:
    encoding = start(
        Adaptive(switch_times=(32, 64)), backbone=BACKBONE, schedule=Schedule(refresh=2.0), n_arms=2
    )
    history = history_of(rng, 63, shared=True)
    encoding.advance(history)
    assert encoding.state()["passed"] == 1
    assert encoding.challenger is not None  # type: ignore[attr-defined]
    history.append(np.zeros((100, 3)), np.zeros(100, dtype=np.int64), np.zeros(100))
    encoding.advance(history)
    totals = encoding.state()["totals"]
    assert encoding.challenger is None  # type: ignore[attr-defined]
    history.append(np.zeros((100, 3)), np.zeros(100, dtype=np.int64), np.zeros(100))
    encoding.advance(history)
    assert encoding.state()["totals"] == totals


@pytest.mark.parametrize("n", [20, 200, 3000])
def test_restored_state_goes_on_as_before(n: int, rng: Generator) -> None:
    history = history_of(rng, n, shared=True)
    encoding = start("adaptive", backbone=BACKBONE, schedule=Schedule(refresh=2.0), n_arms=2)
    encoding.advance(history)
    again = start("adaptive", backbone=BACKBONE, schedule=Schedule(refresh=2.0), n_arms=2)
    again.restore(encoding.state(), history)
    assert again.state() == encoding.state()
    assert again.stamps([0, 1]) == encoding.stamps([0, 1])
    more = history_of(rng, 200, shared=False)
    history.append(more.contexts, more.arms, more.rewards)
    for one in (encoding, again):
        one.advance(history)
    assert again.state() == encoding.state()


@pytest.mark.parametrize("times", [(), (0, 5), (5, 5), (8, 4)])
def test_switch_times_must_increase(times: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="switch_times must be positive and increasing"):
        Adaptive(switch_times=times)
