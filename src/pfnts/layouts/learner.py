"""Learning the rows of a history: sequences, the choice of the layout, and the watch for change."""

from __future__ import annotations

import logging
from collections import Counter
from dataclasses import dataclass

import numpy as np

from pfnts.arrays import Counts, Matrix, Vector
from pfnts.backbones.base import Backbone, Question
from pfnts.events import History
from pfnts.layouts.average import LEVELS, Scores, appended
from pfnts.layouts.change import ALL_SCORED, EVERY, Change, ChangeWatch
from pfnts.layouts.interactions import Interactions, Scaling
from pfnts.layouts.memory import Memory
from pfnts.layouts.schedule import FIRST_POSTERIOR, last_refresh
from pfnts.layouts.selectors import LayoutSelector
from pfnts.layouts.sequences import LayoutSequences, Refreshing
from pfnts.scores import crps

_LOGGER = logging.getLogger("pfnts")
_EARLY = (1, 2, 4)
"""Where arms share a sequence it is refreshed also when an arm's own rows reach so many times ``warmup``;
where an arm has its own, when it has ``warmup`` rows: it is warm then."""
_NEGLIGIBLE, _HOPELESS, _FEWEST_SCORED = 1e-3, 1e-4, 400
"""Weight below which a layout is left out of a decision, and below which it is dropped after so many rows."""
_AT_ONCE = 64
"""Rows that wait before they are appended, unless something depends on them."""


@dataclass(frozen=True)
class Sizes:
    """Sizes that sequences are made for."""

    n_arms: int
    """Arms there may be."""
    width: int
    """Floats in a context and in the features of an arm."""
    warmup: int
    """Rows of an arm without which it is cold."""
    pooled: int | None = None
    """Rows of any arm without which all are cold; None where each has a warm-up of its own."""
    interacts: bool = False
    """Whether products of context and features join the columns when the pooled warm-up is over."""


