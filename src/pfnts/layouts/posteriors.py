"""Posteriors of the arms' mean rewards, from one prediction of the backbone."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from pfnts.arrays import Counts, Matrix
from pfnts.backbones.base import Backbone, Question
from pfnts.events import ActionSet
from pfnts.layouts.learner import Learner
from pfnts.posterior import AnyPosterior, Estimator
from pfnts.posterior.estimator import pooled

Version: TypeAlias = tuple[str, int, int]
"""Layout, rows and restarts: while an arm's version stays the same, so does its posterior."""


def version_of(learner: Learner, arm: int, place: int | None = None) -> Version:
    """Return what an arm's posterior depends on, by the layout that answers or by that of a place."""
    grown = learner.answering if place is None else learner.sequences(place)
    rows = grown[arm].version
    if rows:
        return grown.layout.name, rows, learner.restarts
    return "pooled", len(learner.pooled_rewards()), learner.restarts


def posteriors(
    learner: Learner,
    X: Matrix,
    arms: ActionSet,
    *,
    backbone: Backbone,
    estimator: Estimator,
    place: int | None = None,
    shortlist: Counts | None = None,
) -> list[AnyPosterior]:
    """Return the posterior of each arm's mean reward at contexts ``X`` (q, P), arrays (q,).

    By the layout that answers, or by that of a ``place``. Of the S arms at the positions of a ``shortlist``
    (q, S), others at each context, if there is one.
    """
    q, grown = len(X), learner.answering if place is None else learner.sequences(place)
    places = np.tile(np.arange(len(arms.numbers)), (q, 1)).T if shortlist is None else shortlist.T
    contexts = np.broadcast_to(X, (*places.shape, X.shape[1]))
    rows = np.concatenate([contexts, arms.features[places]], axis=2).reshape(places.size, -1)
    numbers = np.array(arms.numbers, dtype=np.int64)[places.ravel()]
    queries = grown.rows_of(learner.design(rows), numbers)
    sequences = [grown[arm] for arm in numbers[::q].tolist()]
    parts = [slice(start, start + q) for start in range(0, len(rows), q)]
    # Where arms share a sequence, one question about every context under every arm.
    asked = [(sequences[0], slice(None))] if grown.layout.shared else zip(sequences, parts, strict=True)
    questions = []
    for one, part in asked:
        if one.version and one.sequence is not None:
            asks = estimator.asks(one.version)
            questions.append(Question(one.sequence, queries[part], asks.sizes, asks.levels))
    predictions = backbone.predict(questions) if questions else []
    if grown.layout.shared and predictions:
        predictions = [predictions[0].part(part) for part in parts]
    left = iter(predictions)
    return [
        estimator.posterior(
            next(left),
            size=one.version,
            own=one.version if learner.sizes.pooled else one.held[arm],
            reward_variance=one.reward_variance,
        )
        if one.version
        else pooled(learner.pooled_rewards(), q)
        for one, arm in zip(sequences, numbers[::q].tolist(), strict=True)
    ]
