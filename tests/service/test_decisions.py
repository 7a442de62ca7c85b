"""Decisions and rewards over HTTP, on either store."""

from __future__ import annotations

import json

import numpy as np
import pytest

from pfnts.policies import make
from pfnts.service import decisions
from pfnts.service.decisions import decide as decide_directly
from pfnts.service.live import LiveExperiment
from pfnts.service.rewards import reward as hand_in
from pfnts.service.schemas import DecisionRequest, RewardRequest
from pfnts.service.store import open_store
from tests.service.asking import SetClock, asking, context, shop


def decide(ask, id=None, x=0.5, **more):
    body = {"context": context(x), **more} | ({"decision_id": id} if id else {})
    return ask.post("/shop/decisions", body)


def reward(ask, id, value=1.0):
    return ask.post(f"/shop/decisions/{id}/rewards", {"value": value})


def test_the_same_id_and_body_gets_the_same_answer_and_another_body_a_conflict_with_both(address):
    with asking(address) as ask:
        shop(ask)
        first = decide(ask, "d1")
        reward(ask, "d1")
        assert decide(ask, "d1").json() == first.json()
        assert first.json()["propensities"].keys() == {"a", "b"}
        reordered = ask.post("/shop/decisions", {"context": {"plan": "free", "x": 0.5}, "decision_id": "d1"})
        assert reordered.json() == first.json(), "the order of a mapping says nothing"
        other = decide(ask, "d1", x=0.75)
        assert other.status_code == 409
        assert other.json()["stored"]["context"] == context()
        assert other.json()["received"]["context"] == context(0.75)
        assert other.headers["content-type"] == "application/problem+json"
    with asking(address) as ask:
        assert decide(ask, "d1").json() == first.json(), "after a restart, too"


def test_a_thousand_copies_of_one_reward_are_learned_once(address):
    with asking(address) as ask:
        shop(ask)
        decide(ask, "d1")
        answers = ask.run(hand_in(ask.engine, "shop", "d1", RewardRequest(value=1.0)) for _ in range(1000))
        statuses = [answer["status"] for answer in answers]
        assert (statuses.count("learned"), statuses.count("duplicate")) == (1, 999)
        live = ask.settle()
        assert live.state.counts["settled"] == 1
        assert sum(event.kind == "rewarded" for event in live.version.policy.events) == 1


def test_a_thousand_distinct_rewards_at_once_are_a_thousand_rows(address):
    with asking(address, queue=2000) as ask:
        shop(ask)
        ids = [f"d{i}" for i in range(1000)]
        asked = [DecisionRequest(decision_id=id, context=context(i / 1000)) for i, id in enumerate(ids)]
        decided = ask.run(decide_directly(ask.engine, "shop", request) for request in asked)
        assert [answer["decision_id"] for answer in decided] == ids
        answers = ask.run(hand_in(ask.engine, "shop", id, RewardRequest(value=i)) for i, id in enumerate(ids))
        assert {answer["status"] for answer in answers} == {"learned"}
        live = ask.settle()
        values = sorted(e.value for e in live.version.policy.events if e.kind == "rewarded")
        assert values == [float(i) for i in range(1000)]


def test_rewards_before_their_decision_and_of_unknown_ids_are_kept_nowhere(address):
    with asking(address) as ask:
        shop(ask)
        assert reward(ask, "d1").status_code == 404
        before = ask.engine.experiment("shop").state.position
        decide(ask, "d1")
        assert reward(ask, "d1").json()["status"] == "learned", "the one before left no trace"
        assert reward(ask, "nobody").status_code == 404
        assert ask.engine.experiment("shop").state.position == before + 2
        batch = ask.post(
            "/shop/rewards:batch",
            {"items": [{"decision_id": "d1", "value": 1}, {"decision_id": "no", "value": 1}]},
        )
        assert [item["status_code"] for item in batch.json()["items"]] == [200, 404]
        assert batch.json()["items"][0]["status"] == "duplicate"


