"""A history held by the network, of which every prefix can be asked about."""

from __future__ import annotations

import copy
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pfnts.backbones.base import Prediction, PredictiveSequence, Question
from pfnts.backbones.checks import check_keep, check_rows
from pfnts.backbones.network.inference.asking import answer
from pfnts.backbones.network.inference.cache import SMALLEST_BASIS, Cache, Growth
from pfnts.backbones.network.network import CausalPFN

LARGEST_BASIS = 2048
"""From here on the scale is known."""
KEPT_FOR = 96
"""A cache is dropped when so many questions did not need it: forecasts that rest on fewer rows wait for up to
64 rows before they are scored, and to make their cache anew takes a second."""


class EmbeddedSequence(PredictiveSequence):
    """The network's `pfnts.backbones.base.PredictiveSequence`.

    A prefix is shown to the network normalised, and its columns reduced, by its first rows: `basis_of` says
    how many. There is a cache for every such number, made when a prefix that needs it is asked about. While
    one is in use the next is made bit by bit, so that no question has to wait for a whole one.

    Parameters
    ----------
    network
        What sees the rows, on ``device``.
    X, y
        The first rows, (n, P) and (n,).
    keep
        Columns that are never mixed with others.
    device
        Where to compute.
    """

    def __init__(
        self,
        network: CausalPFN,
        X: ArrayLike,
        y: ArrayLike,
        *,
        keep: Sequence[int] = (),
        device: str = "cpu",
    ) -> None:
        self.network = network
        self.device = device
        self._X, self._y = (rows.copy() for rows in check_rows(X, y, columns=None))  # with room to grow
        self._size = len(self._y)
        self._keep = check_keep(keep, self._X.shape[1])
        self.lock = threading.Lock()
        """Held while it is asked: questions move the caches."""
        self._caches: dict[int, Cache] = {}
        self._questions = 0
        self._used: dict[int, int] = {}  # number of the last question, by basis

    @property
    def size(self) -> int:
        """Number of observations held."""
        return self._size

    @property
    def columns(self) -> int:
        """Number of features."""
        return self._X.shape[1]

    def append(self, X: ArrayLike, y: ArrayLike) -> None:
        """Add observations at the end; the network sees them when it is asked."""
        X_new, y_new = check_rows(X, y, columns=self.columns)
        size = self._size + len(y_new)
        if size > len(self._y):
            room = max(size, 2 * self._size) - self._size
            self._X = np.concatenate([self._X[: self._size], np.empty((room, self.columns))])
            self._y = np.concatenate([self._y[: self._size], np.empty(room)])
        self._X[self._size : size], self._y[self._size : size] = X_new, y_new
        self._size = size

    def predict(self, queries: ArrayLike, *, sizes: Sequence[int], levels: ArrayLike = ()) -> Prediction:
        """Predict at ``queries`` (q, P): means after each size, quantiles after the last of them."""
        # What is asked is checked where questions are answered.
        question = Question(self, queries, sizes, levels)  # type: ignore[arg-type]
        return answer([question])[0]

    def __deepcopy__(self, memo: dict[int, Any]) -> EmbeddedSequence:
        """A copy that grows on its own; what the network has made of the rows is shared, not copied."""
        with self.lock:
            other = copy.copy(self)
            other.lock = threading.Lock()
            # Without room to grow: whoever appends first takes the rows with it.
            other._X, other._y = self._X[: self._size], self._y[: self._size]
            other._caches = {basis: cache.fork() for basis, cache in self._caches.items() if not cache.empty}
            other._used = dict(self._used)
        memo[id(self)] = other
        return other

    def cache_of(self, size: int) -> Cache:
        """Return the cache that answers after ``size`` rows."""
        basis = basis_of(size)
        self._used[basis] = self._questions
        return self._made(basis)

    def begin_question(self) -> None:
        """Drop the caches that no question has needed for long."""
        self._questions += 1
        for old in [b for b, last in self._used.items() if last < self._questions - KEPT_FOR]:
            del self._used[old]
            self._caches.pop(old, None)

    def reach(self, sizes: Sequence[int]) -> list[Growth]:
        """Make ready to answer after each of ``sizes`` rows, for whose tails there is room together."""
        wanted: dict[int, list[int]] = {}
        for size in sizes:
            wanted.setdefault(basis_of(size), []).append(size)
        return [self._made(basis).reach(each, self._X, self._y) for basis, each in wanted.items()]

    def ahead(self) -> list[Growth]:
        """A share of what later questions will need, where it is due.

        One piece of the rows that wait, and as much of the next cache as rows have come on the way to it.
        """
        cache = self._caches.get(basis_of(self._size))
        return self._growths(self._due(0 if cache is None else cache.rows + cache.piece))

    def enter(self) -> list[Growth]:
        """Let all rows that wait enter, and what is due of the next cache."""
        return self._growths(self._due(self._size))

    def _growths(self, due: dict[int, int]) -> list[Growth]:
        caches = [(self._made(basis), rows) for basis, rows in due.items()]
        return [cache.enter(rows, self._X, self._y) for cache, rows in caches if cache.lacks(rows)]

    def _due(self, rows: int) -> dict[int, int]:
        """Rows that are due in the cache of all rows, ``rows`` at most, and in the next, by their basis."""
        n, basis = self._size, basis_of(self._size)
        due = {basis: min(n, rows)} if rows and n >= SMALLEST_BASIS else {}
        if SMALLEST_BASIS <= basis < LARGEST_BASIS and n >= 2 * basis:
            due[2 * basis] = min(n, 5 * (n - 2 * basis))  # all 2.5 times the basis when it takes over
        self._used |= dict.fromkeys(due, self._questions)
        return due

    def _made(self, basis: int) -> Cache:
        if basis not in self._caches:
            X, y = self._X[:basis], self._y[:basis]
            self._caches[basis] = Cache(self.network, X, y, keep=self._keep, device=self.device)
        return self._caches[basis]


def basis_of(size: int) -> int:
    """First rows by which a prefix of ``size`` rows is normalised, and its columns are reduced.

    All of them below 32; then the largest of 32, 64, ..., 2048 that is at most four fifths of the size.

    Examples
    --------
    >>> [basis_of(size) for size in (7, 31, 32, 79, 80, 159, 160, 2559, 2560, 100_000)]
    [7, 31, 32, 32, 64, 64, 128, 1024, 2048, 2048]
    """
    if size < SMALLEST_BASIS:
        return size
    basis = LARGEST_BASIS
    while basis > SMALLEST_BASIS and 5 * basis > 4 * size:
        basis //= 2
    return basis
