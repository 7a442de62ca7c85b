"""The model of PFN-TS: sequences of a backbone, and the posterior that an estimator reads off them."""

from __future__ import annotations

import copy
from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from pfnts.arrays import Counts, Mask, Matrix
from pfnts.backbones import Backbone
from pfnts.events import ActionSet, History, Label
from pfnts.layouts import Change, Features, LayoutSelector, Learner, Sizes
from pfnts.layouts.memory import Memory
from pfnts.layouts.posteriors import Version, posteriors, version_of
from pfnts.layouts.shortlist import RidgeScores
from pfnts.policies.model import Model, Shape, Shortlisted
from pfnts.policies.prefetch import PrefetchCache
from pfnts.posterior import AnyPosterior, Estimator, MixturePosterior
from pfnts.posterior.estimator import join


class PFNModel(Model):
    """Appends rows to the sequences of their arms, and reads a posterior off what the backbone predicts.

    Parameters
    ----------
    selector
        Layouts, and which answers.
    backbone, estimator
        Prediction model, and how a posterior is made of its predictions.
    memory
        When sequences are refreshed, and which rows they forget.
    warmup
        Rows of an arm without which it is cold.
    cost
        Cost of each arm, for the shortlist.
    shape
        Sizes; None for a model that learns nothing.
    """

    def __init__(
        self,
        selector: LayoutSelector,
        *,
        backbone: Backbone,
        estimator: Estimator,
        memory: Memory,
        warmup: int,
        cost: Mapping[Label, float] | None = None,
        shape: Shape | None = None,
    ) -> None:
        self._selector, self._backbone, self._estimator = selector, backbone, estimator
        self._memory, self._warmup, self._cost = memory, warmup, cost
        self._shape = shape
        self._history: History | None = None
        self.copies = backbone.copies
        self.by_features = selector if isinstance(selector, Features) else None
        self.takes_features = self.by_features is not None
        self._announced: PrefetchCache[AnyPosterior] | None = None
        if shape is not None:
            features, width = self.by_features, shape.width + shape.features
            sizes = Sizes(
                room_for(shape.arms, shape.first),
                width,
                warmup,
                None if features is None else features.pooled_warmup(width, warmup=warmup),
                features is not None and features.interacts(shape.width, shape.features),
            )
            self._learner = Learner(selector, backbone=backbone, memory=memory, sizes=sizes)
        self._scores: tuple[Version, RidgeScores] | None = None

    def fresh(self, shape: Shape) -> PFNModel:
        """Return a model without rows."""
        return PFNModel(
            self._selector,
            backbone=self._backbone,
            estimator=self._estimator,
            memory=self._memory,
            warmup=self._warmup,
            cost=self._cost,
            shape=shape,
        )

    # Append: rewards join the sequences of their arms, which refresh as they grow.

    def observe(self, history: History, start: int, end: int) -> None:  # noqa: ARG002
        """Append rows."""
        self._history = history
        self._learner.advance(history, end)

    # Predict, estimate: one prediction, a posterior of each arm's mean reward.

    def predict(self, X: Matrix, arms: ActionSet, eligible: Mask | None) -> AnyPosterior | Shortlisted:
        """Return the posterior (q, K) of the mean rewards, or (q, S) of a shortlist of the eligible arms."""
        features = self.by_features
        if eligible is not None and features is not None and len(arms.numbers) > features.shortlist:
            costs = None if self._cost is None else np.array([self._cost[label] for label in arms.labels])
            scores = self._ridge_scores(features, width=X.shape[1])
            places = scores.shortlist(X, arms, eligible, size=features.shortlist, costs=costs)
            few = join(self._posteriors(X, arms, shortlist=places))
            return Shortlisted(few, places, features.explore)
        weights = self._learner.averaged()
        components = []
        for place in weights:
            if self._announced is None or arms.candidates is not None:
                components.append(join(self._posteriors(X, arms, place=place)))
            else:
                components.append(join(self._computed_ahead(self._announced, X, arms, place=place)))
        if len(components) == 1:
            return components[0]
        return MixturePosterior(components, np.array(list(weights.values())))  # type: ignore[arg-type]

    def held(self, history: History, arms: ActionSet) -> Counts:  # noqa: ARG002
        """Return the rows of each arm that its posterior rests on; with pooled warm-up, of all arms."""
        pooled = self._learner.sizes.pooled
        if pooled is None:
            return np.array([self._learner.warm_rows(arm) for arm in arms.numbers], dtype=np.int64)
        version = self._learner.answering.distinct[0].version
        return np.full(len(arms), version if version >= pooled else 0)

    def version(self, history: History, arms: ActionSet) -> Hashable:  # noqa: ARG002
        """Return what the posteriors of these arms depend on."""
        weights = self._learner.averaged()
        versions = [version_of(self._learner, arm, place) for arm in arms for place in weights]
        return tuple(arms), tuple(versions), tuple(weights.items())

    def unchanged(self, arms: Counts) -> int:
        """Return how many rows of these arms (m,) lead to no refresh."""
        return self._learner.unchanged(arms)

    def lasts(self) -> int | None:
        """Return the rows until the next refresh, where all arms share a sequence."""
        shared = self._learner.answering.layout.shared
        return self._learner.answering.distinct[0].due if shared else None

    def make_room(self, n_arms: int) -> bool:
        """Whether the sequences were made for so many arms."""
        assert self._shape is not None
        return room_for(n_arms, self._shape.first) == self._learner.sizes.n_arms

    def announce(self, X: Matrix) -> None:
        """Predict at contexts to come in batches."""
        self._announced = PrefetchCache(X)

    def prepare(self) -> None:
        """Fill the caches."""
        self._learner.prepare()

    @property
    def is_blank(self) -> bool:
        """Whether it learns nothing: sizes are not known yet."""
        return self._shape is None

    def first_layout(self, n_arms: int) -> str:
        """Return the name of the layout that answers at the beginning."""
        return self._selector.candidates(n_arms)[0].name

    @property
    def layout(self) -> str:
        """Name of the layout that answers."""
        return self._learner.answering.layout.name

    @property
    def changes(self) -> tuple[Change, ...]:
        """Changes noticed."""
        return tuple(self._learner.changes)

    def __deepcopy__(self, memo: dict[int, Any]) -> PFNModel:
        shared = (self._backbone, self._selector, self._estimator, self._memory)
        memo |= {id(one): one for one in shared}
        memo.setdefault(id(self._history), self._history)  # that of the policy, if it is copied too
        other = object.__new__(PFNModel)
        memo[id(self)] = other
        other.__dict__.update({name: copy.deepcopy(value, memo) for name, value in self.__dict__.items()})
        return other

    def _posteriors(
        self, X: Matrix, arms: ActionSet, *, place: int | None = None, shortlist: Counts | None = None
    ) -> list[AnyPosterior]:
        return posteriors(
            self._learner,
            X,
            arms,
            backbone=self._backbone,
            estimator=self._estimator,
            place=place,
            shortlist=shortlist,
        )

    def _ridge_scores(self, features: Features, *, width: int) -> RidgeScores:
        """Return a ridge regression on the rows that the posterior rests on."""
        learner, history = self._learner, self._history
        assert history is not None, "a shortlist needs rows"
        version = version_of(learner, 0)
        if self._scores is None or self._scores[0] != version:
            rows = learner.held_rows()[: learner.answering.distinct[0].version]
            fit = RidgeScores.fit(
                history.rows[rows],
                history.arms[rows],
                history.rewards[rows],
                width=width,
                effects=learner.sizes.n_arms if features.identity else 0,
            )
            self._scores = version, fit
        return self._scores[1]

    def _computed_ahead(
        self, announced: PrefetchCache[AnyPosterior], X: Matrix, arms: ActionSet, *, place: int
    ) -> list[AnyPosterior]:
        """Return the posterior of each arm's mean reward at ``X`` (q, P), some computed ahead."""
        versions = {(place, arm): version_of(self._learner, arm, place) for arm in arms}
        columns = {arm: column for column, arm in enumerate(arms)}

        def ask(stale: list[tuple[int, int]], X: Matrix) -> list[AnyPosterior]:
            return self._posteriors(X, arms.take([columns[arm] for _, arm in stale]), place=place)

        ahead = self._learner.sequences(place).likely_rounds()
        found = announced.find(X, versions, ask, lambda column, rows: column.take(rows), ahead=ahead)
        return list(found.values())


def room_for(n_arms: int, first: int) -> int:
    """Return the arms that sequences are made for: those there are, after the first new one a power of two.

    Where the arm is among the columns, a new arm then seldom changes what rows look like.

    Examples
    --------
    >>> room_for(3, 3), room_for(4, 3), room_for(9, 3)
    (3, 8, 16)
    """
    return n_arms if n_arms == first else max(8, 1 << (n_arms - 1).bit_length())
