"""The paper's experiments as they are written down."""

from __future__ import annotations

import pytest

from pfnts import environments
from pfnts.experiments import PolicySpec
from pfnts.reproduction.published import REGRET
from pfnts.reproduction.suites import CONTESTANTS, SLOW, SUITES


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
        ("coupling", ["pfn-ts", "pfn-ts(encoding=joint, estimator=subclt(coupled=true))"]),
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
