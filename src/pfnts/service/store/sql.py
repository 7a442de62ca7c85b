"""The tables and statements that SQLite and PostgreSQL have in common; ``?`` stands for a parameter."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from pfnts.service.store.base import ADMINISTRATIVE, FORMAT, Draft, Key, Record, dumps

TABLES = (
    """
    CREATE TABLE IF NOT EXISTS events (
        experiment TEXT NOT NULL,
        position BIGINT NOT NULL,
        kind TEXT NOT NULL,
        id TEXT NOT NULL,
        time DOUBLE PRECISION NOT NULL,
        unit TEXT,
        context TEXT,
        candidates TEXT,
        data TEXT NOT NULL,
        PRIMARY KEY (experiment, position),
        UNIQUE (experiment, kind, id)
    )
    """,
    "CREATE INDEX IF NOT EXISTS events_unit ON events (experiment, unit) WHERE unit IS NOT NULL",
    "CREATE INDEX IF NOT EXISTS events_kind ON events (experiment, kind, position)",
    """
    CREATE TABLE IF NOT EXISTS keys (
        id TEXT PRIMARY KEY,
        name TEXT NOT NULL,
        role TEXT NOT NULL,
        experiment TEXT,
        digest TEXT NOT NULL,
        created DOUBLE PRECISION NOT NULL,
        revoked DOUBLE PRECISION
    )
    """,
    "CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
)

UPGRADES = {2: "ALTER TABLE events ADD COLUMN candidates TEXT"}
"""What brings the tables of the format before up to each format."""

_COLUMNS = "experiment, position, kind, id, time, unit, context, candidates, data"
_KINDS = ", ".join(f"'{kind}'" for kind in ADMINISTRATIVE)

# One statement per entry: the position follows from what is there, under the lock of the experiment.
# The last position by ORDER BY: for max() SQLite reads a whole index here. The casts tell PostgreSQL what a
# parameter is where nothing else does.
APPEND = f"""
    INSERT INTO events ({_COLUMNS})
    SELECT ?, last.position + 1, ?, ?, ?, ?, ?, ?, ?
    FROM (
        SELECT coalesce((SELECT position FROM events WHERE experiment = ? ORDER BY position DESC LIMIT 1), -1)
        AS position
    ) AS last
    WHERE (CAST(? AS INTEGER) = 1) = (last.position = -1)
    AND (CAST(? AS TEXT) IS NULL
         OR EXISTS (SELECT 1 FROM events WHERE experiment = ? AND kind = 'decided' AND id = ?))
    AND (CAST(? AS INTEGER) IS NULL
         OR ? = (SELECT count(*) FROM events WHERE experiment = ? AND kind IN ({_KINDS})))
    ON CONFLICT (experiment, kind, id) DO NOTHING
    RETURNING position
"""
FIND = f"SELECT {_COLUMNS} FROM events WHERE experiment = ? AND kind = ? AND id = ?"
READ = f"SELECT {_COLUMNS} FROM events WHERE experiment = ? AND position > ? ORDER BY position LIMIT ?"
LAST = f"SELECT {_COLUMNS} FROM events WHERE experiment = ? AND kind = ? ORDER BY position DESC LIMIT ?"
# From one name to the next by the index: a plain GROUP BY would read every entry, ten times a second.
EXPERIMENTS = """
    WITH RECURSIVE names(name) AS (
        SELECT min(experiment) FROM events
        UNION ALL
        SELECT (SELECT min(experiment) FROM events WHERE experiment > name) FROM names WHERE name IS NOT NULL
    )
    SELECT name, (SELECT max(position) FROM events WHERE experiment = name) FROM names WHERE name IS NOT NULL
"""
ERASE = """
    UPDATE events SET unit = NULL, context = NULL, candidates = NULL WHERE experiment = ? AND unit = ?
"""
GET_META = "SELECT value FROM meta WHERE name = ?"
ADD_META = "INSERT INTO meta (name, value) VALUES (?, ?) ON CONFLICT (name) DO NOTHING"
SET_META = (
    "INSERT INTO meta (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value"
)
KEYS = "SELECT id, name, role, experiment, digest, created, revoked FROM keys ORDER BY created, id"
ADD_KEY = "INSERT INTO keys (id, name, role, experiment, digest, created) VALUES (?, ?, ?, ?, ?, ?)"
REVOKE_KEY = "UPDATE keys SET revoked = ? WHERE id = ? AND revoked IS NULL"


def set_up(execute: Callable[[str, Sequence[Any]], Any], *, more: Sequence[str] = ()) -> None:
    """Make the tables, or bring those of an earlier format up to this one; all in the caller's transaction.

    Parameters
    ----------
    execute
        Runs a statement with its parameters; what it returns has ``fetchone``.
    more
        Tables that only this store has.
    """
    for statement in (*TABLES, *more):
        execute(statement, ())
    execute(ADD_META, ("format", str(FORMAT)))
    [found] = execute(GET_META, ("format",)).fetchone()
    if not found.isdigit() or int(found) > FORMAT:
        raise ValueError(
            f"the store must be of format {FORMAT} or earlier, it has {found}; install a newer pfnts"
        )
    for number in range(int(found) + 1, FORMAT + 1):
        execute(UPGRADES[number], ())
    if int(found) < FORMAT:
        execute(SET_META, ("format", str(FORMAT)))


def append_values(draft: Draft) -> tuple[tuple[Any, ...], str]:
    """Parameters of `APPEND`, and the text of the draft's data."""
    text = dumps(draft.data)
    about = (None if value is None else dumps(value) for value in (draft.context, draft.candidates))
    entry = (draft.experiment, draft.kind, draft.id, draft.time, draft.unit, *about, text)
    begins = (draft.experiment, int(draft.new))
    needs = (draft.needs, draft.experiment, draft.needs)
    unchanged = (draft.revision, draft.revision, draft.experiment)
    return (*entry, *begins, *needs, *unchanged), text


def appended(draft: Draft, position: int, text: str) -> Record:
    """The record that a draft became."""
    return Record(
        draft.experiment,
        position,
        draft.kind,
        draft.id,
        draft.time,
        draft.data,
        text,
        draft.unit,
        draft.context,
        draft.candidates,
    )


def record(row: Sequence[Any]) -> Record:
    """Make a record of a row of the events table."""
    experiment, position, kind, id, time, unit, context, candidates, text = row
    return Record(
        experiment=experiment,
        position=int(position),
        kind=kind,
        id=id,
        time=float(time),
        data=json.loads(text),
        text=text,
        unit=unit,
        context=None if context is None else json.loads(context),
        candidates=None if candidates is None else json.loads(candidates),
    )


def key(row: Sequence[Any]) -> Key:
    """Make a key of a row of the keys table."""
    return Key(*row)


def key_values(entry: Key) -> tuple[Any, ...]:
    """Parameters of `ADD_KEY`."""
    return entry.id, entry.name, entry.role, entry.experiment, entry.digest, entry.created
