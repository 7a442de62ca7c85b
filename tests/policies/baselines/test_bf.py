"""BFTS against bartz called directly, and the bookkeeping of its draws."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.random import Generator

from pfnts.environments.synthetic import friedman1
from pfnts.policies import make

pytest.importorskip("bartz")
from pfnts.policies.baselines.bart import BartFit, BartSettings, Scale
from pfnts.policies.rules import Thompson

# One size of table and of forest for all fits, so that they share what is compiled.
P = 5
SMALL = BartSettings(trees=30, burn_in=100, draws=100, chains=2, smallest=512)
R = SMALL.total


def small_fit(X: np.ndarray, y: np.ndarray, *, scale: Scale | None = None, seed: int = 0) -> BartFit:
    return BartFit(X, y, settings=SMALL, scale=Scale.of(y) if scale is None else scale, seed=seed)


def test_mean_and_interval_agree_with_bartz_called_directly() -> None:
    from bartz import Bart, SparseConfig

    rng = np.random.default_rng(0)
    X, queries = rng.random((500, P)), rng.random((64, P))
    y = friedman1(X) + rng.normal(size=500)
    ours = small_fit(X, y, seed=1).draws(queries).T

    def direct(seed: int) -> np.ndarray:
        fit = Bart(
            X.T.astype(np.float32),
            y.astype(np.float32),
            sparse=SparseConfig(theta=1.0),
            num_trees=30,
            n_burn=100,
            n_save=100,
            num_chains=2,
            num_chain_devices=None,
            printevery=None,
            seed=seed,
            init_kw={
                "p_nonterminal": SMALL.split_probabilities,
                "min_points_per_decision_node": None,
            },
        )
        return np.asarray(fit.predict(queries.T.astype(np.float32), kind="mean_samples"))

    theirs, again = direct(2), direct(3)
    assert ours.shape == theirs.shape == (R, 64)
    sd = theirs.std(axis=0)
    assert ours.std(axis=0).mean() == pytest.approx(sd.mean(), rel=0.25)
    # Chains this short differ by most of a posterior sd; ours may differ from theirs as theirs do.
    for summary in (np.mean, lambda draws, axis: np.quantile(draws, [0.05, 0.95], axis=axis)):
        difference, usual = (
            np.abs((summary(other, axis=0) - summary(theirs, axis=0)) / sd).mean() for other in (ours, again)
        )
        assert difference < 1.6 * usual, (difference, usual)
    truth = friedman1(queries)
    inside = (np.quantile(ours, 0.05, axis=0) < truth) & (truth < np.quantile(ours, 0.95, axis=0))
    assert inside.mean() > 0.7


def test_fit_follows_the_units_of_contexts_and_rewards(rng: Generator) -> None:
    # Powers of two change no digit, so that the chains are the same.
    X, y = rng.random((60, P)), rng.normal(size=60)
    plain = small_fit(X, y).draws(X)
    np.testing.assert_allclose(small_fit(8 * X, 1024 * y).draws(8 * X), 1024 * plain, rtol=1e-6)


def test_large_offsets_lose_no_precision(rng: Generator) -> None:
    X, y = rng.random((60, P)), rng.normal(size=60)
    X[:, 1:] = 0.0
    plain, moved = small_fit(X, y).draws(X), small_fit(1e6 + X, 1e7 + y).draws(1e6 + X) - 1e7
    assert np.corrcoef(plain.mean(axis=1), moved.mean(axis=1))[0, 1] > 0.5
    assert moved.std() == pytest.approx(plain.std(), rel=0.5)


def test_missing_values_have_a_place_of_their_own(rng: Generator) -> None:
    X = rng.random((200, P))
    X[:100, 0] = np.nan
    y = np.where(np.isnan(X[:, 0]), 5.0, 0.0) + 0.1 * rng.normal(size=200)
    found = (
        small_fit(X, y)
        .draws(np.array([[first, 0.5, 0.5, 0.5, 0.5] for first in (np.nan, 0.3, 0.9)]))
        .mean(axis=1)
    )
    np.testing.assert_allclose(found, [5, 0, 0], atol=1.0)


def test_equal_rewards_take_the_reach_of_all_rewards() -> None:
    X = np.random.default_rng(0).random((5, P))
    constant = small_fit(X, np.ones(5)).draws(X[:2])
    np.testing.assert_array_equal(constant, np.ones((2, R)))
    unsure = small_fit(X, np.ones(5), scale=Scale(0.5, 0.5)).draws(X[:2])
    assert (unsure.std(axis=1) > 0.01).all()


def test_equal_contexts_and_single_rows_are_fitted() -> None:
    X, y = np.full((6, P), 0.3), np.array([0.0, 1.0, 2.0, 0.0, 1.0, 2.0])
    draws = small_fit(X, y).draws(X[:1])
    assert abs(draws.mean() - 1.0) < 1.0
    assert np.isfinite(small_fit(X[:1], y[:1], scale=Scale.of(y)).draws(X[:1])).all()


def test_constant_columns_are_never_split(rng: Generator) -> None:
    X, y = rng.random((60, P)), rng.normal(size=60)
    X[:, 3:] = 0.5
    queries = np.tile(X[0], (5, 1))
    queries[:, 3:] = rng.random((5, 2))
    draws = small_fit(X, y).draws(queries)
    np.testing.assert_array_equal(draws, np.tile(draws[0], (5, 1)))
    assert draws.std() > 0


def test_draws_are_those_that_bartz_predicts(rng: Generator) -> None:
    X, y = rng.random((200, P)), rng.normal(size=200)
    X[rng.random(X.shape) < 0.1] = np.nan
    fit, scale, queries = (
        small_fit(X, y, seed=3),
        Scale.of(y),
        np.concatenate([X, 3 * rng.random((20, P)) - 1]),
    )
    same = fit._sample((y - scale.centre) / scale.reach, fit._scaled(X), 3)
    slow = np.asarray(same.predict(fit._scaled(queries).T, kind="latent_samples"))
    np.testing.assert_allclose(fit.draws(queries), scale.centre + scale.reach * slow.T, atol=1e-5)


def test_queries_of_any_number_are_answered_row_by_row(rng: Generator) -> None:
    X, y = rng.random((60, P)), rng.normal(size=60)
    fit, queries = small_fit(X, y), rng.random((75, P))
    together = fit.draws(queries)
    assert together.shape == (75, R)
    for i in (0, 63, 64, 74):
        np.testing.assert_array_equal(fit.draws(queries[i : i + 1])[0], together[i])
    assert fit.draws(queries[:0]).shape == (0, R)


def taught(rng: Generator, n: int = 40, **options: Any) -> tuple[Any, np.ndarray]:
    """A policy with n rewards of two arms, and their contexts."""
    policy = make("bf-ts", arms=2, bart=SMALL, **options)
    X = rng.random((n, P))
    policy.update(X, arm=[0, 1] * (n // 2), reward=rng.normal(size=n))
    return policy, X


def arm_draws(policy: Any, x: np.ndarray) -> np.ndarray:
    """Draws (2, R) of the arms at a context."""
    return np.asarray(policy.posterior(x).points.T)


def test_propensities_are_the_share_of_pairs_of_draws(rng: Generator) -> None:
    policy, X = taught(rng)
    decision = policy.decide(X[0], rng=rng)
    first, second = arm_draws(policy, X[0])
    share = (second[None, :] > first[:, None]).mean()
    np.testing.assert_allclose(decision.propensities, [1 - share, share], atol=1e-9)
    np.testing.assert_allclose(decision.posterior.mean, [first.mean(), second.mean()])
    np.testing.assert_allclose(decision.posterior.variance, [first.var(), second.var()])


def test_a_decision_compares_one_draw_of_each_arm_picked_by_its_uniforms(rng: Generator) -> None:
    policy, X = taught(rng)
    first, second = arm_draws(policy, X[0])
    uniforms = rng.random((50, 3))
    mask = np.ones((50, 2), dtype=bool)
    choices = Thompson()(policy.posterior(np.tile(X[0], (50, 1))), mask, uniforms, None)
    picked = (uniforms * R).astype(int)
    np.testing.assert_array_equal(choices.index, second[picked[:, 1]] > first[picked[:, 0]])


def test_many_contexts_are_answered_as_one_by_one(rng: Generator) -> None:
    policy, _ = taught(rng)
    contexts = rng.random((150, P))
    together = policy.decide_batch(contexts, rng=np.random.default_rng(2))
    own = np.random.default_rng(2)
    singly = [policy.decide(context, rng=own) for context in contexts]
    assert [d.index for d in together] == [d.index for d in singly]
    np.testing.assert_array_equal([d.propensities for d in together], [d.propensities for d in singly])
    np.testing.assert_array_equal(policy.posterior(contexts).mean[149], singly[-1].posterior.mean)


def test_rows_up_to_the_next_refit_change_no_answer(rng: Generator) -> None:
    policy, X = taught(rng, refresh=1.5)
    before = policy.posterior(X)
    # 28 and 42 are refresh points: one row changes nothing, the second does.
    policy.update(X[0], arm=0, reward=9.0)
    np.testing.assert_array_equal(policy.posterior(X).mean, before.mean)
    np.testing.assert_array_equal(policy.posterior(X).size, before.size)
    policy.update(X[0], arm=0, reward=9.0)
    assert (policy.posterior(X).mean[:, 0] != before.mean[:, 0]).any()
    assert policy.posterior(X[0]).size.tolist() == [22, 20]


def test_saved_settings_come_back(rng: Generator, tmp_path: Path) -> None:
    policy, X = taught(rng, refresh=1.5)
    policy.save(tmp_path / "policy")
    loaded = type(policy).load(tmp_path / "policy")
    assert loaded.settings == policy.settings
    np.testing.assert_array_equal(loaded.posterior(X).mean, policy.posterior(X).mean)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"trees": 0}, "trees must be at least 1, got 0"),
        ({"burn_in": -1}, "burn_in must not be negative, got -1"),
        ({"decay": 1.0}, r"decay must be between 0 and 1, got 1\.0"),
    ],
)
def test_settings_are_checked(options: dict[str, float], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        BartSettings(**options)


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "bartz", None)
    for name in ("pfnts.policies.baselines.bart", "pfnts.policies.baselines.bf_ts"):
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(ImportError, match=r"pfnts\[baselines\]") as caught:
        import_module("pfnts.policies.baselines.bf_ts")
    assert isinstance(caught.value.__cause__, ImportError)
