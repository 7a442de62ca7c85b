"""Predicted means of arms, each with a sequence of its own."""

from __future__ import annotations

import numpy as np

from pfnts.arrays import Mask, Matrix
from pfnts.backbones import Backbone, PredictiveSequence, Question
from pfnts.events import ActionSet, History
from pfnts.policies.model import Model, Shape, Values


class SequenceMeans(Model):
    """A predictive sequence for each arm; the values are predicted means, 0 for an arm without rows.

    Parameters
    ----------
    backbone
        Makes the sequences.
    """

    def __init__(self, backbone: Backbone) -> None:
        self._backbone = backbone
        self._sequences: dict[int, PredictiveSequence] = {}

    def fresh(self, shape: Shape) -> SequenceMeans:  # noqa: ARG002
        """Return a model without rows."""
        return SequenceMeans(self._backbone)

    def observe(self, history: History, start: int, end: int) -> None:
        """Append rows to the sequences of their arms."""
        X, arms, rewards = (part[start:end] for part in (history.contexts, history.arms, history.rewards))
        for k in np.unique(arms).tolist():
            own = arms == k
            if k in self._sequences:
                self._sequences[k].append(X[own], rewards[own])
            else:
                self._sequences[k] = self._backbone.sequence(X[own], rewards[own])

    def predict(self, X: Matrix, arms: ActionSet, eligible: Mask | None) -> Values:  # noqa: ARG002
        """Return predicted means (q, K)."""
        columns = [column for column, k in enumerate(arms) if k in self._sequences]
        sequences = [self._sequences[arms[column]] for column in columns]
        means, sizes = np.zeros((len(X), len(arms))), np.zeros(len(arms))
        predictions = self._backbone.predict([Question(s, X, (s.size,)) for s in sequences])
        for column, sequence, prediction in zip(columns, sequences, predictions, strict=True):
            means[:, column], sizes[column] = prediction.means[-1], sequence.size
        return Values(means, sizes)

    def make_room(self, n_arms: int) -> bool:  # noqa: ARG002
        """Whether there is room: always, a new arm has a sequence of its own."""
        return True
