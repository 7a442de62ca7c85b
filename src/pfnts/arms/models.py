"""The models of all arms: rows go in, posteriors come out."""

from __future__ import annotations

import copy
from collections import Counter
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from pfnts.arms.changes import ALL_SCORED, EVERY, Change, ChangeWatch
from pfnts.arms.forecasts import Forecast, scored
from pfnts.arms.interactions import Interactions, Scaling
from pfnts.arms.lasting import Lasting
from pfnts.arms.memory import MEMORY, Memory
from pfnts.arms.schedule import FIRST_POSTERIOR, last_refresh
from pfnts.arms.selectors import LayoutSelector
from pfnts.arms.sequences import ArmHistory
from pfnts.arms.shortlist import RidgeScores
from pfnts.backbones.base import Backbone, Question
from pfnts.events import ActionSet, History
from pfnts.posterior import AnyPosterior, Estimator
from pfnts.posterior.base import Array
from pfnts.posterior.estimator import stand_in

_Numbers: TypeAlias = NDArray[np.int64]
Version: TypeAlias = tuple[str, int, int]
"""Layout, rows and restarts: while an arm's version stays the same, so does its posterior."""

_SCORED_AT_ONCE = 64
_EARLY = (1, 2, 4)
"""Where arms share a sequence it is refreshed also when an arm's own rows reach so many times ``warmup``;
where an arm has its own, when it has ``warmup`` rows: it is warm then."""


