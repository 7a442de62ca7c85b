"""What a policy accepts as rewards, arms and ids."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from pfnts.policies import make
from pfnts.policies.arguments import check_reward

BAD = [
    "1.5",
    b"1.5",
    1 + 0j,
    np.complex128(1),
    10**400,
    -(10**400),
    10**5000,
    1.5e154,
    1.1e100,
    float("inf"),
    float("nan"),
    None,
    [1.0],
    np.array([1.0]),
    {"reward": 1},
    Decimal("NaN"),
    Decimal("sNaN"),
    Decimal("1e400"),
    Fraction(10**400),
    np.timedelta64(5, "ns"),
    np.datetime64(5, "ns"),
    np.str_("1"),
    object(),
]
GOOD: list[tuple[Any, float]] = [
    (True, 1.0),
    (np.False_, 0.0),
    (3, 3.0),
    (np.int8(-3), -3.0),
    (np.float32(0.5), 0.5),
    (np.array(2.5), 2.5),
    (Decimal("0.25"), 0.25),
    (Fraction(1, 4), 0.25),
    (1e100, 1e100),
    (-0.0, 0.0),
    (5e-324, 5e-324),
]


@pytest.mark.parametrize("value", BAD, ids=lambda value: type(value).__name__)
def test_what_is_no_finite_number_is_no_reward(value: Any) -> None:
    policy = make("lin-ts", arms=2)
    policy.decide([0.5], rng=np.random.default_rng(0), id="x")
    for call in (
        lambda: policy.update([0.5], arm=0, reward=value),
        lambda: policy.update("x", reward=value),
        lambda: policy.update([[0.5], [0.5]], arm=[0, 1], reward=[1.0, value]),
    ):
        with pytest.raises(ValueError, match="reward must be a finite number of at most 1e\\+100") as caught:
            call()
        assert len(str(caught.value)) < 300
    assert len(policy.events) == 1


@pytest.mark.parametrize(("value", "number"), GOOD)
def test_numbers_and_booleans_are_rewards(value: Any, number: float) -> None:
    assert check_reward(value) == number
    assert type(check_reward(value)) is float


def test_tensors_and_frames_give_rewards() -> None:
    import pandas as pd
    import torch

    assert check_reward(torch.tensor(1.5)) == 1.5
    policy = make("lin-ts", arms=2)
    frame = pd.DataFrame({"x": [0.5, 0.1], "arm": [0, 1], "y": [1, 2]})
    assert policy.update(frame[["x"]], arm=frame["arm"], reward=frame["y"]) == ["learned"] * 2
    assert policy.update(frame.iloc[0][["x"]], arm=frame["arm"][0], reward=frame["y"][0]) == "learned"


@pytest.mark.parametrize("arm", [True, False, 1.0, None, "0", b"a", [0], np.True_, (0,), np.array([0])])
def test_an_arm_is_its_label_and_nothing_like_it(arm: Any) -> None:
    policy = make("lin-ts", arms=2)
    with pytest.raises(ValueError, match=r"arm must be one of \[0, 1\], got"):
        policy.update([0.5], arm=arm, reward=1.0)
    assert policy.events == ()


def test_labels_of_numpy_are_labels() -> None:
    policy = make("lin-ts", arms=np.array(["a", "b"]))
    assert policy.arms == ("a", "b")
    assert policy.update([0.5], arm=np.str_("a"), reward=1.0) == "learned"
    assert make("lin-ts", arms=np.int64(3)).arms == (0, 1, 2)


@pytest.mark.parametrize(
    ("arms", "words"),
    [
        (0, "arms must be at least 1"),
        (-3, "arms must be at least 1"),
        (10**9, "at most a million"),
        ([], "non-empty list of labels"),
        (["a", "a"], "distinct labels"),
        ("ab", "non-empty list of labels"),
        ([1.5, 2.5], "strings or integers, got 1.5"),
        ([True, False], "strings or integers, got True"),
        (True, "non-empty list of labels"),
        ({"a", "b"}, "non-empty list of labels"),
    ],
)
def test_impossible_arms_are_refused(arms: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        make("uniform", arms=arms)


def test_only_a_policy_that_judges_features_can_do_without_arms() -> None:
    assert make("uniform", arms=None).arms == ()
    with pytest.raises(ValueError, match="arms must be"):
        make("lin-ts", arms=None)


@pytest.mark.parametrize("warmup", [-1, 2.5, float("nan"), float("inf"), True])
def test_impossible_warm_ups_are_refused(warmup: Any) -> None:
    with pytest.raises(ValueError, match="warmup must be a non-negative integer"):
        make("uniform", arms=2, warmup=warmup)


@pytest.mark.parametrize("schema", [["a"], {"a": None}, {}, "age", 3])
def test_impossible_schemas_are_refused(schema: Any) -> None:
    with pytest.raises(ValueError, match="must"):
        make("uniform", arms=2, schema=schema)


def test_one_enormous_reward_does_not_disable_a_policy() -> None:
    for name, options in (("pfn-ts", {"backbone": "linear"}), ("lin-ts", {}), ("ts", {}), ("lin-ucb", {})):
        policy, rng = make(name, arms=2, **options), np.random.default_rng(0)
        for t in range(60):
            decision = policy.decide(rng.uniform(size=2), rng=rng)
            policy.update(decision, reward=1e100 if t == 20 else rng.normal())
            assert np.isfinite(decision.propensities).all(), name


@pytest.mark.parametrize("encoding", ["adaptive", "joint"])
def test_rewards_around_a_million_with_little_noise_are_learned_from(encoding: str) -> None:
    policy = make("pfn-ts", arms=2, backbone="linear", encoding=encoding)
    rng, late = np.random.default_rng(0), []
    for t in range(200):
        decision = policy.decide(rng.uniform(size=2), rng=rng)
        policy.update(decision, reward=1e6 + (decision.arm == 1) + 0.5 * rng.normal())
        late += [decision.arm] if t >= 100 else []
    assert late.count(1) > 80


def test_the_embedded_network_learns_from_rewards_around_a_million() -> None:
    policy, rng = make("pfn-ts", arms=2, encoding="disjoint"), np.random.default_rng(0)
    X = rng.uniform(size=(60, 2))
    arms = np.arange(60) % 2
    policy.update(X, arm=arms, reward=1e6 + 2 * arms + 0.5 * rng.normal(size=60))
    posterior = policy.posterior(X[:10])  # type: ignore[attr-defined]
    np.testing.assert_allclose(posterior.mean[:, 1] - posterior.mean[:, 0], 2, atol=1)
    assert np.sqrt(posterior.variance).max() < 1


def test_an_id_is_any_text_once() -> None:
    policy, rng = make("uniform", arms=2), np.random.default_rng(0)
    for id in ("", "0", "visit\n1", "ü" * 1000):
        assert policy.decide([0.5], rng=rng, id=id).id == id
    # Numbers that are taken are passed over.
    assert [policy.decide([0.5], rng=rng).id for _ in range(3)] == ["4", "5", "6"]
    assert [d.id for d in policy.decide_batch([[0.5]] * 2, rng=rng)] == ["7", "8"]
    policy.decide([0.5], rng=rng, id="10")
    assert [policy.decide([0.5], rng=rng).id for _ in range(2)] == ["11", "12"]
