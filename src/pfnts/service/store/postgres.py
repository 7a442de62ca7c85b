"""The store of many processes: PostgreSQL."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from pfnts.service.store import sql
from pfnts.service.store.base import Draft, FencedError, Key, Record, Store, StoreUnavailableError
from pfnts.service.store.readers import Readers

try:
    import psycopg
except ImportError as error:
    raise ImportError('PostgreSQL needs psycopg; install it with: pip install "pfnts[service]"') from error

T = TypeVar("T")
Connection = psycopg.Connection[tuple[Any, ...]]

_SETUP_LOCK = 0x7066_6E74_7300
_LEASE = """
    CREATE TABLE IF NOT EXISTS lease (
        name TEXT PRIMARY KEY, holder TEXT NOT NULL, epoch BIGINT NOT NULL, until TIMESTAMPTZ NOT NULL
    )
"""
# A lease rather than a session's lock: a stopped process keeps its sessions, but its lease runs out.
_LEAD = """
    INSERT INTO lease (name, holder, epoch, until)
    VALUES ('leader', %(holder)s, 1, clock_timestamp() + make_interval(secs => %(seconds)s))
    ON CONFLICT (name) DO UPDATE SET
        epoch = lease.epoch + CASE WHEN lease.holder = excluded.holder THEN 0 ELSE 1 END,
        holder = excluded.holder,
        until = excluded.until
    WHERE lease.holder = excluded.holder OR lease.until < clock_timestamp()
    RETURNING epoch
