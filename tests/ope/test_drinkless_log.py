"""The trial's published table, where its file is at hand, and the stand-in's likeness to it."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from numpy.random import Generator

from pfnts.environments.drinkless import ARMS, PROPENSITIES, draw_people, expected_value, mean_rewards
from pfnts.ope import BadLogError, read_drinkless, replay, simulated_drinkless, snips, weights
from pfnts.policies import make

needs_file = pytest.mark.skipif(
    not os.environ.get("PFNTS_DATA") or not (Path(os.environ["PFNTS_DATA"]) / "drinkless.csv.gz").exists(),
    reason="PFNTS_DATA names no folder with drinkless.csv.gz (published at https://osf.io/w3szp)",
)
RATES = {"none": 0.0363, "standard": 0.1308, "new": 0.1221}
COUNTS = {"none": 4212, "standard": 3112, "new": 3146}


@needs_file
def test_trial_has_the_published_table() -> None:
    log = read_drinkless()
    assert (log.rounds, log.n_groups) == (10_470, 349)
    assert log.rewards.mean() == pytest.approx(0.0902, abs=5e-5)
    assert log.times is not None
    assert log.clusters is not None
    assert (np.diff(log.times) >= 0).all()
    assert (np.bincount(log.clusters) == 30).all()
    np.testing.assert_array_equal(log.clusters[:349], log.clusters[349:698])
    np.testing.assert_allclose(log.contexts.mean(0), 0, atol=1e-12)
    np.testing.assert_allclose(log.contexts.std(0), 1)
    for k, arm in enumerate(log.arms):
        assert (log.actions == k).sum() == COUNTS[str(arm)]
        assert set(log.propensities[log.actions == k]) == {PROPENSITIES[ARMS.index(str(arm))]}


@needs_file
def test_constant_policies_have_the_published_rates() -> None:
    log = read_drinkless()
    for k, arm in enumerate(log.arms):
        value = snips(log, np.tile(np.eye(3)[k], (log.rounds, 1))).value
        assert value == pytest.approx(RATES[str(arm)], abs=5e-5)


@needs_file
def test_logging_policy_has_the_overall_rate() -> None:
    log = read_drinkless()
    assert log.design is not None
    assert snips(log, log.design).value == pytest.approx(log.rewards.mean(), abs=1e-15)


@needs_file
@pytest.mark.parametrize("policy", ["ts", "lin-ts", "uniform"])
def test_weights_never_exceed_ten_thirds(policy: str, rng: Generator) -> None:
    log = read_drinkless().first(40)
    done = replay(make(policy, arms=log.arms), log, rng=rng)
    assert weights(log, done.propensities).max() <= 10 / 3 + 1e-12


def test_missing_file_says_where_it_is_published(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PFNTS_DATA", raising=False)
    with pytest.raises(BadLogError, match=r"give --data or set PFNTS_DATA .*osf.io/w3szp"):
        read_drinkless()
    with pytest.raises(BadLogError, match=r"there is none in .*osf.io/w3szp"):
        read_drinkless(tmp_path)


def test_stand_in_resembles_the_trial() -> None:
    for k, rate in enumerate(RATES.values()):
        value = expected_value(lambda contexts, k=k: np.tile(np.eye(3)[k], (len(contexts), 1)))  # type: ignore[misc]
        assert value == pytest.approx(rate, rel=0.15)


def test_expected_value_is_the_mean_over_many_people(rng: Generator) -> None:
    def policy(contexts: np.ndarray) -> np.ndarray:
        heavy = (contexts[:, :1] > 0).astype(float)
        return np.hstack([0.2 * np.ones_like(heavy), 0.8 * (1 - heavy), 0.8 * heavy])

    people = draw_people(40_000, rng=rng)
    values = []
    for day in (1.0, 2.0):
        means = mean_rewards(people.covariates, people.habits, np.full(40_000, day))
        contexts = np.column_stack([people.covariates, np.full(40_000, (day - 15.5) / 8.66)])
        values.append((policy(contexts) * means).sum(1))
    found = np.mean(values, axis=0)
    assert expected_value(policy, days=2) == pytest.approx(found.mean(), abs=5 * found.std() / 200)


def test_actions_are_drawn_with_the_trial_s_probabilities(rng: Generator) -> None:
    log = simulated_drinkless(rng=rng, people=300, days=20)
    share = np.bincount(log.actions) / log.rounds
    np.testing.assert_allclose(share, PROPENSITIES, atol=5 * np.sqrt(0.25 / log.rounds))
