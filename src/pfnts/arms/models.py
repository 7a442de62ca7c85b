"""The models of all arms: rows go in, posteriors come out."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import scipy
from numpy.typing import NDArray

from pfnts.arms.changes import ALL_SCORED, EVERY, Change, ChangeWatch
from pfnts.arms.forgetting import Forgetting
from pfnts.arms.layouts import Features
from pfnts.arms.schedule import FIRST_POSTERIOR, next_refresh
from pfnts.arms.selectors import LayoutSelector
from pfnts.arms.sequences import ArmHistory, LayoutSequences
from pfnts.arms.shortlist import RidgeScores, largest
from pfnts.backbones.base import Backbone, Prediction, Question
from pfnts.events import ActionSet, History
from pfnts.posterior import AnyPosterior, Estimator, GaussianPosterior, RewardDistribution, stack
from pfnts.posterior.base import Array
from pfnts.posterior.rewards import stack_rewards
from pfnts.scores import crps

_Numbers: TypeAlias = NDArray[np.int64]
Version: TypeAlias = tuple[str, int, int]
"""Layout, rows and restarts: while an arm's version stays the same, so does its posterior."""

# As many levels as a PFN puts out; the CRPS of a Gaussian is then right to 0.3 %.
_LEVELS = tuple(np.arange(1, 100) / 100)
_SCORED_AT_ONCE = 64
_NEVER = Forgetting()
# Degrees of freedom at which a Student is a Gaussian for every purpose: a stand-in among Student columns.
_NEARLY_GAUSSIAN = 1000.0


