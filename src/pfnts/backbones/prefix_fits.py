"""Histories of a model that is fitted to a whole prefix: one fit per prefix size, kept for reuse."""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from itertools import count
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from pfnts.backbones.base import Matrix, Prediction, PredictiveSequence, Vector
from pfnts.backbones.checks import check_keep, check_question, check_rows


class Predictive(Protocol):
    """Predictions for q queries."""

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

    def predict(self, queries: Matrix) -> Predictive:
        """Answer queries (q, P)."""
        ...


Fit: TypeAlias = Callable[[Matrix, Vector], FittedPrefix]
Key: TypeAlias = tuple[int, int]


class LRUCache:
    """Fits of all the histories of a backbone, within a limit of memory.

    A prefix never changes, so neither does its fit: after more rows the sizes 2, 4, 8, ... of the prefix
    grid are still here, and only the newest is fitted. When memory runs short, those least recently used go
    first. But a fit is never dropped for another of the same question: a question for more sizes than fit
    into memory would find none of them here when it is put again.

    Parameters
    ----------
    capacity
        Bytes that the fits may take.

    Examples
    --------
    >>> LRUCache(capacity=1_000_000).held
    0
    """

    def __init__(self, *, capacity: int) -> None:
        self._capacity = capacity
        self._lock = threading.Lock()
        self._kept: OrderedDict[Key, tuple[FittedPrefix, int]] = OrderedDict()  # the last used come last
        self._questions = count()
        self._histories = count()
        self._held = 0
        self._gone: deque[int] = (
            deque()
        )  # histories: collected at any time, so that no lock may be taken then

    def join(self, history: object) -> int:
        """Number a history, whose fits are dropped with it."""
        number = next(self._histories)
        weakref.finalize(history, self._gone.append, number).atexit = False
        return number

    @property
    def held(self) -> int:
        """Bytes that the fits take."""
        with self._lock:
            self._drop_gone()
            return self._held

    def question(self) -> int:
        """Begin a question; fits that it asks for belong together."""
        return next(self._questions)

    def find(self, key: Key, *, question: int, fit: Callable[[], FittedPrefix]) -> FittedPrefix:
        """Return the fit of (history, size), made now if it is not here, and kept if there is room."""
        with self._lock:
            if key in self._kept:
                found = self._kept.pop(key)[0]
                self._kept[key] = found, question
                return found
        made = fit()  # without the lock: other threads may fit meanwhile, even the same
        with self._lock:
            self._drop_gone()
            if key in self._kept or made.nbytes > self._capacity:
                return made
            while self._held + made.nbytes > self._capacity:
                oldest = next(iter(self._kept))
                if self._kept[oldest][1] == question:
                    return made
                self._drop(oldest)
            self._kept[key] = made, question
            self._held += made.nbytes
        return made

    def _drop(self, key: Key) -> None:
        self._held -= self._kept.pop(key)[0].nbytes

    def _drop_gone(self) -> None:
        """Drop the fits of histories that are no more."""
        while self._gone:
            history = self._gone.popleft()
            for key in [key for key in self._kept if key[0] == history]:
                self._drop(key)


class RefittedSequence(PredictiveSequence):
    """A history of a model that is fitted to each prefix that predictions need.

    Parameters
    ----------
    X
        Rows to start from, (n, P).
    y
        Their targets, (n,).
    keep
        Columns that are never mixed with others; the model has each column for itself anyway.
    fit
        Lets the model read rows and targets.
    fits
        Where they are kept.
    at_once
        Query cells in one pass of the model.
    """

    def __init__(
        self, X: ArrayLike, y: ArrayLike, *, keep: Sequence[int], fit: Fit, fits: LRUCache, at_once: int
    ) -> None:
        self._X, self._y = (rows.copy() for rows in check_rows(X, y, columns=None))
        check_keep(keep, self._X.shape[1])
        self._fit = fit
        self._fits = fits
        self._number = fits.join(self)
        self._queries_at_once = max(1, at_once // max(1, self._X.shape[1]))

    @property
    def size(self) -> int:
        """Number of observations held."""
        return len(self._y)

    def append(self, X: ArrayLike, y: ArrayLike) -> None:
        """Add observations at the end; the model reads them when it is next asked."""
        X_new, y_new = check_rows(X, y, columns=self._X.shape[1])
        self._X, self._y = np.concatenate([self._X, X_new]), np.concatenate([self._y, y_new])

    def predict(self, queries: ArrayLike, *, sizes: Sequence[int], levels: ArrayLike = ()) -> Prediction:
        """Predict at ``queries`` (q, P): means after each size, quantiles after the last of them."""
        x, wanted, level = check_question(queries, sizes, levels, columns=self._X.shape[1], held=len(self._y))
        chosen = wanted.tolist()
        means, quantiles = np.empty((len(chosen), len(x))), np.empty((len(level), len(x)))
        if not chosen or not len(x):
            return Prediction(means, quantiles)
        question = self._fits.question()
        # The largest first: if there is no room for all, these are the costly ones to fit again.
        for size in sorted(set(chosen), reverse=True):
            said = self._ask(x, size, question=question)
            means[wanted == size] = np.concatenate([part.mean for part in said])
            if size == chosen[-1] and len(level):
                quantiles = np.concatenate([part.quantiles(level) for part in said], axis=1)
        return Prediction(means, quantiles)

    def _ask(self, x: Matrix, size: int, *, question: int) -> list[Predictive]:
        """Put queries to the fit of a size, in parts."""
        fitted = self._fits.find(
            (self._number, size),
            question=question,
            fit=lambda: self._fit(self._X[:size], self._y[:size]),
        )
        parts = np.split(x, range(self._queries_at_once, len(x), self._queries_at_once))
        return [fitted.predict(part) for part in parts]