class Learner:
    """Appends the rows of a history to the sequences of the candidate layouts, of which one answers.

    What it holds depends on the rows alone, not on the pieces in which they came.

    Parameters
    ----------
    selector
        Which layouts there are, and which answers.
    backbone
        Makes the sequences.
    memory
        When sequences are refreshed, which rows leave, and whether changes are looked for.
    sizes
        Arms, floats, and warm-up.
    """

    def __init__(self, selector: LayoutSelector, *, backbone: Backbone, memory: Memory, sizes: Sizes) -> None:
        self._selector, self._backbone, self._memory = selector, backbone, memory
        self.sizes = sizes
        self._candidates = selector.candidates(sizes.n_arms)
        self._interactions: Interactions | None = None
        self.size = 0
        """Number of rows learned."""
        self._cut = memory.next_cut(0)
        self._kept = np.arange(0)  # rows that stayed at the last restart, which was after so many rows
        self._restarted = self._since = 0
        self.restarts = 0
        """Number of times that the sequences were made again."""
        self._pulled: Counter[int] = Counter()  # rows of each arm since the detector restarted the sequences
        self._watch = None if memory.detector is None else ChangeWatch(rows=memory.detector)
        self._watched_from = 0  # the watch does not look at rows that are learned again
        self.changes: list[Change] = []
        """Changes that the detector noticed, in order."""
        self._history: History | None = None
        self._noted = self._appended = 0
        """Rows assigned to sequences, and rows that the backbone holds."""
        self._begin(0)

    def advance(self, history: History, end: int) -> None:
        """Learn the rows up to ``end``."""
        self._history = history
        while self.size < end:
            times = (self._cut, self.sizes.pooled, *self._switches[:1])
            stop = min([end, *(time for time in times if time is not None and time > self.size)])
            self._note(self.size, stop)
            self._count(stop)
        if self._refreshed or self._noted - self._appended >= _AT_ONCE:
            self._append()

    # Rows: noted (assigned to sequences), appended (held by the backbone, and forecast), counted.

    def _note(self, begin: int, end: int) -> None:
        """Assign rows to the sequences of every layout that is grown."""
        new = range(max(begin, self._noted), end)
        for grown in self._grown.values():
            grown.note(new, self._rows.arms[new.start : new.stop])
        self._noted = max(self._noted, end)

    def _append(self) -> None:
        """Append all rows noted, in one call of the backbone, and keep the CRPS of their forecasts."""
        history, wanted = self._rows, np.zeros(self._noted, dtype=np.bool_)
        for row in range(max(self._appended, self._restarted), self._noted):
            wanted[row] = self._compares or self._is_watched(row)
        losses: list[dict[int, float]] = [{} for _ in self._candidates]
        for place, grown in self._grown.items():
            appends = grown.appends(
                self._design_of, history.arms, history.rewards, backbone=self._backbone, scored=wanted
            )
            losses[place] = appended(self._backbone, appends, history.rewards)
        for row in np.flatnonzero(wanted).tolist():
            self._losses[row] = tuple(known.get(row, np.nan) for known in losses)
        self._appended, self._refreshed = self._noted, False

    def _count(self, stop: int) -> None:
        """Count rows up to ``stop``, or until the sequences are made again, and do what is due on the way."""
        arms, restarts = self._rows.arms[self.size : stop].tolist(), self.restarts
        for arm in arms:
            self.size += 1
            for place, grown in self._grown.items():
                if grown[arm].count(arm):
                    grown[arm].refresh(self._so_far())
                    self._unweighed = True
                    self._refreshed |= place == self._active or self._selector.averages
            if self._since and self.size > self._watched_from:
                self._pulled[arm] += 1
                if self._pulled[arm] == self.sizes.warmup:
                    for grown in self._grown.values():
                        grown[arm].refresh(self._so_far())
                    self._refreshed = True
            if self._unweighed and self._selector.averages:
                self._weigh()
            if self._switches and self.size >= self._switches[0]:
                self._switch()
            if self._watch is not None and self.size % EVERY == 0 and self.size > self._watched_from:
                self._look(self._watch)
            if self.size == self._cut:
                self._cut = self._memory.next_cut(self.size)
                kept = self._memory.kept(self.size)
                self._restart(kept[kept >= self._since])
            if self.size == self.sizes.pooled and self._interactions is None:
                self._end_warmup()
            if self.restarts != restarts:
                return

    # The average of layouts.

    def _begin(self, row: int) -> None:
        """Make empty sequences of the candidates, of which the first answers; ``row`` is their first row."""
        places = range(len(self._candidates)) if self._selector.compares else [0]
        self._grown = {place: self._empty(place) for place in places}
        self._active = 0
        self._switches = [row + time for time in self._selector.switch_times]
        self._scores = Scores.none(len(self._candidates))
        self._losses: dict[int, tuple[float, ...]] = {}
        self._noted = self._appended = row
        self._refreshed = self._unweighed = False
        self.weights = {place: 1 / len(self._grown) for place in self._grown}
        """Weight of each layout that is grown, by place; used where layouts are averaged."""

    def averaged(self) -> dict[int, float]:
        """Return the weight of each layout that answers, by place; negligible weights are left out."""
        if not self._selector.averages:
            return {self._active: 1.0}
        kept = {place: weight for place, weight in self.weights.items() if weight >= _NEGLIGIBLE}
        return {place: weight / sum(kept.values()) for place, weight in kept.items()}

    def sequences(self, place: int) -> LayoutSequences:
        """Return the sequences of a candidate that is grown."""
        return self._grown[place]

    def _weigh(self) -> None:
        """Weigh the layouts by their forecasts of the rows counted; drop those without a chance."""
        self._score()
        weights = dict(enumerate(self._scores.weights().tolist()))
        if len(self._grown) > 1 and self._scores.rows >= _FEWEST_SCORED:
            for place in [place for place in self._grown if weights[place] < _HOPELESS]:
                del self._grown[place]
                _LOGGER.info("after %d rows layout %s is dropped", self.size, self._candidates[place].name)
        total = sum(weights[place] for place in self._grown)
        self.weights = {place: weights[place] / total for place in self._grown}
        self._active = max(self._grown, key=lambda place: weights[place])
        self._unweighed = False

    @property
    def answering(self) -> LayoutSequences:
        """The sequences of the layout that answers."""
        return self._grown[self._active]

    @property
    def totals(self) -> tuple[float, ...]:
        """Sum of the CRPS of each candidate layout."""
        self._score()
        return self._scores.totals

    @property
    def _compares(self) -> bool:
        averages = self._selector.averages and len(self._grown) > 1
        return self._selector.compares and (bool(self._switches) or averages)

    def _score(self) -> None:
        """Add the CRPS of the rows counted; the watch takes that of the layout that answers."""
        if self._appended < self.size:
            self._append()
        rows = sorted(row for row in self._losses if row < self.size)
        if not rows:
            return
        losses = np.array([self._losses.pop(row) for row in rows])
        self._scores = self._scores.add(losses)
        own = losses[:, self._active]
        if self._watch is not None:
            watched = [i for i, row in enumerate(rows) if self._is_watched(row) and not np.isnan(own[i])]
            if watched:
                self._watch.add(np.array(rows)[watched], own[watched])

    def _switch(self) -> None:
        """Compare the layouts; the better one answers from now on, and after the last switch time alone."""
        self._score()
        del self._switches[0]
        before, self._active = self._active, self._selector.choose(self._active, self._scores.totals)
        if self._active not in self._grown:
            self._grown[self._active] = self._of(self._active, self.held_rows())
        if not self._compares:
            dropped = [self._candidates[place].name for place in self._grown if place != self._active]
            if dropped:
                _LOGGER.info("after %d rows layout %s is dropped", self.size, ", ".join(dropped))
            self._grown = {self._active: self.answering}
        if before != self._active:
            _LOGGER.info("after %d rows layout %s answers", self.size, self._candidates[self._active].name)

    # The watch for change.

    def _is_watched(self, row: int) -> bool:
        """Whether the detector takes a row's loss."""
        held = len(self._kept) + row - self._restarted
        return self._watch is not None and (held < ALL_SCORED or row % 2 == 0)

    def _look(self, watch: ChangeWatch) -> None:
        """Refresh after an alarm; begin again with the rows since, once these predict better alone."""
        self._score()
        since = watch.look(self.size)
        if since is not None:
            for grown in self._grown.values():
                grown.refresh(self._so_far())
            self._refreshed = True
            self.changes.append(Change(self.size, since, restarted=False))
            _LOGGER.info("after %d rows rewards since row %d are unexpected", self.size, since)
        for row in watch.suspected:
            if self.shows_change(watch, row):
                self.changes.append(Change(self.size, row, restarted=True))
                _LOGGER.info("after %d rows the model begins again with row %d", self.size, row)
                self._begin_again(watch, row)
                return

    def shows_change(self, watch: ChangeWatch, since: int) -> bool:
        """Whether sequences of the rows since then show that the world has changed.

        Each holds one half of them and predicts the other, and as many rows from before.
        """
        middle = (since + self.size) // 2
        halves = np.arange(since, middle), np.arange(middle, self.size)
        found = [
            self._losses_without(held, watch.compared(since, others))
            for held, others in (halves, halves[::-1])
        ]
        rows, losses = map(np.concatenate, zip(*found, strict=True))
        return watch.shows(since, rows, losses)

    def _losses_without(self, held: Counts, rows: Counts) -> tuple[Counts, Vector]:
        """Return the CRPS of rows by sequences of other rows; arms that these cannot predict are left out."""
        history, alone = self._rows, self._of(self._active, held)
        alone.refresh(history.rewards[held])
        rows = rows[[alone[arm].version > 0 for arm in history.arms[rows].tolist()]]
        losses = np.empty(len(rows))
        arms = history.arms[rows]
        X = alone.rows_of(self.design(history.rows[rows]), arms)
        groups = (
            [np.arange(len(rows))]
            if alone.layout.shared
            else [np.flatnonzero(arms == k) for k in np.unique(arms)]
        )
        questions = []
        for group in (groups := [group for group in groups if len(group)]):
            one = alone[int(arms[group[0]])]
            assert one.sequence is not None
            questions.append(Question(one.sequence, X[group], (one.version,), LEVELS))
        for group, answer in zip(groups, self._backbone.predict(questions) if questions else [], strict=True):
            losses[group] = crps(np.array(LEVELS), answer.quantiles, history.rewards[rows[group]])
        return rows, losses

    def _begin_again(self, watch: ChangeWatch, since: int) -> None:
        """Drop the rows before ``since`` and learn the others as if they were the first."""
        end, self.size = self.size, since
        self._since = self._restarted = since
        self._kept = np.arange(0)
        self.restarts += 1
        self._pulled.clear()
        self._begin(since)
        watch.begin_anew()
        self._watched_from = end
        while self.size < end:
            self._note(self.size, end)
            self._count(end)
        for grown in self._grown.values():
            grown.refresh(self._so_far())
        self._append()

    # Forgetting, and the end of a pooled warm-up.

    def _restart(self, rows: Counts) -> None:
        """Make all sequences again, of some rows."""
        self._score()
        self._kept, self._restarted = rows, self.size
        self.restarts += 1
        so_far = self._rows.rewards[rows]
        self._grown = {place: self._of(place, rows) for place in self._grown}
        for grown in self._grown.values():
            grown.refresh(so_far)
        self._noted = self._appended = self.size
        self._losses = {}
        self._unweighed = True

    def _end_warmup(self) -> None:
        """Append the products of context and features to the columns, and refresh: all arms are warm now.

        Products are scaled by the rows of the warm-up, whose arms were drawn at random.
        """
        self._score()  # rows that wait have no products yet
        history = self._rows
        if self.sizes.interacts:
            scaling = Scaling.of(history.rows[: self.size])
            self._interactions = Interactions(scaling, history.contexts.shape[1])
        self._restart(self.held_rows())

    # What these need.

    def _design_of(self, rows: list[int]) -> Matrix:
        """Return rows of the history before the layout."""
        return self.design(self._rows.rows[rows])

    @property
    def _rows(self) -> History:
        assert self._history is not None
        return self._history

    def design(self, X: Matrix) -> Matrix:
        """Return rows before the layout for contexts with features (n, P + A)."""
        return X if self._interactions is None else np.concatenate([X, self._interactions(X)], axis=1)

    def _empty(self, place: int) -> LayoutSequences:
        layout, sizes = self._candidates[place], self.sizes
        early = frozenset(times * sizes.warmup for times in (_EARLY if layout.shared else _EARLY[:1]))
        return LayoutSequences(
            layout, n_arms=sizes.n_arms, width=sizes.width, refreshing=Refreshing(self._memory.refresh, early)
        )

    def _of(self, place: int, rows: Counts) -> LayoutSequences:
        """Return sequences of a layout that hold some rows."""
        history, made = self._rows, self._empty(place)
        made.note(rows.tolist(), history.arms[rows])
        rewards = history.rewards[rows]
        for i, arm in enumerate(history.arms[rows].tolist()):
            if made[arm].count(arm):
                made[arm].refresh(rewards[: i + 1])
        appends = made.appends(
            self._design_of,
            history.arms,
            history.rewards,
            backbone=self._backbone,
            scored=np.zeros(self.size, dtype=np.bool_),
        )
        appended(self._backbone, appends, history.rewards)
        return made

    def _so_far(self) -> Vector:
        """Return the rewards of the rows held."""
        rewards = self._rows.rewards
        if not self.restarts:
            return rewards[: self.size]
        return np.concatenate([rewards[self._kept], rewards[self._restarted : self.size]])

    def pooled_rewards(self) -> Vector:
        """Return the rewards of all arms up to a refresh point, for an arm without a posterior of its own."""
        rewards = np.empty(0) if self._history is None else self._so_far()
        if len(rewards) < FIRST_POSTERIOR:
            raise ValueError(f"a posterior needs at least {FIRST_POSTERIOR} rewards, got {len(rewards)}")
        return rewards[: last_refresh(len(rewards), self._memory.refresh)]

    def unchanged(self, arms: Counts) -> int:
        """Return how many rows of these arms (m,), in this order, leave every posterior as it is."""
        times = [time - self.size for time in (self._cut, *self._switches[:1]) if time is not None]
        looks = [] if self._watch is None else [EVERY - self.size % EVERY]
        until = min([*times, *looks], default=len(arms) + 1)
        grown = self._grown.values() if self._selector.averages else [self.answering]
        return min(until - 1, *(one.unchanged(arms) for one in grown))

    def warm_rows(self, arm: int) -> int:
        """Return the rows of an arm that its warm-up counts: those held, after a restart only those since."""
        held = min(self._grown[place][arm].held[arm] for place in self.averaged())
        return min(held, self._pulled[arm]) if self._since else held

    def held_rows(self) -> Counts:
        """Return the numbers of the rows held."""
        return np.concatenate([self._kept, np.arange(self._restarted, self.size)])

    def prepare(self) -> None:
        """Compute now what predictions would otherwise wait for."""
        grown = [self._grown[place] for place in self.averaged()]
        begun = [one.sequence for each in grown for one in each.distinct if one.sequence is not None]
        self._backbone.prepare(begun)
