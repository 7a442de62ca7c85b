"""`Policy.explain`: reasons that can be checked by hand."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from pfnts import PFNTS
from pfnts.policies import LinTS, Uniform, make

PLANS = ["free", "paid", "gift"]


def context(rng: np.random.Generator) -> dict[str, Any]:
    return {
        "age": None if rng.random() < 0.1 else float(rng.integers(20, 70)),
        "plan": PLANS[rng.integers(3)],
        "seen": f"2026-03-{rng.integers(1, 29):02d}",
    }


def trained(policy: Any, rounds: int = 60, *, seed: int = 0) -> Any:
    """Rewards name the round, and come in another order than the decisions."""
    rng = np.random.default_rng(seed)
    decisions = [policy.decide(context(rng), rng=rng) for _ in range(rounds)]
    for i in rng.permutation(rounds):
        policy.update(decisions[i], reward=float(i))
    return policy


def test_effects_of_columns_are_those_of_a_linear_model() -> None:
    # The lead of a linear model is linear: replacing a column shifts it by its coefficient times the change.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))  # more rows than replacements
    policy = LinTS(arms=2)
    policy.update(X, arm=np.tile([0, 1], 20), reward=X @ [1.0, -2.0, 0.5] * np.tile([0, 1], 20))
    x = np.array([1.0, -1.0, 2.0])
    found = policy.explain(x)
    means = policy.posterior(np.vstack([np.zeros(3), np.eye(3)])).mean
    coefficients = (means[1:] - means[0]) @ ([-1, 1] if found.leader == 1 else [1, -1])
    replaced = X[np.arange(32) * 40 // 32].mean(axis=0)
    effects = {column.column: column.effect for column in found.columns}
    np.testing.assert_allclose([effects[str(j)] for j in range(3)], coefficients * (x - replaced), atol=1e-9)
    assert found.lead == pytest.approx(abs(np.diff(policy.posterior(x).mean)[0]))
    sizes = [abs(column.effect) for column in found.columns]
    assert sizes == sorted(sizes, reverse=True)
    only = X[np.arange(32) * 40 // 32][:, 1]
    swapped = np.tile(x, (32, 1))
    swapped[:, 1] = only
    leads = policy.posterior(swapped).mean @ ([-1, 1] if found.leader == 1 else [1, -1])
    assert next(c.overturned for c in found.columns if c.column == "1") == (leads < 0).mean()


def test_similar_rows_are_the_nearest_ones_as_they_were_given() -> None:
    policy = trained(LinTS(arms=["a", "b"]))
    asked = {"age": 41.0, "plan": "gift", "seen": "2026-03-15"}
    found = policy.explain(asked, rows=4)
    # A slow second way: the log read by hand, categories 0 or 1, numbers in standard deviations.
    made = {event.id: event for event in policy.events if event.kind == "decided"}
    rewards = {event.id: event.value for event in policy.events if event.kind == "rewarded"}
    ages = np.array([np.nan if e.context["age"] is None else e.context["age"] for e in made.values()])
    days = np.array([float(e.context["seen"][-2:]) for e in made.values()])
    assert [arm.seen for arm in found.arms] == [
        sum(event.arm == arm.arm for event in made.values()) for arm in found.arms
    ]

    def distance(given: dict[str, Any]) -> float:
        age = np.nanmean(ages) if given["age"] is None else given["age"]
        parts = (age - 41) / np.nanstd(ages), (float(given["seen"][-2:]) - 15) / np.std(days)
        return float(np.sqrt(np.square(parts).sum() + 2 * (given["plan"] != "gift")))

    for arm, rival in zip(found.arms, found.arms[::-1], strict=True):
        own = sorted(distance(e.context) for e in made.values() if e.arm == arm.arm)
        np.testing.assert_allclose([row.distance for row in arm.rows], own[:4], atol=0.006)
        for row in arm.rows:
            event = made[str(int(row.reward))]  # rewards name the round
            assert (event.arm, event.context) == (arm.arm, row.context)
            assert rewards[event.id] == row.reward
            assert row.speaks_for == (row.reward > rival.mean)


def test_an_explanation_changes_nothing() -> None:
    explained, twin = (trained(PFNTS(["a", "b", "c"], backbone="linear")) for _ in range(2))
    rng = np.random.default_rng(5)
    probes = [context(rng) for _ in range(6)]
    for policy in (explained, twin):
        policy.prefetch(probes)
    events = explained.events
    one, two = np.random.default_rng(1), np.random.default_rng(1)
    for probe in probes:
        first = explained.explain(probe)
        assert first == explained.explain(probe)
        left, right = explained.decide(probe, rng=one), twin.decide(probe, rng=two)
        np.testing.assert_array_equal(left.propensities, right.propensities)
        posterior = twin.posterior(probe)
        by_arm = {arm.arm: arm for arm in first.arms}
        np.testing.assert_array_equal([by_arm[a].mean for a in twin.arms], posterior.mean)
        np.testing.assert_array_equal([by_arm[a].low for a in twin.arms], posterior.interval(0.9)[0])
        best = [by_arm[a].best for a in twin.arms]
        np.testing.assert_array_equal(best, posterior.best_arm_probabilities())
        assert first.arms[0].best == max(best)
    assert explained.events[: len(events)] == events


@pytest.mark.parametrize("name", ["pfn-ts", "lin-ts", "ts", "rf-ts", "neural-ts"])
def test_every_policy_with_a_posterior_explains_itself(name: str) -> None:
    options: dict[str, Any] = {"pfn-ts": {"backbone": "linear"}, "rf-ts": {"n_trees": 5}}.get(name, {})
    policy = trained(make(name, arms=["a", "b"], **options))
    found = policy.explain(context(np.random.default_rng(1)))
    assert sum(arm.best for arm in found.arms) == pytest.approx(1, abs=1e-6)
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False))["leader"] == found.leader
    assert {column.column for column in found.columns} == {"age", "plan", "seen"}
    if name == "ts":  # it ignores contexts
        assert not any(column.effect for column in found.columns)


def test_an_explanation_is_shown_as_text_tables_and_a_figure() -> None:
    found = trained(LinTS(arms=["a", "b"])).explain({"age": 41, "plan": "gift", "seen": "2026-03-15"}, rows=3)
    text = str(found)
    for word in ("plan=gift", f"{found.leader} leads", "for it" if found.arms[0].rows else "", "overturned"):
        assert word in text
    frame = found.to_frame()
    assert list(frame["arm"]) == [arm.arm for arm in found.arms]
    assert (frame["rows_for"] + frame["rows_against"] == 3).all()
    assert list(found.columns_frame()["column"]) == [column.column for column in found.columns]
    left, right = found.plot().axes
    assert [label.get_text().split("\n")[0] for label in left.get_yticklabels()] == list(frame["arm"])
    assert len(right.patches) == 3


def test_what_cannot_be_explained_is_said() -> None:
    policy = LinTS(arms=["a", "b"])
    early = policy.explain([1.0])  # a prior is a posterior without rows
    assert early.replacements == 0
    assert early.columns == ()
    assert [arm.rows for arm in early.arms] == [(), ()]
    with pytest.raises(ValueError, match="posterior needs at least 3 rewards"):
        PFNTS(["a", "b"], backbone="linear").explain([1.0])
    with pytest.raises(TypeError, match="Uniform has none"):
        Uniform(2).explain([1.0])
    for words, options in (("rows must be", {"rows": -1}), ("level must be", {"level": 1.0})):
        with pytest.raises(ValueError, match=words):
            policy.explain([1.0], **options)
    with pytest.raises(ValueError, match="use decide_batch"):
        policy.explain([[1.0], [2.0]])
    trained(policy := LinTS(arms=["a", "b"]))
    policy.remove_arm("a")
    alone = policy.explain({"age": 41, "plan": "gift", "seen": "2026-03-15"})
    assert [arm.arm for arm in alone.arms] == ["b"]
    assert alone.lead is None
    assert all(row.speaks_for for row in alone.arms[0].rows)
