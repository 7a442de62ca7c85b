"""An application in this process, asked without a network."""

from __future__ import annotations

import asyncio
import time
from contextlib import contextmanager

import httpx

from pfnts.service.app import create_app
from pfnts.service.clock import Clock
from pfnts.service.engine import Engine, Limits
from pfnts.service.store import open_store


class SetClock:
    """A wall clock that a test sets, and a steady one that goes along unless the wall is stepped."""

    def __init__(self, start=1_000_000.0):
        self.wall, self.steady = start, 0.0

    def pass_(self, seconds):
        self.wall += seconds
        self.steady += seconds

    def step(self, seconds):
        self.wall += seconds

    def clock(self):
        return Clock(wall=lambda: self.wall, steady=lambda: self.steady)


class Asked:
    """Sends requests to an application; many at once if wanted."""

    def __init__(self, engine: Engine, client=("127.0.0.1", 1234)):
        self.engine = engine
        self.app = create_app(engine)
        self._runner = asyncio.Runner()
        transport = httpx.ASGITransport(app=self.app, client=client, raise_app_exceptions=False)
        self._http = httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8000")

    def __call__(self, method, path, body=None, **kwargs):
        return self.together([(method, path, body)], **kwargs)[0]

    def together(self, requests, headers=None):
        async def ask():
            return await asyncio.gather(
                *(self._http.request(m, p, json=b, headers=headers) for m, p, b in requests)
            )

        return self._runner.run(ask())

    def run(self, coroutines):
        """Run what is behind the HTTP interface, all at once."""

        async def together():
            return await asyncio.gather(*coroutines)

        return self._runner.run(together())

    def close(self):
        self._runner.run(self._http.aclose())
        self._runner.close()

    def post(self, path, body, **kwargs):
        return self("POST", f"/v1/experiments{path}", body, **kwargs)

    def get(self, path, **kwargs):
        return self("GET", f"/v1/experiments{path}", **kwargs)

    def settle(self, name="shop", seconds=20):
        end = time.monotonic() + seconds
        while self.engine.experiment(name).lag or not self.engine.ready:
            assert time.monotonic() < end, "the model did not catch up"
            time.sleep(0.005)
        return self.engine.experiment(name)


@contextmanager
def asking(address, *, clock=None, client=("127.0.0.1", 1234), wait=True, **limits):
    engine = Engine(
        open_store(**address),
        limits=Limits(**({"poll": 0.02, "timeout": 5.0, "pause": 0.0} | limits)),
        clock=clock,
    )
    try:
        asked = Asked(engine, client)
        end = time.monotonic() + 20
        while wait and not engine.ready:
            assert time.monotonic() < end
            time.sleep(0.005)
        yield asked
        asked.close()
    finally:
        engine.stop()


SHOP = {
    "name": "shop",
    "arms": [{"id": "a"}, {"id": "b"}],
    "schema": {"x": "numeric", "plan": ["free", "paid"]},
    "policy": {"name": "lin-ts", "settings": {"warmup": 1}},
}


def shop(ask, **changes):
    answer = ask.post("", SHOP | changes)
    assert answer.status_code == 201, answer.text
    ask.settle(changes.get("name", "shop"))
    return answer.json()


def context(x=0.5, plan="free"):
    return {"x": x, "plan": plan}