@dataclass(frozen=True)
class _Forecast:
    """A reward to be scored: what was known of it just before it arrived."""

    number: int
    arm: int
    size: int
    row: Array
    reward: float


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
        self._grown = {
            place: self._start(place)
            for place in (range(len(self._candidates)) if selector.compares else [0])
        }
        self._active = 0
        self._switches = list(selector.switch_times)
        self._forecasts: list[tuple[_Forecast, ...]] = []
        self.totals = [0.0] * len(self._candidates)
        """CRPS of each candidate layout so far."""
        self.size = 0
        """Rows taken in."""
        self._rewards = np.empty(0)
        self._forgetting = forgetting
        self._cut = forgetting.next_cut(0)
        self._kept = np.arange(0)  # rows that stayed at the last restart, which was after so many rows
        self._restarted = self._restarts = self._since = 0
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
        new = slice(self.size, history.size)
        X, arms = history.rows(new), history.arms[new]
        features = {place: grown.features(X, arms) for place, grown in self._grown.items()}
        for i, arm in enumerate(arms.tolist()):
            reward = float(history.rewards[self.size])
            if (self._selector.compares and self._switches) or self._watched():
                self._forecast({place: rows[i] for place, rows in features.items()}, arm, reward)
            self.size += 1
            for place, grown in self._grown.items():
                grown.of(arm).add(features[place][i], arm, reward, self._so_far(history))
            if self._switches and self.size >= self._switches[0]:
                del self._switches[0]
                self._switch(history)
                features |= {p: g.features(X, arms) for p, g in self._grown.items() if p not in features}
                features = {p: features[p] for p in self._grown}
            if self._watch is not None and self.size % EVERY == 0:
                self._look(self._watch, history)
            if self.size == self._cut:
                self._cut = self._forgetting.next_cut(self.size)
                kept = self._forgetting.kept(self.size)
                self._restart(history, kept[kept >= self._since])
        self._rewards = self._so_far(history)

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
        model = self._answering.of(arm)
        name, rows = (self.layout, model.version) if model.version else ("pooled", self._pooled_size())
        return name, rows, self._restarts

    def held(self, arms: Sequence[int]) -> NDArray[np.int64]:
        """Rows of each arm that the model answering for it holds."""
        return np.array([self._answering.of(arm).held[arm] for arm in arms], dtype=np.int64)

    def cold(self, arms: Sequence[int]) -> NDArray[np.bool_]:
        """Arms whose posterior rests on too few rows: their own, or any where features tell them apart."""
        answering = self._answering
        if isinstance(answering.layout, Features):
            needed = answering.layout.pooled_warmup(self._width, warmup=self._warmup)
            return np.full(len(arms), answering.of(0).version < needed)
        return self.held(arms) < self._warmup

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

    def posteriors(self, X: Array, arms: ActionSet, estimator: Estimator) -> list[AnyPosterior]:
        """Posterior of each arm's mean reward at contexts ``X`` (q, P), arrays (q,), from one prediction."""
        ready = [place for place, arm in enumerate(arms) if self._answering.of(arm).version]
        if self.shared and ready:
            # One question about every context under every arm, arm by arm.
            numbers = np.repeat(np.asarray(arms.numbers, dtype=np.int64), len(X))
            return self._shared_posteriors(arms.rows(X), numbers, len(X), estimator)
        questions = [
            _question(self._answering.of(arms[place]), arms.take([place]).rows(X), estimator)
            for place in ready
        ]
        answers = self._backbone.predict(questions) if questions else []
        found: dict[int, AnyPosterior] = {}
        for place, answer in zip(ready, answers, strict=True):
            model = self._answering.of(arms[place])
            found[place] = estimator.posterior(
                answer, size=model.version, reward_variance=model.reward_variance
            )
        return [found[place] if place in found else self._stand_in(len(X)) for place in range(len(arms))]

    def shortlist(
        self, X: Array, arms: ActionSet, eligible: NDArray[np.bool_], size: int, less: Array
    ) -> _Numbers:
        """Positions (q, size) of the arms with the largest upper quantiles at contexts ``X`` (q, P).

        They follow from the rows that the posterior rests on, the context and the arms: nothing is drawn.
        ``less`` (K,) is deducted from the mean reward of each arm.
        """
        fit, numbers = self._fit(), np.asarray(arms.numbers, dtype=np.int64)
        return np.stack(
            [
                largest(fit.upper(arms.rows(x[None]), numbers) - less, allowed, size)
                for x, allowed in zip(X, eligible, strict=True)
            ]
        )

    def posteriors_among(
        self, X: Array, arms: ActionSet, places: _Numbers, estimator: Estimator
    ) -> list[AnyPosterior]:
        """Posteriors (q,) at contexts ``X`` (q, P), one for each of the S arms at ``places`` (q, S)."""
        features = arms.features[places.T]  # (S, q, A)
        rows = np.concatenate([np.broadcast_to(X, (*places.T.shape, X.shape[1])), features], axis=2)
        numbers = np.asarray(arms.numbers, dtype=np.int64)[places.T].ravel()
        return self._shared_posteriors(rows.reshape(len(numbers), -1), numbers, len(X), estimator)

    def _shared_posteriors(
        self, rows: Array, numbers: _Numbers, q: int, estimator: Estimator
    ) -> list[AnyPosterior]:
        """Ask the one sequence about rows (m q, P + A), and cut what it says into m posteriors (q,)."""
        model = self._answering.of(0)
        question = _question(model, self._answering.features(rows, numbers), estimator)
        [whole] = self._backbone.predict([question])
        return [
            estimator.posterior(
                _part(whole, slice(start, start + q)),
                size=model.version,
                reward_variance=model.reward_variance,
            )
            for start in range(0, len(rows), q)
        ]

    def _fit(self) -> RidgeScores:
        """The ridge regression on the rows that the posterior rests on."""
        version, history = self.version(0), self._history
        assert history is not None
        if self._scores is None or self._scores[0] != version:
            layout, rows = self._answering.layout, self._rows()[: self._answering.of(0).version]
            fit = RidgeScores.fit(
                history.rows(rows),
                history.arms[rows],
                history.rewards[rows],
                width=history.contexts.shape[1],
                effects=self.n_arms if isinstance(layout, Features) and layout.identity else 0,
            )
            self._scores = version, fit
        return self._scores[1]

    def _rows(self) -> _Numbers:
        """Numbers of the rows that the models have been told since they were started."""
        return np.concatenate([self._kept, np.arange(self._restarted, self.size)])

    @property
    def _answering(self) -> LayoutSequences:
        return self._grown[self._active]

    def _start(self, place: int) -> LayoutSequences:
        return LayoutSequences(self._candidates[place], backbone=self._backbone, **self._settings)  # type: ignore[arg-type]

    def _switch(self, history: History) -> None:
        """Compare the layouts; the better one answers from now on, and after the last switch time alone."""
        self._score()
        self._active = self._selector.choose(self._active, self.totals)
        if self._active not in self._grown:
            self._grown[self._active] = self._grow(self._active, history, self._rows())
        if not self._switches or not self._selector.compares:
            self._grown = {self._active: self._answering}

    def _forecast(self, rows: dict[int, Array], arm: int, reward: float) -> None:
        """Note a reward that every candidate can predict without having seen it, to be scored with others."""
        models = [self._grown[place].of(arm) for place in rows]
        if all(model.version for model in models):
            self._forecasts.append(
                tuple(
                    _Forecast(self.size, arm, model.version, row, reward)
                    for model, row in zip(models, rows.values(), strict=True)
                )
            )
            if len(self._forecasts) >= _SCORED_AT_ONCE:
                self._score()

    def _score(self) -> None:
        """Add the CRPS of the rewards noted; the watch is told that of the layout that answers."""
        waiting, self._forecasts = self._forecasts, []
        seen: list[tuple[int, float]] = []
        groups: dict[tuple[int, ArmHistory, int], list[_Forecast]] = {}
        for forecasts in waiting:
            for place, forecast in zip(self._grown, forecasts, strict=True):
                model = self._grown[place].of(forecast.arm)
                groups.setdefault((place, model, forecast.size), []).append(forecast)
        questions = [
            Question(model.sequence, np.stack([f.row for f in group]), (size,), _LEVELS)  # type: ignore[arg-type]
            for (_, model, size), group in groups.items()
        ]
        for (place, _, _), group, answer in zip(
            groups, groups.values(), self._backbone.predict(questions) if questions else [], strict=True
        ):
            rewards = np.array([forecast.reward for forecast in group])
            losses = crps(np.array(_LEVELS), answer.quantiles, rewards)
            self.totals[place] += float(losses.sum())
            if place == self._active:
                numbers = [forecast.number for forecast in group]
                seen += zip(numbers, losses.tolist(), strict=True)
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
            if self._better_since(watch, row, history):
                self.changes.append(Change(self.size, row, restarted=True))
                self._since = row
                self._restart(history, np.arange(row, self.size))
                watch.begin_anew()
                return

    def _better_since(self, watch: ChangeWatch, since: int, history: History) -> bool:
        """Whether a model of the first half of the rows since then predicts the second half better."""
        middle = (since + self.size) // 2
        alone = self._grow(self._active, history, np.arange(since, middle))
        alone.refresh(history.rewards[since:middle])
        rows = np.array([r for r in range(middle, self.size) if alone.of(int(history.arms[r])).version])
        if not len(rows):
            return False
        features = alone.features(history.rows(rows), history.arms[rows])
        models = [alone.of(int(arm)) for arm in history.arms[rows]]
        asked = {id(model): model for model in models}
        places = {key: [i for i, model in enumerate(models) if id(model) == key] for key in asked}
        questions = [
            Question(model.sequence, features[places[key]], (model.version,), _LEVELS)  # type: ignore[arg-type]
            for key, model in asked.items()
        ]
        losses = np.empty(len(rows))
        for key, answer in zip(asked, self._backbone.predict(questions), strict=True):
            own = places[key]
            losses[own] = crps(np.array(_LEVELS), answer.quantiles, history.rewards[rows[own]])
        return watch.worse_than(rows, losses)

    def _restart(self, history: History, rows: NDArray[np.int64]) -> None:
        """Start all sequences anew from some rows."""
        self._score()
        self._kept, self._restarted = rows, self.size
        self._restarts += 1
        self._grown = {place: self._grow(place, history, rows) for place in self._grown}
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

    def _pooled_size(self) -> int:
        size = len(self._rewards)
        if size < FIRST_POSTERIOR:
            raise ValueError(f"a posterior needs at least {FIRST_POSTERIOR} rewards, got {size}")
        point = following = FIRST_POSTERIOR
        while following <= size:
            point, following = following, next_refresh(following, self._refresh)
        return point

    def _stand_in(self, q: int) -> GaussianPosterior:
        """What is said of an arm without a posterior of its own: its mean is like a reward of any arm."""
        rewards = self._rewards[: self._pooled_size()]
        scale = np.full(q, np.std(rewards))
        return GaussianPosterior(
            mean=np.full(q, np.mean(rewards)), variance=scale**2, size=1, directions=scale[None]
        )


