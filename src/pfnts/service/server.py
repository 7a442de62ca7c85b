"""The process: an engine behind a web server on one address."""

from __future__ import annotations

import ipaddress
import os
import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, ClassVar

try:
    import h11
    import uvicorn
    from uvicorn.protocols.http.h11_impl import H11Protocol
except ImportError as error:
    raise ImportError('the service needs more; install it with: pip install "pfnts[service]"') from error

from pfnts.service.app import create_app
from pfnts.service.engine import Engine, Limits
from pfnts.service.store import open_store

_MOST_CONNECTIONS = 500


@dataclass(frozen=True)
class Settings:
    """Where the service keeps its data, and where it listens."""

    data: Path | str = Path("pfnts-data")
    database: str | None = None
    host: str = "127.0.0.1"
    port: int = 8000
    limits: Limits = field(default_factory=Limits)


class _PatientProtocol(H11Protocol):
    """Closes connections on which a request was begun, or waited for, and does not come about."""

    patience: ClassVar[float]

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._begun: float | None = self.loop.time()
        self.loop.call_later(self.patience, self._look_after)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE or not self.conn.trailing_data[0]:
            self._begun = None
        elif self._begun is None:
            self._begun = self.loop.time()

    def _look_after(self) -> None:
        if self.transport.is_closing():
            return
        if self._begun is not None and self.loop.time() - self._begun >= self.patience:
            self.transport.close()
        else:
            self.loop.call_later(self.patience, self._look_after)


class _Server(uvicorn.Server):
    """Tells the engine when the end has come, so that streams do not hold it up."""

    def __init__(self, config: uvicorn.Config, engine: Engine, started: Callable[[int], None] | None) -> None:
        super().__init__(config)
        self._engine, self._started = engine, started

    async def startup(self, sockets: Any = None) -> None:
        await super().startup(sockets)
        if self._started is not None and self.servers:
            self._started(self.servers[0].sockets[0].getsockname()[1])

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002
        # Not the parent's: it would raise the signal again after an orderly end.
        self._engine.draining = True
        self.force_exit = self.should_exit and sig == signal.SIGINT
        self.should_exit = True


def serve(settings: Settings, *, started: Callable[[int], None] | None = None) -> None:
    """Serve until a signal says stop; then answer what waits and close the store.

    Parameters
    ----------
    settings
        Where.
    started
        Is told the port once connections are accepted.
    """
    # One thread each: where an operation takes every core, a decision waits until learning gives one back.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    store = open_store(settings.data, settings.database)
    try:
        stored = store.keys()
        if not _is_loopback(settings.host) and all(key.revoked is not None for key in stored):
            raise ValueError(
                f"host must be this machine's own (127.0.0.1) while there is no key, got {settings.host!r}; "
                "make a key first: pfnts keys add NAME --role admin"
            )
        engine = Engine(store, limits=settings.limits)
    except BaseException:
        store.close()
        raise
    config = uvicorn.Config(
        create_app(engine),
        host=settings.host,
        port=settings.port,
        http=type("Protocol", (_PatientProtocol,), {"patience": settings.limits.patience}),
        ws="none",
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=_MOST_CONNECTIONS,
        backlog=2048,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=10,
        h11_max_incomplete_event_size=32 << 10,
    )
    server = _Server(config, engine, started)
    server.run()


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
