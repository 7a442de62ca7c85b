"""A store that takes nothing: no decision leaves that is not logged, and all is well again by itself."""

from __future__ import annotations

import os
import resource

import pytest

from pfnts.service.store import open_store
from tests.service.asking import SHOP, asking, context, shop
from tests.service.processes import Service, until


def decide(http, id):
    return http.post("/v1/experiments/shop/decisions", json={"decision_id": id, "context": context()})


def test_a_full_disk_is_answered_with_503_and_got_over(tmp_path):
    service = Service(tmp_path / "data", poll=0.05, timeout=5.0)
    try:
        service.wait_ready()
        assert service.http.post("/v1/experiments", json=SHOP).status_code == 201
        assert decide(service.http, "before").status_code == 200
        before = resource.prlimit(service.process.pid, resource.RLIMIT_FSIZE)
        largest = max(file.stat().st_size for file in (tmp_path / "data").iterdir())
        resource.prlimit(service.process.pid, resource.RLIMIT_FSIZE, (largest, before[1]))
        statuses = [decide(service.http, f"full-{i}") for i in range(30)]
        refused = [answer for answer in statuses if answer.status_code == 503]
        assert refused, "the store has no room for thirty decisions"
        assert "took nothing" in refused[-1].json()["detail"]
        assert refused[-1].headers["retry-after"] == "1"
        until(lambda: service.http.get("/readyz").status_code == 503)
        assert service.http.get("/livez").status_code == 200
        resource.prlimit(service.process.pid, resource.RLIMIT_FSIZE, before)
        service.wait_ready()
        assert decide(service.http, "after").status_code == 200
    finally:
        assert service.stop() == 0
    store = open_store(tmp_path / "data")
    answered = {answer.json()["decision_id"] for answer in statuses if answer.status_code == 200}
    stored = {record.id for record in store.read("shop", -1) if record.kind == "decided"}
    assert stored == {"before", "after", *answered}
    store.close()


def test_a_read_only_store_is_answered_with_503_and_got_over(tmp_path, monkeypatch):
    with asking({"data": str(tmp_path), "database": None}) as ask:
        shop(ask)
        store = ask.engine.store
        connect = store._connect

        def read_only():
            connection = connect()
            connection.execute("PRAGMA query_only = 1")
            return connection

        store._connection().execute("PRAGMA query_only = 1")
        monkeypatch.setattr(store, "_connect", read_only)
        monkeypatch.setattr(store, "_connection", lambda: store._writer or _writer(store))
        for i in range(3):
            answer = ask.post("/shop/decisions", {"decision_id": f"d{i}", "context": context()})
            assert answer.status_code == 503
            assert "readonly" in answer.json()["detail"]
        assert ask("GET", "/readyz").status_code == 503
        assert "readonly" in ask("GET", "/readyz").json()["reasons"][0]
        assert ask.get("/shop/report").status_code == 200, "what is known can be read"
        monkeypatch.undo()
        until(lambda: ask("GET", "/readyz").status_code == 200, 10)
        assert ask.post("/shop/decisions", {"decision_id": "d1", "context": context()}).status_code == 200
        assert [r.id for r in store.read("shop", 0)] == ["d1"], "nothing of the failed ones was stored"


def _writer(store):
    store._writer = store._connect()
    return store._writer


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_is_refused_at_the_start(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(OSError, match="denied"):
        open_store(tmp_path / "data")
