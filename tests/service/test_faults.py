"""A store that takes nothing: no decision leaves that is not logged, and all is well again by itself."""

from __future__ import annotations

import os
import resource
import shutil
import threading
from contextlib import suppress

import pytest

from pfnts.service.check import check
from pfnts.service.errors import Unavailable
from pfnts.service.store import open_store
from pfnts.service.store.base import Draft, StoreUnavailableError
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
        until(lambda: ask("GET", "/readyz").status_code == 200)
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


@pytest.mark.parametrize("how", ["removed", "replaced"])
def test_a_file_that_is_taken_away_takes_no_acknowledged_decision_along(tmp_path, how):
    """Somebody cleans up, or restores a backup, while it runs: a database writes on, into nothing."""
    with asking({"data": str(tmp_path), "database": None}) as ask:
        shop(ask)
        assert ask.post("/shop/decisions", {"decision_id": "d1", "context": context()}).status_code == 200
        path = tmp_path / "pfnts.sqlite"
        path.rename(tmp_path / "elsewhere")
        if how == "replaced":
            shutil.copy(tmp_path / "elsewhere", path)
        answer = ask.post("/shop/decisions", {"decision_id": "d2", "context": context()})
        assert answer.status_code == 503
        assert "removed or replaced" in answer.json()["detail"]
        until(lambda: ask("GET", "/readyz").status_code == 503)
        (tmp_path / "elsewhere").replace(path)  # put back: all is well again
        until(lambda: ask("GET", "/readyz").status_code == 200)
        assert ask.post("/shop/decisions", {"decision_id": "d2", "context": context()}).status_code == 200
    store = open_store(tmp_path)
    assert [record.id for record in store.read("shop", 0)] == ["d1", "d2"]
    store.close()


def test_nothing_is_opened_in_the_place_of_a_file_that_is_gone(tmp_path):
    store, path = open_store(tmp_path), tmp_path / "pfnts.sqlite"
    store.append([Draft("shop", "created", "shop", 0.0, {}, new=True)])
    path.rename(tmp_path / "elsewhere")
    store._readers._drop()  # as after an error: the next to read opens the file anew
    for ask in (store.probe, store.probe, store.experiments):
        with pytest.raises(StoreUnavailableError, match="removed or replaced"):
            ask()
        assert not path.exists()
    (tmp_path / "elsewhere").rename(path)
    store.probe()
    assert store.experiments() == {"shop": 0}
    store.close()


def test_a_database_that_becomes_read_only_is_answered_with_503_and_got_over(database):
    """As when a standby takes over that was not made the primary."""
    import psycopg

    def set_read_only(value):
        with psycopg.connect(database, autocommit=True) as connection:
            name = connection.info.dbname
            connection.execute("SET default_transaction_read_only = off")
            connection.execute(f'ALTER DATABASE "{name}" SET default_transaction_read_only = {value}')
            cut_off(connection)

    with asking({"data": "", "database": database}) as ask:
        shop(ask)
        set_read_only("on")
        for i in range(3):
            answer = ask.post("/shop/decisions", {"decision_id": f"d{i}", "context": context()})
            assert answer.status_code == 503, answer.text
        assert "read-only" in answer.json()["detail"]
        until(lambda: ask("GET", "/readyz").status_code == 503)
        set_read_only("off")
        until(lambda: ask("GET", "/readyz").status_code == 200)
        assert ask.post("/shop/decisions", {"decision_id": "d1", "context": context()}).status_code == 200
        assert [r.id for r in ask.engine.store.read("shop", 0)] == ["d1"], "nothing of the failed ones"


def cut_off(connection):
    """End all other sessions of the database, as a failover does."""
    connection.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )


def test_a_session_that_was_ended_since_it_last_read_is_not_a_database_that_is_away(database):
    import psycopg

    with asking({"data": "", "database": database}) as ask, psycopg.connect(database, autocommit=True) as db:
        shop(ask)
        ask.post("/shop/decisions", {"decision_id": "d", "context": context()})
        for _ in range(5):
            before = ask.engine.store.read("shop", 0)
            cut_off(db)
            assert ask.engine.store.read("shop", 0) == before


def test_sessions_that_are_cut_off_under_load_lose_and_double_nothing(database):
    """The worst moment is after the commit and before its answer: the client asks again, and is told."""
    import psycopg

    with asking({"data": "", "database": database}) as ask, psycopg.connect(database, autocommit=True) as db:
        shop(ask)
        told = {}
        for block in range(15):
            items = [
                {"decision_id": f"{block}-{i}", "unit": f"u{i}", "context": context(i / 9)} for i in range(40)
            ]
            timer = threading.Timer(0.002 * block, cut_off, [db])
            timer.start()
            left = items
            for _ in range(100):
                answers = ask.post("/shop/decisions:batch", {"items": left}).json()["items"]
                for item, answer in zip(left, answers, strict=True):
                    assert answer["status_code"] in (200, 503), answer
                    if answer["status_code"] == 200:
                        told[item["decision_id"]] = answer["arm"]
                left = [item for item in items if item["decision_id"] not in told]
                if not left:
                    break
            timer.join()
            assert not left, "it is got over"
        records = ask.engine.store.read("shop", 0, limit=10_000)
        assert [record.position for record in records] == list(range(1, 601))
        assert {record.id: record.data["event"]["arm"] for record in records} == told
        ask.settle()
        assert [finding.problem for finding in check(ask.engine.store)] == [None]


def test_a_log_that_is_shorter_than_before_is_read_anew(database):
    """A backup was restored, or a standby without the last commits took over, while the service ran."""
    import psycopg

    with asking({"data": "", "database": database}) as ask:
        shop(ask)
        for i in range(20):
            ask.post("/shop/decisions", {"decision_id": f"d{i}", "context": context(i / 20)})
            ask.post(f"/shop/decisions/d{i}/rewards", {"value": i % 3})
        ask.settle()
        with psycopg.connect(database, autocommit=True) as connection:
            connection.execute("DELETE FROM events WHERE position > 15")

        def is_read_anew():
            with suppress(Unavailable):  # while it is read
                return ask.engine.experiment("shop").state.position == 15 and ask.engine.ready
            return False

        until(is_read_anew)
        ask.settle()
        assert ask.engine.experiment("shop").version.position == 15, "the model has forgotten as well"
        assert ask.post("/shop/decisions/d19/rewards", {"value": 1}).status_code == 404
        for i in range(15, 25):
            answer = ask.post("/shop/decisions", {"decision_id": f"d{i}", "context": context(i / 20)})
            assert answer.status_code == 200
        ask.settle()
        assert [finding.problem for finding in check(ask.engine.store)] == [None]
