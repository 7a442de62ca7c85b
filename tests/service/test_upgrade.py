"""Stores written by every version that was released open, and give the answers that they gave then."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from pfnts.service.check import check
from pfnts.service.live import LiveExperiment
from pfnts.service.store import open_store
from tests.service.asking import asking

STORES = sorted((Path(__file__).parent / "stores").iterdir())


@pytest.mark.parametrize("folder", STORES, ids=lambda folder: folder.name)
def test_a_store_of_an_earlier_version_opens_and_goes_on(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "data")
    told = json.loads((folder / "told.json").read_text())
    store = open_store(tmp_path / "data")
    assert [finding.problem for finding in check(store)] == [None]
    live = LiveExperiment("shop", store)
    assert live.state.fingerprint == told["fingerprint"]
    live.learn()
    mean = live.version.policy.posterior(told["context"]).mean
    assert mean == pytest.approx(told["mean"], abs=1e-9)
    store.close()
    with asking({"data": str(tmp_path / "data"), "database": None}) as ask:
        for body, answer in told["decisions"]:
            assert ask.post("/shop/decisions", body).json() == answer, "the stored answer"
        assert ask.post("/shop/decisions", {"context": told["context"]}).status_code == 200