@pytest.mark.parametrize("default", [None, 0.25])
def test_a_reward_after_its_deadline_is_late_and_the_decision_was_settled_once(address, default):
    world = SetClock()
    with asking(address, clock=world.clock()) as ask:
        shop(ask, reward={"wait": 60, "default": default})
        decide(ask, "d1")
        decide(ask, "d2")
        world.pass_(59)
        assert reward(ask, "d2").json()["status"] == "learned"
        world.pass_(2)
        assert reward(ask, "d1").json()["status"] == "late", "even before anybody swept up"
        live = ask.engine.experiment("shop")
        _until(lambda: live.state.decisions["d1"].settled)
        assert live.state.decisions["d1"].settled == ("missing" if default is None else "default")
        assert live.state.decisions["d1"].value == default
        assert reward(ask, "d1").json()["status"] == "late"
        assert reward(ask, "d2").json() | {"status": "duplicate", "value": 1.0} == reward(ask, "d2").json()
        ask.settle()
        learned = [e.value for e in live.version.policy.events if e.kind == "rewarded"]
        assert learned == ([1.0] if default is None else [1.0, 0.25])
        counts = ask.get("/shop/report").json()["rewards"]
        assert counts["late"] == 1, "a late reward is counted once"


def test_a_clock_that_is_stepped_back_changes_no_deadline_and_no_order(address):
    world = SetClock()
    with asking(address, clock=world.clock()) as ask:
        shop(ask, reward={"wait": 60})
        decide(ask, "d1")
        world.step(-86400)
        decide(ask, "d2")
        world.pass_(30)
        assert reward(ask, "d1").json()["status"] == "learned"
        world.pass_(31)
        assert reward(ask, "d2").json()["status"] == "late"
        records = ask.engine.store.read("shop", -1)
        times = [record.time for record in records]
        assert times == sorted(times)
    with asking(address, clock=world.clock()) as ask:
        answer = decide(ask, "d3")
        assert ask.engine.store.find("shop", "decided", "d3").time >= times[-1], "nor after a restart"
        assert answer.json()["reward_deadline"] > records[-1].data.get("reward_deadline", "")


def test_a_reward_of_a_removed_arm_is_learned_and_the_arm_is_never_chosen_again(address):
    with asking(address) as ask:
        shop(ask, arms=[{"id": arm} for arm in "abc"])
        for i in range(12):
            decide(ask, f"d{i}", x=i / 12)
        live = ask.engine.experiment("shop")
        [pulled, *_] = [id for id, made in live.state.decisions.items() if made.arm == "b"]
        assert ask("DELETE", "/v1/experiments/shop/arms/b").json()["arms"] == [{"id": "a"}, {"id": "c"}]
        assert reward(ask, pulled).json()["status"] == "learned"
        for i in range(20):
            assert decide(ask, f"e{i}", x=i / 12).json()["arm"] != "b"
        ask.settle()
        assert [e.id for e in live.version.policy.events if e.kind == "rewarded"] == [pulled]
        again = ask.post("/shop/arms", {"id": "b"})
        assert again.status_code == 409
        assert "not used again" in again.json()["detail"]
        assert ask("DELETE", "/v1/experiments/shop/arms/a").status_code == 409, "the baseline arm stays"
        assert ask.post("/shop/arms", {"id": "d"}).status_code == 201
        ask.settle()
        seen = {decide(ask, f"f{i}", x=i / 12).json()["arm"] for i in range(20)}
        assert "d" in seen, "a new arm is tried"


