"""The threads behind the interface: nothing that one request does may stop them, or hold up others."""

from __future__ import annotations

import threading
import time

import pytest

from pfnts.service.decisions import decide
from pfnts.service.engine import Engine, Limits
from pfnts.service.errors import Unavailable
from pfnts.service.keys import KeyRing
from pfnts.service.live import LiveExperiment
from pfnts.service.model import Model
from pfnts.service.rewards import reward
from pfnts.service.schemas import DecisionRequest, RewardRequest
from pfnts.service.store import Draft, StoreUnavailableError, open_store
from tests.service.asking import asking, context, shop
from tests.service.processes import until


@pytest.fixture
def sqlite(tmp_path):
    return {"data": str(tmp_path / "data"), "database": None}


def ask_for(ask, id, **more):
    return ask.post("/shop/decisions", {"decision_id": id, "context": context(), **more})


def decided(id, **data):
    return Draft("shop", "late", id, 0.0, data)


class Held:
    """Holds up what a store appends until it is let go."""

    def __init__(self, store, monkeypatch):
        self._append, self._go, self.begun = store.append, threading.Event(), threading.Event()
        monkeypatch.setattr(store, "append", self._wait)

    def _wait(self, *args, **kwargs):
        self.begun.set()
        self._go.wait(10)
        return self._append(*args, **kwargs)

    def let_go(self):
        self._go.set()


def test_a_model_that_fails_at_an_announcement_still_answers(sqlite, monkeypatch):
    with asking(sqlite) as ask:
        shop(ask)

        def fail(_):
            raise RuntimeError("no memory is left for so many")

        live = ask.engine.experiment("shop")
        monkeypatch.setattr(live.version.policy, "prefetch", fail)
        live.version.lock.acquire()
        threading.Timer(0.2, live.version.lock.release).start()
        items = [{"decision_id": f"d{i}", "context": context()} for i in range(9)]
        answers = ask.post("/shop/decisions:batch", {"items": items}).json()["items"]
        assert {answer["reason"] for answer in answers} == {"warmup"}
        assert ask_for(ask, "later").json()["reason"] == "warmup"


def test_a_request_that_is_given_up_does_not_stop_the_writer(sqlite, monkeypatch):
    with asking(sqlite) as ask:
        shop(ask)
        held = Held(ask.engine.store, monkeypatch)
        given_up = ask.engine.writer.submit([decided("given up", n=1)])
        assert held.begun.wait(5)
        also = ask.engine.writer.submit([decided("also", n=1)])
        also.cancel()
        given_up.cancel()
        held.let_go()
        assert ask.engine.writer.submit([decided("later", n=1)]).result(5)[0].position > 0
        assert ask.engine.why_not_ready() == []


def test_an_entry_that_cannot_be_written_takes_no_other_along(address, monkeypatch):
    with asking(address) as ask:
        shop(ask)
        held = Held(ask.engine.store, monkeypatch)
        first = ask.engine.writer.submit([decided("first")])
        assert held.begun.wait(5)
        wrong = [
            ask.engine.writer.submit([decided("wrong", x=float("nan"))]),
            ask.engine.writer.submit([decided("half a surrogate", x="\ud800")]),
        ]
        good = ask.engine.writer.submit([decided("good")])
        held.let_go()
        assert [len(job.result(5)) for job in (first, good)] == [1, 1]
        for job in wrong:
            assert isinstance(job.exception(5), ValueError)
        assert ask.engine.health.reason is None, "nothing is wrong with the store"
        assert [r.id for r in ask.engine.store.read("shop", 0)] == ["first", "good"]


def test_threads_that_ended_are_a_reason_not_to_be_ready(sqlite):
    with asking(sqlite) as ask:
        shop(ask)
        ask.engine.inference.stop()
        assert ask("GET", "/readyz").json()["reasons"] == ["the pfnts-inference thread has stopped"]


