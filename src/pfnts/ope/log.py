"""A log of decisions taken at random, with known probabilities: what off-policy evaluation stands on."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from pfnts.contexts import Table
from pfnts.contexts.column import each
from pfnts.contexts.values import category, is_missing
from pfnts.events import Label
from pfnts.policies.arguments import check_arms

Matrix = NDArray[np.float64]
Vector = NDArray[np.float64]
Codes = NDArray[np.int64]


@dataclass(frozen=True)
class Log:
    """Logged rounds, in the order in which they are replayed.

    `read_log` makes one from a file and `log_from_columns` from columns in memory; both name the row of a
    mistake.

    Examples
    --------
    >>> log = Log(
    ...     contexts=np.array([[0.5], [1.0]]), features=("age",), arms=("none", "message"),
    ...     actions=np.array([0, 1]), rewards=np.array([0.0, 1.0]), propensities=np.array([0.4, 0.6]),
    ... )
    >>> log.rounds, log.n_arms, log.logged(1)
    (2, 2, 'message')
    """

    contexts: Matrix
    """(T, P) floats; NaN where a value is missing."""
    features: tuple[str, ...]
    """Names of the P floats."""
    arms: tuple[Label, ...]
    """Labels of the K actions."""
    actions: Codes
    """(T,) position in `arms` of the action taken."""
    rewards: Vector
    """(T,)"""
    propensities: Vector
    """(T,) probability with which the logging policy took the action that it took."""
    design: Matrix | None = None
    """(T, K) logging probabilities of all actions, where they are known; 0 where one could not be taken."""
    clusters: Codes | None = None
    """(T,) number of the person that a round belongs to, from 0; None where rounds are independent."""
    times: Vector | None = None
    """(T,) time of the round, for display; the order of the rows is what counts."""
    origins: Codes | None = None
    """(T,) cluster a row had before resampling, so that copies of a person are never told apart from it."""
    table: Table | None = None
    """(T rows) all columns as they were given, for policies that know theirs already."""

    def __post_init__(self) -> None:
        check_arms(self.arms)
        if self.contexts.ndim != 2 or self.contexts.shape[1] != len(self.features):
            wanted = f"(T, {len(self.features)}) for features {list(self.features)}"
            raise ValueError(f"contexts must be {wanted}, got {self.contexts.shape}")
        for name, value in self._arrays.items():
            if len(value) != self.rounds:
                wanted = f"one entry for each of {self.rounds} rounds"
                raise ValueError(f"{name} must have {wanted}, got {len(value)}")
        if not self.rounds:
            raise ValueError("log must have at least one round, got none")
        if not np.isin(self.actions, np.arange(self.n_arms)).all():
            raise ValueError(f"actions must be positions in the {self.n_arms} arms, got {set(self.actions)}")
        if not np.isfinite(self.rewards).all():
            raise ValueError("rewards must be finite")
        if not ((self.propensities > 0) & (self.propensities <= 1)).all():
            least, most = self.propensities.min(), self.propensities.max()
            raise ValueError(f"propensities must be above 0 and at most 1, got {least} to {most}")
        if self.design is not None:
            if not ((self.design >= 0) & (self.design <= 1)).all():
                least, most = self.design.min(), self.design.max()
                raise ValueError(f"design must be between 0 and 1, got {least} to {most}")
            if self.design.shape != (self.rounds, self.n_arms) or not np.allclose(self.design.sum(1), 1):
                raise ValueError("design must be (T, K), each row summing to one")

    @property
    def rounds(self) -> int:
        """Number of rounds T."""
        return len(self.rewards)

    @property
    def n_arms(self) -> int:
        """Number of actions K."""
        return len(self.arms)

    @property
    def groups(self) -> Codes:
        """(T,) rows with one number stand or fall together: people, or single rounds where there are none."""
        return np.arange(self.rounds) if self.clusters is None else self.clusters

    @property
    def n_groups(self) -> int:
        """Number of people, or of rounds where there are none."""
        return int(self.groups.max()) + 1

    @property
    def _arrays(self) -> dict[str, NDArray[Any]]:
        """Everything that has one entry for each round, but for the table."""
        values = ((field.name, getattr(self, field.name)) for field in fields(self))
        return {name: value for name, value in values if isinstance(value, np.ndarray)}

    def logged(self, t: int) -> Label:
        """Label of the action taken in round ``t``."""
        return self.arms[int(self.actions[t])]

    def probabilities_of(self, values: Matrix) -> Vector:
        """Pick from ``values`` (T, K) the entry (T,) of the action taken."""
        return np.asarray(values[np.arange(self.rounds), self.actions], dtype=np.float64)

    def take(self, rows: Sequence[int] | Codes) -> Log:
        """Keep some rows, in the order given; people are numbered anew by first appearance."""
        rows = np.asarray(rows, dtype=np.int64)
        taken: dict[str, Any] = {name: value[rows] for name, value in self._arrays.items()}
        if self.table is not None:
            taken["table"] = self.table.take(rows)
        if self.clusters is not None:
            taken["clusters"] = numbered(taken["clusters"])
        return replace(self, **taken)

    def first(self, people: int) -> Log:
        """Keep the people (or rounds) numbered below ``people``."""
        if not 1 <= people <= self.n_groups:
            raise ValueError(f"people must be between 1 and the {self.n_groups} of the log, got {people}")
        return self.take(np.flatnonzero(self.groups < people))

    def resampled(self, *, rng: Generator) -> Log:
        """Draw as many people as there are, with replacement; the rounds keep the order of the log.

        A person drawn twice becomes two people. They have one number in `origins`, so that an outcome model
        is never fitted to a copy of what it predicts.
        """
        groups, n = self.groups, self.n_groups
        drawn = np.sort(rng.integers(n, size=n))
        order = np.argsort(groups, kind="stable")
        start = np.searchsorted(groups[order], np.arange(n + 1))
        rows = np.concatenate([order[start[g] : start[g + 1]] for g in drawn])
        copies = np.repeat(np.arange(n), np.diff(start)[drawn])
        by_round = np.lexsort((copies, rows))
        origins = self.groups if self.origins is None else self.origins
        drawn_rows = replace(self, origins=origins).take(rows[by_round])
        return replace(drawn_rows, clusters=numbered(copies[by_round]))

    def standardized(self) -> Log:
        """Bring every feature to mean 0 and standard deviation 1; constant ones become 0."""
        return replace(self, contexts=standardized(self.contexts))

    def fingerprint(self) -> str:
        """Hash of everything in the log."""
        return self._fingerprint

    @cached_property
    def _fingerprint(self) -> str:
        # Worked out once, since every replay is kept under it, and carried to other processes.
        digest = hashlib.sha256(repr((self.features, self.arms)).encode())
        for name, value in self._arrays.items():
            digest.update(name.encode() + np.ascontiguousarray(value).tobytes())
        if self.table is not None:
            # A value is the same whether it was read as a text, an integer or a float.
            columns = [each(column, _identity) for column in self.table.columns]
            digest.update(repr([self.table.names, *columns]).encode())
        return digest.hexdigest()[:16]


def _identity(value: Any) -> str | None:
    return None if is_missing(value) else category(value)


def standardized(X: Matrix) -> Matrix:
    """Bring each column of (T, P) to mean 0 and standard deviation 1, leaving NaN; constant ones become 0."""
    centre, scale = moments(X)
    return np.asarray((X - centre) / scale, dtype=np.float64)


def moments(X: Matrix) -> tuple[Vector, Vector]:
    """Mean and standard deviation of each column of (T, P) where present; infinite where constant."""
    present = ~np.isnan(X)
    count = np.maximum(present.sum(0), 1)
    filled = np.where(present, X, 0.0)
    centre = filled.sum(0) / count
    scale = np.sqrt((np.where(present, X - centre, 0.0) ** 2).sum(0) / count)
    # A constant column may be off its mean by a rounding error; that is not a scale.
    constant = scale <= 1e-12 * np.abs(filled).max(0, initial=0.0)
    return np.asarray(centre, dtype=np.float64), np.asarray(np.where(constant, np.inf, scale))


def numbered(values: NDArray[np.int64]) -> Codes:
    """Number distinct values 0, 1, ... by first appearance.

    Examples
    --------
    >>> numbered(np.array([7, 3, 7, 9]))
    array([0, 1, 0, 2])
    """
    _, first, inverse = np.unique(values, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return np.asarray(rank[inverse], dtype=np.int64)
