"""A store by its address."""

from __future__ import annotations

from pathlib import Path

from pfnts.service.store.base import Store
from pfnts.service.store.sqlite import SQLiteStore


def open_store(
    data: Path | str, database: str | None = None, *, serving: bool = True, create: bool = True
) -> Store:
    """Open the PostgreSQL database if one is given, else the SQLite file in a folder.

    Parameters
    ----------
    data
        Folder of the SQLite file.
    database
        As in ``postgresql://user:password@host/database``.
    serving
        Whether to hold the lock of a SQLite file.
    create
        Whether to begin a SQLite file where there is none.
    """
    if database is None:
        if not create and not (Path(data) / "pfnts.sqlite").exists():
            raise ValueError(f"data must be the folder of a store, there is no pfnts.sqlite in {data}")
        return SQLiteStore(data, serving=serving)
    if not database.startswith(("postgresql://", "postgres://")):
        raise ValueError(f"database must begin with postgresql://, got {database.split(':')[0]!r}")
    from pfnts.service.store.postgres import PostgresStore

    return PostgresStore(database)
