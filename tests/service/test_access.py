"""Who may do what: keys, roles, scopes, origins, the loopback interface."""

from __future__ import annotations

import base64

import pytest

from pfnts.service.keys import new_key
from pfnts.service.server import Settings, serve
from pfnts.service.store import open_store
from tests.service.asking import asking, context, shop
from tests.service.processes import until


@pytest.fixture
def address(tmp_path):
    return {"data": str(tmp_path / "data"), "database": None}


def key(store, role, experiment=None):
    text, stored = new_key(f"a {role}", role, experiment=experiment, time=0.0)
    store.add_key(stored)
    return {"Authorization": f"Bearer {text}"}


def addresses(ask):
    """Every method and path that the application has, those of the page included."""
    for path, methods in ask.app.openapi()["paths"].items():
        for method in methods:
            yield (
                method.upper(),
                path.replace("{experiment}", "shop")
                .replace("{decision}", "d1")
                .replace("{arm}", "a")
                .replace("{unit}", "u"),
            )
    yield from (
        ("GET", path)
        for path in ("/", "/docs", "/page.js", "/charts.js", "/page.css", "/v1/openapi.json", "/nowhere")
    )


def test_nothing_answers_without_a_key_off_the_loopback(address):
    with asking(address, client=("192.0.2.7", 5)) as ask:
        asked = list(addresses(ask))
        assert len(asked) > 20
        for method, path in asked:
            assert ask(method, path).status_code == 401, (method, path)
        admin = key(ask.engine.store, "admin")
        until(lambda: ask("GET", "/v1/experiments", headers=admin).status_code == 200)
        for method, path in asked:
            wrong = {"Authorization": "Bearer pfnts_12345678_1234"}
            assert ask(method, path, headers=wrong).status_code == 401, (method, path)


def test_without_a_key_the_service_listens_to_this_machine_only(tmp_path):
    with pytest.raises(ValueError, match="host must be this machine's own"):
        serve(Settings(data=tmp_path, host="0.0.0.0", port=0))


@pytest.mark.parametrize(
    "headers",
    [
        {"X-Forwarded-For": "192.0.2.7"},
        {"Forwarded": "for=192.0.2.7"},
        {"X-Real-IP": "192.0.2.7"},
        {"Host": "rebound.example:8000"},
    ],
)
def test_a_proxy_or_a_rebound_name_is_not_this_machine(address, headers):
    with asking(address) as ask:
        assert ask("GET", "/v1/experiments").status_code == 200
        assert ask("GET", "/v1/experiments", headers=headers).status_code == 401


def test_a_page_of_another_origin_changes_nothing(address):
    with asking(address) as ask:
        shop(ask)
        foreign = {"Origin": "https://elsewhere.example"}
        answer = ask.post("/shop/arms", {"id": "c"}, headers=foreign)
        assert answer.status_code == 403
        own = {"Origin": "http://127.0.0.1:8000"}
        assert ask.post("/shop/arms", {"id": "c"}, headers=own).status_code == 201


def test_roles_and_scopes_say_what_a_key_is_good_for(address):
    with asking(address) as ask:
        shop(ask)
        shop(ask, name="other")
        store = ask.engine.store
        reader, writer, admin = (key(store, role) for role in ("reader", "writer", "admin"))
        only = key(store, "admin", experiment="shop")
        # Where there are keys, one is needed.
        until(lambda: ask("GET", "/v1/experiments").status_code == 401)
        decision = {"decision_id": "d1", "context": context()}
        statuses = {
            name: (
                ask.get("/shop/report", headers=headers).status_code,
                ask.post("/shop/decisions", decision, headers=headers).status_code,
                ask("PATCH", "/v1/experiments/shop", {"mode": "frozen"}, headers=headers).status_code,
                ask.get("/other/report", headers=headers).status_code,
            )
            for name, headers in (("reader", reader), ("writer", writer), ("admin", admin), ("only", only))
        }
        assert statuses == {
            "reader": (200, 403, 403, 200),
            "writer": (200, 200, 403, 200),
            "admin": (200, 200, 200, 200),
            "only": (200, 200, 200, 403),
        }
        listed = ask("GET", "/v1/experiments", headers=only).json()["experiments"]
        assert [found["name"] for found in listed] == ["shop"]
        basic = base64.b64encode(f"me:{reader['Authorization'].split()[1]}".encode()).decode()
        assert ask("GET", "/", headers={"Authorization": f"Basic {basic}"}).status_code == 200
        assert ask("GET", "/livez").status_code == 200, "a probe on this machine needs none"


def test_a_key_for_one_experiment_learns_nothing_of_the_others(address):
    with asking(address, client=("192.0.2.7", 5)) as ask:
        only, all_ = (key(ask.engine.store, "admin", experiment=name) for name in ("shop", None))
        for name in ("shop", "other-tenant"):
            body = {"name": name, "arms": [{"id": "a"}], "policy": {"name": "uniform"}}
            assert ask.post("", body, headers=all_).status_code == 201
        ask.settle()
        for method, path in addresses(ask):
            own = path + "?follow=false" * path.endswith("/events")
            assert "other-tenant" not in ask(method, own, headers=only).text, (method, path)
            if "shop" in path:
                theirs = path.replace("shop", "other-tenant")
                assert ask(method, theirs, headers=only).status_code == 403, (method, theirs)
        assert ask("GET", "/metrics", headers=only).status_code == 403
        assert "other-tenant" in ask("GET", "/metrics", headers=all_).text


def test_a_decision_of_another_experiment_is_not_found(address):
    with asking(address) as ask:
        shop(ask)
        shop(ask, name="other")
        ask.post("/shop/decisions", {"decision_id": "d1", "context": context()})
        assert ask.post("/other/decisions/d1/rewards", {"value": 1}).status_code == 404


def test_a_revoked_key_opens_nothing_a_second_later(address):
    with asking(address) as ask:
        shop(ask)
        headers = key(ask.engine.store, "reader")
        until(lambda: ask.get("/shop").status_code == 401)
        assert ask.get("/shop", headers=headers).status_code == 200
        [stored] = ask.engine.store.keys()
        ask.engine.store.revoke_key(stored.id, 1.0)
        key(ask.engine.store, "reader")
        until(lambda: ask.get("/shop", headers=headers).status_code == 401)


def test_a_key_is_stored_as_a_hash_only(tmp_path):
    store = open_store(tmp_path)
    text = key(store, "admin")["Authorization"].split()[1]
    store.close()
    secret = text.split("_")[2].encode()
    assert all(secret not in file.read_bytes() for file in tmp_path.iterdir())
