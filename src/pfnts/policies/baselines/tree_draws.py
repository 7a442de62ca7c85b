"""Sums of trees drawn by a Markov chain, evaluated quickly at one point after another."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pfnts.arrays import Matrix

Integers = NDArray[np.intp]
Heaps = NDArray[np.unsignedinteger]
"""Nodes of binary trees on the last axis: the root at 1, the children of i at 2i and 2i + 1."""


class TreeDraws:
    """Draws of a sum of trees.

    From one draw to the next a tree mostly keeps its splits and changes its leaf values alone. So a point is
    walked down each run of equal trees once, and what is left per tree and draw is to look up a value.

    Parameters
    ----------
    variables
        Column that each node splits (..., S, M, H): chains, draws, trees, nodes.
    splits
        A point goes right where its column is at least this; 0 at a node that does not split. Same shape.
    leaves
        Values (..., S, M, 2 H) at nodes that do not split.

    Examples
    --------
    >>> variables = np.zeros((1, 1, 1, 2), dtype=np.uint8)
    >>> splits = np.array([0, 3], dtype=np.uint8).reshape(1, 1, 1, 2)
    >>> leaves = np.array([0, 0, -1, 1], dtype=np.float32).reshape(1, 1, 1, 4)
    >>> TreeDraws(variables, splits, leaves).values(np.array([[2], [3]], dtype=np.uint8))
    array([[-1.],
           [ 1.]])
    """

    def __init__(self, variables: Heaps, splits: Heaps, leaves: NDArray[np.float32]) -> None:
        trees, half = splits.shape[-2:]
        inner = splits > 0
        # What a node that does not split names as its column means nothing, and must not tell trees apart.
        variables = np.where(inner, variables, 0).astype(variables.dtype)
        new = _changes(splits) | _changes(variables)
        firsts = np.flatnonzero(new)
        numbers = np.zeros(new.shape, dtype=np.intp)
        numbers[new] = np.arange(len(firsts))
        numbers = np.maximum.accumulate(numbers, axis=-2)

        inner = inner.reshape(-1, half)[firsts]
        levels = _levels(inner)
        # Deep trees first: each further step down the trees concerns a shorter piece of the array.
        order = np.argsort(-levels, kind="stable")
        inner, firsts, levels = inner[order], firsts[order], levels[order]
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        self._trees: Integers = place[numbers].reshape(-1)
        self._shape = (-1, trees)
        self._lengths = [int(np.count_nonzero(levels > level)) for level in range(levels.max(initial=0))]

        terminal = _terminal(inner)
        owner, node = np.nonzero(inner)
        self._variables: Integers = variables.reshape(-1, half)[firsts][owner, node].astype(np.intp)
        self._splits = splits.reshape(-1, half)[firsts][owner, node]
        # Nodes that split are numbered first, then leaves; a leaf leads to itself.
        splitting, leaf = len(owner), int(np.count_nonzero(terminal))
        ids = np.zeros(terminal.shape, dtype=np.intp)
        ids[:, :half][inner] = np.arange(splitting)
        ids[terminal] = splitting + np.arange(leaf)
        self._left: Integers = ids[owner, 2 * node]
        self._step: Integers = ids[owner, 2 * node + 1] - self._left
        self._next: Integers = np.arange(splitting + leaf)
        self._roots: Integers = ids[:, 1].copy()
        counts = np.count_nonzero(terminal, axis=1)
        self._first_leaf: Integers = splitting + np.cumsum(counts) - counts

        # The leaf values of each tree in each draw, close together and in the order of the leaves' numbers.
        kept = counts[self._trees]
        self._offsets: Integers = np.cumsum(kept) - kept
        slots = np.nonzero(terminal)[1]
        within = np.arange(int(kept.sum())) - np.repeat(self._offsets, kept)
        starts = (self._first_leaf - splitting)[self._trees]
        heap = np.repeat(2 * half * np.arange(len(kept)), kept)
        self._leaves = leaves.reshape(-1)[heap + slots[np.repeat(starts, kept) + within]]

    def values(self, X: Heaps) -> Matrix:
        """Value of every draw at points ``X`` (q, P), as (q, R); the draws of a chain stay together."""
        found = np.empty((len(X), len(self._trees) // self._shape[1]))
        for x, row in zip(X, found, strict=True):
            row[:] = self._at(x)
        return found

    def _at(self, x: Heaps) -> NDArray[np.float32]:
        right = x.take(self._variables) >= self._splits
        following = self._next[: len(right)]
        np.multiply(right, self._step, out=following)
        following += self._left
        reached = self._roots.copy()
        for length in self._lengths:
            reached[:length] = self._next.take(reached[:length])
        reached -= self._first_leaf
        where = reached.take(self._trees)
        where += self._offsets
        summed: NDArray[np.float32] = self._leaves.take(where).reshape(self._shape).sum(axis=1)
        return summed


def _changes(heaps: Heaps) -> NDArray[np.bool_]:
    """Whether a tree (..., S, M, H) differs from that of the draw before; the first of each chain does."""
    words = np.ascontiguousarray(heaps)
    if words.shape[-1] * words.itemsize % 8 == 0:
        words = words.view(np.uint64)  # eight or fewer nodes at a time
    different = np.ones(heaps.shape[:-1], dtype=np.bool_)
    different[..., 1:, :] = (words[..., 1:, :, :] != words[..., :-1, :, :]).any(axis=-1)
    return different


def _levels(inner: NDArray[np.bool_]) -> Integers:
    """Steps (U,) that lead from the root to any leaf, from which nodes split (U, H)."""
    levels = np.zeros(len(inner), dtype=np.intp)
    for level in range(inner.shape[1].bit_length() - 1):
        levels[inner[:, 1 << level : 2 << level].any(axis=1)] = level + 1
    return levels


def _terminal(inner: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which nodes (U, 2 H) are leaves: they do not split, and their parent does; or the root."""
    count, half = inner.shape
    terminal = np.zeros((count, 2 * half), dtype=np.bool_)
    terminal[:, 1] = True
    terminal[:, 2::2] = terminal[:, 3::2] = inner[:, 1:]
    terminal[:, :half] &= ~inner
    return terminal
