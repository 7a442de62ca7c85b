"""Requests that nobody should send, and what must not come of them."""

from __future__ import annotations

import asyncio
import json
import re
import select
import socket
import threading
import time
import warnings
from collections import Counter
from contextlib import suppress

import httpx
import numpy as np
import pytest

from pfnts.contexts import Schema, UnseenCategoryWarning, read
from pfnts.service.gate import MOST_BYTES, Gate
from pfnts.service.routes import experiments
from pfnts.service.store import open_store
from tests.service.asking import SHOP, asking, context, shop
from tests.service.processes import Service, until


@pytest.fixture
def address(tmp_path):
    return {"data": str(tmp_path / "data"), "database": None}


def raw(ask, content, path="/v1/experiments/shop/decisions"):
    async def send():
        transport = httpx.ASGITransport(app=ask.app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as http:
            return await http.post(path, content=content, headers={"Content-Type": "application/json"})

    return asyncio.run(send())


BODIES = {
    "too large": (b'{"context": {"x": "' + b"y" * (1 << 20) + b'"}}', {413}),
    "deep": (b'{"context": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", {400, 422}),
    "deep mapping": (b'{"context": ' + b'{"x":' * 50_000 + b"1" + b"}" * 50_001, {400, 422}),
    "NaN": (b'{"context": {"x": NaN, "plan": "free"}}', {422}),
    "infinity": (b'{"context": {"x": -Infinity, "plan": "free"}}', {422}),
    "1e308": (b'{"context": {"x": 1e308, "plan": "free"}}', {422}),
    "1e999": (b'{"context": {"x": 1e999, "plan": "free"}}', {422}),
    "an integer of 5,000 digits": (b'{"context": {"x": ' + b"9" * 5000 + b"}}", {400, 422}),
    "null byte": (b'{"context": {"x": 1, "plan": "fr\\u0000ee"}}', {422}),
    "null byte in a name": (b'{"context": {"x\\u0000": 1}}', {422}),
    "half a surrogate": (b'{"context": {"x": 1, "plan": "\\ud800"}}', {422}),
    "half a surrogate as unit": (b'{"unit": "\\ud800", "context": {"x": 1, "plan": "free"}}', {422}),
    "not JSON": (b'{"context": ', {422}),
    "not UTF-8": (b'{"context": {"x": "\xff\xfe"}}', {400, 422}),
    "no mapping": (b"[1, 2]", {422}),
    "unknown field": (b'{"context": {"x": 1, "plan": "free"}, "arm": "a"}', {422}),
    "lacking column": (b'{"context": {"x": 1}}', {422}),
    "text for a number": (b'{"context": {"x": "tall", "plan": "free"}}', {422}),
    "nested value": (b'{"context": {"x": {"y": 1}, "plan": "free"}}', {422}),
    "path in an id": (b'{"decision_id": "../../x", "context": {"x": 1, "plan": "free"}}', {422}),
    "long id": (b'{"decision_id": "' + b"x" * 200 + b'", "context": {"x": 1, "plan": "free"}}', {422}),
}


def test_bodies_that_make_no_sense_are_refused_with_a_problem_and_leave_nothing(address):
    with asking(address) as ask:
        shop(ask)
        for name, (body, statuses) in BODIES.items():
            answer = raw(ask, body)
            assert answer.status_code in statuses, (name, answer.status_code, answer.text[:300])
            assert answer.headers["content-type"] == "application/problem+json", name
            assert {"title", "status", "detail"} <= answer.json().keys(), name
            assert len(answer.content) < 20_000, name
        assert ask.engine.experiment("shop").state.position == 0
        assert ask.post("/shop/decisions", {"context": context()}).status_code == 200


@pytest.mark.parametrize("value", ["NaN", "1e308", "-1e16", '"1"', "null", "true"])
def test_rewards_that_are_no_sensible_numbers_are_refused(address, value):
    with asking(address) as ask:
        shop(ask)
        ask.post("/shop/decisions", {"decision_id": "d1", "context": context()})
        path = "/v1/experiments/shop/decisions/d1/rewards"
        assert raw(ask, f'{{"value": {value}}}'.encode(), path).status_code == 422
        assert ask.engine.experiment("shop").state.counts["settled"] == 0


def test_a_reward_outside_of_its_range_names_the_rule_and_the_value(address):
    with asking(address) as ask:
        shop(ask, reward={"min": 0, "max": 1})
        ask.post("/shop/decisions", {"decision_id": "d1", "context": context()})
        answer = ask.post("/shop/decisions/d1/rewards", {"value": 2})
        assert answer.status_code == 422
        assert answer.json()["detail"] == "value must be from 0 to 1, got 2"


def test_the_largest_values_allowed_leave_a_model_that_still_decides(address):
    with asking(address) as ask:
        shop(ask)
        for i, x in enumerate([1e15, -1e15, 0.5, 1e15, 0.25, -3, 2, 1] * 3):
            answer = ask.post("/shop/decisions", {"decision_id": f"d{i}", "context": context(x)})
            ask.post(f"/shop/decisions/d{i}/rewards", {"value": (-1) ** i * 1e9})
        ask.settle()
        answer = ask.post("/shop/decisions", {"context": context()}).json()
        assert answer["reason"] == "thompson"
        assert np.isfinite(list(answer["propensities"].values())).all()


def test_ever_new_categories_and_units_do_not_widen_the_model(address):
    with asking(address) as ask:
        shop(ask, schema={"x": "numeric", "plan": "categorical"})
        ask.post("/shop/decisions", {"context": context(plan="first")})
        ask.settle()
        width = ask.engine.experiment("shop").version.policy.schema.width
        for block in range(4):
            items = [{"context": context(plan=f"{block}-{i}"), "unit": f"{block} {i}"} for i in range(100)]
            answer = ask.post("/shop/decisions:batch", {"items": items})
            assert {item["status_code"] for item in answer.json()["items"]} == {200}
        ask.settle()
        assert ask.engine.experiment("shop").version.policy.schema.width == width


def test_a_million_categories_take_the_room_of_a_few():
    schema = Schema.of({"plan": "categorical"})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnseenCategoryWarning)
        for block in range(20):
            rows = [{"plan": f"{block}-{i}"} for i in range(50_000)]
            schema = schema.extended(read(rows))
            assert schema.encode(rows).shape == (50_000, schema.width)
    assert schema.width == len(schema.columns[0].categories) < 20


def test_settings_that_would_import_or_contradict_are_refused(address):
    with asking(address) as ask:
        for changes, words in [
            ({"policy": {"settings": {"backbone": "os.path"}}}, "backbone must be one of"),
            ({"policy": {"name": "os.system"}}, "policy.name"),
            ({"policy": {"name": "lin-ts", "settings": {"nu": -1}}}, "nu must be"),
            ({"policy": {"name": "lin-ts", "settings": {"nonsense": 1}}}, "nonsense"),
            ({"policy": {"name": "lin-ts", "settings": {"arms": 3}}}, "must not stand among"),
            ({"arms": [{"id": "a"}, {"id": "a"}]}, "distinct"),
            ({"baseline_arm": "z"}, "baseline_arm must be one of"),
            ({"reward": {"min": 1, "max": 0}}, "reward.min must be below"),
            ({"name": "../x"}, "name"),
            ({"name": "<script>"}, "name"),
        ]:
            answer = ask.post("", {"name": "e", "arms": [{"id": "a"}]} | changes)
            assert answer.status_code == 422, changes
            assert words in answer.text, (changes, answer.text)
        assert ask.engine.experiments == {}


def test_slow_senders_are_let_go_and_others_are_served_meanwhile(tmp_path):
    service = Service(tmp_path, patience=2.0)
    try:
        service.wait_ready()
        slow = [socket.create_connection(("127.0.0.1", service.settings["port"])) for _ in range(50)]
        for number, connection in enumerate(slow):
            if number % 3 == 0:
                connection.send(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
                answer = b""
                while not answer.endswith(b"}"):
                    answer += connection.recv(4096)
            body = b"POST /v1/experiments HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{"
            connection.send(body if number % 2 else b"GET / HT")
        begun = time.monotonic()
        assert service.http.get("/livez").status_code == 200
        assert time.monotonic() - begun < 5
        end = time.monotonic() + 12
        for connection in slow:
            connection.settimeout(max(end - time.monotonic(), 0.1))
            answer = connection.recv(4096)
            assert not answer or b" 408 " in answer.splitlines()[0]
            connection.close()
    finally:
        assert service.stop() == 0


def test_a_flood_of_large_bodies_takes_bounded_memory_and_streams_end_with_their_readers(tmp_path):
    psutil = pytest.importorskip("psutil", reason="needs psutil")
    service = Service(tmp_path, patience=20.0)
    try:
        service.wait_ready()
        assert service.http.post("/v1/experiments", json=SHOP).status_code == 201

        def send(text):
            connection = socket.create_connection(("127.0.0.1", service.settings["port"]), timeout=10)
            with suppress(ConnectionError):  # it may be refused half-way
                connection.sendall(
                    b"POST /v1/experiments/shop/imports HTTP/1.1\r\nHost: localhost\r\n" + text
                )
            return connection

        process = psutil.Process(service.process.pid)
        before = process.memory_info().rss
        text = b"Content-Length: 1048576\r\n\r\n" + b"[" * 1_000_000  # all but the end of it
        flood = [send(text) for _ in range(200)]

        def waiting():
            return [connection for connection in flood if not select.select([connection], [], [], 0)[0]]

        until(lambda: len(waiting()) <= 34, 15)  # the rest was refused before it was all sent
        assert len(waiting()) >= 20
        grown = process.memory_info().rss - before
        assert grown < 120 << 20, f"{grown >> 20} MiB for 200 MiB of bodies"
        for connection in flood:
            connection.close()
        decision = {"context": context()}
        path = "/v1/experiments/shop/decisions"
        until(lambda: service.http.post(path, json=decision).status_code == 200)

        def streams():
            return int(re.search(r"^pfnts_streams (\d+)", service.http.get("/metrics").text, re.MULTILINE)[1])

        stream = b"GET /v1/experiments/shop/events HTTP/1.1\r\nHost: localhost\r\n\r\n"
        readers = [socket.create_connection(("127.0.0.1", service.settings["port"])) for _ in range(40)]
        for reader in readers:
            reader.sendall(stream)
        answers = Counter(reader.recv(12) for reader in readers)
        assert answers == {b"HTTP/1.1 200": 32, b"HTTP/1.1 429": 8}
        assert streams() == 32
        for reader in readers[1:]:
            reader.close()
        until(lambda: streams() <= 1)
    finally:
        assert service.stop() == 0, "a stream that is open holds up nobody"


def test_readers_of_exports_who_do_not_read_have_bounded_room_and_are_let_go(address, monkeypatch):
    monkeypatch.setattr(experiments, "_LONGEST_EXPORT", 1.0)
    with asking(address, timeout=30) as ask:
        shop(ask)
        items = [{"decision_id": f"d{i}", "context": context(i)} for i in range(250)]
        assert ask.post("/shop/decisions:batch", {"items": items}).status_code == 200
        rewards = [{"decision_id": f"d{i}", "value": i} for i in range(250)]
        assert ask.post("/shop/rewards:batch", {"items": rewards}).status_code == 200

        async def read(*, stalled):
            statuses, asked = [], []

            async def receive():
                if asked:
                    await asyncio.sleep(60)
                asked.append(1)
                return {"type": "http.request", "body": b"", "more_body": False}

            async def send(message):
                statuses.append(message.get("status"))
                if stalled:
                    await asyncio.sleep(60)

            scope = {
                "type": "http",
                "method": "GET",
                "path": "/v1/experiments/shop/export",
                "headers": [],
                "query_string": b"",
                "client": ("127.0.0.1", 5),
                "app": ask.app,
                "asgi": {"spec_version": "2.4"},
            }
            await ask.app(scope, receive, send)
            return statuses[0]

        async def flood():
            stalled = [asyncio.create_task(read(stalled=True)) for _ in range(4)]
            await asyncio.sleep(0.3)
            assert ask.engine.exports == 4
            assert await read(stalled=False) == 429
            begun = time.monotonic()
            await asyncio.gather(*stalled)
            assert time.monotonic() - begun < 10
            assert ask.engine.exports == 0
            return await read(stalled=False)

        assert ask.run([flood()]) == [200]


def test_copies_of_an_import_and_of_a_decision_at_once_count_once(address):
    """Clients that ask again before they have an answer; two of them differ in what they ask."""
    with asking(address, requests=200, timeout=30) as ask:
        shop(ask)
        rows = [{"context": context(i), "arm": "a", "value": i} for i in range(50)]
        body = {"import_id": "old", "rows": rows}
        answers = ask.together([("POST", "/v1/experiments/shop/imports", body)] * 20)
        assert sum(answer.json()["learned"] for answer in answers) == 50
        asked = [{"decision_id": "d", "context": context(x)} for x in (0.1, 0.2) * 30]
        answers = ask.together([("POST", "/v1/experiments/shop/decisions", one) for one in asked])
        ok = [answer for answer in answers if answer.status_code == 200]
        assert len(ok) == 30, "those of one context"
        assert len({answer.text for answer in ok}) == 1
        assert {answer.status_code for answer in answers} == {200, 409}
        items = [{"decision_id": "e", "context": context(x)} for x in (0.1, 0.2) * 30]
        answers = ask.post("/shop/decisions:batch", {"items": items}).json()["items"]
        assert Counter(answer["status_code"] for answer in answers) == {200: 30, 409: 30}
        ask.settle()
        assert len(ask.engine.store.last("shop", "decided", limit=9)) == 2
        assert sum(e.kind == "observed" for e in ask.engine.experiment("shop").version.policy.events) == 50


def test_who_is_served_when_the_end_comes_gets_an_answer(tmp_path):
    service = Service(tmp_path, timeout=5.0)
    service.wait_ready()
    assert service.http.post("/v1/experiments", json=SHOP).status_code == 201
    told, refused = [], []

    def ask(number):
        with httpx.Client(base_url=service.url, timeout=20, trust_env=False) as http:
            for i in range(10_000):
                body = {"decision_id": f"{number}-{i}", "context": context()}
                try:
                    answer = http.post("/v1/experiments/shop/decisions", json=body)
                except httpx.ConnectError as error:  # nobody listens any more
                    refused.append(error)
                    return
                except httpx.TransportError:  # an idle connection was closed as the request left
                    continue
                assert answer.status_code == 200, answer.text
                told.append(body["decision_id"])

    threads = [threading.Thread(target=ask, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    until(lambda: len(told) > 20)
    assert service.stop() == 0
    for thread in threads:
        thread.join()
    assert len(refused) == 4
    store = open_store(tmp_path)
    stored = {record.id for record in store.read("shop", -1, limit=10**6) if record.kind == "decided"}
    store.close()
    assert set(told) <= stored


def test_a_flood_is_shed_and_those_who_come_later_are_served(address):
    with asking(address, requests=20, timeout=10) as ask:
        shop(ask)
        lock = ask.engine.experiment("shop").version.lock
        lock.acquire()
        threading.Timer(0.5, lock.release).start()
        body = {"context": context()}
        decisions = [("POST", "/v1/experiments/shop/decisions", body)] * 200
        answers = ask.together([*decisions, ("GET", "/livez", None)])
        statuses = Counter(answer.status_code for answer in answers)
        assert statuses == {200: 21, 429: 180}, "twenty, and the probe"
        assert all(a.headers["retry-after"] == "1" for a in answers if a.status_code == 429)
        assert len(ask.engine.experiment("shop").state.decisions) == 20
        assert 'pfnts_requests_total{status="429"} 180' in ask("GET", "/metrics").text
        assert ask.post("/shop/decisions", body).status_code == 200


def test_bodies_that_are_sent_together_have_bounded_room(address):
    with asking(address, requests=1000) as ask:
        shop(ask)
        part, held = b"x" * (1 << 19), asyncio.Event()

        async def send(gate, scope):
            sent, answers = [], []

            async def receive():
                if not sent:
                    sent.append(1)
                    return {"type": "http.request", "body": part, "more_body": True}
                await held.wait()
                return {"type": "http.request", "body": b"", "more_body": False}

            async def answer(message):
                answers.append(message.get("status"))

            await gate(scope | {"state": {}}, receive, answer)
            return answers[0]

        async def flood():
            gate = ask.app.middleware_stack
            while not isinstance(gate, Gate):
                gate = gate.app
            scope = {
                "type": "http",
                "method": "POST",
                "path": "/v1/experiments/shop/decisions",
                "headers": [],
                "query_string": b"",
                "client": ("127.0.0.1", 5),
                "app": ask.app,
            }
            senders = [asyncio.create_task(send(gate, scope)) for _ in range(100)]
            await asyncio.sleep(0.1)
            assert gate._bytes <= MOST_BYTES
            shed = [sender.result() for sender in senders if sender.done()]
            held.set()
            statuses = await asyncio.gather(*senders)
            assert gate._bytes == 0, "all of it was given back"
            return shed, statuses

        ask.get("/shop")
        [(shed, statuses)] = ask.run([flood()])
        assert shed == [429] * (100 - MOST_BYTES // len(part))
        assert statuses.count(422) == MOST_BYTES // len(part)
        assert ask.post("/shop/decisions", {"context": context()}).status_code == 200


def test_a_problem_document_does_not_repeat_what_json_cannot_say(address):
    with asking(address) as ask:
        shop(ask)
        answer = raw(ask, b'{"context": {"x": NaN}, "unit": NaN}')
        assert json.loads(answer.text, parse_constant=lambda name: pytest.fail(name))["status"] == 422
