"""Contexts announced in advance, and what is believed about them until an arm refreshes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from pfnts.encodings.base import AnyPosterior, Encoding, Matrix, Stamp, VarianceEstimator

_BLOCK = 64


@dataclass(frozen=True)
class Inquiry:
    """What a policy wants to know at a context."""

    arms: tuple[int, ...]
    """Numbers of the policy's arms in the history."""
    variance: VarianceEstimator
    """Estimates the posterior."""
    coupled: bool
    """Whether arms that share a sequence share their draws."""
    levels: NDArray[np.float64] | None
    """Levels of the predictive quantiles, where the rule needs them."""


@dataclass(frozen=True)
class Beliefs:
    """Answers at Q contexts: kept by arm, because arms refresh one by one, and joined."""

    columns: list[AnyPosterior]
    """One posterior (Q,) per arm."""
    posterior: AnyPosterior
    """(Q, K)."""
    quantiles: Matrix | None
    """(M, Q, K) predictive quantiles, where the rule needs them."""
    _probabilities: Matrix = field(init=False)
    """(Q, K) best-arm probabilities, NaN until asked for."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "_probabilities", np.full(self.posterior.mean.shape, np.nan))

    def best_arm_probabilities(self, row: int) -> Matrix:
        """Probability (K,) of each arm to be best at a context, all arms eligible.

        Computed for some contexts ahead as well: a block costs little more than one of them.
        """
        known = self._probabilities
        if np.isnan(known[row, 0]):
            block = slice(row, row + (1 if self.posterior.coupled else _BLOCK))
            known[block] = self.posterior[block].best_arm_probabilities()
        probabilities: Matrix = known[row].copy()
        return probabilities


def believe(
    encoding: Encoding, inquiry: Inquiry, X: Matrix, *, old: Beliefs | None = None, stale: Sequence[int] = ()
) -> Beliefs:
    """Answer at contexts ``X`` (Q, P): every arm, or the ``stale`` positions where ``old`` has the others."""
    places = list(range(len(inquiry.arms))) if old is None else list(stale)
    arms = [inquiry.arms[place] for place in places]
    columns = [] if old is None else list(old.columns)
    quantiles = None
    fresh = encoding.columns(X, arms, inquiry.variance)
    if old is None:
        columns = fresh
    else:
        for place, column in zip(places, fresh, strict=True):
            columns[place] = column
    if inquiry.levels is not None:
        quantiles = encoding.quantiles(X, arms, inquiry.levels)
        if old is not None and old.quantiles is not None:
            whole = old.quantiles.copy()
            whole[:, :, places] = quantiles
            quantiles = whole
    own = int(getattr(inquiry.variance, "own_directions", 0))
    return Beliefs(columns, encoding.join(columns, coupled=inquiry.coupled, own=own), quantiles)


class Lookahead:
    """Announced contexts, answered block by block as they come up.

    A block is about as long as posteriors are likely to last. When an arm refreshes meanwhile, it is asked
    again, alone, about the contexts of the block that are still to come.

    Parameters
    ----------
    X
        Encoded contexts (Q, P), best in the order they will come, repeated ones as often.
    """

    def __init__(self, X: Matrix) -> None:
        self._rows: dict[bytes, int] = {}
        distinct: list[int] = []
        due: list[int] = []
        for i, x in enumerate(X):
            row = self._rows.setdefault(x.tobytes(), len(distinct))
            if row == len(distinct):
                distinct.append(i)
                due.append(0)
            due[row] += 1
        self._X = X[distinct]
        self._due = np.array(due, dtype=np.int64)
        self._block = np.empty(0, dtype=np.int64)  # rows that the beliefs are about, ascending
        self._beliefs: Beliefs | None = None
        self._stamps: tuple[Stamp, ...] = ()

    def find(self, x: Matrix, encoding: Encoding, inquiry: Inquiry) -> tuple[Beliefs, int] | None:
        """Look up a context (P,): current beliefs and its row in them, or None if it was not announced."""
        row = self._rows.get(x.tobytes())
        if row is None:
            return None
        stamps = encoding.stamps(inquiry.arms)
        old = self._beliefs if row in self._block else None
        if old is None or stamps != self._stamps:
            coming = np.flatnonzero((self._due > 0) | (np.arange(len(self._due)) == row))
            stale = [k for k in range(len(stamps)) if old is None or stamps[k] != self._stamps[k]]
            if old is None or len(stale) == len(stamps):
                block, old = coming[coming >= row][: _ahead(stamps)], None
            else:
                block = np.intersect1d(self._block, coming)
                old = _cut(old, np.searchsorted(self._block, block))
            self._beliefs = believe(encoding, inquiry, self._X[block], old=old, stale=stale)
            self._block, self._stamps = block, stamps
        self._due[row] -= 1
        assert self._beliefs is not None
        return self._beliefs, int(np.searchsorted(self._block, row))


def _ahead(stamps: Sequence[Stamp]) -> int:
    """Contexts to answer at once: posteriors last longer the more rewards they rest on."""
    return max(_BLOCK, max(point for _, point in stamps) // 4)


def _cut(beliefs: Beliefs, kept: NDArray[np.intp]) -> Beliefs:
    """Keep some contexts of the columns; the joined posterior is about to be made anew."""
    columns: list[AnyPosterior] = [
        column.reshape(len(column.mean), 1)[kept].reshape(len(kept)) for column in beliefs.columns
    ]
    quantiles = None if beliefs.quantiles is None else beliefs.quantiles[:, kept]
    return Beliefs(columns, beliefs.posterior, quantiles)
