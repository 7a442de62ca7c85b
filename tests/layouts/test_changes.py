"""Whether the world has changed: what the comparison of two models must show."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.random import Generator

from pfnts.backbones import LinearBackbone
from pfnts.events import History, Observed
from pfnts.layouts import Joint, Learner, Sizes, selector
from pfnts.layouts.change import ChangeWatch
from pfnts.layouts.memory import Memory
from pfnts.scores import crps


def watch_of(losses: np.ndarray) -> ChangeWatch:
    watch = ChangeWatch(rows=1e9)
    watch.add(np.arange(len(losses)), losses)
    return watch


@pytest.mark.parametrize(
    ("before", "later", "changed"),
    [(+0.5, -0.5, True), (-0.5, -0.5, False), (+0.5, +0.5, False), (-0.5, +0.5, False)],
)
def test_a_change_shows_both_ways(before: float, later: float, changed: bool, rng: Generator) -> None:
    """What a model of the rows since loses more than the old one, before the change and later."""
    losses = 1 + rng.exponential(size=300)
    watch = watch_of(losses)
    rows = watch.compared(200, np.arange(250, 300))
    assert rows.tolist() == [*np.linspace(0, 199, 50).astype(int), *range(250, 300)]
    others = losses[rows] + np.where(rows < 200, before, later) + 0.1 * rng.normal(size=100)
    assert watch.shows(200, rows, others) == changed


def test_a_model_that_has_seen_no_prize_does_not_show_a_change(rng: Generator) -> None:
    """In most rows it does better; in the few with a prize, which the old model expects, much worse."""
    old, rows = np.full(1000, 0.2), watch_of(np.ones(1000)).compared(800, np.arange(900, 1000))
    prizes = rows[:80:20]
    old[prizes] = 40.0
    watch = watch_of(old + 0.01 * rng.random(1000))
    ignorant = np.where(np.isin(rows, prizes), 49.0, 0.01)
    gains = old[rows] - ignorant
    assert gains[rows >= 800].min() > 0 > gains[rows < 800].mean()
    assert not watch.shows(800, rows, ignorant)


def test_few_rows_show_nothing() -> None:
    watch = watch_of(np.ones(40))
    rows = watch.compared(20, np.arange(30, 40))
    assert len(rows) == 20
    assert not watch.shows(20, rows, np.where(rows < 20, 9.0, 0.0))
    assert not len(watch_of(np.ones(0)).compared(5, np.arange(7, 9)))


def test_old_losses_are_dropped() -> None:
    watch = watch_of(np.ones(3000))
    watch.look(3000)
    assert watch.compared(2500, np.arange(2900, 3000)).min() == 3000 - 1024


def test_each_half_of_the_rows_since_predicts_the_other(rng: Generator) -> None:
    history = History([0, 1, 2])
    for _ in range(200):
        x, arm = rng.uniform(size=2), int(rng.integers(3))
        history.fold(Observed(x.tolist(), arm, float(x[0] * arm + 0.3 * rng.normal())))
    models = Learner(selector("joint"), backbone=LinearBackbone(), memory=Memory(), sizes=Sizes(3, 2, 5))
    models.advance(history, history.size)

    class Listening(ChangeWatch):
        def shows(self, since: int, rows: np.ndarray, losses: np.ndarray) -> bool:
            self.heard = since, rows, losses
            return True

    watch = Listening(rows=1e9)
    watch.add(np.arange(200), np.ones(200))
    assert models.shows_change(watch, 140)
    since, rows, losses = watch.heard
    assert since == 140
    before = np.linspace(0, 139, 30).astype(int).tolist()
    assert rows.tolist() == [*before, *range(170, 200), *before, *range(140, 170)]
    told = Joint().features(history.rows, history.arms, n_arms=3)
    levels = np.arange(1, 100) / 100
    for place, half in ((slice(0, 60), slice(140, 170)), (slice(60, 120), slice(170, 200))):
        alone = LinearBackbone().sequence(told[half], history.rewards[half])
        said = alone.quantiles(told[rows[place]], 30, levels)
        np.testing.assert_allclose(losses[place], crps(levels, said, history.rewards[rows[place]]))
