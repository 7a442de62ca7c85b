"""Stores written by every version that was released open, and give the answers that they gave then."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from pfnts import policies
from pfnts.service.check import check
from pfnts.service.live import LiveExperiment
from pfnts.service.store import open_store
from tests.service.asking import asking

STORES = sorted(path for path in (Path(__file__).parent / "stores").iterdir() if path.is_dir())
DEFAULTS_THEN = {"encoding": "adaptive", "refresh": 1.5}
"""Those of PFN-TS when the stores were written; a policy that leaves them out takes those of its version."""


def as_then(live):
    """Make the policy with the defaults of then, and let it learn what the policy of now has learned."""
    chosen, learned = live.state.settings.policy, live.version.policy
    if chosen.name != "pfn-ts":
        return learned
    arms = [arm.id for arm in live.state.settings.arms]
    policy = policies.make("pfn-ts", arms=arms, **DEFAULTS_THEN | chosen.settings)
    policy.append(learned.events)
    return policy


@pytest.mark.parametrize("folder", STORES, ids=lambda folder: folder.name)
def test_a_store_of_an_earlier_version_opens_and_goes_on(folder, tmp_path):
    shutil.copytree(folder, tmp_path / "data")
    told = json.loads((folder / "told.json").read_text())
    answers = {"shop": told} if "fingerprint" in told else told
    store = open_store(tmp_path / "data")
    assert {finding.experiment: finding.problem for finding in check(store)} == dict.fromkeys(answers)
    for name, then in answers.items():
        live = LiveExperiment(name, store)
        assert live.state.fingerprint == then["fingerprint"]
        live.learn()
        if "mean" in then:
            mean = as_then(live).posterior(then["context"]).mean
            assert mean == pytest.approx(then["mean"], abs=1e-9), name
    store.close()
    with asking({"data": str(tmp_path / "data"), "database": None}) as ask:
        for name, then in answers.items():
            for body, answer in then["decisions"]:
                assert ask.post(f"/{name}/decisions", body).json() == answer, "the stored answer"
            assert ask.post(f"/{name}/decisions", {"context": then["context"]}).status_code == 200
            tried = ask.get(f"/{name}/posterior?context={json.dumps(then['context'])}").json()
            assert tried["reason"] == then.get("reason", tried["reason"])
