"""Fits of prefixes: made once, kept while there is room, asked in few passes."""

from __future__ import annotations

import gc
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np
import pytest
from numpy.random import Generator

from pfnts.backbones.prefix_fits import LRUCache, RefittedSequence


@dataclass
class Answer:
    mean: np.ndarray

    def quantiles(self, levels: np.ndarray) -> np.ndarray:
        return self.mean + levels[:, None]


@dataclass
class Model:
    """Predicts the mean target plus the query's first feature, and takes a byte per row."""

    log: Log
    level: float
    nbytes: int

    def predict(self, queries: np.ndarray) -> Answer:
        self.log.passes.append((self.nbytes, len(queries)))
        return Answer(self.level + queries[:, 0])


@dataclass
class Log:
    fitted: list[int] = field(default_factory=list)
    passes: list[tuple[int, int]] = field(default_factory=list)

    def fit(self, X: np.ndarray, y: np.ndarray) -> Model:
        self.fitted.append(len(y))
        return Model(self, float(y.mean()), len(y))


@pytest.fixture
def log() -> Log:
    return Log()


def history(log: Log, n: int, *, fits: LRUCache, at_once: int = 1000) -> RefittedSequence:
    return RefittedSequence(np.zeros((n, 1)), np.arange(n), keep=(), fit=log.fit, fits=fits, at_once=at_once)


def test_after_more_rows_only_the_newest_size_is_fitted(log: Log) -> None:
    sequence = history(log, 8, fits=LRUCache(capacity=100))
    sequence.means([[0.0]], [2, 4, 8])
    assert sorted(log.fitted) == [2, 4, 8]
    sequence.append(np.zeros((8, 1)), np.arange(8, 16))
    means = sequence.means([[0.0]], [2, 4, 8, 16])
    assert sorted(log.fitted) == [2, 4, 8, 16]
    np.testing.assert_array_equal(means[:, 0], [0.5, 1.5, 3.5, 7.5])


def test_each_size_answers_all_queries_in_one_pass(log: Log, rng: Generator) -> None:
    sequence = history(log, 8, fits=LRUCache(capacity=100))
    queries = rng.standard_normal((50, 1))
    sequence.means(queries, [4, 8, 4])
    assert sorted(log.passes) == [(4, 50), (8, 50)]


def test_passes_are_cut_to_the_memory_allowed(log: Log, rng: Generator) -> None:
    queries = rng.standard_normal((50, 1))
    whole = history(log, 8, fits=LRUCache(capacity=100)).means(queries, [8])
    log.passes.clear()
    cut = history(log, 8, fits=LRUCache(capacity=100), at_once=20)
    np.testing.assert_array_equal(cut.means(queries, [8]), whole)
    assert [count for _, count in log.passes] == [20, 20, 10]
    np.testing.assert_array_equal(cut.quantiles(queries, 8, [0.5]), whole + 0.5)


@pytest.mark.parametrize("sizes", [[2, 8, 4], [2, 4, 8], [8, 4, 8]])
def test_quantiles_of_the_last_size_come_from_the_pass_of_the_means(
    log: Log, rng: Generator, sizes: list[int]
) -> None:
    sequence = history(log, 8, fits=LRUCache(capacity=100))
    said = sequence.predict(rng.standard_normal((5, 1)), sizes=sizes, levels=[0.25, 0.75])
    assert len(log.passes) == len(set(sizes))
    np.testing.assert_array_equal(said.quantiles, said.means[-1] + np.array([[0.25], [0.75]]))
    assert said.mean_sd is None


def test_least_recently_used_fits_make_room(log: Log) -> None:
    fits = LRUCache(capacity=20)
    sequence = history(log, 16, fits=fits)
    for size in (4, 8, 4, 12):  # 12 needs the room of 8, which was asked before 4
        sequence.means([[float(size)]], [size])
    assert fits.held == 16
    log.fitted.clear()
    sequence.means([[0.0]], [4, 12])
    assert log.fitted == []
    sequence.means([[0.0]], [8])
    assert log.fitted == [8]


def test_question_for_more_than_fits_keeps_the_largest(log: Log) -> None:
    sequence = history(log, 16, fits=LRUCache(capacity=25))
    for query in (0.0, 1.0, 2.0):
        sequence.means([[query]], [2, 4, 8, 16])
    assert log.fitted.count(16) == log.fitted.count(8) == 1
    assert log.fitted.count(4) == log.fitted.count(2) == 3


def test_fit_larger_than_the_cache_is_used_and_not_kept(log: Log) -> None:
    fits = LRUCache(capacity=10)
    sequence = history(log, 16, fits=fits)
    sequence.means([[0.0]], [4])
    assert sequence.means([[0.0]], [16, 2]).shape == (2, 1)
    assert fits.held == 6


def test_histories_share_the_room_and_leave_it_when_they_end(log: Log) -> None:
    fits = LRUCache(capacity=100)
    one, other = history(log, 8, fits=fits), history(log, 8, fits=fits)
    for sequence in (one, other):
        sequence.means([[0.0]], [4, 8])
    assert sorted(log.fitted) == [4, 4, 8, 8]
    assert fits.held == 24
    del one, sequence
    gc.collect()
    assert fits.held == 12
    other.means([[1.0]], [4, 8])
    assert len(log.fitted) == 4


def test_threads_may_share_the_cache(log: Log) -> None:
    fits, interval = LRUCache(capacity=20), sys.getswitchinterval()
    model = Model(log, 0.0, 1)

    def ask(seed: int) -> None:
        for size in np.random.default_rng(seed).integers(0, 60, 40_000).tolist():
            assert fits.find((0, size), question=fits.question(), fit=lambda: model) is model

    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as threads:
            list(threads.map(ask, range(4)))
    finally:
        sys.setswitchinterval(interval)
    assert fits.held == 20
