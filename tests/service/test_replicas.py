"""Three processes on one PostgreSQL database: one is stopped, the leader is killed."""

from __future__ import annotations

import itertools
import os
import signal
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import httpx

from pfnts.service.check import check
from pfnts.service.store import Draft, open_store
from tests.service.asking import SHOP, asking, context, shop
from tests.service.processes import Service, until
from tests.service.test_serving import chi_square

WAIT = 3.0
COPIES = int(os.environ.get("PFNTS_COPIES", "200"))


class Traffic:
    """A client of one replica: every third decision gets its reward."""

    def __init__(self, service, number):
        self.service, self.number = service, number
        self.answers = []
        self.learned = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def stop(self):
        self._stop.set()
        self._thread.join()

    def _run(self):
        with httpx.Client(base_url=self.service.url, timeout=1.0, trust_env=False) as http:
            for i in itertools.count():
                if self._stop.wait(0.02):
                    return
                id = f"{self.number}-{i}"
                with suppress(httpx.TransportError):
                    body = {"decision_id": id, "context": context(i % 7)}
                    answer = http.post("/v1/experiments/shop/decisions", json=body)
                    if answer.status_code == 200:
                        self.answers.append(answer.json())
                        if i % 3 == 0:
                            url = f"/v1/experiments/shop/decisions/{id}/rewards"
                            answer = http.post(url, json={"value": 1.0})
                            if answer.status_code == 200 and answer.json()["status"] == "learned":
                                self.learned.append(id)


def _statuses_of_copies(services):
    """Hand one reward in many times, to all replicas at once."""
    body = {"decision_id": "once", "context": context()}
    assert services[0].http.post("/v1/experiments/shop/decisions", json=body).status_code == 200

    def hand_in(number):
        http = services[number % 3].http
        return http.post("/v1/experiments/shop/decisions/once/rewards", json={"value": 1.0}).json()["status"]

    with ThreadPoolExecutor(30) as pool:
        return Counter(pool.map(hand_in, range(COPIES)))


def leads(service):
    with suppress(httpx.TransportError):
        return service.http.get("/v1/experiments/shop/report").json()["leads"]
    return False


def test_replicas_agree_though_one_is_stopped_and_the_leader_is_killed(database, tmp_path):
    services = [Service(tmp_path, database, poll=0.05, lease=1.0, timeout=5.0) for _ in range(3)]
    traffic = []
    try:
        for service in services:
            service.wait_ready()
        settings = SHOP | {"reward": {"wait": WAIT, "default": 0.0}, "explore": 0.2}
        assert services[0].http.post("/v1/experiments", json=settings).status_code == 201
        assert services[1].http.get("/v1/experiments/shop").status_code == 200, "known elsewhere at once"
        until(lambda: sum(map(leads, services)) == 1)
        [leader] = [service for service in services if leads(service)]
        stopped, left = [service for service in services if service is not leader]
        assert _statuses_of_copies(services) == {"learned": 1, "duplicate": COPIES - 1}
        traffic = [Traffic(service, n) for n, service in enumerate(services)]
        until(lambda: all(len(one.answers) >= 20 for one in traffic))
        stopped.signal(signal.SIGSTOP)
        leader.kill()
        until(lambda: leads(left), 60)
        reached = len(traffic[services.index(left)].answers) + 20
        until(lambda: len(traffic[services.index(left)].answers) >= reached, 60)
        stopped.signal(signal.SIGCONT)
        reached = len(traffic[services.index(stopped)].answers) + 20
        until(lambda: len(traffic[services.index(stopped)].answers) >= reached, 60)
        for one in traffic:
            one.stop()
        # Every decision is settled in the end, by whoever leads.
        store = open_store("", database)
        time.sleep(WAIT)
        until(lambda: _count(store, "decided") == _count(store, "settled"), 60)
        assert sum(map(leads, (stopped, left))) == 1
        # A follower knows of its lag when it has polled: in the end the same log, the same model.
        until(lambda: stopped.settle("shop")["model"] == left.settle("shop")["model"])
        assert "pfnts_model_lag" in left.http.get("/metrics").text
    finally:
        for one in traffic:
            one.stop()
        for service in services:
            service.signal(signal.SIGCONT)
            service.kill()
    records = store.read("shop", -1, limit=100_000)
    assert [record.position for record in records] == list(range(len(records))), "no gap"
    settled = [record.id for record in records if record.kind == "settled"]
    assert len(settled) == len(set(settled)), "nothing was settled twice"
    by_reward = {
        record.id for record in records if record.kind == "settled" and record.data["by"] == "reward"
    }
    assert by_reward >= {id for one in traffic for id in one.learned}, (
        "what was learned did not expire as well"
    )
    assert len(settled) > len(by_reward), "the rest expired"
    by_id = {record.id: record for record in records if record.kind == "decided"}
    for one in traffic:
        positions = [answer["model"]["position"] for answer in one.answers]
        assert positions == sorted(positions), "a replica never goes back"
        for answer in one.answers:
            assert by_id[answer["decision_id"]].data["model"] == answer["model"]
    assert [finding.problem for finding in check(store)] == [None], "every fingerprint is that of the log"
    for number in range(3):
        own = [record for record in by_id.values() if record.id.startswith(f"{number}-")]
        assert chi_square(own) > 1e-4
    store.close()


