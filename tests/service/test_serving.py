"""Modes, holdout, fallback, overload: who decides, and with which probability."""

from __future__ import annotations

import os
import threading
import time
from collections import Counter

import numpy as np
import pytest
from scipy import stats

from pfnts import PFNTS
from pfnts.backbones.network import EmbeddedBackbone
from pfnts.events import Observed
from pfnts.policies import Memory
from pfnts.service.decisions import decide
from pfnts.service.errors import Busy
from pfnts.service.experiment import ExperimentState
from pfnts.service.model import Model
from pfnts.service.schemas import DecisionRequest
from tests.service.asking import SHOP, asking, context, shop

DECISIONS = int(os.environ.get("PFNTS_DECISIONS", "1500"))


@pytest.fixture
def address(tmp_path):
    return {"data": str(tmp_path / "data"), "database": None}


def ask_for(ask, id, **more):
    return ask.post("/shop/decisions", {"decision_id": id, "context": context(), **more})


def learned(ask):
    return [e.value for e in ask.settle().version.policy.events if e.kind == "rewarded"]


def taught(ask, n=20):
    """Make the arm b the better one for a model to find."""
    for i in range(n):
        arm = ask_for(ask, f"t{i}").json()["arm"]
        ask.post(f"/shop/decisions/t{i}/rewards", {"value": float(arm == "b")})
    ask.settle()


def test_shadow_serves_the_baseline_and_notes_what_the_model_would_have_done(address):
    with asking(address) as ask:
        shop(ask, mode="shadow", baseline_arm="b")
        answer = ask_for(ask, "d1").json()
        assert (answer["arm"], answer["reason"], answer["propensities"]) == (
            "b",
            "baseline",
            {"a": 0, "b": 1},
        )
        shadow = ask.engine.store.find("shop", "decided", "d1").data["shadow"]
        assert shadow["reason"] == "warmup"
        assert sum(share for _, share in shadow["propensities"]) == pytest.approx(1)
        status = ask.post("/shop/decisions/d1/rewards", {"value": 2}).json()["status"]
        assert (status, learned(ask)) == ("learned", [2.0])


@pytest.mark.parametrize("mode", ["frozen", "log_only"])
def test_what_is_withheld_from_the_model_reaches_it_when_the_mode_changes(address, mode):
    with asking(address) as ask:
        shop(ask)
        taught(ask)
        before = learned(ask)
        assert ask("PATCH", "/v1/experiments/shop", {"mode": mode}).json()["mode"] == mode
        answer = ask_for(ask, "d1").json()
        assert (answer["reason"] == "baseline") == (mode == "log_only")
        assert ask.post("/shop/decisions/d1/rewards", {"value": 7}).json()["status"] == "pending"
        assert learned(ask) == before
        ask("PATCH", "/v1/experiments/shop", {"mode": "online"})
        assert learned(ask) == [*before, 7.0]
    with asking(address) as ask:
        assert learned(ask) == [*before, 7.0], "a restart folds it the same way"


def test_the_holdout_is_a_fixed_share_of_units_and_gets_the_baseline(address):
    with asking(address) as ask:
        shop(ask, holdout=0.3)
        seal, state = ask.engine.seal, ask.engine.experiment("shop").state
        held = [
            seal.held_out(state, DecisionRequest(context=[1], unit=f"u{i}"), f"d{i}") for i in range(10_000)
        ]
        assert stats.binomtest(sum(held), 10_000, 0.3).pvalue > 1e-4
        unit = f"u{held.index(True)}"
        answers = [ask_for(ask, f"d{i}", unit=unit).json() for i in range(3)]
        assert {(a["arm"], a["reason"]) for a in answers} == {("a", "holdout")}
        free = ask_for(ask, "d9", unit=f"u{held.index(False)}").json()
        assert free["reason"] != "holdout"


def test_the_lift_counts_only_while_some_were_held_out_and_the_others_got_the_policy(address):
    with asking(address) as ask:
        shop(ask, holdout=0.5, mode="shadow")
        rng = np.random.default_rng(0)

        def visits(name, n, bonus):
            for i in range(n):
                answer = ask_for(ask, f"{name}{i}", unit=f"{name}{i}").json()
                value = float(rng.normal()) + (bonus if answer["reason"] == "holdout" else 0.0)
                ask.post(f"/shop/decisions/{answer['decision_id']}/rewards", {"value": value})

        visits("shadow", 60, bonus=100.0)
        assert ask.get("/shop/report").json()["lift"] is None, "everybody got the baseline"
        ask("PATCH", "/v1/experiments/shop", {"mode": "online"})
        visits("online", 100, bonus=0.0)
        ask.engine.experiment("shop").estimates = (float("-inf"), {})
        found = ask.get("/shop/report").json()["lift"]
        assert found["rows"] == 100
        assert -3 < found["low"] < found["high"] < 3
        ask("PATCH", "/v1/experiments/shop", {"holdout": 0.0})
        assert all(made.held_out is not None for id, made in _made(ask) if id.startswith("online"))


