"""The live sequences of one fixed layout: disjoint, joint or block."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pfnts.backbones.base import Backbone
from pfnts.encodings.base import AnyPosterior, Matrix, Stamp, VarianceEstimator
from pfnts.encodings.history import History
from pfnts.encodings.layouts import Layout
from pfnts.encodings.schedule import FIRST_POSTERIOR, Schedule
from pfnts.encodings.track import Track
from pfnts.posterior import GaussianPosterior, stack

# Degrees of freedom at which a Student is a Gaussian for every purpose: a stand-in among Student columns.
_NEARLY_GAUSSIAN = 1000.0


class Sequences:
    """One track per arm, or one for all, grown from the history.

    An arm with fewer than three rewards in a track of its own has no posterior yet. It is answered for
    by the rewards of all arms up to the last refresh point of the history: their mean, and their variance
    undivided. A policy never lets such an arm compete (it is still in warm-up), so this is for display.

    Parameters
    ----------
    layout
        Which track a row goes to and what it looks like there.
    backbone
        Makes the sequences.
    schedule
        When posteriors are refreshed.
    """

    def __init__(self, layout: Layout, *, backbone: Backbone, schedule: Schedule) -> None:
        self._layout = layout
        self._backbone = backbone
        self._schedule = schedule
        self._tracks: list[Track] = []
        self._size = 0
        self._history: History | None = None

    @property
    def layout(self) -> str:
        """Name of the layout."""
        return self._layout.name

    def advance(self, history: History) -> None:
        """Take in the rows that the history has gained."""
        self._history = history
        while len(self._tracks) < (1 if self._layout.shared else history.n_arms):
            self._tracks.append(Track(backbone=self._backbone, schedule=self._schedule, layout=self._layout))
        rows = range(self._size, history.size)
        if self._layout.shared:
            self._tracks[0].extend(rows, history)
        elif len(rows) == 1:
            self._tracks[history.arms[self._size]].extend(rows, history)
        else:
            arms = history.arms[self._size :]
            for arm in np.unique(arms):
                self._tracks[arm].extend((self._size + np.flatnonzero(arms == arm)).tolist(), history)
        self._size = history.size

    def rebuild(self, history: History) -> None:
        """Start again where rows look different with another arm; a track per arm only gains a track."""
        if self._layout.shared:
            self._tracks, self._size = [], 0
        self.advance(history)

    def stamps(self, arms: Sequence[int]) -> tuple[Stamp, ...]:
        """Name of the layout, and last refresh point of the track, for each arm."""
        return tuple(
            (self.layout, self._track(arm).stamp) if self._ready(arm) else ("pooled", self._pooled_size())
            for arm in arms
        )

    def columns(self, X: Matrix, arms: Sequence[int], variance: VarianceEstimator) -> list[AnyPosterior]:
        """Posterior (q,) of each arm at contexts ``X`` (q, P); a shared track answers for all at once."""
        if not self._layout.shared or not self._ready(0):
            # Some backbones are faster if they know that several sequences will get the same question.
            expect = getattr(self._backbone, "expect", None)
            if expect is not None:
                expect([self._track(arm).snapshot().sequence for arm in arms if self._ready(arm)], X)
            return [
                variance.posterior(self._track(arm).snapshot(), X)
                if self._ready(arm)
                else self._stand_in(len(X))
                for arm in arms
            ]
        flat = variance.posterior(self._tracks[0].snapshot(), self._queries(X, arms))
        by_arm = flat.reshape(len(arms), len(X), coupled=False)
        return [by_arm[i] for i in range(len(arms))]

    def join(self, columns: Sequence[AnyPosterior], *, coupled: bool, own: int = 0) -> AnyPosterior:
        """Join one column per arm into (q, K)."""
        if len({type(column) for column in columns}) > 1:
            columns = [
                column.student(_NEARLY_GAUSSIAN) if isinstance(column, GaussianPosterior) else column
                for column in columns
            ]
        coupled = coupled and self._layout.shared
        joined: AnyPosterior = stack(columns, coupled=coupled)
        if coupled and own and joined.directions is not None:
            return replace(joined, directions=_unshared(joined.directions, own))
        return joined

    def quantiles(self, X: Matrix, arms: Sequence[int], levels: ArrayLike) -> Matrix:
        """Predictive quantiles (len(levels), q, len(arms)) at the last refresh points."""
        if self._layout.shared and self._ready(0):
            track = self._tracks[0]
            flat = track.snapshot().quantiles(self._queries(X, arms), track.stamp, levels)
            return np.moveaxis(flat.reshape(len(flat), len(arms), len(X)), 1, 2)
        parts = []
        for arm in arms:
            if self._ready(arm):
                track = self._track(arm)
                parts.append(track.snapshot().quantiles(X, track.stamp, levels))
            else:
                parts.append(
                    np.tile(
                        np.quantile(self._pooled(), np.asarray(levels, dtype=np.float64))[:, None],
                        (1, len(X)),
                    )
                )
        return np.stack(parts, axis=-1)

    def scorable(self, rows: NDArray[np.int64]) -> dict[tuple[int, int], list[int]]:
        """Group rows of the history by the newest snapshot that had not seen them: (track, size) to rows."""
        groups: dict[tuple[int, int], list[int]] = {}
        first, last = int(rows[0]), int(rows[-1])
        for number, track in enumerate(self._tracks):
            points = np.array(self._schedule.points(len(track.rows)), dtype=np.int64)
            for place in range(np.searchsorted(track.rows, first), np.searchsorted(track.rows, last + 1)):
                # place rows stand before this one, so a snapshot of up to that size has not seen it.
                newest = int(np.searchsorted(points, place, side="right")) - 1
                if newest >= 0:
                    groups.setdefault((number, int(points[newest])), []).append(track.rows[place])
        return groups

    def past_quantiles(self, track: int, size: int, rows: Sequence[int], levels: ArrayLike) -> Matrix:
        """Quantiles (len(levels), len(rows)) that the snapshot of a size predicts for rows of the history."""
        history = self._known()
        features = self._layout.features(history.contexts[rows], history.arms[rows], n_arms=history.n_arms)
        return self._tracks[track].snapshot().quantiles(features, size, levels)

    def state(self) -> dict[str, Any]:
        """Nothing: the history determines the sequences."""
        return {}

    def restore(self, state: dict[str, Any], history: History) -> None:  # noqa: ARG002
        """Replay the history."""
        self.advance(history)

    def _known(self) -> History:
        if self._history is None:
            raise ValueError(f"a posterior needs at least {FIRST_POSTERIOR} rewards, got none")
        return self._history

    def _track(self, arm: int) -> Track:
        return self._tracks[0 if self._layout.shared else arm]

    def _ready(self, arm: int) -> bool:
        return bool(self._tracks) and self._track(arm).stamp > 0

    def _queries(self, X: Matrix, arms: Sequence[int]) -> Matrix:
        """Rows of the shared track for every context and arm, arm by arm."""
        numbers = np.repeat(np.asarray(arms, dtype=np.int64), len(X))
        return self._layout.features(np.tile(X, (len(arms), 1)), numbers, n_arms=self._known().n_arms)

    def _pooled_size(self) -> int:
        points = self._schedule.points(self._known().size)
        if not points:
            raise ValueError(
                f"a posterior needs at least {FIRST_POSTERIOR} rewards, got {self._known().size}"
            )
        return points[-1]

    def _pooled(self) -> NDArray[np.float64]:
        return self._known().rewards[: self._pooled_size()]

    def _stand_in(self, q: int) -> GaussianPosterior:
        rewards = self._pooled()
        scale = np.full(q, np.std(rewards))
        return GaussianPosterior(
            mean=np.full(q, np.mean(rewards)),
            variance=scale**2,
            size=np.ones(q, dtype=np.int64),
            directions=scale[None],
        )


def _unshared(directions: Matrix, own: int) -> Matrix:
    """Spread the last ``own`` directions (J, q, K) so that each arm's part has draws to itself."""
    shared, rest = directions[:-own], directions[-own:]
    arms = directions.shape[-1]
    spread = rest[:, None] * np.eye(arms)[None, :, None, :]
    return np.concatenate([shared, spread.reshape(own * arms, *directions.shape[1:])])