@pytest.mark.parametrize("change", ["add", "remove another", "remove the chosen"])
def test_arms_that_change_between_an_answer_and_its_storage_do_no_harm(address, change):
    with asking(address) as ask:
        shop(ask, arms=[{"id": arm} for arm in "abcd"])
        request = DecisionRequest(decision_id="d1", context=context(), eligible=["b", "c"])
        asked = decisions._Asked(ask.engine.experiment("shop"), request, "d1")
        [draft] = ask.run([decisions._draft(ask.engine, asked)])
        chosen = draft.data["event"]["arm"]
        if change == "add":
            ask.post("/shop/arms", {"id": "e"})
        else:
            arm = chosen if change == "remove the chosen" else {"b": "c", "c": "b"}[chosen]
            assert ask("DELETE", f"/v1/experiments/shop/arms/{arm}").status_code == 200
        [[record]] = ask.run([decisions.write(ask.engine, [draft])])
        assert record.data["event"] == draft.data["event"], "what was served is what is stored"
        assert reward(ask, "d1").json()["status"] == "learned"
        live = ask.settle()
        assert live.broken is None
        learned = [e.id for e in live.version.policy.events if e.kind == "rewarded"]
        assert learned == ([] if change == "remove the chosen" else ["d1"])
        assert decide(ask, "d2").status_code == 200


def test_a_decision_can_be_recomputed_from_the_log_up_to_its_position(address):
    """The oracle folds the stored events into a policy by hand, as if there was no service."""
    with asking(address) as ask:
        shop(ask)
        for i in range(30):
            answer = decide(ask, f"d{i}", x=i / 30).json()
            reward(ask, f"d{i}", value=float(answer["arm"] == "b"))
        seal = ask.engine.seal
    store = open_store(**address)
    records = store.read("shop", -1)
    for record in records:
        if record.kind != "decided":
            continue
        oracle = make("lin-ts", arms=["a", "b"], warmup=1, schema={"x": "numeric", "plan": ["free", "paid"]})
        for before in records[: record.data["model"]["position"] + 1]:
            if before.kind == "decided":
                event = before.data["event"]
                oracle.propose(before.context, rng=np.random.default_rng(0), id=event["id"])
                oracle.append([_event(before)])
            elif before.kind == "settled":
                oracle.update(before.id, reward=before.data["value"])
        again, _ = oracle.propose(record.context, rng=seal.rng("shop", record.id), id=record.id)
        assert again.arm == record.data["event"]["arm"]
        assert [list(pair) for pair in zip(again.arms, again.propensities, strict=True)] == record.data[
            "event"
        ]["propensities"]
    store.close()


def test_the_restarted_model_equals_the_one_that_learned_bit_by_bit(address):
    with asking(address) as ask:
        shop(ask)
        rng = np.random.default_rng(0)
        for i in range(60):
            decide(ask, f"d{i}", x=rng.normal())
            if i % 3:
                reward(ask, f"d{i}", rng.normal())
        live = ask.settle()
        contexts = [context(x, plan) for x in (-1.0, 0.3) for plan in ("free", "paid")]
        before = live.version.policy.posterior(contexts)
        fingerprint = live.version.fingerprint
    store = open_store(**address)
    again = LiveExperiment("shop", store)
    again.learn()
    after = again.version.policy.posterior(contexts)
    np.testing.assert_allclose(after.mean, before.mean, rtol=0, atol=1e-9)
    np.testing.assert_allclose(after.variance, before.variance, rtol=0, atol=1e-9)
    assert again.version.fingerprint == fingerprint
    store.close()


def _event(record):
    from pfnts.events import from_dict

    return from_dict({**record.data["event"], "context": record.context})


def _until(condition, seconds=10):
    import time

    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come about in time"
        time.sleep(0.01)


def test_an_explanation_is_the_policys_own_and_decides_nothing(address):
    with asking(address) as ask:
        shop(ask)
        for i in range(30):
            decide(ask, f"d{i}", x=i / 30)
            reward(ask, f"d{i}", i % 2)
        live = ask.engine.experiments["shop"]
        _until(lambda: live.version.position == live.state.position)  # a thread learns beside the answers
        before = ask.get("/shop").json()["position"]
        asked = "/shop/explain?context=" + json.dumps(context(0.4))
        found = ask.get(asked).json()
        own = live.version.policy.explain(context(0.4), rows=3).to_dict()
        assert {k: found[k] for k in own} == json.loads(json.dumps(own))
        assert ask.get("/shop").json()["position"] == before
        assert ask.get("/shop/explain?context={}").status_code == 422
        assert ask.get("/shop/explain?context=nothing").status_code == 422
