from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.random import Generator
from pfnts.encodings import Adaptive, Threshold

from pfnts import PFNTS
from pfnts.backbones import LinearBackbone
from pfnts.environments import Environment, make
from pfnts.policies import Decision, Shrunk
from pfnts.policies.archive import write_archive
from pfnts.posterior import PredictiveCLT, SubCLT

ENCODINGS = ["disjoint", "joint", "block", "threshold", "adaptive"]


def pfnts(arms: Any = 2, **options: Any) -> PFNTS:
    return PFNTS(arms, **{"backbone": "linear", **options})


def rounds(
    policy: PFNTS, environment: Environment, start: int, stop: int, *, rng: Generator, prefetch: int = 0
) -> list[Decision]:
    decisions = []
    for t in range(start, stop):
        if prefetch and t % prefetch == 0:
            policy.prefetch(environment.contexts[t : t + prefetch])
        decision = policy.decide(environment.contexts[t], rng=rng)
        policy.update(
            environment.contexts[t], arm=decision.arm, reward=environment.rewards[t, decision.index]
        )
        decisions.append(decision)
    return decisions


def indices(decisions: list[Decision]) -> list[int]:
    return [decision.index for decision in decisions]


@pytest.fixture(scope="module")
def friedman() -> Environment:
    return make("friedman", horizon=600, rng=np.random.default_rng(7))


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("coupling", ["marginal", "joint"])
def test_prefetch_changes_the_time_only(encoding: str, coupling: Any, friedman: Environment) -> None:
    runs = [
        rounds(
            pfnts(encoding=encoding, coupling=coupling),
            friedman,
            0,
            600,
            rng=np.random.default_rng(1),
            prefetch=chunk,
        )
        for chunk in (0, 50, 256)
    ]
    assert indices(runs[0]) == indices(runs[1]) == indices(runs[2])
    for one, other in zip(runs[0][10:], runs[2][10:], strict=True):
        np.testing.assert_allclose(one.propensities, other.propensities, atol=1e-9)
        np.testing.assert_allclose(one.posterior.mean, other.posterior.mean, rtol=1e-9)  # type: ignore[union-attr]
        np.testing.assert_allclose(one.posterior.variance, other.posterior.variance, rtol=1e-6)  # type: ignore[union-attr]


@pytest.mark.parametrize("rule", ["greedy", "predictive"])
def test_prefetch_changes_nothing_under_the_other_rules(rule: Any, friedman: Environment) -> None:
    runs = [
        rounds(pfnts(rule=rule), friedman, 0, 300, rng=np.random.default_rng(1), prefetch=chunk)
        for chunk in (0, 64)
    ]
    assert indices(runs[0]) == indices(runs[1])


def test_announced_contexts_that_do_not_come_or_come_twice_do_no_harm(friedman: Environment) -> None:
    plain, ahead = pfnts(), pfnts()
    contexts = friedman.contexts[np.random.default_rng(0).integers(20, size=200)]
    environment = Environment("repeated", contexts, friedman.means[:200], friedman.rewards[:200])
    one = rounds(plain, environment, 0, 200, rng=np.random.default_rng(3))
    two = []
    rng = np.random.default_rng(3)
    for t in range(200):
        if t % 25 == 0:
            ahead.prefetch(friedman.contexts[:15])
        two += rounds(ahead, environment, t, t + 1, rng=rng)
    assert indices(one) == indices(two)


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("variance", ["subclt", "shrunk"])
def test_loaded_policy_goes_on_where_it_was_saved(
    encoding: str, variance: str, friedman: Environment, tmp_path: Path
) -> None:
    policy = pfnts(["a", "b"], encoding=encoding, variance=variance)
    rng = np.random.default_rng(1)
    rounds(policy, friedman, 0, 300, rng=rng, prefetch=256)
    policy.save(tmp_path / "policy.npz")
    loaded = PFNTS.load(tmp_path / "policy.npz")
    assert loaded.layout == policy.layout
    twin = np.random.default_rng()
    twin.bit_generator.state = rng.bit_generator.state
    assert indices(rounds(loaded, friedman, 300, 600, rng=twin)) == indices(
        rounds(policy, friedman, 300, 600, rng=rng)
    )
    assert [entry.name for entry in tmp_path.iterdir()] == ["policy.npz"]


