"""A model that is brought up to date with the history when it is needed."""

from __future__ import annotations

import copy
from collections.abc import Callable

from pfnts.arrays import Matrix
from pfnts.events import History
from pfnts.policies.model import Model, Shape


class CurrentModel:
    """Keeps a model, learns the rows it has not seen, and makes it again if anything fails half-way.

    Parameters
    ----------
    blank
        A model that has seen no row, of the settings wanted.
    n_arms
        Arms at the beginning.
    """

    def __init__(self, blank: Model, n_arms: int) -> None:
        self.blank = blank
        """The model without rows."""
        self._first = n_arms
        self._announced: Matrix | None = None
        self.reset()

    def reset(self) -> None:
        """Drop what was learned; the next use learns the history again."""
        self._model: Model | None = None
        self._shape: Shape | None = None
        self._learned = self._revision = 0

    def at(
        self,
        history: History,
        width: int,
        n_features: int | None = None,
        *,
        progress: Callable[[int, int], None] | None = None,
        at_once: int = 0,
    ) -> Model:
        """Return the model after all rows, for contexts of ``width`` floats and arms of ``n_features``.

        ``progress`` is called with the number of rows learned and their total, every ``at_once`` rows.
        """
        if n_features is None:
            n_features = (history.features if history.size else history.arm_features).shape[1]
        shape = Shape(width, len(history.labels), self._first, n_features)
        model, self._model = self._model, None  # gone if it fails half-way
        if model is None or self._revision != history.revision or not self._fits(model, shape):
            model, self._learned, self._revision = self.blank.fresh(shape), 0, history.revision
            if self._announced is not None:
                model.announce(self._announced)
        self._shape = shape
        while history.size > self._learned:
            end = history.size if progress is None else min(history.size, self._learned + at_once)
            model.observe(history, self._learned, end)
            self._learned = end
            if progress is not None:
                progress(end, history.size)
        self._model = model
        return model

    def announce(self, X: Matrix) -> None:
        """Announce contexts (m, P) to come."""
        self._announced = X
        if self._model is not None:
            self._model.announce(X)

    def adopt(self, other: CurrentModel, history: History) -> None:
        """Copy what an equal policy's model has learned, if it has learned the whole history."""
        if (
            other._model is None
            or not other._model.copies
            or other._learned != history.size
            or other._revision != history.revision
        ):
            return
        self._model, self._shape = copy.deepcopy(other._model), other._shape
        self._learned, self._revision = other._learned, other._revision

    def _fits(self, model: Model, shape: Shape) -> bool:
        known = self._shape
        if known is None or (shape.width, shape.features) != (known.width, known.features):
            return False
        return shape.arms == known.arms or model.make_room(shape.arms)
