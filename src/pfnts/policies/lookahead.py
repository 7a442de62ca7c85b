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
    """Announced contexts; each refresh of an arm costs one batch over those still to come.

    Parameters
    ----------
    X
        Encoded contexts (Q, P), in any order, repeated ones as often as they will come.
    """

    def __init__(self, X: Matrix) -> None:
        self._rows: dict[bytes, int] = {}
        self._stamps: tuple[Stamp, ...] = ()
        self._beliefs: Beliefs | None = None
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

    def find(self, x: Matrix, encoding: Encoding, inquiry: Inquiry) -> tuple[Beliefs, int] | None:
        """Look up a context (P,): current beliefs and its row in them, or None if it was not announced."""
        row = self._rows.get(x.tobytes())
        if row is None:
            return None
        stamps = encoding.stamps(inquiry.arms)
        beliefs = self._beliefs
        if beliefs is None or stamps != self._stamps:
            beliefs, row = self._refresh(row, stamps, encoding, inquiry)
        self._due[row] -= 1
        return beliefs, row

    def _refresh(
        self, row: int, stamps: tuple[Stamp, ...], encoding: Encoding, inquiry: Inquiry
    ) -> tuple[Beliefs, int]:
        """Recompute the arms that moved, at the contexts still to come and at this one, which moves too."""
        kept = np.flatnonzero((self._due > 0) | (np.arange(len(self._due)) == row))
        stale = [k for k in range(len(stamps)) if self._beliefs is None or stamps[k] != self._stamps[k]]
        old = None if len(stale) == len(stamps) else self._beliefs
        if old is not None:
            old = _cut(old, kept)
        self._X, self._due = self._X[kept], self._due[kept]
        renamed = {int(place): new for new, place in enumerate(kept)}
        self._rows = {key: renamed[place] for key, place in self._rows.items() if place in renamed}
        self._beliefs = believe(encoding, inquiry, self._X, old=old, stale=stale)
        self._stamps = stamps
        return self._beliefs, renamed[row]


def _cut(beliefs: Beliefs, kept: NDArray[np.int64]) -> Beliefs:
    """Keep some contexts of the columns; the joined posterior is about to be made anew."""
    columns: list[AnyPosterior] = [
        column.reshape(len(column.mean), 1)[kept].reshape(len(kept)) for column in beliefs.columns
    ]
    quantiles = None if beliefs.quantiles is None else beliefs.quantiles[:, kept]
    return Beliefs(columns, beliefs.posterior, quantiles)
