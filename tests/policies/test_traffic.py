"""A holdout and limits on propensities: exact, and the same in every way of deciding."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.random import Generator
from scipy.stats import chisquare

from pfnts import PFNTS, Traffic
from pfnts.events import Rewarded
from pfnts.policies import Choices, Policy, make
from pfnts.policies.shares import limited, settle

SETTINGS = [
    Traffic(warmup=0, holdout=0.2, baseline="b"),
    Traffic(warmup=0, max_share=0.5),
    Traffic(warmup=0, explore=0.3, holdout=0.1, max_share={"a": 0.3, "c": 0.6}),
    Traffic(warmup=0, explore=1.0, holdout=0.5, baseline="a", max_share=0.6),
    Traffic(warmup=0, holdout=1.0, baseline="c"),
    Traffic(warmup=0, max_share={"a": 0.0}),
    Traffic(warmup=0, max_share=0.2),  # impossible with three arms
]


def expected(own: Any, eligible: Any, traffic: Traffic) -> np.ndarray:
    """Propensities by the definition, with the proportion found by bisection."""
    own, eligible = np.asarray(own, dtype=float), np.asarray(eligible)
    arms = ("a", "b", "c")
    held = np.array([traffic.holdout * (arm == (traffic.baseline or "a")) for arm in arms]) * eligible
    mixed = (1 - traffic.explore) * own + traffic.explore * eligible / eligible.sum()
    room = np.maximum(traffic.limits(arms) - held, 0) * eligible
    if held.sum() < 1:
        room /= 1 - held.sum()
    if room.sum() < 1:
        mixed = room / room.sum() if room.any() else eligible / eligible.sum()
    elif (mixed > room).any():
        mixed = np.maximum(mixed, 1e-12 * eligible)  # zeros share evenly
        low, high = 0.0, 40.0
        for _ in range(200):
            middle = (low + high) / 2
            low, high = (
                (middle, high) if np.minimum(np.exp(middle) * mixed, room).sum() < 1 else (low, middle)
            )
        mixed = np.minimum(np.exp(high) * mixed, room)
    return (1 - held.sum()) * mixed + held


@pytest.mark.parametrize("traffic", SETTINGS, ids=range(len(SETTINGS)))
@pytest.mark.parametrize("eligible", [[True, True, True], [False, True, True], [True, False, False]])
@pytest.mark.parametrize("own", [[0.85, 0.1, 0.05], [1.0, 0.0, 0.0]])
def test_propensities_are_the_definition_and_frequencies_follow_them(
    traffic: Traffic, eligible: list[bool], own: list[float], rng: Generator
) -> None:
    n, mask = 20_000, np.array(eligible)
    shares = np.where(mask, own, 0) / max(np.where(mask, own, 0).sum(), 1e-300)
    if not shares.any():
        shares = mask / mask.sum()
    choices, reasons = settle(
        lambda: Choices(rng.choice(3, size=n, p=shares), np.tile(shares, (n, 1))),
        np.tile(mask, (n, 1)),
        rng.random((n, 3)),
        reason="thompson",
        cold=np.zeros(3, dtype=bool),
        ahead=np.zeros(3, dtype=np.int64),
        traffic=traffic.for_arms(("a", "b", "c")),
        arms=("a", "b", "c"),
    )
    wanted = expected(shares, mask, traffic)
    np.testing.assert_allclose(choices.propensities, np.tile(wanted, (n, 1)), atol=1e-9)
    np.testing.assert_allclose(choices.propensities.sum(axis=1), 1, atol=1e-12)
    counts = np.bincount(choices.index, minlength=3)
    assert not counts[wanted < 1e-9].any()
    likely = wanted > 1e-9
    if likely.sum() > 1:
        assert chisquare(counts[likely], n * wanted[likely] / wanted[likely].sum()).pvalue > 1e-6
    baseline = "abc".index(str(traffic.baseline or "a"))
    held = n * traffic.holdout * mask[baseline]
    assert abs(reasons.count("holdout") - held) <= 5 * np.sqrt(n) * (0 < held < n)


@given(
    st.lists(st.floats(0, 1), min_size=2, max_size=6),
    st.lists(st.floats(0, 1), min_size=6, max_size=6),
    st.integers(1, 63),
)
def test_limits_hold_where_they_can(shares: list[float], limits: list[float], mask: int) -> None:
    K = len(shares)
    eligible = np.array([bool(mask >> k & 1) for k in range(K)])
    eligible[0] |= not eligible.any()
    own = np.where(eligible, shares, 0.0)
    own = own / own.sum() if own.sum() > 1e-9 else eligible / eligible.sum()
    most = np.array(limits[:K])
    found = limited(own[None], most[None], eligible[None])[0]
    assert found.sum() == pytest.approx(1, abs=1e-9)
    assert (found >= 0).all()
    assert not found[~eligible].any()
    if most[eligible].sum() >= 1:
        assert (found <= most + 1e-9).all()
        if (own <= most).all():
            np.testing.assert_allclose(found, own, atol=1e-12)
    elif most[eligible].any():
        np.testing.assert_allclose(found, np.where(eligible, most, 0) / most[eligible].sum(), atol=1e-9)


def policy_of(name: str, traffic: Traffic) -> Policy:
    options: dict[str, Any] = {"backbone": "linear", "encoding": "joint"} if name == "pfn-ts" else {}
    return make(name, arms=["a", "b", "c"], traffic=traffic, **options)


STRICT = Traffic(warmup=4, explore=0.1, holdout=0.2, baseline="b", max_share={"a": 0.4, "b": 0.7})


@pytest.mark.parametrize("name", ["pfn-ts", "lin-ts", "lin-ucb", "ts", "uniform"])
def test_limits_and_holdout_hold_from_the_first_round(name: str) -> None:
    policy, rng = policy_of(name, STRICT), np.random.default_rng(0)
    most = STRICT.limits(policy.arms)
    reasons = set()
    for t in range(120):
        decision = policy.decide([rng.random()], rng=rng)
        assert (decision.propensities <= most + 1e-12).all()
        assert decision.propensities[1] >= 0.2
        assert decision.propensities.min() >= 0.8 * 0.1 / 3 - 1e-12
        assert decision.propensities.sum() == pytest.approx(1, abs=1e-12)
        if t % 3:
            policy.update(decision, reward=float(decision.arm == "a"))
        reasons.add(decision.reason)
    assert {"holdout", "explore", policy.rule} <= reasons


@pytest.mark.parametrize("name", ["pfn-ts", "ts", "uniform"])
def test_stretches_and_batches_equal_single_rounds(name: str) -> None:
    X = np.random.default_rng(0).random((160, 2))
    rewards = np.random.default_rng(1).normal([0, 1, 0.5], size=(160, 3))
    one, two = policy_of(name, STRICT), policy_of(name, STRICT)
    rng_one, rng_two = np.random.default_rng(2), np.random.default_rng(2)
    t, shares = 0, []
    while t < 160:
        index, propensities = one.play(X[t:], rewards[t:], rng=rng_one)
        shares += list(propensities)
        t += len(index)
    for t in range(160):
        decision = two.decide(X[t], rng=rng_two)
        np.testing.assert_array_equal(decision.propensities, shares[t])
        two.update(decision, reward=rewards[t, decision.index])
    assert [e for e in one.events if isinstance(e, Rewarded)] == [
        e for e in two.events if isinstance(e, Rewarded)
    ]
    batch = one.decide_batch(X, rng=rng_one)
    singly = [two.decide(x, rng=rng_two) for x in X]
    assert [d.to_dict() for d in batch] == [d.to_dict() for d in singly]


def test_defaults_leave_the_draws_as_they_are() -> None:
    plain, said = (policy_of("lin-ts", t) for t in (Traffic(), Traffic(holdout=0.0, max_share=1.0)))
    for policy in (plain, said):
        rng = np.random.default_rng(0)
        for _ in range(40):
            policy.update(policy.decide([rng.random()], rng=rng), reward=rng.random())
    assert plain.events == said.events


def test_it_survives_a_file_and_arms_that_come_and_go(tmp_path: Path) -> None:
    traffic = Traffic(warmup=3, holdout=0.25, max_share={"7": 0.5, 7: 0.6})
    policy = PFNTS(["x", 7, "7"], backbone="linear", traffic=traffic)
    assert policy.traffic.baseline == "x"
    policy.save(tmp_path / "saved")
    loaded = PFNTS.load(tmp_path / "saved")
    assert loaded.traffic == policy.traffic
    assert loaded.traffic.limits([7, "7", "new"]).tolist() == [0.6, 0.5, 1.0]
    loaded.remove_arm("x")
    decision = loaded.decide([1.0], rng=np.random.default_rng(0))
    assert decision.propensities.tolist() == [0.5, 0.5]
    assert decision.reason == "warmup"


def test_the_baseline_that_is_not_eligible_gets_no_holdout() -> None:
    policy = policy_of("uniform", Traffic(warmup=0, holdout=0.5, baseline="a"))
    decision = policy.decide([0.0], rng=np.random.default_rng(0), eligible=[False, True, True])
    assert decision.propensities.tolist() == [0.0, 0.5, 0.5]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"holdout": -0.1}, "holdout must be between 0 and 1, a share of the rounds, got -0.1"),
        ({"max_share": 1.5}, "max_share must be between 0 and 1, a propensity, got 1.5"),
        ({"max_share": {"a": float("nan")}}, "max_share must be between 0 and 1, a propensity, got nan"),
        ({"max_share": {"z": 0.5}}, r"max_share must be one of the arms \['a', 'b'\], got 'z'"),
        ({"baseline": "z"}, r"baseline must be one of the arms \['a', 'b'\], got 'z'"),
        (
            {"holdout": 0.5, "max_share": 0.4},
            "max_share must leave room for the holdout of 0.5",
        ),
    ],
)
def test_settings_are_checked(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        make("uniform", arms=["a", "b"], **options)


def test_another_object_is_refused_with_the_remedy() -> None:
    with pytest.raises(TypeError, match=r"traffic must be a Traffic, got .*; write Traffic\("):
        PFNTS(2, traffic={"warmup": 3})  # type: ignore[arg-type]