def test_while_logs_are_read_an_experiment_is_not_said_to_be_unknown(sqlite, monkeypatch):
    """A client that is told 404 would throw its reward away."""
    with asking(sqlite) as ask:
        shop(ask)
        ask_for(ask, "d1")
    go = threading.Event()
    follow = Engine._follow
    monkeypatch.setattr(Engine, "_follow", lambda engine: go.wait(10) and follow(engine))
    with asking(sqlite, wait=False) as ask:
        for answer in (
            ask.post("/shop/decisions/d1/rewards", {"value": 1}),
            ask_for(ask, "d1"),
            ask.get("/shop"),
            ask.get(""),
        ):
            assert answer.status_code == 503
            assert "being loaded" in answer.json()["detail"]
        go.set()
        until(lambda: ask.engine.ready, 10)
        assert ask.post("/shop/decisions/d1/rewards", {"value": 1}).json()["status"] == "learned"


def test_a_process_that_joins_is_ready_though_the_log_never_stands_still(database, monkeypatch):
    """It must have learned what was there when it came; what others write meanwhile never ends."""
    learn = Model.learn

    def slow(model, *args):
        time.sleep(0.1)
        learn(model, *args)

    monkeypatch.setattr(Model, "learn", slow)
    address = {"data": "", "database": database}
    with asking(address) as ask:
        shop(ask)
        done = threading.Event()

        def write():
            number = 0
            while not done.wait(0.005):
                number += 1
                ask.engine.writer.submit([decided(f"{number}")]).result(5)

        thread = threading.Thread(target=write)
        thread.start()
        other = Engine(open_store(**address), limits=Limits(poll=0.01))
        try:
            until(lambda: other.ready, 5)
        finally:
            done.set()
            thread.join()
            other.stop()


def test_followers_leave_logs_alone_in_which_nothing_is_new(database, monkeypatch):
    with asking({"data": "", "database": database}) as ask:
        shop(ask)
        polls, reads = [], []
        store = ask.engine.store
        experiments, read = store.experiments, store.read
        monkeypatch.setattr(store, "experiments", lambda: polls.append(1) or experiments())
        monkeypatch.setattr(store, "read", lambda *a, **k: reads.append(1) or read(*a, **k))
        until(lambda: len(polls) > 2)  # whatever was under way has come to its end
        reads.clear()
        until(lambda: len(polls) > 7)
        assert not reads


def test_one_experiment_that_cannot_be_served_keeps_no_other_from_being(address, monkeypatch):
    with asking(address) as ask:
        for name in ("first", "shop", "third"):
            shop(ask, name=name)
        ask.engine.store.append([Draft("first", "nonsense", "x", 0.0, {})])
    with asking(address) as ask:
        assert ask("GET", "/readyz").status_code == 200
        assert "pfnts_experiment_broken" in ask("GET", "/metrics").text
        answer = ask.post("/first/decisions", {"context": context()})
        assert answer.status_code == 503
        assert "does not fit the log" in answer.json()["detail"]
        for name in ("shop", "third"):
            assert ask.post(f"/{name}/decisions", {"context": context()}).status_code == 200
        other = open_store(**address) if ask.engine.store.many else ask.engine.store
        other.append([Draft("third", "late", "seen elsewhere", 0.0, {})])
        if ask.engine.store.many:
            until(lambda: ask.engine.experiment("third").state.counts["late"], 5)
            other.close()


def test_records_that_could_not_be_shown_at_once_are_shown_later(sqlite, monkeypatch):
    with asking(sqlite) as ask:
        shop(ask)
        live = ask.engine.experiment("shop")
        offer = live.offer

        def fail(_):
            monkeypatch.setattr(live, "offer", offer)
            raise StoreUnavailableError("just now")

        monkeypatch.setattr(live, "offer", fail)
        assert ask_for(ask, "d1").status_code == 200, "it is stored, and so it is answered"
        until(lambda: "d1" in live.state.decisions, 5)
        assert ask.post("/shop/decisions/d1/rewards", {"value": 1}).json()["status"] == "learned"


def test_a_reward_is_found_in_the_store_where_the_state_is_behind(sqlite, monkeypatch):
    with asking(sqlite) as ask:
        shop(ask)
        ask_for(ask, "d1")
        live = ask.engine.experiment("shop")
        monkeypatch.delitem(live.state.decisions, "d1")
        assert ask.post("/shop/decisions/nobody/rewards", {"value": 1}).status_code == 404
        [answer] = ask.run([reward(ask.engine, "shop", "d1", RewardRequest(value=1.0))])
        assert answer["status"] == "learned"