def test_save_keeps_schema_labels_pending_counts_and_settings(tmp_path: Path) -> None:
    policy = pfnts(
        ["x", 7],
        encoding=Adaptive(switch_times=(20, 40), arm_threshold=1),
        coupling="joint",
        rule="greedy",
        base=1.5,
        refresh=1.1,
        warmup=4,
        variance=Shrunk(nu0=3.0, floor=0.2, tails="student", weights="root", base=1.5),
    )
    rng = np.random.default_rng(0)
    for t in range(30):
        context = {"age": float(t), "plan": f"plan {t % 3}"}
        decision = policy.decide(context, rng=rng)
        if t % 2:
            policy.update(context, arm=decision.arm, reward=1.0)
    policy.save(tmp_path / "saved")
    loaded = PFNTS.load(str(tmp_path / "saved"))
    for name in ("_arms", "_schema", "_settings", "_coupling", "_rule", "_schedule", "_warmup", "_variance"):
        assert getattr(loaded, name) == getattr(policy, name), name
    np.testing.assert_array_equal(loaded._pending, policy._pending)
    np.testing.assert_array_equal(loaded._observed, policy._observed)


def test_other_weights_than_at_saving_are_a_warning(tmp_path: Path) -> None:
    backbone = Fingerprinted("one")
    pfnts(2, backbone=backbone).save(tmp_path / "saved")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        PFNTS.load(tmp_path / "saved", backbone=backbone)
    with pytest.warns(UserWarning, match=r"other weights \(two\) than when the policy was saved \(one\)"):
        PFNTS.load(tmp_path / "saved", backbone=Fingerprinted("two"))


class Fingerprinted(LinearBackbone):
    def __init__(self, fingerprint: str) -> None:
        super().__init__()
        self.fingerprint = fingerprint


@pytest.mark.parametrize("schema", [None, {"age": "numeric"}])
def test_an_untouched_policy_can_be_saved(schema: Any, tmp_path: Path) -> None:
    pfnts(3, schema=schema).save(tmp_path / "saved")
    assert PFNTS.load(tmp_path / "saved").decide({"age": 3}, rng=np.random.default_rng(0)).index == 0


def test_objects_are_not_saved_but_asked_for(friedman: Environment, tmp_path: Path) -> None:
    backbone, variance = LinearBackbone(precision=0.1), PredictiveCLT()
    policy = pfnts(backbone=backbone, variance=variance)
    rounds(policy, friedman, 0, 40, rng=np.random.default_rng(0))
    policy.save(tmp_path / "saved")
    with pytest.raises(ValueError, match=r"backbone must be passed.*'linear'"):
        PFNTS.load(tmp_path / "saved")
    with pytest.raises(ValueError, match=r"variance must be passed.*PredictiveCLT"):
        PFNTS.load(tmp_path / "saved", backbone=backbone)
    loaded = PFNTS.load(tmp_path / "saved", backbone=backbone, variance=variance)
    one, two = (rounds(p, friedman, 40, 80, rng=np.random.default_rng(1)) for p in (policy, loaded))
    assert indices(one) == indices(two)


