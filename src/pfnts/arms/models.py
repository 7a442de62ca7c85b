"""The models of all arms: rows go in, posteriors come out."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from pfnts.arms import answers
from pfnts.arms.changes import ALL_SCORED, EVERY, Change, ChangeWatch
from pfnts.arms.forecasts import Forecast, scored
from pfnts.arms.forgetting import Forgetting
from pfnts.arms.schedule import FIRST_POSTERIOR, last_refresh
from pfnts.arms.selectors import LayoutSelector
from pfnts.arms.sequences import LayoutSequences
from pfnts.arms.shortlist import RidgeScores, largest
from pfnts.backbones.base import Backbone
from pfnts.events import ActionSet, History
from pfnts.posterior import AnyPosterior, Estimator
from pfnts.posterior.base import Array

_Numbers: TypeAlias = NDArray[np.int64]
Version: TypeAlias = tuple[str, int, int]
"""Layout, rows and restarts: while an arm's version stays the same, so does its posterior."""

_SCORED_AT_ONCE = 64
_NEVER = Forgetting()


class ArmModels:
    """Grows the sequences of the candidate layouts from a history, and answers by the active one.

    What it holds depends on the rows alone, not on the pieces in which they came.

    Parameters
    ----------
    selector
        Which layouts there are, and which answers.
    backbone
        Makes the sequences.
    refresh
        Growth factor of refresh points.
    warmup
        Rows of an arm without which it is cold.
    n_arms
        Arms there may be.
    width
        Floats in a context and in the features of an arm.
    forgetting
        Which rows leave, and when.
    detector
        Rows from one false alarm to the next, on average at least; None for no detector.
    """

    def __init__(
        self,
        selector: LayoutSelector,
        *,
        backbone: Backbone,
        refresh: float,
        warmup: int,
        n_arms: int,
        width: int,
        forgetting: Forgetting = _NEVER,
        detector: float | None = None,
    ) -> None:
        self._selector = selector
        self._backbone = backbone
        self.n_arms = n_arms
        """Arms there may be."""
        self._warmup, self._width = warmup, width
        self._settings = {"refresh": refresh, "warmup": warmup, "n_arms": n_arms, "width": width}
        self._refresh = refresh
        self._candidates = selector.candidates(n_arms)
        self._forecasts: list[Forecast] = []
        self._begin(0)
        self.size = 0
        """Rows taken in."""
        self._rewards = np.empty(0)
        self._forgetting = forgetting
        self._cut = forgetting.next_cut(0)
        self._kept = np.arange(0)  # rows that stayed at the last restart, which was after so many rows
        self._restarted = self._restarts = self._since = 0
        self._pulled: Counter[int] = Counter()  # rows of each arm since the detector restarted the models
        self._watch = None if detector is None else ChangeWatch(rows=detector)
        self.changes: list[Change] = []
        """What the detector has noticed so far."""
        self._history: History | None = None
        self._scores: tuple[Version, RidgeScores] | None = None

    @property
    def layout(self) -> str:
        """Name of the layout that answers now."""
        return self._answering.layout.name

    @property
    def shared(self) -> bool:
        """Whether arms share a sequence now."""
        return self._answering.layout.shared

    def advance(self, history: History) -> None:
        """Take in the rows that the history has gained."""
        self._history = history
        self._take_in(history, history.size)
        self._rewards = self._so_far(history)

    def _take_in(self, history: History, end: int, *, again: bool = False) -> None:
        """Take in the rows up to ``end``; the detector does not look at those that are taken in again."""
        new = slice(self.size, end)
        X, arms = history.rows(new), history.arms[new]
        features: dict[int, Array] = {}
        for i, arm in enumerate(arms.tolist()):
            features |= {p: g.features(X, arms) for p, g in self._grown.items() if p not in features}
            reward = float(history.rewards[self.size])
            if (self._selector.compares and self._switches) or self._watched():
                self._forecast({place: features[place][i] for place in self._grown}, arm, reward)
            self.size += 1
            for place, grown in self._grown.items():
                grown.of(arm).add(features[place][i], arm, reward, self._so_far(history))
            if self._since and not again:
                self._pulled[arm] += 1
                if self._pulled[arm] == self._warmup:
                    for grown in self._grown.values():
                        grown.of(arm).refresh(self._so_far(history))
            if self._switches and self.size >= self._switches[0]:
                del self._switches[0]
                self._switch(history)
            if self._watch is not None and self.size % EVERY == 0 and not again:
                self._look(self._watch, history)
            if self.size == self._cut:
                self._cut = self._forgetting.next_cut(self.size)
                kept = self._forgetting.kept(self.size)
                self._restart(history, kept[kept >= self._since])

    def prepare(self) -> None:
        """Do now what questions to come would have to wait for."""
        self._backbone.prepare(self._answering.sequences)

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
        rows = self._answering.of(arm).version
        if rows:
            return self._answering.layout.name, rows, self._restarts
        return "pooled", len(self._pooled()), self._restarts

    def held(self, arms: Sequence[int]) -> NDArray[np.int64]:
        """Rows of each arm that the model answering for it holds."""
        return np.array([self._answering.of(arm).held[arm] for arm in arms], dtype=np.int64)

    def cold(self, arms: Sequence[int]) -> NDArray[np.bool_]:
        """Arms whose posterior rests on too few rows: their own, or any where features tell them apart."""
        answering = self._answering
        by_features = answering.layout.by_features
        if by_features is None:
            pulled = np.array([self._pulled[arm] for arm in arms]) if self._since else np.inf
            return np.minimum(self.held(arms), pulled) < self._warmup
        needed = by_features.pooled_warmup(self._width, warmup=self._warmup)
        return np.full(len(arms), answering.of(0).version < needed)

    def lasts(self, most: int) -> int:
        """Rows, ``most`` or fewer, after which posteriors may change whatever the rows are."""
        times = [self.size + most, *self._switches[:1], *([] if self._cut is None else [self._cut])]
        if self._watch is not None:
            times.append(self.size + EVERY - self.size % EVERY)
        return min(times) - self.size

    def unchanged(self, arms: NDArray[np.int64]) -> int:
        """Count how many rows of these arms (m,), in this order, leave every posterior as it is."""
        first = min(len(arms), self.lasts(len(arms) + 1) - 1)
        if self.shared:
            return min(first, self._answering.of(0).first_refresh(arms))
        for arm in np.unique(arms).tolist():
            places = np.flatnonzero(arms == arm)
            refresh = self._answering.of(arm).first_refresh(arms[places])
            if refresh < len(places):
                first = min(first, int(places[refresh]))
        return first

    def posteriors(
        self, X: Array, arms: ActionSet, estimator: Estimator, *, shortlist: _Numbers | None = None
    ) -> list[AnyPosterior]:
        """Posterior of each arm's mean reward at contexts ``X`` (q, P), arrays (q,), from one prediction.

        Of the S arms at the positions of a ``shortlist`` (q, S), others at each context, if there is one.
        """
        numbers = np.asarray(arms.numbers, dtype=np.int64)
        if shortlist is None:
            rows, numbers = arms.rows(X), np.repeat(numbers, len(X))
        else:
            places = shortlist.T
            contexts = np.broadcast_to(X, (*places.shape, X.shape[1]))
            rows = np.concatenate([contexts, arms.features[places]], axis=2).reshape(places.size, -1)
            numbers = numbers[places].ravel()
        found = answers.posteriors(
            self._answering, rows, numbers, q=len(X), backbone=self._backbone, estimator=estimator
        )
        return [answers.stand_in(self._pooled(), len(X)) if one is None else one for one in found]

    def shortlist(
        self, X: Array, arms: ActionSet, eligible: NDArray[np.bool_], *, size: int, costs: Array | None
    ) -> _Numbers:
        """Positions (q, size) of the arms with the largest upper quantiles at contexts ``X`` (q, P).

        They follow from the rows that the posterior rests on, the context and the arms: nothing is drawn.
        ``costs`` (K,) is deducted from the mean reward of each arm.
        """
        costs = np.zeros(len(arms)) if costs is None else costs
        fit, numbers = self._fit(), np.asarray(arms.numbers, dtype=np.int64)
        return np.stack(
            [
                largest(fit.upper(arms.rows(x[None]), numbers) - costs, allowed, size)
                for x, allowed in zip(X, eligible, strict=True)
            ]
        )

    def _fit(self) -> RidgeScores:
        """The ridge regression on the rows that the posterior rests on."""
        version, history = self.version(0), self._history
        assert history is not None
        if self._scores is None or self._scores[0] != version:
            by_features = self._answering.layout.by_features
            rows = self._rows()[: self._answering.of(0).version]
            fit = RidgeScores.fit(
                history.rows(rows),
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
        self._active, self._answering = 0, self._grown[0]
        self._switches = [row + time for time in self._selector.switch_times]
        self.totals = [0.0] * len(self._candidates)
        """CRPS of each candidate layout so far."""

    def _start(self, place: int) -> LayoutSequences:
        return LayoutSequences(self._candidates[place], backbone=self._backbone, **self._settings)  # type: ignore[arg-type]

    def _switch(self, history: History) -> None:
        """Compare the layouts; the better one answers from now on, and after the last switch time alone."""
        self._score()
        self._active = self._selector.choose(self._active, self.totals)
        if self._active not in self._grown:
            self._grown[self._active] = self._grow(self._active, history, self._rows())
        self._answering = self._grown[self._active]
        if not self._switches or not self._selector.compares:
            self._grown = {self._active: self._answering}

    def _forecast(self, rows: dict[int, Array], arm: int, reward: float) -> None:
        """Note a reward that every candidate can predict without having seen it, to be scored with others."""
        models = [self._grown[place].of(arm) for place in rows]
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
        seen: list[tuple[int, float]] = []
        for group, losses in scored(waiting, lambda f: self._grown[f.layout].of(f.arm), self._backbone):
            layout = group[0].layout
            self.totals[layout] += float(losses.sum())
            if layout == self._active:
                seen += zip([forecast.number for forecast in group], losses.tolist(), strict=True)
        if self._watch is not None and seen:
            self._watch.add(*map(np.array, zip(*sorted(seen), strict=True)))

    def _watched(self) -> bool:
        """Whether the detector is told of the next row."""
        held = len(self._kept) + self.size - self._restarted
        return self._watch is not None and (held < ALL_SCORED or self.size % 2 == 0)

    def _look(self, watch: ChangeWatch, history: History) -> None:
        """Refresh after an alarm; start anew from the rows since, once these predict better by themselves."""
        self._score()
        since = watch.look(self.size)
        if since is not None:
            for grown in self._grown.values():
                grown.refresh(self._so_far(history))
            self.changes.append(Change(self.size, since, restarted=False))
        for row in watch.suspected:
            if self._changed(watch, row, history):
                self.changes.append(Change(self.size, row, restarted=True))
                self._begin_anew(watch, history, row)
                return

    def _changed(self, watch: ChangeWatch, since: int, history: History) -> bool:
        """Whether a model of the first half of the rows since then shows that the world has changed."""
        middle = (since + self.size) // 2
        alone = self._grow(self._active, history, np.arange(since, middle))
        alone.refresh(history.rewards[since:middle])
        rows = watch.compared(since, middle)
        rows = rows[[alone.of(arm).version > 0 for arm in history.arms[rows].tolist()]]
        if not len(rows):
            return False
        arms, rewards = history.arms[rows].tolist(), history.rewards[rows].tolist()
        features = alone.features(history.rows(rows), history.arms[rows])
        forecasts = [
            Forecast(self._active, i, arm, alone.of(arm).version, features[i], rewards[i])
            for i, arm in enumerate(arms)
        ]
        losses = np.empty(len(rows))
        for group, found in scored(forecasts, lambda f: alone.of(f.arm), self._backbone):
            losses[[forecast.number for forecast in group]] = found
        return watch.shows(since, rows, losses)

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
        for grown in self._grown.values():
            grown.refresh(self._so_far(history))

    def _restart(self, history: History, rows: NDArray[np.int64]) -> None:
        """Start all sequences anew from some rows."""
        self._score()
        self._kept, self._restarted = rows, self.size
        self._restarts += 1
        self._grown = {place: self._grow(place, history, rows) for place in self._grown}
        self._answering = self._grown[self._active]
        for grown in self._grown.values():
            grown.refresh(history.rewards[rows])

    def _grow(self, place: int, history: History, rows: NDArray[np.int64]) -> LayoutSequences:
        """Sequences of a layout that hold some rows."""
        grown = self._start(place)
        arms, rewards = history.arms[rows], history.rewards[rows]
        for i, row in enumerate(grown.features(history.rows(rows), arms)):
            grown.of(int(arms[i])).add(row, int(arms[i]), float(rewards[i]), rewards[: i + 1])
        return grown

    def _so_far(self, history: History) -> Array:
        """Rewards of the rows that are held."""
        if not self._restarts:
            return history.rewards[: self.size]
        return np.concatenate([history.rewards[self._kept], history.rewards[self._restarted : self.size]])

    def _pooled(self) -> Array:
        """Rewards of all arms, which stand in for those of an arm without a posterior of its own."""
        size = len(self._rewards)
        if size < FIRST_POSTERIOR:
            raise ValueError(f"a posterior needs at least {FIRST_POSTERIOR} rewards, got {size}")
        return self._rewards[: last_refresh(size, self._refresh)]