def _made(ask):
    return ask.engine.experiment("shop").state.decisions.items()


def test_only_eligible_arms_are_served_also_by_the_fallback(address):
    with asking(address) as ask:
        shop(ask, mode="log_only")
        answers = [ask_for(ask, f"d{i}", eligible=["b"]).json() for i in range(5)]
        assert {(a["arm"], a["propensities"]["b"]) for a in answers} == {("b", 1.0)}
        ask("PATCH", "/v1/experiments/shop", {"mode": "online"})
        answers = [ask_for(ask, f"e{i}", eligible=["b"]).json() for i in range(5)]
        assert {(a["arm"], a["propensities"]["b"]) for a in answers} == {("b", 1.0)}
        wrong = ask_for(ask, "f", eligible=["c"])
        assert wrong.status_code == 422
        assert "eligible must name arms" in wrong.json()["detail"]


def test_a_model_that_is_too_slow_is_answered_for_by_the_baseline_with_its_true_propensity(address):
    with asking(address, timeout=0.05) as ask:
        shop(ask)
        with ask.engine.experiment("shop").version.lock:  # as if it was computing
            begun = time.monotonic()
            answer = ask_for(ask, "d1").json()
            assert time.monotonic() - begun < 2
        assert (answer["arm"], answer["reason"], answer["propensities"]) == (
            "a",
            "fallback",
            {"a": 1, "b": 0},
        )
        assert ask.engine.store.find("shop", "decided", "d1") is not None
        ask.post("/shop/decisions/d1/rewards", {"value": 3})
        assert learned(ask) == [3.0], "a fallback's reward teaches as any other"


def test_a_model_that_fails_is_answered_for_by_the_baseline(address, monkeypatch):
    with asking(address) as ask:
        shop(ask)
        policy = ask.engine.experiment("shop").version.policy
        monkeypatch.setattr(policy, "propose", lambda *_, **__: 1 / 0)
        assert ask_for(ask, "d1").json()["reason"] == "fallback"


def test_beyond_the_queue_requests_are_shed_and_the_rest_is_served(address):
    with asking(address, queue=8, timeout=30, batch=1) as ask:
        shop(ask)
        lock = ask.engine.experiment("shop").version.lock
        lock.acquire()
        threading.Timer(0.5, lock.release).start()
        requests = [DecisionRequest(decision_id=f"d{i}", context=context()) for i in range(50)]

        async def one(request):
            try:
                return await decide(ask.engine, "shop", request)
            except Busy as busy:
                return busy

        answers = ask.run(one(request) for request in requests)
        shed = sum(isinstance(answer, Busy) for answer in answers)
        assert 35 <= shed <= 42, "eight wait, one or two are under way"
        stored = ask.engine.experiment("shop").state.decisions
        assert len(stored) == 50 - shed, "what was shed was not stored"
        assert ask_for(ask, "later").status_code == 200


def test_the_first_decision_after_the_creation_is_the_models(address, monkeypatch):
    def slow(_):
        time.sleep(0.3)
        return make(_)

    make = ExperimentState.make_policy
    monkeypatch.setattr(ExperimentState, "make_policy", slow)
    with asking(address, timeout=0.05) as ask:
        assert ask.post("", SHOP).status_code == 201
        assert ask_for(ask, "d1").json()["reason"] == "warmup"


def test_a_refresh_that_takes_long_holds_up_no_decision(address, monkeypatch):
    with asking(address, timeout=10) as ask:
        shop(ask)
        taught(ask, 4)
        live = ask.engine.experiment("shop")
        spare = live.model._spare.policy
        monkeypatch.setattr(spare, "catch_up", lambda: time.sleep(1.0))
        position = live.version.position
        ask.post("/shop/decisions", {"context": context()})
        begun = time.monotonic()
        answer = ask_for(ask, "d1").json()
        assert time.monotonic() - begun < 0.9
        assert answer["model"]["position"] == position, "the model before answers meanwhile, and says so"
        ask.settle()
        assert live.version.position > position


def test_what_one_copy_has_learned_the_other_takes_over(monkeypatch):
    asked = []
    append = EmbeddedBackbone.append
    monkeypatch.setattr(
        EmbeddedBackbone,
        "append",
        lambda self, appends, **options: asked.append(1) or append(self, appends, **options),
    )
    rng = np.random.default_rng(0)
    events = [
        Observed(context={"x": float(rng.normal())}, arm="ab"[i % 2], value=float(rng.normal()))
        for i in range(143)
    ]

    def policy() -> PFNTS:
        return PFNTS(["a", "b"], schema={"x": "numeric"}, memory=Memory(refresh=2.0))

    model = Model(policy)
    model.learn(events[:140], 139, "")
    assert asked
    asked.clear()
    for i in range(140, 143):
        model.learn(events[i : i + 1], i, "")
    assert asked == [], "three rewards more change no posterior"
    alone = policy()
    alone.append(events)
    np.testing.assert_allclose(
        model.serving.policy.posterior([{"x": 0.3}]).mean, alone.posterior([{"x": 0.3}]).mean, atol=1e-4
    )


