"""Many arms: a cheap model first, the network for a shortlist, exact propensities for all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2

from pfnts import PFNTS
from pfnts.events.event import to_dict
from pfnts.layouts import Features
from pfnts.layouts.shortlist import RidgeScores
from pfnts.policies import Decision, Rewards

ARMS, EXPLORE = 40, 0.1


def policy_of(*, shortlist: int = 8, explore: float = EXPLORE, arms: Any = ARMS, **options: Any) -> PFNTS:
    rng = np.random.default_rng(0)
    features = None if arms is None else {i: rng.random(3) for i in range(arms)}
    layout = Features(shortlist=shortlist, explore=explore, **options)
    return PFNTS(features, backbone="linear", encoding=layout)


def taught(policy: PFNTS, rounds: int = 60) -> PFNTS:
    """Rewards so noisy that the policy is left undecided."""
    rng = np.random.default_rng(1)
    for _ in range(rounds):
        candidates = None if policy.arms else rng.random((ARMS, 3))
        decision = policy.decide(rng.random(2), rng=rng, candidates=candidates)
        policy.update(decision, reward=rng.normal())
    return policy


def agree(said: Any, counts: Any) -> None:
    """Chi-square of frequencies against propensities; cells of fewer than five expected are put together."""
    draws = counts.sum()
    assert counts[said == 0].sum() == 0
    few = said * draws < 5
    expected, seen = said[~few] * draws, counts[~few].astype(float)
    if few.any():
        expected, seen = np.append(expected, said[few].sum() * draws), np.append(seen, counts[few].sum())
    expected, seen = expected[expected > 0], seen[expected > 0]
    statistic = ((seen - expected) ** 2 / expected).sum()
    assert statistic < chi2.isf(1e-6, max(len(expected) - 1, 1))


@pytest.mark.parametrize("explore", [0.0, EXPLORE])
@pytest.mark.parametrize("arms", [ARMS, None], ids=["arms", "candidates"])
@pytest.mark.parametrize("eligible", [None, 16, 3], ids=["all", "some", "fewer than the shortlist has"])
def test_propensities_are_the_frequencies(explore: float, arms: Any, eligible: int | None) -> None:
    policy, rng = taught(policy_of(explore=explore, arms=arms)), np.random.default_rng(2)
    candidates = None if arms else rng.random((ARMS, 3))
    mask = None if eligible is None else rng.permutation(ARMS) < eligible
    counts = np.zeros(ARMS)
    for _ in range(400):
        decision, _ = policy.propose([0.3, 0.8], rng=rng, candidates=candidates, eligible=mask)
        counts[decision.index] += 1
    agree(decision.propensities, counts)
    assert decision.propensities.sum() == pytest.approx(1)
    if mask is not None:
        assert not decision.propensities[~mask].any()


@pytest.mark.parametrize("count", [1, 3, 8])
def test_propensities_of_few_candidates_are_the_frequencies(count: int) -> None:
    policy, rng = taught(policy_of(arms=None)), np.random.default_rng(count)
    candidates, counts = rng.random((count, 3)), np.zeros(count)
    for _ in range(400):
        decision, _ = policy.propose([0.3, 0.8], rng=rng, candidates=candidates)
        counts[decision.index] += 1
    assert decision.shortlist is None
    agree(decision.propensities, counts)


def test_outside_the_shortlist_there_is_the_share_of_exploration_alone() -> None:
    decision, _ = taught(policy_of()).propose([0.5, 0.5], rng=np.random.default_rng(0))
    outside = np.setdiff1d(np.arange(ARMS), decision.shortlist)
    assert decision.shortlist is not None
    assert len(decision.shortlist) == 8
    np.testing.assert_allclose(decision.propensities[outside], EXPLORE / ARMS)
    # Within it, the probability of being the best of the shortlist.
    best = decision.posterior.scaled(1.0).best_arm_probabilities()
    np.testing.assert_allclose(
        decision.propensities[decision.shortlist], (1 - EXPLORE) * best + EXPLORE / ARMS
    )


def test_the_posterior_of_the_shortlist_is_that_of_its_arms() -> None:
    policy = taught(policy_of())
    decision, _ = policy.propose([0.5, 0.5], rng=np.random.default_rng(0))
    whole = policy.posterior([0.5, 0.5])
    np.testing.assert_allclose(decision.posterior.mean, whole.mean[decision.shortlist], rtol=1e-9)
    np.testing.assert_allclose(decision.posterior.variance, whole.variance[decision.shortlist], rtol=1e-9)


def test_a_shortlist_of_all_arms_is_none() -> None:
    one, two = (taught(policy_of(shortlist=size, explore=0.0)) for size in (ARMS, 10 * ARMS))
    for policy in (one, two):
        decision, _ = policy.propose([0.1, 0.2], rng=np.random.default_rng(0))
        assert decision.shortlist is None
    assert list(map(to_dict, one.events)) == list(map(to_dict, two.events))


@pytest.mark.parametrize("identity", [False, True])
def test_batches_stretches_files_and_replays_decide_alike(identity: bool, tmp_path: Path) -> None:
    policy = taught(policy_of(identity=identity))
    policy.save(tmp_path / "policy")
    loaded, played = PFNTS.load(tmp_path / "policy"), PFNTS.load(tmp_path / "policy")
    X = np.random.default_rng(4).random((20, 2))
    rewards = np.random.default_rng(5).normal(size=(20, ARMS))
    in_turn, at_once = np.random.default_rng(6), np.random.default_rng(6)
    for x, two in zip(X[:3], loaded.decide_batch(X[:3], rng=at_once), strict=True):
        one, _ = policy.propose(x, rng=in_turn)
        assert one.index == two.index
        np.testing.assert_allclose(one.propensities, two.propensities, rtol=1e-9)
    by_one: list[Decision] = []
    own, other = np.random.default_rng(6), np.random.default_rng(6)
    for x, paid in zip(X, rewards, strict=True):
        by_one.append(policy.decide(x, rng=own))
        policy.update(by_one[-1], reward=paid[by_one[-1].index])
    index: list[int] = []
    while len(index) < 20:
        chosen, _ = played.play(X[len(index) :], rewards[len(index) :], rng=other)
        index += chosen.tolist()
    assert index == [decision.index for decision in by_one]


def test_no_arm_is_starved() -> None:
    policy, rng = policy_of(), np.random.default_rng(0)
    for _ in range(100):
        decision = policy.decide([0.5, 0.5], rng=rng)
        assert decision.propensities.min() >= EXPLORE / ARMS * (1 - 1e-9)
        policy.update(decision, reward=float(decision.index == 3))


def test_ten_thousand_candidates() -> None:
    policy, rng = taught(policy_of(arms=None)), np.random.default_rng(0)
    decision = policy.decide([0.5, 0.5], rng=rng, candidates=rng.random((10_000, 3)))
    assert decision.propensities.shape == (10_000,)
    assert decision.propensities.sum() == pytest.approx(1)
    assert policy.update(decision, reward=1.0) == "learned"


def test_scores_are_those_of_a_ridge_regression() -> None:
    # A second, slow way: all products written out, the penalty as rows of a least squares problem.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 5)) * [1, 2, 3, 4, 5] + 7
    X[:, 4] = 1.0  # constant
    X[rng.random(X.shape) < 0.05] = np.nan
    y = 100 + 10 * rng.normal(size=80)
    fit = RidgeScores.fit(X, np.zeros(80, dtype=np.int64), y, width=2, effects=0)

    def design(rows: Any) -> Any:
        scale = np.nanstd(X, axis=0)
        z = np.nan_to_num((rows - np.nanmean(X, axis=0)) / np.where(scale > 0, scale, 1.0))
        pairs = [(i, j) for i in range(5) for j in range(2, 5) if i < 2 or i <= j]
        return np.column_stack([np.ones(len(z)), z, *(z[:, i] * z[:, j] for i, j in pairs)])

    D, target = design(X), (y - y.mean()) / y.std()
    whole = np.concatenate([D, np.eye(D.shape[1])]), np.concatenate([target, np.zeros(D.shape[1])])
    coefficients = np.linalg.lstsq(*whole, rcond=None)[0]
    noise = np.var(target - D @ coefficients)
    new = design(X[:7])
    spread = np.sqrt(noise * np.einsum("ij,jk,ik->i", new, np.linalg.inv(D.T @ D + np.eye(D.shape[1])), new))
    expected = y.mean() + y.std() * (new @ coefficients + spread)
    np.testing.assert_allclose(fit.upper(X[:7], np.zeros(7, dtype=np.int64)), expected)


def test_of_many_products_those_are_kept_that_matter() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 60))
    y = X[:, 3] * X[:, 47] + 0.1 * rng.normal(size=400)
    fit = RidgeScores.fit(X, np.zeros(400, dtype=np.int64), y, width=30, effects=0)
    assert fit.products.shape == (2, 128)
    assert [3, 47] in fit.products.T.tolist()


def test_effects_of_arms_lift_what_features_do_not_say() -> None:
    rng = np.random.default_rng(0)
    arms = rng.integers(10, size=300)
    fit = RidgeScores.fit(
        rng.normal(size=(300, 2)), arms, (arms == 4) + 0.1 * rng.normal(size=300), width=2, effects=12
    )
    scores = fit.upper(np.zeros((10, 2)), np.arange(10))
    assert scores.argmax() == 4
    # An arm without rows is less certain than one with many, and a candidate is like it.
    unseen, candidate = fit.upper(np.zeros((2, 2)), np.array([11, -1]))
    assert unseen == candidate > np.median(scores)


def test_costs_count_before_the_shortlist_is_made() -> None:
    arms = {i: [float(i)] for i in range(ARMS)}
    dear = {arm: 0.0 if arm < 8 else 100.0 for arm in arms}
    policy = PFNTS(
        arms,
        backbone="linear",
        encoding=Features(shortlist=8, explore=0.0),
        rewards=Rewards(range=(0, ARMS), cost=dear),
    )
    rng = np.random.default_rng(0)
    for _ in range(20):
        decision = policy.decide([0.5], rng=rng)
        policy.update(decision, reward=float(decision.arm))
    assert decision.reason == "thompson"
    assert decision.shortlist is not None
    assert decision.shortlist.tolist() == list(range(8))
    assert decision.propensities.sum() == pytest.approx(1)


def test_a_budget_is_for_no_more_arms_than_the_shortlist_has() -> None:
    policy = PFNTS(
        {i: [float(i)] for i in range(ARMS)},
        backbone="linear",
        encoding=Features(shortlist=8),
        rewards=Rewards(cost=dict.fromkeys(range(ARMS), 1.0), budget=(10.0, 20)),
    )
    policy.update([[0.5]] * 10, arm=list(range(10)), reward=list(range(10)))
    with pytest.raises(ValueError, match="budget must be for no more arms than a shortlist has"):
        policy.decide([0.5], rng=np.random.default_rng(0))
