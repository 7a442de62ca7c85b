from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.random import Generator
from pfnts.encodings.history import History
from pfnts.encodings.layouts import Disjoint
from pfnts.encodings.schedule import Schedule
from pfnts.encodings.track import Track

from pfnts.backbones import LinearBackbone


class Recorder:
    """A linear backbone that writes down the pieces in which a sequence grew."""

    name = "recorder"

    def __init__(self) -> None:
        self.pieces: list[int] = []

    def sequence(self, X: Any, y: Any) -> Any:
        self.pieces.append(len(y))
        made = LinearBackbone().sequence(X, y)
        append = made.append

        def recorded(X: Any, y: Any) -> None:
            self.pieces.append(len(y))
            append(X, y)

        made.append = recorded  # type: ignore[method-assign]
        return made


def filled(rng: Generator, n: int, *, width: int = 2, n_arms: int = 2) -> History:
    history = History(width=width, n_arms=n_arms)
    history.append(rng.uniform(size=(n, width)), rng.integers(n_arms, size=n), rng.normal(size=n))
    return history


@pytest.mark.parametrize(("base", "refresh"), [(1.5, 1.5), (2.0, 2.0), (2.0, 1.25), (3.0, 1.1)])
def test_pieces_do_not_depend_on_how_rows_were_handed_in(rng: Generator, base: float, refresh: float) -> None:
    history = filled(rng, 100)
    pieces = []
    for step in (1, 7, 100):
        backbone = Recorder()
        track = Track(backbone=backbone, schedule=Schedule(base, refresh), layout=Disjoint())
        for start in range(0, 100, step):
            track.extend(range(start, min(start + step, 100)), history)
        pieces.append(backbone.pieces)
        assert track.stamp == Schedule(base, refresh).points(100)[-1] == sum(backbone.pieces)
    assert pieces[0] == pieces[1] == pieces[2]


def test_rows_between_refresh_points_do_not_reach_the_backbone(rng: Generator) -> None:
    history, backbone = filled(rng, 127), Recorder()
    track = Track(backbone=backbone, schedule=Schedule(refresh=2.0), layout=Disjoint())
    track.extend(range(64), history)
    before = len(backbone.pieces)
    for row in range(64, 127):
        track.extend([row], history)
    assert len(backbone.pieces) == before
    assert track.stamp == 64


def test_snapshot_knows_the_rewards_of_all_arms_at_the_time(rng: Generator) -> None:
    history = filled(rng, 40)
    rows = np.flatnonzero(history.arms == 1).tolist()
    track = Track(backbone=LinearBackbone(), schedule=Schedule(refresh=2.0), layout=Disjoint())
    track.extend(rows, history)
    arrived = rows[track.stamp - 1] + 1
    assert track.snapshot().reward_variance == np.var(history.rewards[:arrived])


def test_snapshot_before_three_rows_is_an_error(rng: Generator) -> None:
    track = Track(backbone=LinearBackbone(), schedule=Schedule(refresh=2.0), layout=Disjoint())
    track.extend([0, 1], filled(rng, 2))
    with pytest.raises(ValueError, match="needs 3 rewards for a posterior, got 2"):
        track.snapshot()


def test_history_grows_past_its_room(rng: Generator) -> None:
    X, arms, rewards = rng.uniform(size=(500, 3)), rng.integers(4, size=500), rng.normal(size=500)
    history = History(width=3, n_arms=4)
    for start, end in [(0, 1), (1, 64), (64, 65), (65, 400), (400, 500)]:
        history.append(X[start:end], arms[start:end], rewards[start:end])
    np.testing.assert_array_equal(history.contexts, X)
    np.testing.assert_array_equal(history.arms, arms)
    np.testing.assert_array_equal(history.rewards, rewards)
