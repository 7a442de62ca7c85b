"""The Python client against a real service, through failures of the way between them."""

from __future__ import annotations

import threading
import time

import httpx
import pytest

from pfnts.service import Client, ServiceError
from pfnts.service.keys import new_key
from pfnts.service.store import open_store
from tests.service.asking import SHOP, context
from tests.service.processes import Service


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    data = tmp_path_factory.mktemp("data")
    store = open_store(data)
    text, key = new_key("test", "admin", time=0.0)
    store.add_key(key)
    store.close()
    running = Service(data, timeout=5.0)
    running.key = text
    running.wait_ready()
    with Client(running.url, key=text) as client:
        client.create("shop", ["a", "b"], schema=SHOP["schema"], policy=SHOP["policy"])
    yield running
    running.kill()


def test_a_decision_and_its_reward(service):
    with Client(service.url, key=service.key) as client:
        decision = client.decide("shop", context(), unit="anna", eligible=["b"])
        assert (decision.arm, decision.propensities) == ("b", {"a": 0.0, "b": 1.0})
        assert client.reward("shop", decision, 1.0) == "learned"
        assert client.reward("shop", decision.id, 1.0) == "duplicate"
        assert client.experiment("shop")["position"] >= 2
        assert client.report("shop")["decisions"] >= 1


def test_a_refusal_says_why_and_is_not_repeated(service):
    with Client(service.url, key=service.key) as client:
        begun = time.monotonic()
        with pytest.raises(ServiceError, match="422 Invalid: context must have the 2 columns") as caught:
            client.decide("shop", {"x": 1})
        assert caught.value.status == 422
        assert time.monotonic() - begun < 3
    with Client(service.url, key="pfnts_1_2") as client, pytest.raises(ServiceError, match="401"):
        client.decide("shop", context())


def test_an_answer_that_was_lost_is_asked_for_again_and_is_the_same(service, monkeypatch):
    """The first answer never arrives although the decision was stored: the second is the same decision."""
    with Client(service.url, key=service.key) as client:
        send, lost = client._http.request, []

        def flaky(*args, **kwargs):
            answer = send(*args, **kwargs)
            if not lost:
                lost.append(answer.json())
                raise httpx.ReadError("the way back is cut")
            return answer

        monkeypatch.setattr(client._http, "request", flaky)
        decision = client.decide("shop", context())
        assert (decision.id, decision.arm) == (lost[0]["decision_id"], lost[0]["arm"])


def test_a_service_that_starts_again_is_waited_for(tmp_path):
    service = Service(tmp_path, timeout=5.0)
    service.wait_ready()
    with Client(service.url, retries=12, timeout=2.0) as client:
        client.create("shop", ["a", "b"], schema=SHOP["schema"], policy=SHOP["policy"])
        first = client.decide("shop", context(), id="d1")
        service.kill()
        thread = threading.Thread(target=service.start)
        thread.start()
        assert client.reward("shop", first, 1.0) == "learned"
        assert client.decide("shop", context(), id="d1") == first
        thread.join()
    service.stop()
