"""Flat options and the settings objects that they belong to."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from pfnts import PFNTS, Memory, Traffic
from pfnts.policies import Uniform, make, names
from pfnts.policies.registry import policy_class
from pfnts.policies.settings import gathered


@pytest.mark.parametrize("name", names())
def test_a_policy_has_at_most_eight_parameters(name: str) -> None:
    parameters = inspect.signature(policy_class(name)).parameters
    assert len(parameters.keys() - {"arms", "seed"}) <= 8
    assert {"arms", "traffic", "schema"} <= set(parameters)


@pytest.mark.parametrize("name", names())
def test_flat_options_by_name_are_those_of_the_settings_objects(name: str) -> None:
    flat: dict[str, Any] = {"warmup": 4, "backbone": "linear"} if name == "pfn-ts" else {"warmup": 4}
    try:
        policy = make(name, arms=None if name == "lin-ucb-features" else 2, **flat)
    except ImportError as error:
        pytest.skip(str(error))
    assert policy.traffic.warmup == 4


def test_what_is_not_said_keeps_the_default_of_the_policy() -> None:
    assert make("uniform", arms=2, explore=0.5).traffic == Traffic(warmup=0, explore=0.5)
    assert gathered(policy_class("rf-ts"), {}) == {}
    assert gathered(policy_class("rf-ts"), {"n_trees": 3}) == {"n_trees": 3}


def test_flat_options_go_on_top_of_a_settings_object() -> None:
    found = gathered(PFNTS, {"traffic": Traffic(warmup=7, explore=0.2), "warmup": 4, "refresh": 2})
    assert found == {"traffic": Traffic(warmup=4, explore=0.2), "memory": Memory(refresh=2.0)}


def test_a_parameter_of_the_class_itself_is_left_alone() -> None:
    class Own(Uniform):
        def __init__(self, arms: Any, *, warmup: str = "cold", traffic: Traffic = Traffic()) -> None:  # noqa: B008
            super().__init__(arms, traffic=traffic)

    assert gathered(Own, {"warmup": "hot", "explore": 0.1}) == {
        "warmup": "hot",
        "traffic": Traffic(explore=0.1),
    }
    assert Own(2, warmup="hot").traffic == Traffic()


@pytest.mark.parametrize("options", [{"warmup": 3}, {"refresh": 2.0}, {"warm_up": 3}])
def test_a_class_takes_no_flat_options(options: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument"):
        PFNTS(2, **options)
    with pytest.raises(TypeError, match=r"traffic must be a Traffic, got 3; write Traffic\(...\)"):
        PFNTS(2, traffic=3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="memory must be a Memory"):
        PFNTS(2, memory=Traffic())  # type: ignore[arg-type]


def test_loading_takes_flat_options_and_settings_objects(tmp_path: Any) -> None:
    PFNTS(2, backbone="linear", traffic=Traffic(warmup=6, explore=0.1)).save(tmp_path / "saved")
    assert PFNTS.load(tmp_path / "saved", explore=0.2).traffic == Traffic(warmup=6, explore=0.2)
    assert PFNTS.load(tmp_path / "saved", traffic=Traffic(explore=0.3)).traffic == Traffic(explore=0.3)
