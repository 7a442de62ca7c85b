"""The model of PFN-TS: sequences of a backbone, and the posterior that an estimator reads off them."""

from __future__ import annotations

from collections.abc import Hashable, Mapping

import numpy as np

from pfnts.arms import ArmModels, Change, Features, LayoutSelector
from pfnts.arms.memory import Memory
from pfnts.arrays import Counts, Mask, Matrix
from pfnts.backbones import Backbone
from pfnts.events import ActionSet, History, Label
from pfnts.policies.model import Model, Shape, Shortlisted
from pfnts.policies.prefetch import PrefetchCache
from pfnts.posterior import AnyPosterior, Estimator
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
        first, *others = selector.candidates(0)
        self.by_features: Features | None = None if others else first.by_features
        self.takes_features = self.by_features is not None
        self._announced: PrefetchCache[AnyPosterior] | None = None
        if shape is not None:
            self.models = ArmModels(
                selector,
                backbone=backbone,
                memory=memory,
                warmup=warmup,
                n_arms=room_for(shape.arms, shape.first),
                width=shape.width + shape.features,
            )

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
        self.models.advance(history)

    # Predict, estimate: one prediction, a posterior of each arm's mean reward.

    def predict(self, X: Matrix, arms: ActionSet, eligible: Mask | None) -> AnyPosterior | Shortlisted:
        """Return the posterior (q, K) of the mean rewards, or (q, S) of a shortlist of the eligible arms."""
        features = self.by_features
        if eligible is not None and features is not None and len(arms) > features.shortlist:
            costs = None if self._cost is None else np.array([self._cost[label] for label in arms.labels])
            places = self.models.ridge_scores().shortlist(
                X, arms, eligible, size=features.shortlist, costs=costs
            )
            columns = self.models.posteriors(X, arms, self._estimator, shortlist=places)
            return Shortlisted(self._joined(columns), places, features.explore)
        if self._announced is None or arms.candidates is not None:
            return self._joined(self.models.posteriors(X, arms, self._estimator))
        return self._joined(self._computed_ahead(self._announced, X, arms))

    def held(self, history: History, arms: ActionSet) -> Counts:  # noqa: ARG002
        """Return the rows of each arm that its posterior rests on; with pooled warm-up, of all arms."""
        pooled = self.models.pooled_warmup
        if pooled is None:
            return np.array([self.models.warm_rows(arm) for arm in arms], dtype=np.int64)
        version = self.models.answering[0].version
        return np.full(len(arms), version if version >= pooled else 0)

    def version(self, history: History, arms: ActionSet) -> Hashable:  # noqa: ARG002
        """Return what the posteriors of these arms depend on."""
        return tuple((arm, self.models.version(arm)) for arm in arms)

    def unchanged(self, arms: Counts) -> int:
        """Return how many rows of these arms (m,) lead to no refresh."""
        return self.models.lasting().unchanged(arms)

    def make_room(self, n_arms: int) -> bool:
        """Whether the sequences were made for so many arms."""
        assert self._shape is not None
        return room_for(n_arms, self._shape.first) == self.models.n_arms

    def announce(self, X: Matrix) -> None:
        """Predict at contexts to come in batches."""
        self._announced = PrefetchCache(X)

    def prepare(self) -> None:
        """Fill the caches."""
        self.models.prepare()

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
        return self.models.layout.name

    @property
    def changes(self) -> tuple[Change, ...]:
        """Changes noticed."""
        return tuple(self.models.changes)

    def _joined(self, columns: list[AnyPosterior]) -> AnyPosterior:
        coupled = self._estimator.coupled and self.models.layout.shared
        return join(columns, coupled=coupled, own=self._estimator.own_directions)

    def _computed_ahead(
        self, announced: PrefetchCache[AnyPosterior], X: Matrix, arms: ActionSet
    ) -> list[AnyPosterior]:
        """Return the posterior of each arm's mean reward at ``X`` (q, P), some computed ahead."""
        versions = {arm: self.models.version(arm) for arm in arms}
        places = {arm: place for place, arm in enumerate(arms)}

        def ask(stale: list[int], X: Matrix) -> list[AnyPosterior]:
            return self.models.posteriors(X, arms.take([places[arm] for arm in stale]), self._estimator)

        ahead = self.models.lasting().likely_rounds()
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