"""
_OPTIONS = (
    # A process that is stopped or cut off in the middle must not keep the others from the lock for long.
    "-c idle_in_transaction_session_timeout=3000 -c lock_timeout=5000 -c statement_timeout=30000"
    " -c synchronous_commit=on -c default_transaction_isolation=read\\ committed"
)

_ENDED = (None, "57P01", "57P02")
"""States of a session that is no more: the connection is lost, ended by an administrator or in a crash."""


class PostgresStore(Store):
    """Keeps the logs in a PostgreSQL database that any number of processes share.

    Positions are given out under a lock of the experiment that is held until the commit, so that whoever
    reads position n sees all before it.

    Parameters
    ----------
    url
        As in ``postgresql://user:password@host/database``.
    """

    many = True

    def __init__(self, url: str) -> None:
        self._url = url
        self._writer: Connection | None = None
        self._readers = Readers(self._connect)
        self._guard = threading.RLock()
        self._closed = False
        try:
            self._write(self._set_up)
            self._set_clock()
        except BaseException:
            self.close()
            raise

    @staticmethod
    def _set_up(connection: Connection) -> None:
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (_SETUP_LOCK,))
        sql.set_up(lambda text, values: connection.execute(_marked(text), values), more=[_LEASE])

    def time(self) -> float:
        # The database's clock, kept going by one that nobody sets: a machine with a wrong one does no harm.
        moment, then = self._clock
        return moment + time.monotonic() - then

    def append(self, drafts: Sequence[Draft], *, epoch: int | None = None) -> list[Record | None]:
        def write(connection: Connection) -> list[Record | None]:
            if epoch is not None:
                _check_epoch(connection, epoch)
            return _append(connection, drafts)

        return self._write(write)

    def erase(self, draft: Draft, unit: str) -> tuple[Record | None, int]:
        def write(connection: Connection) -> tuple[Record | None, int]:
            # The lock first: entries of the unit before the draft are erased, all others come after it.
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (_lock_of(draft.experiment),))
            count = connection.execute(_marked(sql.ERASE), (draft.experiment, unit)).rowcount
            return _append(connection, [draft])[0], count

        return self._write(write)

    def find(self, experiment: str, kind: str, id: str) -> Record | None:
        rows = self._query(sql.FIND, (experiment, kind, id))
        return sql.record(rows[0]) if rows else None

    def read(self, experiment: str, after: int, *, limit: int = 1000) -> list[Record]:
        return [sql.record(row) for row in self._query(sql.READ, (experiment, after, limit))]

    def last(self, experiment: str, kind: str, *, limit: int) -> list[Record]:
        return [sql.record(row) for row in self._query(sql.LAST, (experiment, kind, limit))]

    def experiments(self) -> dict[str, int]:
        return {name: int(position) for name, position in self._query(sql.EXPERIMENTS, ())}

    def meta(self, name: str, default: str | None = None) -> str | None:
        rows = self._query(sql.GET_META, (name,))
        if not rows and default is not None:
            self._write(lambda connection: connection.execute(_marked(sql.ADD_META), (name, default)))
            rows = self._query(sql.GET_META, (name,))
        return str(rows[0][0]) if rows else None

    def probe(self) -> None:
        self._write(lambda connection: connection.execute(_marked(sql.SET_META), ("probe", "1")))

    def lead(self, holder: str, *, seconds: float) -> int | None:
        self._set_clock()
        row = self._write(
            lambda connection: connection.execute(_LEAD, {"holder": holder, "seconds": seconds}).fetchone()
        )
        return None if row is None else int(row[0])

    def keys(self) -> list[Key]:
        return [sql.key(row) for row in self._query(sql.KEYS, ())]

    def add_key(self, key: Key) -> None:
        self._write(lambda connection: connection.execute(_marked(sql.ADD_KEY), sql.key_values(key)))

    def revoke_key(self, id: str, time: float) -> bool:
        return self._write(
            lambda connection: connection.execute(_marked(sql.REVOKE_KEY), (time, id)).rowcount > 0
        )

    def close(self) -> None:
        with self._guard:
            self._closed = True
            self._readers.close()
            self._forget_writer()

    def _set_clock(self) -> None:
        [(moment,)] = self._query("SELECT extract(epoch FROM clock_timestamp())", ())
        self._clock = float(moment), time.monotonic()

    def _connect(self) -> Connection:
        if self._closed:
            raise StoreUnavailableError("the store is closed")
        return psycopg.connect(
            self._url, autocommit=True, connect_timeout=5, options=_OPTIONS, application_name="pfnts"
        )

    def _write(self, write: Callable[[Connection], T]) -> T:
        """Run a transaction on the one connection that writes."""
        with self._guard:
            try:
                if self._writer is None or self._writer.closed:
                    self._writer = self._connect()
                with self._writer.transaction():
                    return write(self._writer)
            except psycopg.Error as error:
                self._forget_writer()
                raise StoreUnavailableError(f"the database took nothing: {_reason(error)}") from error

    def _query(self, statement: str, values: Sequence[Any]) -> list[Any]:
        lent = False

        def read() -> list[Any]:
            nonlocal lent
            with self._readers.lend() as reader:
                lent = True
                return reader.execute(_marked(statement), values).fetchall()

        try:
            try:
                return read()
            except psycopg.OperationalError as error:
                if not lent or error.sqlstate not in _ENDED:
                    raise
                return read()  # on a new session: the other was ended since it was last used
        except psycopg.Error as error:
            raise StoreUnavailableError(f"the database gave nothing: {_reason(error)}") from error

    def _forget_writer(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None


def _append(connection: Connection, drafts: Sequence[Draft]) -> list[Record | None]:
    if not drafts:
        return []
    prepared = [(draft, *sql.append_values(draft)) for draft in drafts]
    # In one order everywhere, so that no two transactions wait for each other.
    locks = sorted({_lock_of(draft.experiment) for draft in drafts})
    statements = [("SELECT pg_advisory_xact_lock(%s)", (lock,)) for lock in locks]
    statements += [(_marked(sql.APPEND), values) for _, values, _ in prepared]
    # One message for all. In a pipeline the server waits for the rest of it without a limit, and with the
    # lock held, if this process is stopped half-way.
    with psycopg.ClientCursor(connection) as cursor:
        cursor.execute("; ".join(cursor.mogrify(*statement) for statement in statements))
        rows = [cursor.fetchone()]
        while cursor.nextset():
            rows.append(cursor.fetchone())
    return [
        None if row is None else sql.appended(draft, int(row[0]), text)
        for (draft, _, text), row in zip(prepared, rows[len(locks) :], strict=True)
    ]


def _check_epoch(connection: Connection, epoch: int) -> None:
    row = connection.execute("SELECT epoch FROM lease WHERE name = 'leader' FOR SHARE").fetchone()
    if row is None or row[0] != epoch:
        raise FencedError(f"this process led under epoch {epoch}, another leads now")


def _lock_of(experiment: str) -> int:
    return int.from_bytes(hashlib.sha256(experiment.encode()).digest()[:8], "big", signed=True)


def _marked(statement: str) -> Any:
    return statement.replace("?", "%s")


def _reason(error: psycopg.Error) -> str:
    # A connection's error may repeat the address, which may hold a password.
    return str(error).splitlines()[0][:200] if str(error) else type(error).__name__