def join(columns: Sequence[AnyPosterior], *, coupled: bool, own: int) -> AnyPosterior:
    """Join posteriors (q,), one per arm, into (q, K); the last ``own`` directions stay each arm's own."""
    for column in columns:
        if isinstance(column, RewardDistribution):
            return stack_rewards([_rewards(other, len(column.points)) for other in columns])
    if len({type(column) for column in columns}) > 1:
        columns = [
            column.student(_NEARLY_GAUSSIAN) if isinstance(column, GaussianPosterior) else column
            for column in columns
        ]
    joined: GaussianPosterior = stack(columns, coupled=coupled)  # type: ignore[type-var, assignment]
    if coupled and own and joined.directions is not None:
        return replace(joined, directions=_unshared(joined.directions, own))
    return joined


def _rewards(column: AnyPosterior, count: int) -> RewardDistribution:
    """Give equally likely rewards, also for a stand-in."""
    if isinstance(column, RewardDistribution):
        return column
    normal = scipy.special.ndtri((np.arange(count) + 0.5) / count)
    return RewardDistribution(column.mean + normal[:, None] * np.sqrt(column.variance), column.size)


def _question(model: ArmHistory, queries: Array, estimator: Estimator) -> Question:
    asked = estimator.asks(model.version)
    assert model.sequence is not None
    return Question(model.sequence, queries, asked.sizes, asked.levels)


def _part(whole: Prediction, which: slice) -> Prediction:
    sd = None if whole.mean_sd is None else whole.mean_sd[which]
    return Prediction(whole.means[:, which], whole.quantiles[:, which], sd)


def _unshared(directions: Array, own: int) -> Array:
    """Spread the last ``own`` directions (J, q, K) so that each arm's part has draws to itself."""
    shared, rest = directions[:-own], directions[-own:]
    arms = directions.shape[-1]
    spread = rest[:, None] * np.eye(arms)[None, :, None, :]
    return np.concatenate([shared, spread.reshape(own * arms, *directions.shape[1:])])
