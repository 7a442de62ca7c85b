"""Latency of decisions at a steady rate, open loop, over the loopback interface; bounded in time and rate.

The service runs in a process of its own; requests leave at times drawn beforehand, whether or not those
before them were answered: a slow service cannot slow the clock that judges it. Run it on an idle machine:

    python benchmarks/service_load.py [--backbone embedded] [--rates 20 80 400] [--seconds 20]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import tempfile
import time
from collections import Counter

import numpy as np

COLUMNS, ARMS = 10, ("a", "b", "c")


class Wire:
    """Requests over as many connections as it takes, with as little work as possible."""

    def __init__(self, port: int) -> None:
        self._port, self._free = port, []

    async def ask(self, method: str, path: str, body=None) -> tuple[int, dict]:
        content = b"" if body is None else json.dumps(body).encode()
        head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        request = f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content
        while self._free:
            try:
                return await self._send(*self._free.pop(), request)
            except (asyncio.IncompleteReadError, ConnectionError):
                pass  # the server has closed it after some idle seconds, unread
        return await self._send(*await asyncio.open_connection("127.0.0.1", self._port), request)

    async def _send(self, reader, writer, request: bytes) -> tuple[int, dict]:
        writer.write(request)
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = int(head.split("content-length: ")[1].split("\r\n")[0])
        answer = await reader.readexactly(length)
        # Beyond its connections the server says 503 in plain text, and closes.
        if "connection: close" in head:
            writer.close()
        else:
            self._free.append((reader, writer))
        return int(head.split()[1]), json.loads(answer) if "json" in head else {}


def serve(folder: str, pipe, batch: int) -> None:
    import torch

    from pfnts.service.engine import Limits
    from pfnts.service.server import Settings
    from pfnts.service.server import serve as run

    torch.set_num_threads(1)
    limits = Limits(batch=batch, queue=128, timeout=1.0)
    run(Settings(data=folder, port=0, limits=limits), started=pipe.send)


def context(rng) -> dict[str, float]:
    return {f"x{j}": float(value) for j, value in enumerate(rng.normal(size=COLUMNS))}


async def seed(http: Wire, rewards: int, policy: dict, rng) -> None:
    settings = {"name": "load", "arms": [{"id": arm} for arm in ARMS], "policy": policy}
    settings["schema"] = {f"x{j}": "numeric" for j in range(COLUMNS)}
    assert (await http.ask("POST", "/v1/experiments", settings))[0] == 201
    for block in range(0, rewards, 1000):
        rows = []
        for i in range(min(1000, rewards - block)):
            x = context(rng)
            rows.append({"context": x, "arm": ARMS[i % 3], "value": x["x0"] * (i % 3) + float(rng.normal())})
        body = {"import_id": str(block), "rows": rows}
        assert (await http.ask("POST", "/v1/experiments/load/imports", body))[0] == 200
    begun = time.monotonic()
    while (await http.ask("GET", "/v1/experiments/load"))[1]["lag"]:
        await asyncio.sleep(0.1)
    print(f"  model of {rewards:,} rewards ready after {time.monotonic() - begun:.1f} s")


async def stock(http: Wire, rng, count: int) -> list[str]:
    """Take decisions beforehand whose rewards will come: every reward is then one to learn."""
    ids = []
    while len(ids) < count:
        items = [{"context": context(rng)} for _ in range(min(100, count - len(ids)))]
        _, answer = await http.ask("POST", "/v1/experiments/load/decisions:batch", {"items": items})
        ids += [item["decision_id"] for item in answer["items"] if item["status_code"] == 200]
    return ids


async def stretch(http, rng, *, decisions: float, rewards: float, seconds: float, together: int) -> dict:
    """Send decisions and rewards at Poisson times; latencies in seconds and counts of statuses."""
    latencies, statuses, reasons = [], Counter(), Counter()
    requests = np.sort(rng.uniform(0, seconds, rng.poisson(rewards / together * seconds)))
    waiting = await stock(http, rng, together * len(requests))

    async def decide(when: float) -> None:
        await asyncio.sleep(max(when - time.monotonic(), 0))
        begun = time.monotonic()
        status, answer = await http.ask("POST", "/v1/experiments/load/decisions", {"context": context(rng)})
        statuses[str(status)] += 1
        if status == 200:
            latencies.append(time.monotonic() - begun)
            reasons[answer["reason"]] += 1

    async def reward(when: float) -> None:
        await asyncio.sleep(max(when - time.monotonic(), 0))
        items = [{"decision_id": waiting.pop(), "value": float(rng.normal())} for _ in range(together)]
        status, answer = await http.ask("POST", "/v1/experiments/load/rewards:batch", {"items": items})
        statuses[f"rewards {status}"] += 1
        for item in answer.get("items", ()):
            statuses[item.get("status", f"reward {item['status_code']}")] += 1

    start = time.monotonic() + 0.1
    times = np.sort(rng.uniform(0, seconds, rng.poisson(decisions * seconds)))
    await asyncio.gather(*(decide(start + t) for t in times), *(reward(start + t) for t in requests))
    p50, p95, p99 = np.percentile(latencies, [50, 95, 99]) * 1000 if latencies else [float("nan")] * 3
    passed = time.monotonic() - start
    held, by_model = len(latencies) / passed, (len(latencies) - reasons["fallback"]) / passed
    return {
        "offered/s": decisions,
        "answered/s": round(held, 1),
        "by the model/s": round(by_model, 1),
        "p50 ms": round(p50, 1),
        "p95 ms": round(p95, 1),
        "p99 ms": round(p99, 1),
        "statuses": dict(statuses),
        "reasons": dict(reasons),
    }


async def measure(port: int, wanted) -> list[dict]:
    rng = np.random.default_rng(0)
    settings = {"backbone": wanted.backbone} if wanted.policy == "pfn-ts" else {}
    policy = {"name": wanted.policy, "settings": settings}
    http = Wire(port)
    await seed(http, wanted.history, policy, rng)
    found = []
    for decisions in [*wanted.rates, wanted.rates[0]]:  # after the overload the first rate once more
        row = await stretch(
            http,
            rng,
            decisions=decisions,
            rewards=wanted.rewards,
            seconds=wanted.seconds,
            together=wanted.together,
        )
        print("  ", json.dumps(row), flush=True)
        found.append(row)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--policy", default="pfn-ts")
    parser.add_argument("--backbone", default="linear")
    parser.add_argument("--history", type=int, default=5000, help="rewards that the model has learned")
    parser.add_argument("--rates", type=float, nargs="+", default=[20.0, 80.0, 400.0])
    parser.add_argument("--rewards", type=float, default=200.0, help="rewards a second")
    parser.add_argument("--together", type=int, default=10, help="rewards of one request")
    parser.add_argument("--seconds", type=float, default=5.0, help="of each stretch, at most 60")
    wanted = parser.parse_args()
    wanted.seconds = min(wanted.seconds, 60.0)
    print(f"load of the machine before: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    answered = {}
    for batch in (64, 1):
        print(f"{wanted.policy}, {wanted.backbone}: {'micro-batches' if batch > 1 else 'one at a time'}")
        ours, theirs = multiprocessing.Pipe()
        with tempfile.TemporaryDirectory() as folder:
            process = multiprocessing.get_context("spawn").Process(target=serve, args=(folder, theirs, batch))
            process.start()
            answered[batch] = asyncio.run(measure(ours.recv(), wanted))
            process.terminate()
            process.join()
    for batched, single in zip(answered[64], answered[1], strict=True):
        ratio = batched["by the model/s"] / max(single["by the model/s"], 1e-9)
        print(f"at {batched['offered/s']:g} decisions/s: by the model, with / without batches {ratio:.2f}")


if __name__ == "__main__":
    main()
