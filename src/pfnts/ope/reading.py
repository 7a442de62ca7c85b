"""Logs from files and columns, checked row by row."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pfnts.contexts import Schema, Table, describing, read, read_file
from pfnts.contexts.cells import BadLogError as BadLogError
from pfnts.contexts.cells import check_roles, numbers, texts, times
from pfnts.contexts.screening import Rounds, left_out_words
from pfnts.contexts.values import category
from pfnts.ope.log import Codes, Log, Matrix, Vector, numbered

_SUM = 1e-6


@dataclass(frozen=True)
class Roles:
    """Roles of a table's columns.

    Examples
    --------
    >>> Roles(action="message", reward="opened", propensity={"none": 0.4, "standard": 0.6}).used
    ('message', 'opened')
    """

    action: str
    """Column of the action taken."""
    reward: str
    """Column of the reward."""
    propensity: str | Mapping[str, float | str]
    """Column with the probability of the action taken; or for each action its constant probability, or the
    column of its probability, 0 where it could not be taken."""
    cluster: str | None = None
    """Column of the person; rounds are independent when left out."""
    time: str | None = None
    """Column by which rounds are ordered, people interleaved: numbers, or ISO dates or datetimes; the
    rows' own order when left out."""
    context: tuple[str, ...] | None = None
    """Columns that policies see; when left out, all that have no other role, except ids, dates and other
    propensities."""

    @property
    def used(self) -> tuple[str, ...]:
        """Columns with a role other than context."""
        stated = [self.propensity] if isinstance(self.propensity, str) else self.propensity.values()
        listed = (self.action, self.reward, self.cluster, self.time, *stated)
        return tuple(name for name in listed if isinstance(name, str))


def read_log(path: str | os.PathLike[str], roles: Roles) -> Log:
    """Read a log from a CSV file (``.csv``, ``.csv.gz``) or a Parquet file (``.parquet``).

    Parameters
    ----------
    path
        The file; a CSV file has its column names in the first line, and an empty cell is a missing value.
    roles
        Roles of the columns.
    """
    try:
        table = read_file(path)
    except ValueError as error:
        raise BadLogError(str(error)) from error
    try:
        return log_from_columns(table, roles)
    except BadLogError as error:
        raise BadLogError(f"{Path(path).name}: {error}") from error


def log_from_columns(columns: Any, roles: Roles) -> Log:
    """Return the log of columns in memory.

    Parameters
    ----------
    columns
        Column names to values, texts or numbers, or a pandas, polars or Arrow table.
    roles
        Roles of the columns.

    Examples
    --------
    >>> log = log_from_columns(
    ...     {"sent": ["no", "yes"], "opened": [0, 1], "age": [41, 23], "plan": ["a", "b"]},
    ...     Roles(action="sent", reward="opened", propensity={"no": 0.4, "yes": 0.6}),
    ... )
    >>> log.features, log.propensities
    (('age', 'plan=a', 'plan=b'), array([0.4, 0.6]))
    """
    table = Table.of(columns, written=True) if isinstance(columns, Mapping) else read(columns)
    check_roles(table, roles.used, roles.context or ())
    labels = texts(table, roles.action)
    arms = _arms(labels, roles)
    actions = np.array([arms.index(label) for label in labels], dtype=np.int64)
    rewards = numbers(table, roles.reward)
    odds = _propensities(table, roles, arms, actions)
    clusters = moments = None
    if roles.cluster is not None:
        clusters = numbered(np.unique(texts(table, roles.cluster), return_inverse=True)[1].astype(np.int64))
    if roles.time is not None:
        moments = times(table, roles.time)
        _check_sorted(table[roles.time], moments, clusters, roles)
    features, contexts = _contexts(table, roles, Rounds(actions, rewards, odds[0]))
    log = Log(contexts, features, arms, actions, rewards, *odds, clusters, moments, table=table)
    return log if moments is None else log.take(np.argsort(moments, kind="stable"))


def _arms(labels: list[str], roles: Roles) -> tuple[str, ...]:
    """Return the actions: those with a propensity, or those that occur."""
    if isinstance(roles.propensity, str):
        arms = tuple(sorted(set(labels)))
        if len(arms) < 2:
            only = f"column {roles.action!r} has only {arms[0]!r}"
            raise BadLogError(f"log must have at least two actions, {only}")
        return arms
    arms = tuple(str(category(arm)) for arm in roles.propensity)
    _refuse(
        [label not in arms for label in labels],
        lambda i: f"action must be one of {list(arms)}, column {roles.action!r} holds {labels[i]!r}",
    )
    return arms


def _propensities(
    table: Table, roles: Roles, arms: tuple[str, ...], actions: Codes
) -> tuple[Vector, Matrix | None]:
    """Return the probability (T,) of the action taken, and (T, K) of all where they are known."""
    if isinstance(roles.propensity, str):
        taken, column = numbers(table, roles.propensity), roles.propensity
        _refuse(
            ~((taken > 0) & (taken <= 1)),
            lambda i: f"propensity must be above 0 and at most 1, column {column!r} holds {taken[i]:g}",
        )
        return taken, None
    design = np.empty((len(actions), len(arms)))
    for k, value in enumerate(roles.propensity.values()):
        design[:, k] = numbers(table, value) if isinstance(value, str) else float(value)
    _refuse(
        ~((design >= 0) & (design <= 1)).all(1),
        lambda i: f"propensities must be between 0 and 1, got {_listed(design[i])}",
    )
    _refuse(
        np.abs(design.sum(1) - 1) > _SUM,
        lambda i: f"propensities must sum to one over the actions {list(arms)}, got {_listed(design[i])}",
    )
    taken = np.asarray(design[np.arange(len(actions)), actions], dtype=np.float64)
    _refuse(
        taken == 0,
        lambda i: (
            f"propensity of the action taken, {arms[actions[i]]!r}, must be above 0, the propensities "
            f"of {list(arms)} are {_listed(design[i])}"
        ),
    )
    return taken, design


def _listed(values: Vector) -> str:
    return ", ".join(f"{value:g}" for value in values)


def _refuse(bad: Any, words: Callable[[int], str]) -> None:
    """Raise an error about the first row that is bad."""
    for i in np.flatnonzero(bad).tolist():
        raise BadLogError(f"row {i + 1}: {words(i)}")


def _check_sorted(moments: Any, times: Vector, clusters: Any, roles: Roles) -> None:
    last: dict[int, int] = {}
    for i, person in enumerate([0] * len(times) if clusters is None else clusters.tolist()):
        before = last.get(person)
        if before is not None and times[before] > times[i]:
            within = "" if clusters is None else " within each cluster"
            raise BadLogError(
                f"row {i + 1}: time must not run backwards{within}, column {roles.time!r} holds {moments[i]} "
                f"after {moments[before]} in row {before + 1}; sort the log"
            )
        last[person] = i


def _contexts(table: Table, roles: Roles, rounds: Rounds) -> tuple[tuple[str, ...], Matrix]:
    """Return names and values (T, P) of the features."""
    try:
        if roles.context is not None:
            schema = Schema.infer(table.select(roles.context), warn=False).closed()
        else:
            free = [name for name in table.names if name not in roles.used]
            if not free:
                raise ValueError("log must have at least one context column, every column has another role")
            schema, left_out = describing(table, free, dates=False, rounds=rounds)
            if left_out:
                warnings.warn(left_out_words(left_out, "name those to be kept"), stacklevel=4)
        return schema.features, schema.encode(table.select(column.name for column in schema.columns))
    except ValueError as error:
        raise BadLogError(str(error)) from error
