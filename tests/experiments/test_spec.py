"""Descriptions of runs."""

from __future__ import annotations

import json

import numpy as np
import pytest
from numpy.random import SeedSequence

from pfnts.environments import make
from pfnts.experiments import PolicySpec, RunSpec, plan

UNIFORM = PolicySpec("uniform")


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("uniform", {}),
        ("pfn-ts:encoding=joint", {"encoding": "joint"}),
        ("pfn-ts:warmup=3,base=1.5", {"warmup": 3, "base": 1.5}),
        ("pfn-ts:a=true,b=null,c=1e-3", {"a": True, "b": None, "c": 0.001}),
        ('pfn-ts:a="quoted"', {"a": '"quoted"'}),
    ],
)
def test_policies_are_read_as_written(text: str, options: dict[str, object]) -> None:
    spec = PolicySpec.parse(text)
    assert spec.name == text.split(":")[0]
    assert dict(spec.options) == options


@pytest.mark.parametrize("text", ["pfn-ts:encoding", "pfn-ts:=joint", "pfn-ts:a b=1"])
def test_policies_written_wrongly_are_refused(text: str) -> None:
    with pytest.raises(
        ValueError, match=r"policy must be written name:option=value,option=value; got 'pfn-ts"
    ):
        PolicySpec.parse(text)


def test_unknown_policy_is_named_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"policy must be one of .*uniform.*; got 'unifrom'"):
        PolicySpec("unifrom")


def test_option_that_cannot_be_written_down_is_refused() -> None:
    with pytest.raises(ValueError, match=r"option backbone of policy pfn-ts must be a number, a string"):
        PolicySpec.of("pfn-ts", backbone=object())  # type: ignore[arg-type]


def test_option_that_the_policy_lacks_is_refused() -> None:
    with pytest.raises(ValueError, match=r"policy uniform\(colour=red\) does not fit: .*colour"):
        PolicySpec.of("uniform", colour="red").build(arms=2)


def test_order_of_options_does_not_matter() -> None:
    assert PolicySpec.of("pfn-ts", base=3, warmup=2) == PolicySpec.parse("pfn-ts:warmup=2,base=3")


def test_backbone_is_part_of_what_decides() -> None:
    assert str(PolicySpec.of("pfn-ts", backbone="linear").backbone()).startswith("linear")
    assert UNIFORM.backbone() is None


def test_description_survives_json() -> None:
    spec = RunSpec("linear", PolicySpec.parse("pfn-ts:warmup=3"), horizon=7, replication=2, seed=5)
    assert RunSpec.from_description(json.loads(json.dumps(spec.describe()))) == spec


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"horizon": 0}, "horizon must be a positive integer, got 0"),
        ({"replication": -1}, "replication and seed must not be negative, got -1 and 5"),
        ({"seed": -2}, "replication and seed must not be negative, got 2 and -2"),
    ],
)
def test_impossible_runs_are_refused(changes: dict[str, object], message: str) -> None:
    fields = {"scenario": "linear", "policy": UNIFORM, "horizon": 7, "replication": 2, "seed": 5, **changes}
    with pytest.raises(ValueError, match=message):
        RunSpec(**fields)  # type: ignore[arg-type]


def test_generators_are_the_spawned_children_of_the_seed() -> None:
    spec = RunSpec("linear", UNIFORM, horizon=7, replication=3, seed=42)
    children = [np.random.default_rng(child) for child in SeedSequence(42).spawn(5)[3].spawn(2)]
    assert [g.random() for g in spec.generators()] == [g.random() for g in children]


def test_every_policy_meets_the_same_environment() -> None:
    specs = plan(
        scenarios=["friedman"],
        policies=[UNIFORM, PolicySpec.of("pfn-ts", backbone="linear")],
        horizon=20,
        replications=2,
        seed=1,
    )
    rewards = {
        (spec.policy.name, spec.replication): make("friedman", horizon=20, rng=spec.generators()[0]).rewards
        for spec in specs
    }
    np.testing.assert_array_equal(rewards["uniform", 1], rewards["pfn-ts", 1])
    assert not np.array_equal(rewards["uniform", 0], rewards["uniform", 1])


def test_plan_refuses_unknown_scenarios_and_tables_that_are_not_there() -> None:
    for scenario, message in [
        ("lunear", "scenario must be one of"),
        ("nowhere.csv:x", "there is none at .*nowhere.csv"),
    ]:
        with pytest.raises(ValueError, match=message):
            plan(scenarios=[scenario], policies=[UNIFORM], horizon=5, replications=1, seed=1)


def test_plan_refuses_no_replications() -> None:
    with pytest.raises(ValueError, match="replications must be a positive integer, got 0"):
        plan(scenarios=["linear"], policies=[UNIFORM], horizon=5, replications=0, seed=1)
