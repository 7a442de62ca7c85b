"""What the user knows: a range, costs, a budget."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from pfnts import PFNTS, Rewards, simulate
from pfnts.environments import Environment
from pfnts.environments.budgeted import BudgetedEnvironment, budgeted
from pfnts.events import History, Observed
from pfnts.events.event import to_dict
from pfnts.policies import make
from pfnts.policies.budget import affordable, price
from pfnts.policies.untried import open_questions

ARMS = ["a", "b", "c"]
KNOWN: dict[str, Any] = {
    "range": Rewards(range=(-5, 5)),
    "cost": Rewards(cost={"a": 0, "b": 0.1, "c": 0.4}),
    "budget": Rewards(cost={"a": 0, "b": 0.1, "c": 0.4}, budget=(12, 100)),
    "all": Rewards(range=(-5, 5), cost={"a": 0.1, "b": 0.2, "c": 0.4}, budget=(16, 100)),
}


def policy(rewards: Rewards, **options: Any) -> PFNTS:
    return PFNTS(ARMS, backbone="linear", rewards=rewards, **options)


def problem(rounds: int = 50, *, seed: int = 0) -> Environment:
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(rounds, 2))
    means = np.column_stack([X[:, 0], X[:, 1], np.full(rounds, 0.4)])
    return Environment("some", X, means, np.clip(means + 0.3 * rng.normal(size=means.shape), -5, 5))


def one_by_one(made: PFNTS, environment: Environment, *, seed: int = 1) -> list[Any]:
    rng, decisions = np.random.default_rng(seed), []
    for x, rewards in zip(environment.contexts, environment.rewards, strict=True):
        decision = made.decide(x, rng=rng)
        made.update(decision, reward=rewards[decision.index])
        decisions.append(decision)
    return decisions


@pytest.mark.parametrize("name", KNOWN)
def test_stretches_files_and_batches_decide_as_one_by_one(name: str, tmp_path: Path) -> None:
    environment = problem()
    slow, fast = policy(KNOWN[name]), policy(KNOWN[name])
    decisions = one_by_one(slow, environment)
    played = simulate(fast, environment, rng=np.random.default_rng(1))
    np.testing.assert_array_equal(played.arms, [decision.index for decision in decisions])
    np.testing.assert_allclose(played.propensities, [d.propensities for d in decisions], atol=1e-9)
    slow.save(tmp_path / "policy")
    loaded = PFNTS.load(tmp_path / "policy")
    probes = np.random.default_rng(2).uniform(size=(9, 2))
    together = loaded.decide_batch(probes, rng=np.random.default_rng(3))
    rng = np.random.default_rng(3)
    for probe, one in zip(probes, together, strict=True):
        twin = slow.decide(probe, rng=rng)
        assert (twin.arm, twin.id, twin.reason) == (one.arm, one.id, one.reason)
        np.testing.assert_allclose(twin.propensities, one.propensities, atol=1e-9)
    assert list(map(to_dict, loaded.events))[-1]["arm"] == list(map(to_dict, slow.events))[-1]["arm"]


@pytest.mark.parametrize("name", KNOWN)
def test_propensities_are_the_frequencies(name: str) -> None:
    made = policy(KNOWN[name])
    one_by_one(made, problem(40))
    x, rng = np.array([0.5, 0.45]), np.random.default_rng(7)
    # With a budget each decision of a batch changes the next.
    draws = (
        [made.propose(x, rng=rng)[0] for _ in range(100)]
        if KNOWN[name].budget
        else made.decide_batch(np.tile(x, (400, 1)), rng=rng)
    )
    expected = draws[0].propensities * len(draws)
    counts = np.bincount([draw.index for draw in draws], minlength=3)
    seen = expected > 1e-9
    assert not counts[~seen].any()
    if seen.sum() > 1:
        assert (
            stats.chisquare(counts[seen], expected[seen] * counts.sum() / expected[seen].sum()).pvalue > 1e-6
        )


def test_nothing_known_changes_nothing() -> None:
    plain, told = PFNTS(ARMS, backbone="linear"), policy(Rewards())
    one, two = one_by_one(plain, problem()), one_by_one(told, problem())
    np.testing.assert_array_equal([d.propensities for d in one], [d.propensities for d in two])
    assert isinstance(two[-1].posterior, type(one[-1].posterior))


def test_rewards_outside_the_range_are_refused_and_means_stay_inside() -> None:
    made = policy(Rewards(range=(0, 1)))
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(60, 2))
    made.update(X, arm=list(rng.choice(ARMS, 60)), reward=(rng.random(60) < X[:, 0]).astype(float))
    before = made.events
    decision = made.propose(X[0], rng=rng)[0]
    assert decision.posterior is not None
    for at in (X, 3 * X - 1):  # the linear model itself leaves the range out there
        posterior = made.posterior(at)
        low, high = posterior.interval(0.99)
        assert (low >= 0).all()
        assert (high <= 1).all()
        assert (posterior.mean > 0).all()
        assert (posterior.mean < 1).all()
    for call in (
        lambda: made.update(X[0], arm="a", reward=1.5),
        lambda: made.update(X[:2], arm=["a", "b"], reward=[0.5, -0.1]),
        lambda: made.learn({"x": [1.0], "arm": ["a"], "y": [2]}, action="arm", reward="y", context=["x"]),
    ):
        with pytest.raises(ValueError, match="reward must be from 0 to 1, the range that was given, got"):
            call()
    assert made.events == before


def test_open_questions_by_hand() -> None:
    history = History(["a", "b", "never"])
    for x, arm, value in [
        (0.0, "a", 1.0),
        (1.0, "a", 9.0),
        (2.0, "b", 4.0),
        (3.0, "a", 2.0),
        (9.0, "b", 3.0),
    ]:
        history.fold(Observed(context=[x], arm=arm, value=value))
    means = np.array([[1.5, 3.5, 0.0], [2.5, 9.0, 0.0]])
    untried, outlier, odds = open_questions(np.array([[1.1], [7.0]]), [0, 1, 2], history, means)
    # Of 5 contexts (and this one), none is nearer to 1.1 than a's 1.0; a's 1.0 is nearer than b's 2.0.
    np.testing.assert_allclose(untried, [[1 / 6, 2 / 6, 1.0], [2 / 6, 1 / 6, 1.0]])
    # From 7, a's 9 is the second nearest of its rows, and a third of them are as high; its 2, the nearest, is
    # less than the mean. None of b's paid more than 9.
    np.testing.assert_array_equal(outlier, [[9.0, 4.0, 0.0], [9.0, 9.0, 0.0]])
    np.testing.assert_allclose(odds, 0.05**2 * np.array([[9.0, 4.0, 0.0], [9 / 4, 0.0, 0.0]]))


def test_rewards_at_one_context_do_not_drown_their_average() -> None:
    # One of a hundred rewards at a context is one of a hundred, however large.
    history = History(["a"])
    for value in np.random.default_rng(0).normal(size=100):
        history.fold(Observed(context=[1.0], arm="a", value=float(value)))
    _, _, odds = open_questions(np.array([[1.0]]), [0], history, np.zeros((1, 1)))
    assert odds[0, 0] <= 0.05**2


def test_a_prize_in_a_corner_is_found_and_followed() -> None:
    # Arm b pays 20 times as much in a twentieth of the contexts, and a little less elsewhere.
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(700, 2))
    prize = (X > 0.776).all(axis=1)
    means = np.column_stack([np.full(700, 1.2), np.where(prize, 20.0, 1.0)])
    environment = Environment("corner", X, means, means + 0.01 * rng.normal(size=means.shape))
    options: dict[str, Any] = {"backbone": "linear", "encoding": "disjoint"}
    found = simulate(
        PFNTS(2, rewards=Rewards(range=(0, 21)), **options), environment, rng=np.random.default_rng(1)
    )
    assert found.arms[400:][prize[400:]].mean() > 0.5
    lost = simulate(PFNTS(2, **options), environment, rng=np.random.default_rng(1))
    assert found.total_regret < lost.total_regret / 2


def test_reward_less_cost_is_what_counts() -> None:
    # Costs shift posteriors: the same decisions as with rewards that are smaller by the cost.
    environment = problem()
    costs = np.array([0.0, 0.1, 0.4])
    net = Environment("net", environment.contexts, environment.means, environment.rewards - costs)
    # A layout with a model for each arm: there, and only there, a shift of an arm's rewards shifts its mean.
    options: dict[str, Any] = {"encoding": "disjoint", "estimator": "subclt"}
    gross_policy = policy(Rewards(cost=dict(zip(ARMS, costs, strict=True))), **options)
    gross, less = one_by_one(gross_policy, environment), one_by_one(policy(Rewards(), **options), net)
    agree = np.mean([one.arm == two.arm for one, two in zip(gross, less, strict=True)])
    assert agree > 0.8
    explained = gross_policy.explain([0.5, 0.5])
    assert {arm.arm: arm.deducted for arm in explained.arms} == {"a": 0.0, "b": 0.1, "c": 0.4}
    shifted = gross_policy.posterior([0.5, 0.5]).shifted(costs).best_arm_probabilities()
    assert {arm.arm: arm.best for arm in explained.arms} == dict(zip(ARMS, shifted.tolist(), strict=True))


def test_a_budget_is_never_exceeded_whatever_else_has_a_share_in_the_traffic() -> None:
    rng = np.random.default_rng(0)
    costs = {"a": 0.05, "b": 0.3, "c": 1.0}
    for total in (5.0, 100.0):
        made = make(
            "pfn-ts", arms=ARMS, backbone="linear", cost=costs, budget=(total, 100), explore=0.2, warmup=5
        )
        spent = 0.0
        for _ in range(100):
            decision = made.decide(rng.uniform(size=2), rng=rng)
            spent += costs[str(decision.arm)]
            assert spent <= total + 1e-9
            if rng.random() < 0.7:
                made.update(decision, reward=rng.normal() + (decision.arm == "c"))
        assert spent > 0.8 * total or total == 100.0
        assert made.decide([0.5, 0.5], rng=rng).arm == "a" or total == 100.0  # more rounds than were said


def test_a_batch_within_a_budget_counts_its_own_decisions_and_is_all_or_none() -> None:
    made = policy(Rewards(cost={"a": 0, "b": 1, "c": 1}, budget=(3, 50)))
    rng = np.random.default_rng(0)
    decisions = made.decide_batch(rng.uniform(size=(50, 2)), rng=rng)
    assert sum(decision.arm != "a" for decision in decisions) == 3
    before, state = made.events, rng.bit_generator.state
    masks = np.ones((3, 3), dtype=bool)
    masks[2] = False
    with pytest.raises(ValueError, match="eligible must leave"):
        made.decide_batch(rng.uniform(size=(3, 2)), rng=np.random.default_rng(0), eligible=masks)
    assert made.events == before
    assert rng.bit_generator.state != state  # the contexts were drawn from it


def test_price_of_a_budget_against_a_linear_programme() -> None:
    rng = np.random.default_rng(0)
    for _ in range(5):
        problem = budgeted(horizon=200, rng=rng, share=float(rng.uniform(0.02, 0.6)))
        values = problem.environment.means - problem.costs
        rate = price(values, problem.costs, per_round=problem.budget / 200)
        dual = (values - rate * problem.costs).max(axis=1).sum() + rate * problem.budget
        assert dual == pytest.approx(problem.optimum, rel=1e-6)  # strong duality
    assert price(values, problem.costs, per_round=1.0) == 0.0
    assert price(values, np.ones(3), per_round=0.5) == 0.0  # nothing cheaper is there
    np.testing.assert_array_equal(affordable(np.array([1.0, 2.0]), left=0.0, rounds=5), [True, False])


def test_a_budget_is_spent_where_it_earns_most() -> None:
    # Calls pay off with three in four, and there is money for one in seven: it should go to the best of them.
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(300, 2))
    means = np.column_stack([np.ones(300), 1 + 4 * X[:, 0]])
    problem = BudgetedEnvironment(
        Environment("calls", X, means, means + 0.3 * rng.normal(size=means.shape)), np.array([0.0, 1.0]), 43.0
    )
    options: dict[str, Any] = {"backbone": "linear", "encoding": "disjoint"}
    known = Rewards(cost={0: 0, 1: 1}, budget=(43, 300))
    aware = simulate(PFNTS(2, rewards=known, **options), problem.environment, rng=np.random.default_rng(1))
    assert problem.spent(aware.arms) <= 43
    nobody = problem.earned(np.zeros(300, dtype=np.int64))
    first_come = (means[:, 1] - 1 > means[:, 0]).astype(np.int64)
    first_come[np.cumsum(first_come) > 43] = 0
    won = problem.earned(aware.arms) - nobody
    assert won > 1.3 * (problem.earned(first_come) - nobody)
    assert won > 0.8 * (problem.optimum - nobody)


def test_what_is_not_known_properly_is_refused() -> None:
    for words, options in (
        ("range must be the least and the largest", {"range": (1, 1)}),
        ("range must be the least and the largest", {"range": (0, np.nan)}),
        ("range must be two numbers", {"range": 3}),
        ("cost of 'a' must be a number from 0 on, got -1", {"cost": {"a": -1}}),
        ("cost of 'a' must be a number from 0 on, got 'x'", {"cost": {"a": "x"}}),
        ("budget must come with cost", {"budget": (3, 10)}),
        (r"budget must be \(total, rounds\)", {"cost": {"a": 1}, "budget": (3, 0)}),
        (r"budget must be \(total, rounds\)", {"cost": {"a": 1}, "budget": (-3, 10)}),
    ):
        with pytest.raises(ValueError, match=words):
            Rewards(**options)
    with pytest.raises(
        ValueError, match="cost must be given for every arm, 0 where it is free; 'c' has none"
    ):
        policy(Rewards(cost={"a": 1, "b": 2}))
    made = policy(Rewards(cost={"a": 1, "b": 2, "c": 0, "d": 4}))
    with pytest.raises(ValueError, match="'e' has none"):
        made.add_arm("e")
    made.add_arm("d")
    assert made.arms == ("a", "b", "c", "d")
