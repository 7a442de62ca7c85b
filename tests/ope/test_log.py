"""What a log can do by itself."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.random import Generator

from pfnts.ope import Log, simulated_drinkless, with_identity


def test_resampling_draws_people_whole_and_in_order(rng: Generator) -> None:
    log = simulated_drinkless(rng=rng, people=12, days=4)
    marked = replace(log, rewards=np.arange(log.rounds, dtype=np.float64))
    drawn = marked.resampled(rng=rng)
    assert drawn.rounds == log.rounds
    assert drawn.times is not None
    assert drawn.clusters is not None
    assert drawn.origins is not None
    assert log.clusters is not None
    assert (np.diff(drawn.times) >= 0).all()
    for person in range(12):
        mine = drawn.clusters == person
        (origin,) = set(drawn.origins[mine].tolist())
        np.testing.assert_array_equal(drawn.rewards[mine], marked.rewards[log.clusters == origin])
    assert len(set(drawn.origins.tolist())) < 12


def test_resampling_rounds_where_there_are_no_people(five_rows: Log, rng: Generator) -> None:
    drawn = five_rows.resampled(rng=rng)
    assert drawn.rounds == 5
    assert set(drawn.rewards) <= set(five_rows.rewards)


def test_copies_of_a_person_are_new_people(rng: Generator) -> None:
    drawn = simulated_drinkless(rng=rng, people=12, days=4).resampled(rng=rng)
    assert drawn.n_groups == 12
    assert with_identity(drawn, "one-hot").contexts.shape[1] == 6 + 12


def test_standardising_leaves_missing_values_and_constants(five_rows: Log) -> None:
    contexts = np.column_stack([[1.0, 2, 3, 4, np.nan], np.full(5, 0.1)])
    done = replace(five_rows, contexts=contexts, features=("x", "c")).standardized().contexts
    assert np.isnan(done[4, 0])
    assert done[:4, 0].mean() == pytest.approx(0)
    assert done[:4, 0].std() == pytest.approx(1)
    assert (done[:, 1] == 0).all()


def test_codes_tell_people_apart_and_stay_with_them(rng: Generator) -> None:
    log = simulated_drinkless(rng=rng, people=349, days=2)
    coded = with_identity(log, "code")
    assert coded.contexts.shape[1] == 6 + 3
    codes = coded.contexts[:, 6:]
    np.testing.assert_array_equal(codes[:349], codes[349:])
    assert len(np.unique(codes[:349], axis=0)) == 349
    np.testing.assert_array_equal(with_identity(log.first(20), "code").contexts[:20], coded.contexts[:20])


def test_first_people(rng: Generator) -> None:
    log = simulated_drinkless(rng=rng, people=12, days=4)
    assert log.first(3).rounds == 12
    assert log.first(3).n_groups == 3
    with pytest.raises(ValueError, match="people must be between 1 and the 12 of the log, got 13"):
        log.first(13)


def test_fingerprint_notices_every_change(five_rows: Log) -> None:
    others = [
        replace(five_rows, rewards=five_rows.rewards + 1e-12),
        replace(five_rows, arms=("a", "c")),
        replace(five_rows, clusters=np.arange(5)),
        five_rows.take([1, 0, 2, 3, 4]),
    ]
    assert len({log.fingerprint() for log in [five_rows, *others]}) == 5
    assert replace(five_rows).fingerprint() == five_rows.fingerprint()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rewards": np.ones(4)}, "must have one entry for each of 4 rounds"),
        ({"rewards": np.array([1, 2, 3, 4, np.inf])}, "rewards must be finite"),
        ({"actions": np.array([0, 1, 2, 0, 0])}, "positions in the 2 arms"),
        ({"propensities": np.array([0.5, 0.5, 0.0, 0.5, 0.5])}, "propensities must be above 0"),
        ({"design": np.full((5, 2), 0.6)}, "each row summing to one"),
        ({"features": ("x", "y")}, r"contexts must be \(T, 2\)"),
        ({"arms": ("a", "a")}, "distinct"),
    ],
)
def test_log_that_cannot_be_is_refused(five_rows: Log, changes: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        replace(five_rows, **changes)


def test_identity_needs_people(five_rows: Log) -> None:
    with pytest.raises(ValueError, match='identity must be "none" for a log without clusters'):
        with_identity(five_rows, "one-hot")
    with pytest.raises(ValueError, match="identity must be one of none, one-hot, code; got 'hash'"):
        with_identity(five_rows, "hash")  # type: ignore[arg-type]
    assert with_identity(five_rows, "none") is five_rows