def damaged(path: Path, how: str) -> None:
    whole = path.read_bytes()
    if how == "truncated":
        path.write_bytes(whole[: len(whole) // 2])
    elif how == "flipped":
        path.write_bytes(bytes(b ^ 0xFF if 200 < i < 400 else b for i, b in enumerate(whole)))
    elif how == "empty":
        path.write_bytes(b"")
    elif how == "text":
        path.write_text("none of this is an archive")
    elif how == "foreign arrays":
        with path.open("wb") as file:
            np.savez(file, weights=np.ones(3))
    elif how == "single array":
        with path.open("wb") as file:
            np.save(file, np.ones(3))
    elif how == "pickle":
        with path.open("wb") as file:
            np.savez(file, header=np.array([{"format": "pfnts-policy"}], dtype=object))
    elif how == "other policy":
        write_archive(path, policy="lin-ts", header={}, arrays={})
    else:
        with np.load(path) as file:
            arrays = dict(file)
        header = json.loads(arrays.pop("header").tobytes())
        if how == "newer":
            header["version"] = 2
        elif how == "no rule":
            del header["rule"]
        elif how == "wrong encoding":
            header["encoding"]["name"] = "sparse"
        elif how == "short":
            arrays["rewards"] = arrays["rewards"][:-1]
        elif how == "unknown arm":
            arrays["pulled"] = arrays["pulled"] + 5
        elif how == "not a number":
            arrays["rewards"] = arrays["rewards"] * np.nan
        arrays["header"] = np.frombuffer(json.dumps(header).encode(), np.uint8)
        with path.open("wb") as file:
            np.savez(file, **arrays)


@pytest.mark.parametrize(
    "how",
    [
        "truncated",
        "flipped",
        "empty",
        "text",
        "foreign arrays",
        "single array",
        "pickle",
        "other policy",
        "newer",
        "no rule",
        "wrong encoding",
        "short",
        "unknown arm",
        "not a number",
    ],
)
def test_corrupt_and_foreign_files_are_refused(how: str, friedman: Environment, tmp_path: Path) -> None:
    policy, path = pfnts(), tmp_path / "saved"
    rounds(policy, friedman, 0, 40, rng=np.random.default_rng(0))
    policy.save(path)
    damaged(path, how)
    with pytest.raises(ValueError, match="must be"):
        PFNTS.load(path)


def test_missing_file_is_not_a_corrupt_one(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        PFNTS.load(tmp_path / "nowhere")


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_added_arm_warms_up_and_is_found_to_be_best(encoding: str) -> None:
    policy, rng = pfnts(["a", "b"], encoding=encoding), np.random.default_rng(0)
    worth = {"a": 0.0, "b": 0.5, "c": 2.0}

    def go(n: int) -> list[Any]:
        arms = []
        for _ in range(n):
            x = rng.integers(2, size=2).astype(float)
            arm = policy.decide(x, rng=rng).arm
            policy.update(x, arm=arm, reward=worth[arm] + 0.2 * rng.normal())
            arms.append(arm)
        return arms

    go(150)
    policy.add_arm("c")
    assert policy.arms == ("a", "b", "c")
    assert go(5) == ["c"] * 5
    # Where arms share a sequence, a newcomer waits for its next refresh point to be believed.
    late = go(600)[-100:]
    assert late.count("c") > 80
    assert policy.posterior(np.zeros(2)).mean.shape == (3,)


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_removed_arm_is_never_chosen_and_cannot_be_updated(encoding: str, friedman: Environment) -> None:
    policy = pfnts(["a", "b", "c"], encoding=encoding)
    rng = np.random.default_rng(0)
    for x in friedman.contexts[:60]:
        arm = policy.decide(x, rng=rng).arm
        policy.update(x, arm=arm, reward={"a": 0.0, "b": 1.0, "c": 2.0}[arm] + rng.normal())
    kept = policy.posterior(friedman.contexts[:5]).mean[:, :2]
    policy.remove_arm("c")
    assert policy.arms == ("a", "b")
    np.testing.assert_allclose(policy.posterior(friedman.contexts[:5]).mean, kept, rtol=1e-12)
    with pytest.raises(ValueError, match=r"arm must be one of \['a', 'b'\], got 'c', which was removed"):
        policy.update(friedman.contexts[0], arm="c", reward=1.0)
    assert {policy.decide(x, rng=rng).arm for x in friedman.contexts[:60]} <= {"a", "b"}


def test_removed_label_added_again_starts_afresh(friedman: Environment, tmp_path: Path) -> None:
    policy, rng = pfnts(["a", "b"]), np.random.default_rng(0)
    rounds(policy, friedman, 0, 40, rng=rng)
    policy.remove_arm("a")
    policy.add_arm("a")
    assert policy.arms == ("b", "a")
    assert [policy.decide(friedman.contexts[0], rng=rng).arm for _ in range(5)] == ["a"] * 5
    for x in friedman.contexts[:5]:
        policy.update(x, arm="a", reward=1.0)
    policy.save(tmp_path / "saved")
    loaded = PFNTS.load(tmp_path / "saved")
    one, two = (p.posterior(friedman.contexts[:3]) for p in (policy, loaded))
    np.testing.assert_array_equal(one.mean, two.mean)
    np.testing.assert_array_equal(one.variance, two.variance)


def test_arms_change_without_any_history() -> None:
    policy = pfnts(["a", "b"])
    policy.add_arm("c")
    policy.remove_arm("a")
    rng = np.random.default_rng(0)
    for _ in range(20):
        decision = policy.decide([0.5], rng=rng)
        policy.update([0.5], arm=decision.arm, reward=1.0)
    assert decision.posterior is not None


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda policy: policy.add_arm("a"), "arms must have distinct labels"),
        (lambda policy: policy.add_arm(1.5), "labelled by strings or integers, got 1.5"),
        (lambda policy: policy.remove_arm("z"), r"arm must be one of \['a', 'b'\], got 'z'"),
    ],
)
def test_impossible_changes_of_arms_leave_the_policy_as_it_was(
    call: Any, words: str, friedman: Environment
) -> None:
    policy, twin = pfnts(["a", "b"]), pfnts(["a", "b"])
    for one in (policy, twin):
        rounds(one, friedman, 0, 50, rng=np.random.default_rng(0))
    with pytest.raises(ValueError, match=words):
        call(policy)
    assert policy.arms == ("a", "b")
    one, two = (rounds(p, friedman, 50, 150, rng=np.random.default_rng(1)) for p in (policy, twin))
    assert indices(one) == indices(two)


