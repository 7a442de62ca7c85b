"""Logs from files and columns, checked row by row."""

from __future__ import annotations

import csv
import gzip
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import numpy as np

from pfnts.encodings import Schema
from pfnts.ope.log import Log, Matrix, Vector, numbered
from pfnts.events import Label

Columns = Mapping[str, Sequence[Any]]
_SUM = 1e-6


class BadLogError(ValueError):
    """A log that cannot be used; the message names the row, counted from 1 below the header."""


@dataclass(frozen=True)
class Roles:
    """Which column of a table is what.

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
    """Columns that policies see; all that have no other role when left out."""

    @property
    def used(self) -> tuple[str, ...]:
        """Columns with a role other than context."""
        listed = [self.action, self.reward, self.cluster, self.time]
        if isinstance(self.propensity, str):
            listed.append(self.propensity)
        else:
            listed += [value for value in self.propensity.values() if isinstance(value, str)]
        return tuple(name for name in listed if name is not None)


def read_log(path: str | os.PathLike[str], roles: Roles) -> Log:
    """Read a log from a CSV file (``.csv``, ``.csv.gz``) or a Parquet file (``.parquet``).

    Parameters
    ----------
    path
        The file; a CSV file has its column names in the first line, and an empty cell is a missing value.
    roles
        Which column is what.
    """
    path = Path(path)
    try:
        columns = _parquet(path) if path.suffix in (".parquet", ".pq") else _csv(path)
        return log_from_columns(columns, roles)
    except BadLogError as error:
        raise BadLogError(f"{path.name}: {error}") from error


def log_from_columns(columns: Columns, roles: Roles) -> Log:
    """Make a log from columns in memory, such as a pandas or polars frame.

    Parameters
    ----------
    columns
        Column names to values, strings or numbers; None, NaN or an empty string where a value is missing.
    roles
        Which column is what.

    Examples
    --------
    >>> log = log_from_columns(
    ...     {"sent": ["no", "yes"], "opened": [0, 1], "age": [41, 23], "plan": ["a", "b"]},
    ...     Roles(action="sent", reward="opened", propensity={"no": 0.4, "yes": 0.6}),
    ... )
    >>> log.features, log.propensities
    (('age', 'plan=a', 'plan=b'), array([0.4, 0.6]))
    """
    _check_columns(columns, roles)
    labels = [_present(columns, roles.action, i) for i in range(len(columns[roles.action]))]
    arms, positions = _arms(labels, roles)
    actions = np.array([positions[str(label)] for label in labels], dtype=np.int64)
    rewards = _numbers(columns, roles.reward)
    propensities, design = _propensities(columns, roles, arms, actions)
    clusters = times = None
    if roles.cluster is not None:
        people = [str(_present(columns, roles.cluster, i)) for i in range(len(labels))]
        clusters = numbered(np.unique(np.array(people), return_inverse=True)[1].astype(np.int64))
    if roles.time is not None:
        times = _times(columns, roles.time)
        _check_sorted(columns[roles.time], times, clusters, roles)
    features, contexts = _contexts(columns, roles)
    log = Log(contexts, features, arms, actions, rewards, propensities, design, clusters, times)
    return log if times is None else log.take(np.argsort(times, kind="stable"))


def _csv(path: Path) -> dict[str, list[str]]:
    try:
        with (
            gzip.open(path, "rt", encoding="utf-8-sig", newline="")
            if path.suffix == ".gz"
            else path.open(encoding="utf-8-sig", newline="")
        ) as file:
            lines = csv.reader(file, strict=True)
            header = next(lines, [])
            rows = [line for line in lines if line]
    except FileNotFoundError:
        raise BadLogError(f"file must exist, there is none at {path}") from None
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise BadLogError(f"file must be a CSV table in UTF-8, reading it failed: {error}") from error
    repeated = sorted({name for name in header if header.count(name) > 1})
    if repeated:
        raise BadLogError(f"column names must be distinct, the header repeats {repeated}")
    for i, row in enumerate(rows):
        if len(row) != len(header):
            raise BadLogError(f"row {i + 1} must have the header's {len(header)} cells, got {len(row)}")
    return {name: [row[j] for row in rows] for j, name in enumerate(header)}


def _parquet(path: Path) -> dict[str, list[Any]]:
    try:
        import pandas as pd

        frame = pd.read_parquet(path)
    except ImportError as error:
        raise ImportError(
            'a Parquet file needs pandas and pyarrow; install them with: pip install "pfnts[bench]" pyarrow'
        ) from error
    except FileNotFoundError:
        raise BadLogError(f"file must exist, there is none at {path}") from None
    except (OSError, ValueError) as error:
        raise BadLogError(f"file must be a Parquet table, reading it failed: {error}") from error
    return {str(name): frame[name].tolist() for name in frame.columns}


def _check_columns(columns: Columns, roles: Roles) -> None:
    for name in (*roles.used, *(roles.context or ())):
        if name not in columns:
            raise BadLogError(f"column {name!r} must be in the log, which has {list(columns)}")
    twice = sorted({name for name in roles.used if (*roles.used, *(roles.context or ())).count(name) > 1})
    if twice:
        raise BadLogError(f"a column must have one role, {twice[0]!r} has several; name another one")
    if not len(columns[roles.action]):
        raise BadLogError("log must have at least one row, it has a header only")


def _arms(labels: list[Any], roles: Roles) -> tuple[tuple[Label, ...], dict[str, int]]:
    """Known actions and their positions: those with a propensity, or those that occur."""
    if isinstance(roles.propensity, str):
        arms = tuple(sorted({str(label) for label in labels}))
        if len(arms) < 2:
            raise BadLogError(
                f"log must have at least two actions, column {roles.action!r} has only {arms[0]!r}"
            )
    else:
        arms = tuple(str(arm) for arm in roles.propensity)
    positions = {arm: k for k, arm in enumerate(arms)}
    for i, label in enumerate(labels):
        if str(label) not in positions:
            raise BadLogError(
                f"row {i + 1}: action must be one of {list(arms)}, column {roles.action!r} holds {label!r}"
            )
    return arms, positions


def _propensities(
    columns: Columns, roles: Roles, arms: tuple[Label, ...], actions: Any
) -> tuple[Vector, Matrix | None]:
    """Probability (T,) of the action taken, and (T, K) of all where they are known."""
    if isinstance(roles.propensity, str):
        taken = _numbers(columns, roles.propensity)
        for i in np.flatnonzero(~((taken > 0) & (taken <= 1))).tolist():
            raise BadLogError(
                f"row {i + 1}: propensity must be above 0 and at most 1, "
                f"column {roles.propensity!r} holds {taken[i]:g}"
            )
        return taken, None
    rows = len(actions)
    design = np.empty((rows, len(arms)))
    for k, value in enumerate(roles.propensity.values()):
        design[:, k] = _numbers(columns, value) if isinstance(value, str) else float(value)
    constant = all(not isinstance(value, str) for value in roles.propensity.values())
    for i in np.flatnonzero(~((design >= 0) & (design <= 1)).all(1)).tolist():
        raise BadLogError(
            f"{_where(i, constant)}propensities must be between 0 and 1, got {_listed(design[i])}"
        )
    for i in np.flatnonzero(np.abs(design.sum(1) - 1) > _SUM).tolist():
        raise BadLogError(
            f"{_where(i, constant)}propensities must sum to one over the actions {list(arms)}, "
            f"{_listed(design[i])} sum to {design[i].sum():g}"
        )
    taken = np.asarray(design[np.arange(rows), actions], dtype=np.float64)
    for i in np.flatnonzero(taken == 0).tolist():
        raise BadLogError(
            f"row {i + 1}: propensity of the action taken, {arms[actions[i]]!r}, must be above 0, "
            f"the propensities of {list(arms)} are {_listed(design[i])}"
        )
    return taken, design


def _where(i: int, constant: bool) -> str:
    return "" if constant else f"row {i + 1}: "


def _listed(values: Vector) -> str:
    return ", ".join(f"{value:g}" for value in values)


def _check_sorted(shown: Sequence[Any], times: Vector, clusters: Any, roles: Roles) -> None:
    last: dict[int, int] = {}
    for i, person in enumerate([0] * len(times) if clusters is None else clusters.tolist()):
        before = last.get(person)
        if before is not None and times[before] > times[i]:
            within = "" if clusters is None else " within each cluster"
            raise BadLogError(
                f"row {i + 1}: time must not run backwards{within}, column {roles.time!r} holds {shown[i]} "
                f"after {shown[before]} in row {before + 1}; sort the log"
            )
        last[person] = i


def _contexts(columns: Columns, roles: Roles) -> tuple[tuple[str, ...], Matrix]:
    names = roles.context
    if names is None:
        names = tuple(name for name in columns if name not in roles.used)
    if not names:
        raise BadLogError("log must have at least one context column, every column has another role")
    kinds: dict[str, str | list[str]] = {}
    values: dict[str, list[Any]] = {}
    for name in names:
        numbers = [_number(value) for value in columns[name]]
        if any(number is None for number in numbers):
            values[name] = [None if _missing(value) else str(value) for value in columns[name]]
            kinds[name] = sorted({value for value in values[name] if value is not None})
        else:
            values[name], kinds[name] = numbers, "numeric"
            for i in np.flatnonzero(np.isinf(np.array(numbers, dtype=np.float64))).tolist():
                raise BadLogError(
                    f"row {i + 1}: context must be finite or missing, column {name!r} holds {numbers[i]}"
                )
    schema = Schema.of(kinds)
    table = [dict(zip(values, row, strict=True)) for row in zip(*values.values(), strict=True)]
    return schema.features, schema.encode(table)


def _numbers(columns: Columns, name: str) -> Vector:
    """Finite numbers (T,) of a column in which every row must have one."""
    numbers = np.empty(len(columns[name]))
    for i in range(len(numbers)):
        number = _number(_present(columns, name, i))
        if number is None or not math.isfinite(number):
            raise BadLogError(
                f"row {i + 1}: column {name!r} must hold a finite number, got {columns[name][i]!r}"
            )
        numbers[i] = number
    return numbers


def _times(columns: Columns, name: str) -> Vector:
    """Numbers (T,) as they are, dates and datetimes as seconds; the first row decides which."""
    first = _instant(_present(columns, name, 0))
    if first is None and _number(columns[name][0]) is not None:
        return _numbers(columns, name)
    seconds = np.empty(len(columns[name]))
    for i in range(len(seconds)):
        moment = _instant(_present(columns, name, i))
        if moment is None or first is None:
            raise BadLogError(
                f"row {i + 1}: column {name!r} must hold numbers throughout, or ISO dates or datetimes, "
                f"such as 2026-03-01 or 2026-03-01T08:30, got {columns[name][i]!r}"
            )
        if (moment.tzinfo is None) != (first.tzinfo is None):
            raise BadLogError(
                f"row {i + 1}: column {name!r} must have a time zone in every row or in none, "
                f"got {columns[name][i]!r} after {columns[name][0]!r}"
            )
        seconds[i] = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    return seconds


def _instant(value: Any) -> datetime | None:
    """A moment, midnight for a date; None where the value is neither that nor its ISO form."""
    if isinstance(value, np.datetime64):
        value = value.astype("datetime64[us]").item()
    # Digits alone are a number, although 20260301 is a date in a form of ISO, too.
    if isinstance(value, str) and _number(value) is None:
        try:
            return datetime.fromisoformat(value)
        except ValueError:
            return None
    if isinstance(value, date) and not isinstance(value, datetime):
        return datetime(value.year, value.month, value.day)
    return value if isinstance(value, datetime) else None


def _present(columns: Columns, name: str, i: int) -> Any:
    value = columns[name][i]
    if _missing(value):
        raise BadLogError(f"row {i + 1}: column {name!r} must not be empty")
    return value.strip() if isinstance(value, str) else value


def _missing(value: Any) -> bool:
    if isinstance(value, str):
        return not value.strip()
    return value is None or type(value).__name__ in ("NAType", "NaTType") or value != value


def _number(value: Any) -> float | None:
    """A float, NaN where the value is missing, None where it is no number."""
    if _missing(value):
        return math.nan
    try:
        return float(value)
    except (TypeError, ValueError):
        return None
