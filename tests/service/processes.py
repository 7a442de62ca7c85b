"""Services in processes of their own, to be killed, stopped and asked."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import httpx

import pfnts

_PROGRAM = """
import json, sys
from pfnts.service.engine import Limits
from pfnts.service.server import Settings, serve
settings = json.loads(sys.argv[1])
limits = Limits(**settings.pop("limits"))
serve(Settings(limits=limits, **settings), started=lambda port: print(port, flush=True))
"""


class Service:
    """A service process on a free port of the loopback interface."""

    def __init__(self, data, database=None, *, port=0, log=None, **limits):
        self.settings = {"data": str(data), "database": database, "port": port, "limits": limits}
        self._log = log
        self.start()

    def start(self) -> None:
        environment = os.environ | {
            "OMP_NUM_THREADS": "1",
            "PYTHONPATH": str(Path(pfnts.__file__).parents[1]),
        }
        self.process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, json.dumps(self.settings)],
            stdout=subprocess.PIPE,
            stderr=self._log,
            env=environment,
        )
        line = self.process.stdout.readline()
        assert line, f"the service did not start (status {self.process.wait()})"
        self.settings["port"] = int(line)
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
        self.process.send_signal(number)

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            self.process.kill()
        self.process.wait()
        self.close()

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(20)
        self.close()
        return status

    def close(self) -> None:
        self.http.close()
        self.process.stdout.close()


def until(condition, seconds=30.0):
    """Wait for a condition; errors of the connection count as not yet."""
    end = time.monotonic() + seconds
    while True:
        with suppress(httpx.TransportError):
            if condition():
                return
        assert time.monotonic() < end, "it did not come about in time"
        time.sleep(0.02)
