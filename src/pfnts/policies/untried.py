"""What a history leaves open: regions where an arm was not tried, rewards that a model does not explain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from pfnts.arrays import Matrix
from pfnts.events import ActionSet, History
from pfnts.explain.neighbours import comparable, squared_distances
from pfnts.posterior import AnyPosterior, BoundedPosterior

_TAIL = 0.1
"""How much an untried region may promise: chosen on functions with corners and on some without."""
_USUAL = 0.05
"""Share of an arm's rewards that are as high as one at which that one is followed as often as not."""
_FEW = 8
"""Nearest rows of an arm whose rewards are looked at."""


def bounded(
    posterior: AnyPosterior, X: Matrix, arms: ActionSet, history: History, range_: tuple[float, float]
) -> BoundedPosterior:
    """Keep a posterior (q, K) inside a range, and add what the history leaves open there.

    A model that has seen an arm pay about 1 some hundred times is sure that it does so everywhere. The
    history does not say that: of a region in which the arm was not tried it says nothing, and all that is
    known is the range. The region around a context is as large as the share of all contexts that are nearer
    to it than the arm's nearest row; the larger it is, the more the arm may pay there. And where one of the
    nearest rows paid more than the model says, and more than the arm usually pays, that may be the truth.

    Where arms have features nothing is added: there no arm was tried by itself. Nor to a shortlist of them.

    Parameters
    ----------
    posterior
        What the model says, at contexts ``X`` (q, P) of ``arms``.
    X, arms
        Encoded contexts, and the K arms.
    history
        All rows, those included that the model has not taken in yet.
    range_
        The least and the largest reward.
    """
    low, high = range_
    location = np.clip(posterior.mean, low, high)
    found = BoundedPosterior(
        location=location,
        scale=np.sqrt(posterior.variance),
        low=np.asarray(low),
        high=np.asarray(high),
        size=posterior.size,
    )
    if history.has_features or location.shape[1] != len(arms):
        return found
    untried, outlier, odds = open_questions(X, arms, history, location)
    return replace(
        found,
        tail=_TAIL * untried * (high - location),
        outlier=outlier,
        outlier_weight=odds / (1 + odds),
    )


def open_questions(
    X: Matrix, arms: Sequence[int], history: History, means: Matrix
) -> tuple[Matrix, Matrix, Matrix]:
    """What the rows near each of ``X`` (q, P) leave open about arms, three arrays (q, K).

    The share of all contexts that are nearer than an arm's nearest row, 1 where it has none. Of the nearest
    rows that paid more than ``means`` (q, K) the most telling reward, and the odds that it stands for
    the mean here: they fall with the squares of the number of the arm's rows as near as that one, and of the
    share of the arm's rewards as high.
    """
    assert history.schema is not None
    seen = comparable(history.contexts, history.contexts, history.schema)
    untried, outlier, odds = np.ones(means.shape), means.copy(), np.zeros(means.shape)
    own = {k: np.flatnonzero(history.arms == arm) for k, arm in enumerate(arms)}
    ordered = {k: np.sort(history.rewards[rows]) for k, rows in own.items()}
    for i, x in enumerate(comparable(X, history.contexts, history.schema)):
        distances = squared_distances(x, seen)
        for k, rows in own.items():
            if not len(rows):
                continue
            away = distances[rows]
            untried[i, k] = (np.count_nonzero(distances < away.min()) + 1) / (history.size + 1)
            few = np.argpartition(away, _FEW - 1)[:_FEW] if len(rows) > _FEW else np.arange(len(rows))
            paid = history.rewards[rows[few]]
            nearer = (away <= away[few, None]).sum(axis=1)
            as_high = 1 - np.searchsorted(ordered[k], paid) / len(rows)
            loud = np.where(paid > means[i, k], (_USUAL / (as_high * nearer)) ** 2, 0.0)
            best = loud.argmax()
            if loud[best] > 0:
                outlier[i, k], odds[i, k] = paid[best], loud[best]
    return untried, outlier, odds