class ArmModels:
    """Grows the sequences of the candidate layouts from a history, and answers by the active one.

    What it holds depends on the rows alone, not on the pieces in which they came.

    Parameters
    ----------
    selector
        Which layouts there are, and which answers.
    backbone
        Makes the sequences.
    memory
        When sequences are refreshed, which rows leave, and whether changes are looked for.
    warmup
        Rows of an arm without which it is cold.
    n_arms
        Arms there may be.
    width
        Floats in a context and in the features of an arm.
    """

    def __init__(
        self,
        selector: LayoutSelector,
        *,
        backbone: Backbone,
        memory: Memory = MEMORY,
        warmup: int,
        n_arms: int,
        width: int,
    ) -> None:
        self._selector = selector
        self._backbone = backbone
        self.n_arms = n_arms
        """Arms there may be."""
        self.width = width
        """Floats in a context and in the features of an arm."""
        self._warmup, self._memory = warmup, memory
        self._candidates = selector.candidates(n_arms)
        by_features = self._candidates[0].by_features
        self.pooled_warmup = by_features.pooled_warmup(width, warmup=warmup) if by_features else None
        """Rows of any arm without which all are cold; None where each has a warm-up of its own."""
        self._interactions: Interactions | None = None
        self._forecasts: list[Forecast] = []
        self._begin(0)
        self.size = 0
        """Rows taken in."""
        self._cut = memory.next_cut(0)
        self._kept = np.arange(0)  # rows that stayed at the last restart, which was after so many rows
        self._restarted = self._restarts = self._since = 0
        self._pulled: Counter[int] = Counter()  # rows of each arm since the detector restarted the models
        self._watch = None if memory.detector is None else ChangeWatch(rows=memory.detector)
        self.changes: list[Change] = []
        """What the detector has noticed so far."""
        self._history: History | None = None
        self._scores: tuple[Version, RidgeScores] | None = None

    def advance(self, history: History) -> None:
        """Take in the rows that the history has gained."""
        self._history = history
        self._take_in(history, history.size)

    def _take_in(self, history: History, end: int, *, again: bool = False) -> None:
        """Take in the rows up to ``end``; the detector does not look at those that are taken in again."""
        new = slice(self.size, end)
        X, arms = history.rows[new], history.arms[new]
        features: dict[int, Array] = {}
        for i, arm in enumerate(arms.tolist()):
            features |= {p: self._told(p, X, arms) for p in self._grown if p not in features}
            reward = float(history.rewards[self.size])
            if (self._selector.compares and self._switches) or self._watched():
                self._forecast({place: features[place][i] for place in self._grown}, arm, reward)
            self.size += 1
            for place, grown in self._grown.items():
                if grown[arm].add(features[place][i], arm, reward):
                    grown[arm].refresh(self._so_far(history))
            if self._since and not again:
                self._pulled[arm] += 1
                if self._pulled[arm] == self._warmup:
                    for grown in self._grown.values():
                        grown[arm].refresh(self._so_far(history))
            if self._switches and self.size >= self._switches[0]:
                del self._switches[0]
                self._switch(history)
            if self._watch is not None and self.size % EVERY == 0 and not again:
                self._look(self._watch, history)
            if self.size == self._cut:
                self._cut = self._memory.next_cut(self.size)
                kept = self._memory.kept(self.size)
                self._restart(history, kept[kept >= self._since])
            if self.size == self.pooled_warmup and self._interactions is None:
                self._end_warmup(history)
                features.clear()  # rows may have more columns from now on

    def prepare(self) -> None:
        """Do now what questions to come would have to wait for."""
        begun = [model.sequence for model in dict.fromkeys(self.answering) if model.sequence is not None]
        self._backbone.prepare(begun)

    def fork(self, history: History) -> ArmModels | None:
        """A copy that grows on its own from an equal history; None where copies are not cheap."""
        if not self._backbone.copies or self._history is None:
            return None
        shared = (self._selector, self._backbone, self._candidates, *self._candidates, self._scores)
        memo: dict[int, object] = {id(kept): kept for kept in (*shared, *self._forecasts, *self.changes)}
        memo[id(self._history)] = history
        return copy.deepcopy(self, memo)

    def version(self, arm: int) -> Version:
        """Say what an arm's posterior depends on."""
        rows = self.answering[arm].version
        if rows:
            return self.layout.name, rows, self._restarts
        return "pooled", len(self._pooled()), self._restarts

    def warm_rows(self, arm: int) -> int:
        """Rows of an arm that its warm-up counts: those held, and after a restart only those since."""
        held = self.answering[arm].held[arm]
        return min(held, self._pulled[arm]) if self._since else held

    def lasting(self) -> Lasting:
        """For how many rows posteriors stay as they are."""
        times = [*self._switches[:1], *([] if self._cut is None else [self._cut])]
        looks = [] if self._watch is None else [EVERY - self.size % EVERY]
        within = [*(time - self.size for time in times), *looks]
        return Lasting(self.answering, self.layout.shared, within)

    def posteriors(
        self, X: Array, arms: ActionSet, estimator: Estimator, *, shortlist: _Numbers | None = None
    ) -> list[AnyPosterior]:
        """Posterior of each arm's mean reward at contexts ``X`` (q, P), arrays (q,), from one prediction.

        Of the S arms at the positions of a ``shortlist`` (q, S), others at each context, if there is one.
        """
        q, shared = len(X), self.layout.shared
        places = np.tile(np.arange(len(arms.numbers)), (q, 1)).T if shortlist is None else shortlist.T
        contexts = np.broadcast_to(X, (*places.shape, X.shape[1]))
        rows = np.concatenate([contexts, arms.features[places]], axis=2).reshape(places.size, -1)
        numbers = np.array(arms.numbers, dtype=np.int64)[places.ravel()]
        queries = self._told(self._active, rows, numbers)
        models = [self.answering[arm] for arm in numbers[::q].tolist()]
        parts = [slice(start, start + q) for start in range(0, len(rows), q)]
        questions = []
        # Where arms share a sequence, one question about every context under every arm.
        for model, part in [(models[0], slice(None))] if shared else zip(models, parts, strict=True):
            if model.version and model.sequence is not None:
                asked = estimator.asks(model.version)
                questions.append(Question(model.sequence, queries[part], asked.sizes, asked.levels))
        answers = self._backbone.predict(questions) if questions else []
        if shared and answers:
            answers = [answers[0].part(part) for part in parts]
        said = iter(answers)
        return [
            estimator.posterior(
                next(said),
                size=model.version,
                own=model.version if self.layout.by_features else model.held[arm],
                reward_variance=model.reward_variance,
            )
            if model.version
            else stand_in(self._pooled(), q)
            for model, arm in zip(models, numbers[::q].tolist(), strict=True)
        ]

    def ridge_scores(self) -> RidgeScores:
        """A ridge regression on the rows that the posterior rests on."""
        version, history = self.version(0), self._history
        assert history is not None
        if self._scores is None or self._scores[0] != version:
            by_features = self.layout.by_features
            rows = self._rows()[: self.answering[0].version]
            fit = RidgeScores.fit(
                history.rows[rows],
                history.arms[rows],
                history.rewards[rows],
                width=history.contexts.shape[1],
                effects=self.n_arms if by_features is not None and by_features.identity else 0,
            )
            self._scores = version, fit
        return self._scores[1]

    def _rows(self) -> _Numbers:
        """Numbers of the rows that the models have been told since they were started."""
        return np.concatenate([self._kept, np.arange(self._restarted, self.size)])

    def _begin(self, row: int) -> None:
        """Empty sequences of the candidates, of which the first answers; row ``row`` will be their first."""
        places = range(len(self._candidates)) if self._selector.compares else [0]
        self._grown = {place: self._start(place) for place in places}
        self._active = 0
        self.layout, self.answering = self._candidates[0], self._grown[0]
        """The layout that answers now, and its sequences by arm number."""
        self._switches = [row + time for time in self._selector.switch_times]
        self.totals = [0.0] * len(self._candidates)
        """CRPS of each candidate layout so far."""

    def _start(self, place: int) -> list[ArmHistory]:
        """Empty sequences of a layout, by arm number: one for each arm, or one for all, in every place."""
        layout = self._candidates[place]
        keep = layout.arm_columns(self.width, n_arms=self.n_arms)
        early = [times * self._warmup for times in (_EARLY if layout.shared else _EARLY[:1])]
        made = [
            ArmHistory(backbone=self._backbone, keep=keep, refresh=self._memory.refresh, early=early)
            for _ in range(1 if layout.shared else self.n_arms)
        ]
        return made * max(1, self.n_arms) if layout.shared else made

    def _switch(self, history: History) -> None:
        """Compare the layouts; the better one answers from now on, and after the last switch time alone."""
        self._score()
        self._active = self._selector.choose(self._active, self.totals)
        if self._active not in self._grown:
            self._grown[self._active] = self._grow(self._active, history, self._rows())
        self.layout, self.answering = self._candidates[self._active], self._grown[self._active]
        if not self._switches or not self._selector.compares:
            self._grown = {self._active: self.answering}

    def _forecast(self, rows: dict[int, Array], arm: int, reward: float) -> None:
        """Note a reward that every candidate can predict without having seen it, to be scored with others."""
        models = [self._grown[place][arm] for place in rows]
        if all(model.version for model in models):
            self._forecasts += [
                Forecast(place, self.size, arm, model.version, row, reward)
                for model, (place, row) in zip(models, rows.items(), strict=True)
            ]
            if len(self._forecasts) >= _SCORED_AT_ONCE * len(models):
                self._score()

    def _score(self) -> None:
        """Add the CRPS of the rewards noted; the watch is told that of the layout that answers."""
        waiting, self._forecasts = self._forecasts, []
        losses = scored(waiting, lambda f: self._grown[f.layout][f.arm], self._backbone)
        seen: list[tuple[int, float]] = []
        for forecast, loss in zip(waiting, losses.tolist(), strict=True):
            self.totals[forecast.layout] += loss
            if forecast.layout == self._active:
                seen.append((forecast.number, loss))
        if self._watch is not None and seen:
            self._watch.add(*map(np.array, zip(*seen, strict=True)))

    def _watched(self) -> bool:
        """Whether the detector is told of the next row."""
        held = len(self._kept) + self.size - self._restarted
        return self._watch is not None and (held < ALL_SCORED or self.size % 2 == 0)

    def _look(self, watch: ChangeWatch, history: History) -> None:
        """Refresh after an alarm; start anew from the rows since, once these predict better by themselves."""
        self._score()
        since = watch.look(self.size)
        if since is not None:
            self._refresh_all(self._so_far(history))
            self.changes.append(Change(self.size, since, restarted=False))
        for row in watch.suspected:
            if self._changed(watch, row, history):
                self.changes.append(Change(self.size, row, restarted=True))
                self._begin_anew(watch, history, row)
                return

    def _changed(self, watch: ChangeWatch, since: int, history: History) -> bool:
        """Whether models of the rows since then show that the world has changed.

        Each is told one half of them and predicts the other, and as many rows from before.
        """
        middle = (since + self.size) // 2
        halves = np.arange(since, middle), np.arange(middle, self.size)
        found = [
            self._losses(told, watch.compared(since, others), history)
            for told, others in (halves, halves[::-1])
        ]
        rows, losses = map(np.concatenate, zip(*found, strict=True))
        return watch.shows(since, rows, losses)

    def _losses(self, told: _Numbers, rows: _Numbers, history: History) -> tuple[_Numbers, Array]:
        """CRPS of rows under a model of other rows alone; without the rows of arms that it cannot predict."""
        alone = self._grow(self._active, history, told)
        for model in dict.fromkeys(alone):
            model.refresh(history.rewards[told])
        rows = rows[[alone[arm].version > 0 for arm in history.arms[rows].tolist()]]
        arms, rewards = history.arms[rows], history.rewards[rows].tolist()
        features = self._told(self._active, history.rows[rows], arms)
        forecasts = [
            Forecast(self._active, row, arm, alone[arm].version, features[i], rewards[i])
            for i, (row, arm) in enumerate(zip(rows.tolist(), arms.tolist(), strict=True))
        ]
        return rows, scored(forecasts, lambda f: alone[f.arm], self._backbone)

    def _begin_anew(self, watch: ChangeWatch, history: History, since: int) -> None:
        """Forget the rows before ``since`` and take in the others as if they were the first."""
        end, self.size = self.size, since
        self._since = self._restarted = since
        self._kept = np.arange(0)
        self._restarts += 1
        self._pulled.clear()
        self._begin(since)
        watch.begin_anew()
        self._take_in(history, end, again=True)
        self._refresh_all(self._so_far(history))

    def _restart(self, history: History, rows: NDArray[np.int64]) -> None:
        """Start all sequences anew from some rows."""
        self._score()
        self._kept, self._restarted = rows, self.size
        self._restarts += 1
        self._grown = {place: self._grow(place, history, rows) for place in self._grown}
        self.answering = self._grown[self._active]
        self._refresh_all(history.rewards[rows])

    def _end_warmup(self, history: History) -> None:
        """Let the products of context and features join the columns, and refresh: all arms are warm now.

        Products are scaled by the rows of the warm-up, whose arms were drawn at random, once and for all.
        """
        by_features, width = self.layout.by_features, history.contexts.shape[1]
        if by_features is not None and by_features.interacts(width, self.width - width):
            self._interactions = Interactions(Scaling.of(history.rows[: self.size]), width)
        self._restart(history, self._rows())

    def _told(self, place: int, X: Array, arms: _Numbers) -> Array:
        """Rows of a layout's sequences for contexts with features (n, P + A) and arm numbers (n,)."""
        rows = self._candidates[place].features(X, arms, n_arms=self.n_arms)
        return rows if self._interactions is None else np.concatenate([rows, self._interactions(X)], axis=1)

    def _refresh_all(self, so_far: Array) -> None:
        """Refresh all sequences; ``so_far`` are the rewards of all arms."""
        for model in dict.fromkeys(model for grown in self._grown.values() for model in grown):
            model.refresh(so_far)

    def _grow(self, place: int, history: History, rows: NDArray[np.int64]) -> list[ArmHistory]:
        """Sequences of a layout that hold some rows."""
        grown = self._start(place)
        arms, rewards = history.arms[rows], history.rewards[rows]
        features = self._told(place, history.rows[rows], arms)
        for i, arm in enumerate(arms.tolist()):
            if grown[arm].add(features[i], arm, float(rewards[i])):
                grown[arm].refresh(rewards[: i + 1])
        return grown

    def _so_far(self, history: History) -> Array:
        """Rewards of the rows that are held."""
        if not self._restarts:
            return history.rewards[: self.size]
        return np.concatenate([history.rewards[self._kept], history.rewards[self._restarted : self.size]])

    def _pooled(self) -> Array:
        """Rewards of all arms, which stand in for those of an arm without a posterior of its own."""
        rewards = np.empty(0) if self._history is None else self._so_far(self._history)
        if len(rewards) < FIRST_POSTERIOR:
            raise ValueError(f"a posterior needs at least {FIRST_POSTERIOR} rewards, got {len(rewards)}")
        return rewards[: last_refresh(len(rewards), self._memory.refresh)]