def test_the_last_arm_stays() -> None:
    policy = pfnts(["a"])
    with pytest.raises(ValueError, match="must not be the only one left, got 'a'"):
        policy.remove_arm("a")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"arms": 0}, "arms must be at least 1, got 0"),
        ({"arms": []}, "non-empty list of labels"),
        ({"arms": ["a", "a"]}, "distinct labels"),
        ({"arms": "ab"}, "non-empty list of labels"),
        ({"arms": [1.5, 2.5]}, "strings or integers, got 1.5"),
        ({"encoding": "sparse"}, "encoding must be one of .* got 'sparse'"),
        ({"rule": "best"}, "rule must be .* got 'best'"),
        ({"coupling": "loose"}, "coupling must be .* got 'loose'"),
        ({"variance": "tiny"}, "variance must be one of .* got 'tiny'"),
        ({"variance": 3.0}, "variance must be one of .* got 3.0"),
        ({"variance": SubCLT(base=3.0)}, "base must be that of the variance estimator, 3.0, got 2.0"),
        ({"base": 1.0}, "base must be .* above 1, got 1.0"),
        ({"warmup": 2}, "warmup must be at least 3.* got 2"),
        ({"warmup": 3.5}, "warmup must be a non-negative integer, got 3.5"),
        ({"backbone": "nothing"}, "got 'nothing'"),
        ({"device": "cuda"}, "device must be \"cpu\" for the backbone 'linear', got 'cuda'"),
    ],
)
def test_impossible_policies_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        pfnts(**options)


def test_posterior_is_that_of_the_decisions_and_changes_nothing(friedman: Environment) -> None:
    policy = pfnts()
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="posterior needs at least 3 rewards"):
        policy.posterior(friedman.contexts[0])
    rounds(policy, friedman, 0, 100, rng=rng)
    batch = policy.posterior(friedman.contexts[:7])
    assert batch.mean.shape == (7, 2)
    single = policy.posterior(friedman.contexts[3])
    np.testing.assert_allclose(single.mean, batch.mean[3], rtol=1e-9)
    decision = policy.decide(friedman.contexts[3], rng=rng)
    np.testing.assert_array_equal(decision.posterior.mean, single.mean)
    np.testing.assert_allclose(decision.propensities, single.best_arm_probabilities())


def test_arm_that_was_never_eligible_does_not_stop_the_others(friedman: Environment) -> None:
    policy, rng = pfnts(3, encoding="disjoint"), np.random.default_rng(0)
    eligible = np.array([True, True, False])
    for t in range(60):
        decision = policy.decide(friedman.contexts[t], rng=rng, eligible=eligible)
        policy.update(friedman.contexts[t], arm=decision.arm, reward=friedman.rewards[t, decision.index])
    assert decision.propensities[2] == 0
    assert decision.posterior.size[2] == 1
    assert policy.decide(friedman.contexts[0], rng=rng).index == 2  # its warm-up is due


def test_constant_rewards_leave_every_arm_its_share() -> None:
    # All rewards alike: every posterior is a point, and ties are split evenly, as the propensities say.
    policy, rng = pfnts(3, variance="subclt"), np.random.default_rng(0)
    pulled = []
    for _ in range(400):
        x = rng.uniform(size=2)
        decision = policy.decide(x, rng=rng)
        policy.update(x, arm=decision.arm, reward=0.0)
        pulled.append(decision.index)
    np.testing.assert_allclose(decision.propensities, 1 / 3, atol=1e-9)
    assert np.bincount(pulled).min() > 80


def test_shared_draws_need_a_shared_sequence(friedman: Environment) -> None:
    for encoding, coupled in (("disjoint", False), ("joint", True), (Threshold(limit=20), True)):
        policy = pfnts(encoding=encoding, coupling="joint")
        decision = rounds(policy, friedman, 0, 40, rng=np.random.default_rng(0))[-1]
        assert decision.posterior.coupled is coupled


def test_unseen_category_after_the_first_contexts_is_learned() -> None:
    policy, rng = pfnts(2), np.random.default_rng(0)
    # The better arm depends on the plan, and the first contexts show one plan only.
    wrong = 0
    for t in range(400):
        plan = "free" if t < 5 or rng.random() < 0.5 else "paid"
        context = {"plan": plan, "age": float(rng.uniform())}
        decision = policy.decide(context, rng=rng)
        best = int(plan == "paid")
        policy.update(context, arm=decision.arm, reward=(decision.index == best) + 0.1 * rng.normal())
        wrong += t >= 200 and decision.index != best
    assert wrong < 20


def test_schema_may_be_given_as_a_mapping() -> None:
    policy = pfnts(2, schema={"age": "numeric", "plan": ["free", "paid"]})
    assert policy.schema is not None
    assert policy.schema.features == ("age", "plan=free", "plan=paid")
