"""A store by its address."""

from __future__ import annotations

from pathlib import Path

from pfnts.service.store.base import Store
from pfnts.service.store.sqlite import SQLiteStore


def open_store(data: Path | str, database: str | None = None, *, serving: bool = True) -> Store:
    """Open the PostgreSQL database if one is given, else the SQLite file in a folder.

    Parameters
    ----------
    data
        Folder of the SQLite file.
    database
        As in ``postgresql://user:password@host/database``.
    serving
        Whether to hold the lock of a SQLite file.
    """
    if database is None:
        return SQLiteStore(data, serving=serving)
    if not database.startswith(("postgresql://", "postgres://")):
        raise ValueError(f"database must begin with postgresql://, got {database.split(':')[0]!r}")
    from pfnts.service.store.postgres import PostgresStore

    return PostgresStore(database)
