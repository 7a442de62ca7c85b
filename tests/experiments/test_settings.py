"""Settings of policies, defaults filled in."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict

import pytest

from pfnts import policies
from pfnts.experiments import PolicySpec
from pfnts.experiments.spec import settings_of
from pfnts.layouts import Threshold
from pfnts.policies import PFNTS
from pfnts.policies.baselines.bart import BartSettings


class Own:
    def __init__(
        self,
        arms: int,
        *,
        encoding: str = "one-hot",
        estimator: str = "none",
        layers: Sequence[int] = (64, 64),
        rule: object = Threshold(limit=7),
        kind: type = int,
    ) -> None: ...


@pytest.mark.parametrize("name", policies.names())
def test_settings_of_every_policy_survive_json(name: str) -> None:
    settings = PolicySpec(name).settings()
    assert json.loads(json.dumps(settings)) == settings
    assert settings["traffic"]["settings"]["explore"] == 0.0
    assert not {"arms", "device"} & set(settings)


def test_defaults_below_a_name_are_written_out() -> None:
    settings = settings_of(PFNTS, {"estimator": "subclt(base=1.5)", "encoding": "threshold"})
    assert settings["estimator"] == "subclt(base=1.5,weights=equal)"
    assert settings["encoding"] == {"name": "threshold", "limit": Threshold().limit}
    trees = PolicySpec("bf-ts").settings()["bart"]
    assert trees == {"name": "BartSettings", "settings": asdict(BartSettings())}


def test_words_of_a_policy_of_ones_own_stay_as_they_are() -> None:
    assert settings_of(Own, {"layers": [8]}) == {
        "encoding": "one-hot",
        "estimator": "none",
        "layers": [8],
        "rule": {"name": "Threshold", "settings": {"limit": 7}},
        "kind": "int",
    }
