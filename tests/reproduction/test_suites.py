"""The paper's experiments as they are written down."""

from __future__ import annotations

import pytest

from pfnts import environments
from pfnts.experiments import PolicySpec
from pfnts.reproduction.published import REGRET
from pfnts.reproduction.suites import CONTESTANTS, SLOW, SUITES, missing


def test_tables_have_the_paper_s_size() -> None:
    for name in ("synthetic", "openml"):
        suite = SUITES[name]
        assert (suite.horizon, suite.replications, suite.seed) == (10_000, 5, 42)
        assert len(suite.scenarios) == 8
        assert len(suite.specs()) == 8 * 9 * 5
    assert set(SUITES["synthetic"].scenarios) <= set(REGRET["pfn-ts"])


def test_every_policy_of_the_paper_plays() -> None:
    assert set(REGRET) | {"ts", "uniform"} == {policy.name for policy in CONTESTANTS}
    assert set(SLOW) < set(REGRET)


def test_scenarios_of_ours_need_their_contexts() -> None:
    assert len(SUITES["context"].scenarios) == 7
    assert all(environments.describe(name).needs_context for name in SUITES["context"].scenarios)


@pytest.mark.parametrize(
    ("name", "variants"),
    [
        ("encoding", ["pfn-ts", "pfn-ts(encoding=disjoint)", "pfn-ts(encoding=joint)"]),
        (
            "base",
            ["pfn-ts", *(f"pfn-ts(estimator={e})" for e in ("subclt", "subclt(base=1.5)", "subclt(base=3)"))],
        ),
        ("rule", ["pfn-ts", "pfn-ts(estimator=predictive)"]),
    ],
)
def test_ablation_varies_one_option_and_shares_the_default_run(name: str, variants: list[str]) -> None:
    suite = SUITES[f"ablation-{name}"]
    assert [policy.label for policy in suite.policies] == variants
    shared = set(suite.specs()) & set(SUITES["synthetic"].specs())
    assert {spec.policy for spec in shared} == {PolicySpec("pfn-ts")}
    assert len(shared) == 8 * 5


def test_every_policy_can_be_made() -> None:
    for suite in SUITES.values():
        for policy in suite.policies:
            policy.build(arms=2)


def test_first_look_is_500_rounds_twice() -> None:
    quick = SUITES["ablation-rule"].quick()
    assert (quick.horizon, quick.replications) == (500, 2)
    assert quick.scenarios == ("friedman", "friedman-sparse-disjoint")
    assert SUITES["openml"].quick().scenarios == SUITES["openml"].scenarios


def test_what_is_missing_is_said_suite_by_suite() -> None:
    everything = {spec for suite in SUITES.values() for spec in suite.specs()}
    assert missing(everything) == []
    kept = {
        spec
        for spec in everything
        if spec.scenario not in SUITES["context"].scenarios
        if (spec.policy.name, spec.replication) != ("rf-ts", 4)
        if spec.policy.name != "bf-ts"
        if (spec.policy.name, spec.scenario, spec.replication) != ("ts", "openml-adult", 0)
        if ("encoding", "joint") not in spec.policy.options
    }
    assert missing(kept) == [
        "The paper's synthetic benchmarks, runs missing: bf-ts (all); rf-ts (1 on every task).",
        "The paper's OpenML benchmarks, runs missing: bf-ts (all); rf-ts (1 on every task); ts (1 on adult).",
        "Tasks on which the context matters: nothing yet.",
        "PFN-TS by encoding, runs missing: pfn-ts(encoding=joint) (all).",
    ]


def test_first_look_lacks_nothing_of_a_first_look() -> None:
    assert missing({spec for suite in SUITES.values() for spec in suite.quick().specs()}) == []


def test_no_variant_is_the_default_by_another_name() -> None:
    """One that is would never be made: it has the key of the default, which is there."""
    for suite in SUITES.values():
        described = [(policy.name, str(policy.settings())) for policy in suite.policies]
        assert len(set(described)) == len(described), suite.name
