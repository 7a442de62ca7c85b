"""The store of one process: a SQLite file, written by one connection."""

from __future__ import annotations

import fcntl
import os
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pfnts.service.store import sql
from pfnts.service.store.base import Draft, Key, Record, Store, StoreUnavailableError
from pfnts.service.store.readers import Readers


class SQLiteStore(Store):
    """Keeps the logs in a file that one service process may open; what is committed survives a power cut.

    Parameters
    ----------
    folder
        Where ``pfnts.sqlite`` is, or will be.
    serving
        Whether to hold the lock that keeps a second service away; keys and exports do without.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> store = SQLiteStore(folder.name)
    >>> [record] = store.append([Draft("shop", "created", "shop", 0.0, {}, new=True)])
    >>> record.position, store.experiments()
    (0, {'shop': 0})
    >>> store.close()
    """

    many = False

    def __init__(self, folder: str | os.PathLike[str], *, serving: bool = True) -> None:
        self._folder = Path(folder)
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.path = self._folder / "pfnts.sqlite"
        self._lock_file: int | None = self._lock() if serving else None
        self._readers = Readers(self._connect)
        self._guard = threading.RLock()
        self._writer: sqlite3.Connection | None = None
        self._file: tuple[int, int] | None = None
        try:
            with self._transaction() as connection:
                sql.set_up(connection.execute)
            os.chmod(self.path, 0o600)  # contexts may be about people
            self._file = _identity(self.path)
        except BaseException:
            self.close()
            raise

    def append(self, drafts: Sequence[Draft], *, epoch: int | None = None) -> list[Record | None]:  # noqa: ARG002
        with self._transaction() as connection:
            return [self._append(connection, draft) for draft in drafts]

    def erase(self, draft: Draft, unit: str) -> tuple[Record | None, int]:
        with self._transaction() as connection:
            count = connection.execute(sql.ERASE, (draft.experiment, unit)).rowcount
            return self._append(connection, draft), count

    def scrub(self) -> None:
        with self._guard:
            try:
                [busy, *_] = self._connection().execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            except sqlite3.Error as error:
                self._forget_writer()
                raise StoreUnavailableError(f"the store at {self.path} took nothing: {error}") from error
        if busy:
            raise StoreUnavailableError(
                f"what was erased is still in the write-ahead log of {self.path}, which somebody reads; "
                "erase again"
            )

    def find(self, experiment: str, kind: str, id: str) -> Record | None:
        rows = self._query(sql.FIND, (experiment, kind, id))
        return sql.record(rows[0]) if rows else None

    def read(self, experiment: str, after: int, *, limit: int = 1000) -> list[Record]:
        return [sql.record(row) for row in self._query(sql.READ, (experiment, after, limit))]

    def last(self, experiment: str, kind: str, *, limit: int) -> list[Record]:
        return [sql.record(row) for row in self._query(sql.LAST, (experiment, kind, limit))]

    def experiments(self) -> dict[str, int]:
        return dict(self._query(sql.EXPERIMENTS, ()))

    def meta(self, name: str, default: str | None = None) -> str | None:
        rows = self._query(sql.GET_META, (name,))
        if not rows and default is not None:
            with self._transaction() as connection:
                connection.execute(sql.ADD_META, (name, default))
            rows = self._query(sql.GET_META, (name,))
        return rows[0][0] if rows else None

    def probe(self) -> None:
        with self._transaction() as connection:
            connection.execute(sql.SET_META, ("probe", os.urandom(4).hex()))

    def lead(self, holder: str, *, seconds: float) -> int | None:  # noqa: ARG002
        return 1  # the lock on the file saw to it

    def keys(self) -> list[Key]:
        return [sql.key(row) for row in self._query(sql.KEYS, ())]

    def add_key(self, key: Key) -> None:
        with self._transaction() as connection:
            connection.execute(sql.ADD_KEY, sql.key_values(key))

    def revoke_key(self, id: str, time: float) -> bool:
        with self._transaction() as connection:
            return connection.execute(sql.REVOKE_KEY, (time, id)).rowcount > 0

    def close(self) -> None:
        with self._guard:
            self._readers.close()
            self._forget_writer()
            if self._lock_file is not None:
                os.close(self._lock_file)
                self._lock_file = None

    def _lock(self) -> int:
        descriptor = os.open(self._folder / "pfnts.lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = os.read(descriptor, 32).decode(errors="replace").strip()
            os.close(descriptor)
            raise ValueError(
                f"data must be a folder that no other service has open, {self._folder} is held by process "
                f"{holder}; stop it, or use PostgreSQL for several processes"
            ) from None
        os.ftruncate(descriptor, 0)
        os.write(descriptor, str(os.getpid()).encode())
        return descriptor

    def _connection(self) -> sqlite3.Connection:
        """The one connection that writes."""
        if self._writer is None:
            connection = self._connect()
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA secure_delete = ON")
            self._writer = connection
        return self._writer

    def _connect(self) -> sqlite3.Connection:
        self._check_file()  # to open it would make a new file, or read one that holds another log
        return sqlite3.connect(
            self.path, timeout=5.0, isolation_level=None, check_same_thread=False, cached_statements=64
        )

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._guard:
            try:
                connection = self._connection()
                connection.execute("BEGIN IMMEDIATE")
                self._check_file()
                try:
                    yield connection
                    connection.execute("COMMIT")
                except BaseException:
                    if connection.in_transaction:
                        connection.execute("ROLLBACK")
                    raise
            except sqlite3.Error as error:
                self._forget_writer()
                raise StoreUnavailableError(f"the store at {self.path} took nothing: {error}") from error

    def _check_file(self) -> None:
        """Complain if the file is another one by now: what is written would be lost with the one opened."""
        if self._file is not None and _identity(self.path) != self._file:
            raise sqlite3.OperationalError(
                "its file was removed or replaced; put it back, or start the service again"
            )

    def _forget_writer(self) -> None:
        """After an error a fresh connection finds out what is on the disk."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def _append(self, connection: sqlite3.Connection, draft: Draft) -> Record | None:
        values, text = sql.append_values(draft)
        row = connection.execute(sql.APPEND, values).fetchone()
        return None if row is None else sql.appended(draft, row[0], text)

    def _query(self, statement: str, values: Sequence[Any]) -> list[Any]:
        try:
            with self._readers.lend() as reader:
                return reader.execute(statement, values).fetchall()
        except sqlite3.Error as error:
            raise StoreUnavailableError(f"the store at {self.path} gave nothing: {error}") from error


def _identity(path: Path) -> tuple[int, int] | None:
    """Which file a path leads to; None if there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
