"""Logs of other systems as events: rows of a table, a file or an `ope.Log`, each checked."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from pfnts.contexts import Schema, Table, describing, read, read_file
from pfnts.contexts.cells import BadLogError, check_roles, numbers, texts, times
from pfnts.contexts.schema import Rows
from pfnts.contexts.screening import Rounds, left_out_words
from pfnts.events import History, Label, Observed
from pfnts.events.event import Encoded


@runtime_checkable
class LoggedRounds(Protocol):
    """The part of an `ope.Log` that is read: floats, and actions by their index among the labels."""

    contexts: NDArray[np.float64]
    """(T, P)"""
    features: tuple[str, ...]
    """Names of the P floats."""
    arms: tuple[Label, ...]
    actions: NDArray[np.int64]
    """(T,)"""
    rewards: NDArray[np.float64]
    """(T,)"""


@dataclass(frozen=True)
class Columns:
    """Roles of a table's columns; see `Policy.learn`."""

    action: str | None
    reward: str | None
    propensity: str | Mapping[str, float | str] | None
    cluster: str | None
    time: str | None
    context: Sequence[str] | None

    @property
    def used(self) -> tuple[str, ...]:
        """Columns with a role other than context."""
        given = self.propensity.values() if isinstance(self.propensity, Mapping) else [self.propensity]
        listed = [self.action, self.reward, self.cluster, self.time, *given]
        return tuple(name for name in listed if isinstance(name, str))


def imported_rows(
    log: Any,
    columns: Columns,
    history: History,
    *,
    label: Callable[[Any], Label],
    reward: Callable[[Any], float],
) -> list[Observed]:
    """Return the events of a log's rows; nothing changes.

    Parameters
    ----------
    log
        An `ope.Log`, a table, or the path of a file.
    columns
        Roles of the columns, for tables and files.
    history
        Arms and schema.
    label
        Checks an arm's label.
    reward
        Checks a reward.
    """
    order = None
    if isinstance(log, LoggedRounds):
        if columns.used or columns.context is not None:
            raise ValueError(f"a Log knows its columns, got {columns}; leave the names out")
        contexts, actions, paid = _logged(log, history.schema)
    else:
        table = _table(log)
        contexts, actions, paid = _tabled(table, columns, history.schema)
        order = None if columns.time is None else np.argsort(times(table, columns.time), kind="stable")
    labels = [label(action) for action in _labels(actions, history)]
    values = [_checked(i, value, reward) for i, value in enumerate(paid.tolist())]
    schema = history.schema or Schema.infer(contexts, warn=False)  # ids that are here were named
    rows = Rows.of(contexts, schema)
    if order is not None:  # after all rows were checked in the order in which their owner counts them
        rows = Rows.of(contexts.take(order), schema)
        labels, values = [labels[i] for i in order], [values[i] for i in order]
    return [
        Observed(rows.contexts[i], arm, value, imported=True, encoded=Encoded(rows.X[i], rows.schema))
        for i, (arm, value) in enumerate(zip(labels, values, strict=True))
    ]


def _logged(log: LoggedRounds, schema: Schema | None) -> tuple[Table, list[Any], NDArray[np.float64]]:
    """Return contexts of an `ope.Log`, by name where the schema has names, otherwise by position."""
    contexts = read(log.contexts)
    if schema is not None and not schema.positional:
        contexts = Table.of(dict(zip(log.features, contexts.columns, strict=True)))
    return contexts, [log.arms[code] for code in log.actions.tolist()], log.rewards


def _table(log: Any) -> Table:
    if isinstance(log, str | os.PathLike):
        return read_file(Path(log))
    table = Table.of(log) if isinstance(log, Mapping) else read(log)
    if table.single or table.positional:
        raise ValueError(
            "log must be an ope.Log, a table with named columns or the path of a file, "
            f"got {type(log).__name__}"
        )
    return table


def _tabled(
    table: Table, columns: Columns, schema: Schema | None
) -> tuple[Table, list[Any], NDArray[np.float64]]:
    if columns.action is None or columns.reward is None:
        raise ValueError(
            f"a table needs action= and reward=, names of columns among {list(table.names)}, "
            f"got {columns.action!r} and {columns.reward!r}"
        )
    if isinstance(columns.context, str):
        raise ValueError(f"context must be a list of column names, got the text {columns.context!r}")
    check_roles(table, columns.used, columns.context or ())
    actions, rewards = texts(table, columns.action), numbers(table, columns.reward)
    names = columns.context or _describing(table, columns, schema, actions, rewards)
    return table.select(names), list(table[columns.action]), rewards


def _describing(
    table: Table, columns: Columns, schema: Schema | None, actions: list[str], rewards: NDArray[np.float64]
) -> list[str]:
    """Return the columns that describe a row: the schema's, or all that nothing speaks against."""
    if schema is not None:
        return [column.name for column in schema.columns if column.name in table]
    free = [name for name in table.names if name not in columns.used]
    if not free:
        raise BadLogError("log must have at least one context column, every column has another role")
    known = None
    if isinstance(columns.propensity, str):
        known = numbers(table, columns.propensity)
    rounds = Rounds(np.unique(actions, return_inverse=True)[1], rewards, known)
    kept, left_out = describing(table, free, dates=False, rounds=rounds)
    if left_out:
        warnings.warn(left_out_words(left_out, "name those to be kept by context=[...]"), stacklevel=5)
    return [column.name for column in kept.columns]


def _labels(actions: Sequence[Any], history: History) -> list[Any]:
    """Return the labels of actions; in a file, 7 may be written for the label "7" or the other way."""
    live = [history.labels[number] for number in history.live]
    exact: dict[Any, Label] = {label: label for label in live}
    by_text: dict[str, Label] = {str(label): label for label in live}
    known: dict[Any, Label | None] = {}
    for action in actions:
        if action not in known:
            plain = action.item() if isinstance(action, np.generic) else action
            whole = int(plain) if isinstance(plain, float) and plain.is_integer() else plain
            found = exact.get(whole) if isinstance(whole, str | int) and not isinstance(whole, bool) else None
            known[action] = found if found is not None else by_text.get(str(whole).strip())
    unknown = [action for action, label in known.items() if label is None]
    if unknown:
        first = next(i for i, action in enumerate(actions) if known[action] is None)
        raise BadLogError(
            f"row {first + 1}: arms of the log must be among {live}, unknown are {unknown[:20]}; "
            f"add_arm({unknown[0]!r}) first, or leave such rows out"
        )
    return [known[action] for action in actions]


def _checked(i: int, value: Any, reward: Callable[[Any], float]) -> float:
    try:
        return reward(value)
    except ValueError as error:
        raise BadLogError(f"row {i + 1}: {error}") from error
