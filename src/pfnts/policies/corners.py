"""What a history leaves open: regions where an arm was not tried, rewards that a model does not explain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from pfnts.events import ActionSet, History
from pfnts.policies.decision import Matrix
from pfnts.policies.neighbours import comparable, squared_distances
from pfnts.posterior import AnyPosterior, BoundedPosterior

_REACH = 0.1
"""How much an untried region may promise: chosen on functions of `benchmarks/reward_range.py`."""
_USUAL = 0.05
"""A reward that is exceeded in so large a share of an arm's rewards is followed as often as not."""


def bounded(
    posterior: AnyPosterior, X: Matrix, arms: ActionSet, history: History, range_: tuple[float, float]
) -> BoundedPosterior:
    """Keep a posterior (q, K) inside a range, and add what the history leaves open there.

    A model that has seen an arm pay about 1 some hundred times is sure that it does so everywhere. The
    history does not say that: of a region in which the arm was not tried it says nothing, and all that is
    known is the range. The region around a context is as large as the share of all contexts that are nearer
    to it than the arm's nearest row; the larger it is, the more the arm may pay there. And where that nearest
    row paid more than the model says, and more than the arm usually pays, its reward may be the truth.

    Where arms have features nothing is added: there no arm was tried by itself.

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
    if history.has_features:
        return found
    untried, echo, unusual = open_questions(X, arms, history)
    odds = np.where(echo > location, (_USUAL / unusual) ** 2, 0.0)
    return replace(found, reach=_REACH * untried * (high - location), echo=echo, echoed=odds / (1 + odds))


def open_questions(X: Matrix, arms: Sequence[int], history: History) -> tuple[Matrix, Matrix, Matrix]:
    """What the rows near each of ``X`` (q, P) leave open about arms, three arrays (q, K).

    The share of all contexts that are nearer than an arm's nearest row, 1 where it has none; the reward of
    that row (the average of those equally near); and the share of the arm's rewards that are no smaller.
    """
    assert history.schema is not None
    schema = history.schema
    untried, unusual = np.ones((2, len(X), len(arms)))
    echo = np.full(untried.shape, -np.inf)
    seen = comparable(history.contexts, history.contexts, schema)
    own = {k: np.flatnonzero(history.arms == arm) for k, arm in enumerate(arms)}
    ordered = {k: np.sort(history.rewards[rows]) for k, rows in own.items()}
    for i, x in enumerate(comparable(X, history.contexts, schema)):
        distances = squared_distances(x, seen)
        for k, rows in own.items():
            if not len(rows):
                continue
            nearest = distances[rows].min()
            untried[i, k] = (np.count_nonzero(distances < nearest) + 1) / (history.size + 1)
            echo[i, k] = history.rewards[rows[distances[rows] == nearest]].mean()
            smaller = np.searchsorted(ordered[k], echo[i, k] * (1 - 1e-12))
            unusual[i, k] = max(len(rows) - smaller, 1) / len(rows)
    return untried, echo, unusual