def test_served_arms_follow_the_propensities_that_were_stored(address):
    """Chi-square per reason: counts of arms against the sums of their propensities."""
    with asking(address, queue=5000, timeout=60) as ask:
        shop(ask, arms=[{"id": arm} for arm in "abc"], explore=0.1, holdout=0.1)
        rng = np.random.default_rng(0)
        for block in range(DECISIONS // 250):
            # One block in three by the baseline, which draws where its arm is not eligible.
            ask("PATCH", "/v1/experiments/shop", {"mode": "log_only" if block % 3 == 1 else "online"})
            if block == 4:
                ask.post("/shop/arms", {"id": "d"})
            allowed = (None, None, None, ["b", "c"], ["a", "c"])
            requests = [
                DecisionRequest(
                    decision_id=f"{block}-{i}", context=context(rng.normal()), eligible=allowed[i % 5]
                )
                for i in range(250)
            ]
            answers = ask.run(decide(ask.engine, "shop", request) for request in requests)
            for answer in answers[::10]:
                value = rng.normal() + 0.3 * (answer["arm"] == "b")
                ask.post(f"/shop/decisions/{answer['decision_id']}/rewards", {"value": value})
            ask.settle()
        records = [r for r in ask.engine.store.read("shop", -1, limit=10**6) if r.kind == "decided"]
        assert len(records) == DECISIONS
        assert chi_square(records) > 1e-4
        reasons = Counter(record.data["event"]["reason"] for record in records)
        assert reasons.keys() == {"warmup", "thompson", "explore", "holdout", "baseline"}, reasons
        print(f"p = {chi_square(records):.3f}", dict(reasons))


def chi_square(records):
    """P-value of the hypothesis that each arm was drawn with its stored probability, all reasons together.

    How an explored decision came about is known only afterwards: its propensities are those of all ways
    together, so that "explore" and the model's own rule are one stratum.
    """
    pvalues = []
    strata = {}
    for record in records:
        event = record.data["event"]
        reason = "model" if event["reason"] in ("thompson", "explore", "warmup") else event["reason"]
        arms = tuple(arm for arm, _ in event["propensities"])
        strata.setdefault((reason, arms), []).append(event)
    for events in strata.values():
        arms = [arm for arm, _ in events[0]["propensities"]]
        P = np.array([[share for _, share in event["propensities"]] for event in events])
        np.testing.assert_allclose(P.sum(axis=1), 1, atol=1e-9)
        counts = Counter(event["arm"] for event in events)
        observed = np.array([counts[arm] for arm in arms])
        assert not observed[P.max(axis=0) == 0].any(), "an arm of probability 0 was served"
        # The counts are sums of independent draws with different probabilities: a normal quadratic form.
        covariance = np.diag(P.sum(axis=0)) - P.T @ P
        difference = observed - P.sum(axis=0)
        rank = np.linalg.matrix_rank(covariance, tol=1e-6)
        if rank:
            statistic = difference @ np.linalg.pinv(covariance, rcond=1e-9) @ difference
            pvalues.append(stats.chi2.sf(statistic, rank))
        else:
            assert np.allclose(difference, 0), "what was sure did not happen"
    return min(pvalues) * len(pvalues)


def test_the_test_of_propensities_notices_wrong_ones(address):
    """The oracle must be able to fail: the same decisions with propensities that are off by a tenth."""
    with asking(address, queue=5000, timeout=60) as ask:
        shop(ask, policy={"name": "uniform"})
        requests = [DecisionRequest(decision_id=f"{i}", context=context()) for i in range(1000)]
        ask.run(decide(ask.engine, "shop", request) for request in requests)
        records = [r for r in ask.engine.store.read("shop", -1, limit=9999) if r.kind == "decided"]
        assert chi_square(records) > 1e-4
        for record in records:
            record.data["event"]["propensities"] = [["a", 0.65], ["b", 0.35]]
        assert chi_square(records) < 1e-6


def test_a_batch_asks_the_model_once(address):
    with asking(address, queue=500, timeout=30) as ask:
        shop(ask)
        taught(ask)
        lock = ask.engine.experiment("shop").version.lock
        lock.acquire()
        threading.Timer(0.3, lock.release).start()
        before = ask.engine.inference.batches
        items = [{"decision_id": f"d{i}", "context": context(i / 40)} for i in range(40)]
        answer = ask.post("/shop/decisions:batch", {"items": items})
        assert [item["decision_id"] for item in answer.json()["items"]] == [f"d{i}" for i in range(40)]
        assert ask.engine.inference.batches - before <= 4