def test_a_leader_that_is_stopped_and_comes_back_settles_nothing_twice(database, tmp_path):
    """It believes to lead when it wakes, maybe in the middle of a transaction under the experiment's lock."""
    services = [Service(tmp_path, database, poll=0.02, lease=1.0, timeout=5.0) for _ in range(2)]
    store = open_store("", database)
    try:
        for service in services:
            service.wait_ready()
        settings = SHOP | {"reward": {"wait": 0.3, "default": 0.0}}
        assert services[0].http.post("/v1/experiments", json=settings).status_code == 201
        until(lambda: services[1].http.get("/v1/experiments/shop").status_code == 200)
        for round in range(3):
            until(lambda: sum(map(leads, services)) == 1, 60)
            [leader] = [service for service in services if leads(service)]
            [other] = [service for service in services if service is not leader]
            for i in range(30):  # their time is over while it is about to stop
                body = {"decision_id": f"{round}-{i}", "context": context(i)}
                answer = leader.http.post("/v1/experiments/shop/decisions", json=body)
                assert answer.status_code == 200
            leader.signal(signal.SIGSTOP)

            def decides(other=other):
                answer = other.http.post("/v1/experiments/shop/decisions", json={"context": context()})
                return answer.status_code == 200

            until(decides, 60)  # a lock that the stopped one holds is freed
            until(lambda other=other: leads(other), 60)
            until(lambda: _count(store, "decided") == _count(store, "settled"), 60)
            leader.signal(signal.SIGCONT)
            until(lambda: sum(map(leads, services)) == 1, 60)
            assert leads(other), "the one that was stopped knows that it leads no more"
        until(lambda: services[0].settle("shop")["model"] == services[1].settle("shop")["model"])
    finally:
        for service in services:
            service.signal(signal.SIGCONT)
            service.kill()
    records = store.read("shop", -1, limit=10_000)
    assert [record.position for record in records] == list(range(len(records)))
    settled = Counter(record.id for record in records if record.kind == "settled")
    assert set(settled.values()) == {1}
    assert [finding.problem for finding in check(store)] == [None]
    store.close()


def test_a_replica_whose_clock_is_a_day_ahead_settles_nothing_early(database, monkeypatch):
    import psycopg

    monkeypatch.setattr(time, "time", lambda wall=time.time: wall() + 86400)
    with asking({"data": "", "database": database}) as ask:
        shop(ask, reward={"wait": 600, "default": 0})
        assert ask.post("/shop/decisions", {"decision_id": "d1", "context": context()}).status_code == 200
        decided = ask.engine.store.find("shop", "decided", "d1")
        with psycopg.connect(database) as connection:
            [(now,)] = connection.execute("SELECT extract(epoch FROM clock_timestamp())")
        assert abs(decided.time - float(now)) < 60, "the database's clock is everybody's"


def test_a_replica_that_cannot_keep_up_shows_its_lag(database):
    with asking({"data": "", "database": database}) as ask:
        shop(ask)
        live = ask.engine.experiment("shop")
        other = open_store("", database)
        with live.model._spare.lock:  # as if it was learning
            assert all(other.append([_decided(f"d{i}") for i in range(30)]))
            until(lambda: live.state.position == 30)
            assert 'pfnts_model_lag{experiment="shop"} 30' in ask("GET", "/metrics").text
            assert ask.get("/shop/report").json()["model"]["lag"] == 30
            answer = ask.post("/shop/decisions", {"context": context()}).json()
            assert answer["model"]["position"] == 0, "it says which position it stands on"
        until(lambda: live.lag == 0)
        other.close()


def _decided(id):
    event = {"id": id, "arm": "a", "propensities": [["a", 1.0], ["b", 0.0]], "reason": "holdout"}
    data = {
        "event": event | {"kind": "decided", "eligible": None},
        "model": {"position": 0, "fingerprint": "", "version": ""},
        "deadline": 1e12,
        "group": "holdout",
        "request": "",
    }
    return Draft("shop", "decided", id, 0.0, data, context=context())


def _count(store, kind):
    return len(store.last("shop", kind, limit=100_000))
