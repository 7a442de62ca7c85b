"""Arms with features, and decisions that bring their own candidates."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pytest

from pfnts.contexts import Schema
from pfnts.policies import PFNTS
from pfnts.service.check import check
from pfnts.service.decisions import check_columns
from pfnts.service.drafts import Seal
from pfnts.service.errors import Invalid
from pfnts.service.store import open_store
from tests.service.asking import asking
from tests.service.test_crash import ReplayTo

LINEAR = {"name": "pfn-ts", "settings": {"backbone": "linear", "warmup": 3}}
OFFERS = {
    "novel": {"price": 9.9, "kind": "book"},
    "robot": {"price": 24.0, "kind": "toy"},
    "kite": {"price": 12.0, "kind": "toy"},
}


def create(ask, name, arms, **changes):
    listed = [{"id": id, "features": features} for id, features in arms.items()]
    answer = ask.post("", {"name": name, "arms": listed, "policy": LINEAR} | changes)
    assert answer.status_code == 201, answer.text
    return answer.json()


def paid(features, rng):
    return 2.0 * (features["kind"] == "toy") - 0.05 * features["price"] + 0.05 * rng.normal()


def articles(rng, n):
    kinds = ["book", "toy"]
    return [
        {"id": f"a{i}", "features": {"price": float(rng.uniform(5, 40)), "kind": kinds[rng.integers(2)]}}
        for i in range(n)
    ]


def read_news(ask, rounds=40, *, first=0, unit=None):
    """Decisions among ever new candidates, with their rewards; what was asked and answered."""
    rng = np.random.default_rng(first)
    asked = []
    for i in range(first, first + rounds):
        body = {"decision_id": f"d{i}", "context": {"hour": i % 24}, "candidates": articles(rng, 2 + i % 4)}
        body |= {"unit": unit(i)} if unit else {}
        answer = ask.post("/news/decisions", body)
        assert answer.status_code == 200, answer.text
        chosen = {one["id"]: one["features"] for one in body["candidates"]}[answer.json()["arm"]]
        ask.post(f"/news/decisions/d{i}/rewards", {"value": paid(chosen, rng)})
        asked.append((body, answer.json()))
    return asked


def test_a_new_arm_is_judged_by_its_features_from_the_first_decision_on(address):
    with asking(address) as ask:
        told = create(ask, "offers", OFFERS)
        assert told["arms"][0] == {"id": "novel", "features": OFFERS["novel"]}
        assert [column["kind"] for column in told["arm_columns"]] == ["numeric", "categorical"]
        rng = np.random.default_rng(0)
        for i in range(80):
            answer = ask.post(
                "/offers/decisions", {"decision_id": f"d{i}", "context": {"age": i % 50}}
            ).json()
            ask.post(f"/offers/decisions/d{i}/rewards", {"value": paid(OFFERS[answer["arm"]], rng)})
        ask.settle("offers")
        assert ask.post(
            "/offers/arms", {"id": "drone", "features": {"price": 99.0, "kind": "toy"}}
        ).is_success
        assert ask.post("/offers/arms", {"id": "ball", "features": {"price": 4.0, "kind": "toy"}}).is_success
        ask.settle("offers")
        answer = ask.post("/offers/decisions", {"context": {"age": 30}}).json()
        assert (answer["arm"], answer["reason"]) == ("ball", "thompson")
        assert answer["propensities"]["ball"] > 0.9
        before = ask.engine.experiment("offers").version.policy.posterior({"age": 30}).mean
        assert ask("GET", '/v1/experiments/offers/explain?context={"age":30}').status_code == 200
    with asking(address) as ask:  # a restart knows all features
        after = ask.settle("offers").version.policy.posterior({"age": 30}).mean
        np.testing.assert_allclose(after, before, rtol=0, atol=1e-9)
        features = {arm["id"]: arm["features"] for arm in ask.get("/offers").json()["arms"]}
        assert features == OFFERS | {
            "drone": {"price": 99.0, "kind": "toy"},
            "ball": {"price": 4.0, "kind": "toy"},
        }


def test_decisions_among_candidates_are_those_of_the_policy_and_can_be_recomputed(address):
    with asking(address) as ask:
        create(ask, "news", {})
        asked = read_news(ask)
        ask.settle("news")
        next_up = read_news(ask, 5, first=40)
        ask.settle("news")
        learned = ask.engine.experiment("news").version.policy
    # An undisturbed twin: the library alone, told the same.
    twin = PFNTS(arms=None, backbone="linear", traffic=learned.traffic, schema={"hour": "numeric"})
    rng = np.random.default_rng(0)
    for body, answer in asked:
        ids = [one["id"] for one in body["candidates"]]
        chosen = body["candidates"][ids.index(answer["arm"])]["features"]
        twin.update(body["context"], features=chosen, reward=ask_value(learned, body["decision_id"]))
        assert set(answer["propensities"]) == set(ids)
        assert sum(answer["propensities"].values()) == pytest.approx(1, abs=1e-9)
    for body, answer in next_up:
        ids = [one["id"] for one in body["candidates"]]
        chosen = body["candidates"][ids.index(answer["arm"])]["features"]
        twin.update(body["context"], features=chosen, reward=ask_value(learned, body["decision_id"]))
    some = [one["features"] for one in articles(rng, 5)]
    np.testing.assert_allclose(
        learned.posterior({"hour": 3}, candidates=some).mean,
        twin.posterior({"hour": 3}, candidates=some).mean,
        atol=1e-9,
    )
    store = open_store(**address)
    seal = Seal(bytes.fromhex(store.meta("secret")))
    for body, answer in next_up:
        upto = ReplayTo(store, answer["model"]["position"], "news")
        assert upto.fingerprint == answer["model"]["fingerprint"]
        decision, _ = upto.policy.propose(
            body["context"],
            rng=seal.rng("news", answer["decision_id"]),
            id=answer["decision_id"],
            candidates=[one["features"] for one in body["candidates"]],
        )
        assert body["candidates"][decision.index]["id"] == answer["arm"]
        np.testing.assert_allclose(decision.propensities, list(answer["propensities"].values()), atol=1e-9)
    assert [finding.problem for finding in check(store)] == [None]
    store.close()


def ask_value(policy, id):
    [event] = [event for event in policy.events if event.kind == "rewarded" and event.id == id]
    return event.value


def test_the_same_id_with_other_candidates_is_a_conflict_that_shows_both(address):
    with asking(address) as ask:
        create(ask, "news", {})
        [(body, answer)] = read_news(ask, 1)
        assert ask.post("/news/decisions", body).json() == answer
        other = body | {"candidates": list(reversed(body["candidates"]))}
        refused = ask.post("/news/decisions", other)
        assert refused.status_code == 409
        assert refused.json()["stored"]["candidates"] == body["candidates"]
        assert refused.json()["received"]["candidates"] == other["candidates"]


def test_without_a_model_the_first_candidate_is_served_for_sure(address):
    with asking(address) as ask:
        create(ask, "news", {}, mode="log_only")
        body = {"context": {"hour": 1}, "candidates": articles(np.random.default_rng(0), 3)}
        answer = ask.post("/news/decisions", body).json()
        assert (answer["arm"], answer["propensities"]) == ("a0", {"a0": 1.0, "a1": 0.0, "a2": 0.0})
        ask("PATCH", "/v1/experiments/news", {"mode": "shadow"})
        ask.post("/news/decisions", body | {"decision_id": "s"})
        [shown, _] = ask.get("/news/report").json()["recent"]
        assert shown["shadow"]["arm"] in {"a0", "a1", "a2"}
        assert set(shown["shadow"]["propensities"]) == {"a0", "a1", "a2"}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"candidates": None}, "candidates must be given"),
        ({"candidates": [{"id": "x", "features": [1.0]}] * 2}, "two of one id"),
        ({"candidates": [{"id": "x", "features": {"price": 1.0}}]}, "kind"),
        ({"candidates": [{"id": "x", "features": {"price": "dear", "kind": "toy"}}]}, "price"),
        ({"candidates": [{"id": "x"}]}, "features"),
        ({"candidates": []}, "candidates"),
        ({"eligible": ["a0"]}, "eligible must be left out"),
    ],
)
def test_candidates_that_do_not_fit_are_refused_and_leave_nothing(tmp_path, changes, words):
    with asking({"data": str(tmp_path), "database": None}) as ask:
        create(ask, "news", {})
        read_news(ask, 2)
        position = ask.engine.experiment("news").state.position
        body = {"context": {"hour": 1}, "candidates": articles(np.random.default_rng(0), 2)} | changes
        refused = ask.post("/news/decisions", {k: v for k, v in body.items() if v is not None})
        assert refused.status_code == 422, refused.text
        assert words in refused.text
        assert ask.engine.experiment("news").state.position == position


def test_arms_and_features_that_contradict_each_other_are_refused(tmp_path):
    with asking({"data": str(tmp_path), "database": None}) as ask:
        plain, featured = {"id": "a"}, {"id": "b", "features": {"price": 1.0}}
        for changes, words in [
            ({"arms": [plain, featured]}, "all have features"),
            ({"arms": [plain], "arm_schema": {"price": "numeric"}}, "arm_schema must be left out"),
            ({"arms": [featured, {"id": "c", "features": [1.0]}]}, "features must fit each other"),
            ({"arms": [featured], "policy": {"name": "lin-ts"}}, "features"),
            ({"arms": [], "policy": {"name": "lin-ts"}}, "arms"),
            ({"arms": [], "baseline_arm": "a"}, "baseline_arm must be one of"),
        ]:
            refused = ask.post("", {"name": "e", "policy": LINEAR} | changes)
            assert refused.status_code == 422, (changes, refused.text)
            assert words in refused.text, (changes, refused.text)
        create(ask, "offers", OFFERS)
        create(ask, "news", {})
        kite = {"id": "a", "features": OFFERS["kite"]}
        for path, body, status, words in [
            ("/offers/arms", {"id": "x"}, 422, "features must be given"),
            ("/offers/arms", {"id": "x", "features": {"price": 1.0}}, 422, "kind"),
            ("/offers/arms", {"id": "x", "features": {"price": "dear", "kind": "toy"}}, 422, "price"),
            ("/news/arms", {"id": "x", "features": {"price": 1.0}}, 409, "bring candidates"),
            ("/offers/decisions", {"context": {"age": 1}, "candidates": [kite]}, 422, "must be left out"),
        ]:
            refused = ask.post(path, body)
            assert refused.status_code == status, (path, body, refused.text)
            assert words in refused.text, (path, body, refused.text)
        assert ask.engine.experiment("offers").state.position == 0


def test_imports_exports_and_erasure_know_candidates(address):
    with asking(address) as ask:
        create(ask, "news", {}, schema={"hour": "numeric"})
        rng = np.random.default_rng(5)
        rows = []
        for i in range(12):
            features = articles(rng, 1)[0]["features"]
            row = {"context": {"hour": i}, "features": features, "value": paid(features, rng)}
            rows.append(row | {"unit": "anna"} if i == 3 else row)
        wrong = [rows[0], rows[1] | {"arm": "a"}]
        refused = ask.post("/news/imports", {"import_id": "old", "rows": wrong})
        assert "row 2: features must be given in the place of arm" in refused.text
        assert ask.post("/news/imports", {"import_id": "old", "rows": rows}).json()["learned"] == 12
        asked = read_news(ask, 10, unit=lambda i: "anna" if i % 2 else "bert")
        ask.settle("news")
        table = list(csv.DictReader(io.StringIO(ask.get("/news/export").text)))
        assert len(table) == 10
        for row, (body, answer) in zip(table, asked, strict=True):
            chosen = {one["id"]: one["features"] for one in body["candidates"]}[answer["arm"]]
            assert row["arm"] == answer["arm"]
            assert (float(row["arm.price"]), row["arm.kind"]) == (chosen["price"], chosen["kind"])
            assert float(row["propensity"]) == answer["propensities"][answer["arm"]]
        assert ask("DELETE", "/v1/experiments/news/units/anna").json()["erased"] == 6
        records = ask.engine.store.read("news", -1)
        assert sum(record.candidates is not None for record in records) == 11 + 5
        end = {"rows": 11 + 5}
        live = ask.engine.experiment("news")
        while sum(e.kind in ("observed", "rewarded") for e in live.version.policy.events) != end["rows"]:
            pass  # until what was erased is forgotten
        erased = next(body for body, _ in asked if body["unit"] == "anna")
        refused = ask.post("/news/decisions", erased | {"context": {"hour": 0}})
        assert refused.status_code == 409
        assert "features" not in refused.json()["stored"]["candidates"][0]
        stream = ask.get("/news/events?follow=false").text
        assert '"candidates": [{"price"' in stream
    with asking(address) as ask:
        policy = ask.settle("news").version.policy
        assert sum(e.kind in ("observed", "rewarded") for e in policy.events) == end["rows"]


def test_the_model_can_be_asked_about_candidates_without_deciding(address):
    with asking(address) as ask:
        create(ask, "news", {})
        read_news(ask, 30)
        position = ask.settle("news").state.position
        some = json.dumps(articles(np.random.default_rng(1), 40))
        answer = ask.get(f'/news/posterior?context={{"hour":3}}&candidates={some}')
        assert len(answer.json()["propensities"]) == 40
        posterior = answer.json()["posterior"]
        assert len(posterior) == 32, "of many only those of the shortlist have a posterior"
        assert {one["arm"] for one in posterior} <= {f"a{i}" for i in range(40)}
        assert ask.get('/news/posterior?context={"hour":3}').status_code == 422
        assert ask.get('/news/explain?context={"hour":3}').status_code == 409
        assert ask.engine.experiment("news").state.position == position
        report = ask.get("/news/report").json()
        assert report["brings_candidates"]
        assert [(arm["id"], arm["decisions"]) for arm in report["arms"]] == [("candidates", 30)]


def test_an_error_about_features_names_the_column_as_it_is():
    schema = Schema.of({"context_age": "numeric"})
    with pytest.raises(Invalid, match="features column 'context_age' must be numeric"):
        check_columns(schema, [{"context_age": "old"}], "candidates")
