"""What has to be run for each target."""

from __future__ import annotations

import pytest

from pfnts.reproduction import peers
from pfnts.reproduction.peers import LIBRARY_NAMES, at_hand
from pfnts.reproduction.targets import TARGETS, reproduction


def played(target: str, **options: object) -> set[str]:
    return {spec.policy.name for spec in reproduction(target, **options).specs}  # type: ignore[arg-type]


def test_all_is_everything_once() -> None:
    pytest.importorskip("mabwiser", reason="one library of peers must be there")
    everything = reproduction("all")
    assert len(everything.specs) == len(set(everything.specs))
    assert everything.coverage
    assert everything.trial == ("pfn-ts", "lin-ts", "rf-ts", "xgboost-ts", "bf-ts")
    # A library that is missing is left out and named.
    assert len(everything.notes) == len(LIBRARY_NAMES) - len({policy.name for policy in at_hand()[0]})
    for target in TARGETS:
        assert set(reproduction(target).specs) <= set(everything.specs)


def test_full_run_has_the_slow_policies_and_a_first_look_has_not() -> None:
    assert {"bf-ts", "neural-ts"} <= played("table-synthetic")
    assert not {"bf-ts", "neural-ts"} & played("table-synthetic", quick=True)
    assert {"bf-ts", "neural-ts"} <= played("table-synthetic", quick=True, slow=True)
    assert not {"bf-ts", "neural-ts"} & played("table-synthetic", slow=False)


def test_what_is_left_out_is_said() -> None:
    slow, ablations = reproduction("all", quick=True).notes[:2]
    assert "bf-ts and neural-ts are left out" in slow
    assert "on friedman and friedman-sparse-disjoint only" in ablations
    assert "as you asked" in reproduction("table-openml", slow=False).notes[0]


def test_named_policies_run_and_nobody_is_told_of_the_others() -> None:
    wanted = reproduction("table-openml", quick=True, policies=["ts", "bf-ts"])
    assert {spec.policy.name for spec in wanted.specs} == {"ts", "bf-ts"}
    assert wanted.notes == ()


def test_library_that_is_missing_is_named_and_the_others_run(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("mabwiser", reason="one library of peers must be there")
    build = peers.PolicySpec.build

    def without_vw(self: peers.PolicySpec, **options: object) -> object:
        if self.name == "vw":
            raise ImportError("the policy 'vw' needs vowpalwabbit")
        return build(self, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(peers.PolicySpec, "build", without_vw)
    wanted = reproduction("peers")
    assert "vw is left out: the policy 'vw' needs vowpalwabbit." in wanted.notes
    assert "vw" not in {spec.policy.name for spec in wanted.specs}


def test_every_library_has_its_own_defaults_and_a_grid() -> None:
    for name in LIBRARY_NAMES:
        first, *grid = [policy for policy in peers.PEERS if policy.name == name]
        assert not first.options
        assert grid
        assert all(policy.options for policy in grid)


def test_more_replications_contain_the_fewer() -> None:
    two, three = (set(reproduction("table-synthetic", quick=True, replications=n).specs) for n in (2, 3))
    assert two < three
    assert len(three) == len(two) * 3 // 2


def test_coverage_alone_needs_no_run() -> None:
    wanted = reproduction("coverage")
    assert wanted.specs == ()
    assert wanted.coverage


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"target": "table-3"}, "target must be one of table-synthetic, .* got 'table-3'"),
        ({"target": "all", "policies": ["pfnts"]}, "policy must be one of pfn-ts, .* got 'pfnts'"),
        ({"target": "all", "replications": 0}, "replications must be a positive integer, got 0"),
        ({"target": "ablations", "policies": ["ts"]}, "policy must be one that ablations compares, got ts"),
    ],
)
def test_mistakes_are_named(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        reproduction(**arguments)  # type: ignore[arg-type]
