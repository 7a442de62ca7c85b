"""A shop that asks a service on a temporary store what to offer: `make serve-demo`."""

from __future__ import annotations

import argparse
import heapq
import math
import os
import random
import signal
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from pfnts.service.client import Client, _address
from pfnts.service.server import Settings, serve

SHOP = "shop-offers"
ARMS = ("no offer", "10 % off", "free shipping")
COLUMNS = {
    "age": "numeric",
    "basket": "numeric",
    "returning": "boolean",
    "device": ["phone", "tablet", "desktop"],
    "region": "categorical",
}
_CLIENTS = 4


def visitor(rng: random.Random) -> dict[str, Any]:
    """Somebody comes into the shop; now and then something about them is unknown."""
    return {
        "age": None if rng.random() < 0.1 else round(rng.uniform(18, 80)),
        "basket": round(rng.lognormvariate(3.3, 0.7), 2),
        "returning": rng.random() < 0.4,
        "device": rng.choices(["phone", "tablet", "desktop"], [6, 1, 3])[0],
        "region": rng.choice(["north", "south", "east", "west"]),
    }


def conversion(person: dict[str, Any], arm: str) -> float:
    """Probability of a purchase, about 3 % on the whole.

    Examples
    --------
    >>> rng = random.Random(0)
    >>> people = [visitor(rng) for _ in range(5000)]
    >>> round(sum(conversion(p, rng.choice(ARMS)) for p in people) / 5000, 3)
    0.032
    """
    score = -4.0 + 0.5 * person["returning"] + 0.2 * (person["device"] == "desktop")
    if arm == "10 % off":
        score += 0.9 * (person["basket"] > 30) - 0.4 * person["returning"]
    elif arm == "free shipping":
        score += 0.8 * (person["basket"] <= 30)
    elif arm == "gift":
        score += 1.1 * person["returning"]
    return 1 / (1 + math.exp(-score))


class Shop:
    """Visitors at a steady rate; rewards come late, get lost, or come twice.

    Parameters
    ----------
    url
        Address of the service.
    rate
        Visitors a second.
    seconds
        How long.
    late
        Rewards come up to so many seconds after the decision.
    """

    def __init__(self, url: str, *, rate: float, seconds: float, late: float, seed: int = 0) -> None:
        self._clients = [Client(url) for _ in range(_CLIENTS)]
        self._rate, self._seconds, self._late = rate, seconds, late
        self._rng = random.Random(seed)
        self._lock = threading.Lock()
        self._due: list[tuple[float, str, float]] = []

    def run(self) -> None:
        """Let visitors come until the time is over."""
        admin = self._clients[0]
        admin.create(
            SHOP,
            ARMS,
            schema=COLUMNS,
            # Quick, and each arm has its own model: who gets what depends on the visitor.
            policy={"name": "pfn-ts", "settings": {"backbone": "linear", "encoding": "disjoint"}},
            holdout=0.1,
            explore=0.03,
            reward={"wait": self._late * 1.5, "min": 0, "max": 1},
        )
        begun = time.monotonic()
        changes = [
            (0.4, lambda: admin._call("POST", _address(SHOP, "arms"), {"id": "gift"})),
            (0.7, lambda: admin._call("DELETE", _address(SHOP, "arms", "10 % off"))),
        ]
        with ThreadPoolExecutor(_CLIENTS) as pool:
            number = 0
            while (now := time.monotonic() - begun) < self._seconds:
                if changes and now > changes[0][0] * self._seconds:
                    changes.pop(0)[1]()
                if number < now * self._rate:
                    pool.submit(self._visit, number)
                    number += 1
                for id, value in self._arrived():
                    pool.submit(self._reward, id, value)
                time.sleep(0.3 / self._rate)
        for client in self._clients:
            client.close()

    def _visit(self, number: int) -> None:
        person = visitor(self._rng)
        client = self._clients[number % _CLIENTS]
        decision = client.decide(SHOP, person, unit=f"visitor {self._rng.randrange(2000)}")
        value = float(self._rng.random() < conversion(person, decision.arm))
        if self._rng.random() < 0.02:
            return  # lost on the way
        for _ in range(2 if self._rng.random() < 0.01 else 1):
            with self._lock:
                when = time.monotonic() + self._rng.uniform(0, self._late)
                heapq.heappush(self._due, (when, decision.id, value))

    def _reward(self, id: str, value: float) -> None:
        self._clients[hash(id) % _CLIENTS].reward(SHOP, id, value)

    def _arrived(self) -> list[tuple[str, float]]:
        with self._lock:
            found = []
            while self._due and self._due[0][0] <= time.monotonic():
                _, id, value = heapq.heappop(self._due)
                found.append((id, value))
            return found


def main() -> None:
    """Serve a temporary store, and let the shop use it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--rate", type=float, default=30.0, help="visitors a second")
    parser.add_argument("--late", type=float, default=60.0, help="seconds by which rewards may be late")
    wanted = parser.parse_args()

    def started(port: int) -> None:
        url = f"http://127.0.0.1:{port}"
        print(f"The shop is open for {wanted.seconds:g} seconds. Watch it: {url}/", flush=True)

        def work() -> None:
            try:
                Shop(url, rate=wanted.rate, seconds=wanted.seconds, late=wanted.late).run()
            finally:
                os.kill(os.getpid(), signal.SIGTERM)

        threading.Thread(target=work, daemon=True).start()

    with tempfile.TemporaryDirectory(prefix="pfnts-demo-") as folder:
        serve(Settings(data=folder, port=wanted.port), started=started)
    print("The shop is closed; its store is gone.")


if __name__ == "__main__":
    main()
