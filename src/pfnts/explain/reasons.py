"""How an explanation is worked out: one posterior, distances, and each column replaced in turn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pfnts.arrays import Matrix, Vector
from pfnts.contexts import Schema, plain, read
from pfnts.contexts.schema import Rows
from pfnts.events import Decided, Event, History, Observed, Rewarded
from pfnts.events.event import Context
from pfnts.explain.explanation import ArmReasons, ColumnEffect, Explanation, SimilarRow
from pfnts.explain.neighbours import comparable, squared_distances
from pfnts.posterior import AnyPosterior
from pfnts.posterior.base import check_level

_ROUNDING = 1e-6  # networks compute in single precision
_REPLACEMENTS = 32
"""Rows of the history whose values take the place of a column's."""


def explanation(
    given: Rows,
    posterior_at: Callable[[Matrix], AnyPosterior],
    history: History,
    events: Sequence[Event],
    *,
    costs: Vector | None,
    rows: int,
    level: float,
) -> Explanation:
    """Explain one context; nothing changes.

    Parameters
    ----------
    given
        The context.
    posterior_at
        Posterior (q, K) at encoded contexts (q, P).
    history
        What the log amounts to.
    events
        The log, for contexts as they were given.
    costs
        What is deducted from each arm's mean reward (K,) before arms are compared, if anything is.
    rows
        How many of the nearest rows of each arm are shown.
    level
        Probability that the intervals hold.
    """
    if isinstance(rows, bool) or not isinstance(rows, int) or rows < 0:
        raise ValueError(f"rows must be a number of rows from 0 on, got {rows!r}")
    check_level(level)
    posterior = posterior_at(given.X)
    costs = np.zeros(posterior.mean.shape[-1]) if costs is None else costs
    (low,), (high,) = posterior.interval(level)
    [mean], [best] = posterior.mean, posterior.shifted(costs).best_arm_probabilities()
    worth = mean - costs
    order = np.lexsort((-worth, -best))
    near = _nearest(given.X[0], history, given.schema, rows)
    contexts = _as_given(events, {i for places in near.values() for i, _, _ in places})
    arms = []
    for k in order.tolist():
        number = history.live[k]
        rivals = worth[order[order != k]] + costs[k]
        similar = tuple(
            SimilarRow(contexts[i], reward, distance, bool((reward > rivals[:1]).all()))
            for i, distance, reward in near[number]
        )
        ends = float(mean[k]), float(low[k]), float(high[k])
        seen = int(history.rewarded[number])
        arms.append(ArmReasons(history.labels[number], *ends, float(best[k]), seen, similar, float(costs[k])))
    replacing = _evenly(history.size, _REPLACEMENTS)
    effects: list[ColumnEffect] = []
    if len(order) > 1 and len(replacing):
        leads = _leads(given, posterior_at, history.contexts[replacing], order)
        first, second = order[:2]
        leads -= costs[first] - costs[second]
        lead = worth[first] - worth[second]
        for column, value, changed in zip(given.schema.columns, _values(given), leads, strict=True):
            overturned, effect = float((changed < 0).mean()), float(lead - changed.mean())
            if abs(effect) <= _ROUNDING * np.abs(changed).max():
                effect = 0.0  # averages are not exact
            effects.append(ColumnEffect(column.name, value, effect, overturned))
    effects.sort(key=lambda found: -abs(found.effect))
    return Explanation(given.contexts[0], level, tuple(arms), tuple(effects), len(replacing))


def _nearest(
    x: Matrix, history: History, schema: Schema, rows: int
) -> dict[int, list[tuple[int, float, float]]]:
    """Place, distance and reward of those rows of each arm there is that are nearest to ``x`` (P,)."""
    seen = comparable(history.contexts, history.contexts, schema)
    distances = np.sqrt(squared_distances(comparable(x[None], history.contexts, schema)[0], seen))
    found = {}
    for number in history.live:
        own = np.flatnonzero(history.arms == number)
        # Of rows equally far, the newest first.
        nearest = own[np.lexsort((-own, distances[own]))][:rows]
        found[number] = [
            (i, round(float(distances[i]), 2), float(history.rewards[i])) for i in nearest.tolist()
        ]
    return found


def _as_given(events: Sequence[Event], wanted: set[int]) -> dict[int, Context]:
    """Contexts of some rows of the history, by their place: rewards in the order of the log."""
    decided: dict[str, Context] = {}
    found: dict[int, Context] = {}
    place = 0
    for event in events:
        if isinstance(event, Decided):
            decided[event.id] = event.context
        elif isinstance(event, Observed | Rewarded):
            if place in wanted:
                context = event.context if isinstance(event, Observed) else decided[event.id]
                found[place] = plain(context)
            place += 1
    return found


def _leads(
    given: Rows, posterior_at: Callable[[Matrix], AnyPosterior], others: Matrix, order: NDArray[np.int64]
) -> Matrix:
    """Lead (columns, n) of the first arm over the second, each column replaced by that of n ``others``."""
    columns = given.schema.columns
    X = np.tile(given.X[0], (len(columns), len(others), 1))
    begin = 0
    for j, column in enumerate(columns):
        floats = slice(begin, begin + len(column.features))
        X[j, :, floats] = others[:, floats]
        begin = floats.stop
    means = posterior_at(X.reshape(-1, X.shape[-1])).mean.reshape(len(columns), len(others), -1)
    return np.asarray(means[..., order[0]] - means[..., order[1]])


def _values(given: Rows) -> list[Any]:
    """Values of the context as given, in the order of the schema's columns."""
    table = read(given.contexts[0])
    return [table[column.name][0] for column in given.schema.columns]


def _evenly(size: int, count: int) -> NDArray[np.int64]:
    """Places of at most ``count`` rows, evenly spread over the history."""
    return np.arange(min(size, count)) * max(size, 1) // max(min(size, count), 1)
