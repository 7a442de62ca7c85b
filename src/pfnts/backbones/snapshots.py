"""Histories of a model that reads a whole prefix at once: one snapshot per prefix size, kept for reuse."""

from __future__ import annotations

import weakref
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from pfnts.backbones.base import Matrix, Vector
from pfnts.backbones.checks import check_levels, check_queries, check_rows, check_sizes


class Prediction(Protocol):
    """What a model says about q queries."""

    @property
    def mean(self) -> Vector:
        """(q,) predictive means."""
        ...

    def quantiles(self, levels: Vector) -> Matrix:
        """Predictive quantiles (len(levels), q)."""
        ...


class FittedPrefix(Protocol):
    """A model that has read the first rows of a history."""

    @property
    def nbytes(self) -> int:
        """Memory that it holds."""
        ...

    def predict(self, queries: Matrix) -> Prediction:
        """Answer queries (q, P)."""
        ...


Fit: TypeAlias = Callable[[Matrix, Vector], FittedPrefix]
Key: TypeAlias = tuple[int, int]


class Shelf:
    """Snapshots of all the histories of a backbone, within a limit of memory.

    A prefix never changes, so neither does its snapshot: after more rows the sizes 2, 4, 8, ... of the prefix
    grid are still here, and only the newest is fitted. When memory runs short, those that were not asked for
    the longest go first. But a snapshot is never dropped for another of the same question: a question for
    more sizes than fit would find none of them here when it is put again.

    Parameters
    ----------
    capacity
        Bytes that the snapshots may take.

    Examples
    --------
    >>> shelf = Shelf(capacity=1_000_000)
    >>> shelf.held
    0
    """

    def __init__(self, *, capacity: int) -> None:
        self._capacity = capacity
        self._kept: OrderedDict[Key, tuple[FittedPrefix, int]] = OrderedDict()  # the last used come last
        self._questions = count()
        self._histories = count()
        self.held = 0
        """Bytes that the snapshots take."""

    def join(self, history: object) -> int:
        """Number a history, whose snapshots are dropped with it."""
        number = next(self._histories)
        weakref.finalize(history, self._forget, number).atexit = False
        return number

    def question(self) -> int:
        """Begin a question; snapshots that it asks for belong together."""
        return next(self._questions)

    def find(self, key: Key, *, question: int, fit: Callable[[], FittedPrefix]) -> FittedPrefix:
        """Take the snapshot of (history, size), or fit it and keep it if there is room."""
        if key in self._kept:
            found = self._kept.pop(key)[0]
            self._kept[key] = found, question
            return found
        made = fit()
        if made.nbytes > self._capacity:
            return made
        while self.held + made.nbytes > self._capacity:
            oldest = next(iter(self._kept))
            if self._kept[oldest][1] == question:
                return made
            self._drop(oldest)
        self._kept[key] = made, question
        self.held += made.nbytes
        return made

    def _drop(self, key: Key) -> None:
        self.held -= self._kept.pop(key)[0].nbytes

    def _forget(self, history: int) -> None:
        for key in [key for key in self._kept if key[0] == history]:
            self._drop(key)


class SnapshotSequence:
    """A `pfnts.backbones.base.PredictiveSequence` of a model that reads a whole prefix at once.

    Parameters
    ----------
    X
        Rows to start from, (n, P).
    y
        Their targets, (n,).
    fit
        Lets the model read rows and targets.
    shelf
        Where the snapshots are kept.
    at_once
        Query cells in one pass of the model.
    """

    def __init__(self, X: ArrayLike, y: ArrayLike, *, fit: Fit, shelf: Shelf, at_once: int) -> None:
        self._X, self._y = (rows.copy() for rows in check_rows(X, y, columns=None))
        self._fit = fit
        self._shelf = shelf
        self._number = shelf.join(self)
        self._queries_at_once = max(1, at_once // max(1, self._X.shape[1]))
        self._last: _Answer | None = None

    @property
    def size(self) -> int:
        """Number of observations held."""
        return len(self._y)

    def append(self, X: ArrayLike, y: ArrayLike) -> None:
        """Add observations at the end; the model reads them when it is next asked."""
        X_new, y_new = check_rows(X, y, columns=self._X.shape[1])
        self._X = np.concatenate([self._X, X_new])
        self._y = np.concatenate([self._y, y_new])

    def means(self, queries: ArrayLike, sizes: Sequence[int]) -> Matrix:
        """Predictive means at ``queries`` (q, P) after each prefix size, as (len(sizes), q)."""
        x = check_queries(queries, self._X.shape[1])
        chosen = check_sizes(sizes, self.size).tolist()
        if not chosen or not len(x):
            return np.empty((len(chosen), len(x)))
        question = self._shelf.question()
        means = {}
        # The largest first: if there is no room for all, these are the costly ones to fit again.
        for size in sorted(set(chosen), reverse=True):
            answer = self._answer(x, size, question=question)
            means[size] = answer.mean
            if len(means) == 1:
                self._last = answer  # its quantiles are likely to be asked for next
        return np.stack([means[size] for size in chosen])

    def quantiles(self, queries: ArrayLike, size: int, levels: ArrayLike) -> Matrix:
        """Predictive quantiles at ``queries`` (q, P) after the first ``size`` rows, as (len(levels), q)."""
        x = check_queries(queries, self._X.shape[1])
        check_sizes([size], self.size)
        level = check_levels(levels)
        if not len(x):
            return np.empty((len(level), 0))
        self._last = self._answer(x, size, question=self._shelf.question())
        return self._last.quantiles(level)

    def _answer(self, x: Matrix, size: int, *, question: int) -> _Answer:
        """Ask the snapshot of a size, unless that was the last thing asked."""
        if self._last is not None and self._last.answers(x, size):
            return self._last
        snapshot = self._shelf.find(
            (self._number, size),
            question=question,
            fit=lambda: self._fit(self._X[:size], self._y[:size]),
        )
        parts = np.split(x, range(self._queries_at_once, len(x), self._queries_at_once))
        return _Answer(x.copy(), size, tuple(snapshot.predict(part) for part in parts))


@dataclass(frozen=True)
class _Answer:
    """What a snapshot said."""

    queries: Matrix
    size: int
    parts: tuple[Prediction, ...]

    @property
    def mean(self) -> Vector:
        """(q,) predictive means."""
        return np.concatenate([part.mean for part in self.parts])

    def quantiles(self, levels: Vector) -> Matrix:
        """Predictive quantiles (len(levels), q)."""
        return np.concatenate([part.quantiles(levels) for part in self.parts], axis=1)

    def answers(self, x: Matrix, size: int) -> bool:
        """Whether it was asked the same."""
        return self.size == size and np.array_equal(self.queries, x, equal_nan=True)