def test_an_erasure_is_tried_again_until_the_model_has_forgotten(address, monkeypatch):
    with asking(address) as ask:
        shop(ask)
        for i in range(6):
            ask_for(ask, f"d{i}", unit=f"u{i % 2}")
            ask.post(f"/shop/decisions/d{i}/rewards", {"value": 1})
        live = ask.settle()
        begin, failures = live._begin, []

        def fail():
            if len(failures) < 2:
                failures.append(1)
                raise StoreUnavailableError("the database is away")
            return begin()

        monkeypatch.setattr(live, "_begin", fail)
        ask("DELETE", "/v1/experiments/shop/units/u1")
        until(lambda: len([e for e in live.version.policy.events if e.kind == "decided"]) == 3, 10)
        assert len(failures) == 2


def test_an_erasure_during_the_fold_of_another_one_is_not_lost(sqlite, monkeypatch):
    with asking(sqlite) as ask:
        shop(ask)
        for i in range(6):
            ask_for(ask, f"d{i}", unit=f"u{i % 3}")
        live = ask.settle()
        learn, within = Model.learn, []

        def slow(model, *args):
            if not within:
                within.append(1)
                ask.engine.writer.erase(Draft("shop", "erased", "second", 0.0, {}), "u1")
            learn(model, *args)

        monkeypatch.setattr(Model, "learn", slow)
        ask.engine.writer.erase(Draft("shop", "erased", "first", 0.0, {}), "u0")
        until(lambda: [e.id for e in live.version.policy.events] == ["d2", "d5"], 10)


def test_keys_are_read_once_a_second_however_many_ask(sqlite, monkeypatch):
    store = open_store(**sqlite)
    ring, reads, keys = KeyRing(store), [], store.keys
    monkeypatch.setattr(store, "keys", lambda: reads.append(1) or time.sleep(0.05) or keys())
    threads = [threading.Thread(target=ring.refresh) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    store.close()
    assert len(reads) == 1


def test_all_arms_that_were_eligible_may_be_removed_while_a_decision_is_under_way(sqlite):
    with asking(sqlite) as ask:
        shop(ask, arms=[{"id": arm} for arm in "abc"])
        lock = ask.engine.experiment("shop").version.lock
        lock.acquire()

        def removed():
            ask.engine.writer.submit([Draft("shop", "arm_removed", "b", 0.0, {})]).result(5)
            lock.release()

        threading.Timer(0.1, removed).start()
        request = DecisionRequest(decision_id="d1", context=context(), eligible=["b"])
        with pytest.raises(Exception, match="eligible must leave an arm"):
            ask.run([decide(ask.engine, "shop", request)])
        assert ask.engine.store.find("shop", "decided", "d1") is None


def test_a_policy_that_can_no_longer_be_made_is_said_to_be_broken(sqlite, monkeypatch):
    from pfnts.service.experiment import ExperimentState

    with asking(sqlite) as ask:
        shop(ask)

    def fail(_):
        raise ValueError("there is no backbone of this name any more")

    monkeypatch.setattr(ExperimentState, "make_policy", fail)
    with asking(sqlite) as ask, pytest.raises(Unavailable, match="no backbone of this name"):
        until(lambda: ask.engine.experiment("shop").broken and False, 2)


def test_a_broken_log_is_noticed_by_whoever_loads_it(sqlite):
    store = open_store(**sqlite)
    store.append([Draft("shop", "created", "shop", 0.0, {"settings": {"name": "shop"}}, new=True)])
    store.close()
    with asking(sqlite) as ask:
        answer = ask.get("/shop")
        assert answer.status_code == 503
        assert "arms" in answer.json()["detail"], "says what is wrong with its settings"
        assert ask.get("").json()["experiments"] == []


def test_live_experiments_are_loaded_once(sqlite, monkeypatch):
    made = []
    begin = LiveExperiment._begin
    monkeypatch.setattr(LiveExperiment, "_begin", lambda live: made.append(live.name) or begin(live))
    with asking(sqlite) as ask:
        shop(ask)
        ask_for(ask, "d1")
        assert made == ["shop"]
