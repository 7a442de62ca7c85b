"""Services in processes of their own, to be killed, stopped and asked."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from contextlib import suppress
from multiprocessing import forkserver
from pathlib import Path
from unittest import mock

import httpx

import pfnts

# Forked from a process that has imported everything and done nothing: hundreds of starts take minutes else.
_FORK = multiprocessing.get_context("forkserver")
_FORK.set_forkserver_preload(
    ["pfnts.service.server", "pfnts.service.store.postgres", "pfnts.policies.lin_ts"]
)


def _ready_to_fork():
    """Start that process, if it is not there, on the code that is tested."""
    source = str(Path(pfnts.__file__).parents[1])
    with mock.patch.dict(os.environ, OMP_NUM_THREADS="1", PYTHONPATH=source):
        forkserver.ensure_running()


def _serve(settings, limits, log, started):
    from pfnts.service.engine import Limits
    from pfnts.service.server import Settings, serve

    if log is not None:
        os.dup2(os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT), 2)
    serve(Settings(limits=Limits(**limits), **settings), started=started.send)


class Service:
    """A service process on a free port of the loopback interface."""

    def __init__(self, data, database=None, *, port=0, log=None, **limits):
        self.settings = {"data": str(data), "database": database, "port": port}
        self._limits, self._log = limits, log
        self.start()

    def start(self) -> None:
        _ready_to_fork()
        told, started = _FORK.Pipe(duplex=False)
        arguments = (self.settings, self._limits, self._log, started)
        self.process = _FORK.Process(target=_serve, args=arguments, daemon=True)
        self.process.start()
        started.close()
        with told:
            try:
                self.settings["port"] = told.recv()
            except EOFError:
                self.process.join()
                raise AssertionError(f"the service did not start ({self.process.exitcode})") from None
        self.http = httpx.Client(base_url=self.url, timeout=20, trust_env=False)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.settings['port']}"

    def wait_ready(self, seconds=30) -> None:
        until(lambda: self.http.get("/readyz").status_code == 200, seconds)

    def settle(self, name, seconds=30):
        """Wait until the model stands on the whole log; the experiment then."""
        found = {}

        def settled():
            found.update(self.http.get(f"/v1/experiments/{name}").json())
            return found.get("lag") == 0

        until(settled, seconds)
        return found

    def signal(self, number) -> None:
        with suppress(ProcessLookupError):
            os.kill(self.process.pid, number)

    def kill(self) -> None:
        self.process.kill()
        self.process.join()
        self.http.close()

    def stop(self) -> int:
        self.signal(signal.SIGTERM)
        self.process.join(20)
        self.http.close()
        return self.process.exitcode


def until(condition, seconds=30.0):
    """Wait for a condition; errors of the connection count as not yet."""
    end = time.monotonic() + seconds
    while True:
        with suppress(httpx.TransportError):
            if condition():
                return
        assert time.monotonic() < end, "it did not come about in time"
        time.sleep(0.02)
