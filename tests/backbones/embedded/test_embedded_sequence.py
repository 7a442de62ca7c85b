from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.random import Generator

from pfnts.backbones.embedded import EmbeddedBackbone
from pfnts.backbones.embedded import sequence as module
from pfnts.backbones.embedded.model import CausalPFN
from pfnts.backbones.embedded.normalisation import Normalisation
from pfnts.backbones.embedded.regressions import opinions_on
from pfnts.backbones.embedded.sequence import EmbeddedSequence

SIZES = [1, 2, 7, 16, 31, 40, 47]


def history(rng: Generator, n: int = 48, features: int = 3) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    X = rng.standard_normal((n, features))
    return X, X[:, 0] + rng.standard_normal(n), rng.standard_normal((6, features))


@pytest.mark.parametrize("queries", [1, 6], ids=["all prefixes in one batch", "a slice for each prefix"])
def test_a_row_leaves_smaller_sizes_alike_bit_for_bit(
    small_network: CausalPFN, rng: Generator, queries: int
) -> None:
    X, y, Q = history(rng)  # normalised by the first 32 rows
    changed_X, changed_y = X.copy(), y.copy()
    changed_X[40] += 1.0
    changed_y[40] -= 3.0
    before = EmbeddedSequence(small_network, X, y)
    after = EmbeddedSequence(small_network, changed_X, changed_y)
    sizes = [*range(1, 41), 48]
    old, new = before.means(Q[:queries], sizes), after.means(Q[:queries], sizes)
    np.testing.assert_array_equal(old[:-1], new[:-1])
    assert (old[-1] != new[-1]).all()
    levels = [0.1, 0.5, 0.9]
    np.testing.assert_array_equal(
        before.quantiles(Q[:queries], 40, levels), after.quantiles(Q[:queries], 40, levels)
    )


def test_cache_agrees_with_the_pass_used_in_training(small_network: CausalPFN, rng: Generator) -> None:
    X, y, Q = history(rng)
    X[5, 1] = np.nan
    sequence = EmbeddedSequence(small_network, X, y)
    means = sequence.means(Q, SIZES)
    middle = sequence.quantiles(Q, 31, [0.5])[0]
    norm = Normalisation.of(torch.from_numpy(X[:32]), torch.from_numpy(y[:32]))
    identity = torch.randn(1, 3, 24, generator=torch.Generator().manual_seed(0))
    for i, query in enumerate(Q):
        for j, size in enumerate(SIZES):
            rows = norm.contexts(torch.from_numpy(np.vstack([X[:size], query])))[None].float()
            targets = norm.targets(torch.from_numpy(np.append(y[:size], 0.0)))[None].float()
            asked, opinions = [range(size, size + 1)], opinions_on(rows, targets)
            mean, quantiles = small_network(rows, targets, identity, asked, opinions)
            assert means[j, i] == pytest.approx(float(mean * norm.y_scale + norm.y_centre), abs=1e-4)
            if size == 31:
                median = quantiles[0, 0].sort().values[49] * norm.y_scale + norm.y_centre
                assert middle[i] == pytest.approx(float(median), abs=1e-4)


@pytest.mark.parametrize("shipped", [False, True], ids=["small network", "shipped network"])
def test_appending_in_pieces_equals_all_at_once(
    small_network: CausalPFN, rng: Generator, shipped: bool
) -> None:
    X, y, Q = history(rng, n=90)

    def start(X: np.ndarray, y: np.ndarray) -> EmbeddedSequence:
        return EmbeddedBackbone().sequence(X, y) if shipped else EmbeddedSequence(small_network, X, y)

    pieces = start(X[:1], y[:1])
    for begin, end in [(1, 2), (2, 3), (3, 31), (31, 33), (33, 64), (64, 70), (70, 90)]:
        pieces.append(X[begin:end], y[begin:end])
        pieces.means(Q[:2], [max(1, begin // 2), end])
    sizes = [*SIZES, 64, 90]
    np.testing.assert_allclose(pieces.means(Q, sizes), start(X, y).means(Q, sizes), atol=1e-4)


def test_one_query_equals_many(small_network: CausalPFN, rng: Generator) -> None:
    X, y, Q = history(rng)
    sequence = EmbeddedSequence(small_network, X, y)
    alone = np.concatenate([sequence.means(Q[i : i + 1], SIZES) for i in range(len(Q))], axis=1)
    np.testing.assert_allclose(sequence.means(Q, SIZES), alone, atol=1e-4)


@pytest.mark.parametrize(("limit", "value"), [("ROWS_AT_ONCE", 5), ("CELLS_AT_ONCE", 20)])
def test_how_the_work_is_cut_up_does_not_matter(
    small_network: CausalPFN, rng: Generator, monkeypatch: pytest.MonkeyPatch, limit: str, value: int
) -> None:
    X, y, Q = history(rng)
    whole = EmbeddedSequence(small_network, X, y).means(Q[:4], SIZES)
    monkeypatch.setitem(getattr(module, limit), "cpu", value)
    np.testing.assert_allclose(EmbeddedSequence(small_network, X, y).means(Q[:4], SIZES), whole, atol=1e-4)


def test_statistics_are_taken_anew_when_the_history_has_doubled(
    small_network: CausalPFN, rng: Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    bases = []
    of = Normalisation.of

    def counted(X: torch.Tensor, y: torch.Tensor) -> Normalisation:
        bases.append(len(y))
        return of(X, y)

    monkeypatch.setattr(module.Normalisation, "of", staticmethod(counted))
    X, y, Q = history(rng, n=70)
    sequence = EmbeddedSequence(small_network, X[:3], y[:3])
    for i in range(3, 70):
        sequence.means(Q[:1], [sequence.size])
        sequence.append(X[i : i + 1], y[i : i + 1])
    assert bases == [2, 4, 8, 16, 32, 64]


def test_targets_follow_shift_and_scale(small_network: CausalPFN, rng: Generator) -> None:
    X, y, Q = history(rng)
    plain = EmbeddedSequence(small_network, X, y).means(Q, SIZES)
    moved = EmbeddedSequence(small_network, X, 1e4 * y - 7e4).means(Q, SIZES)
    np.testing.assert_allclose((moved + 7e4) / 1e4, plain, atol=1e-4)


def test_wide_one_hot_history_is_answered_from_few_columns(small_network: CausalPFN, rng: Generator) -> None:
    user = rng.integers(350, size=64)
    X = np.eye(350)[user]
    y = (user % 2) + 0.1 * rng.standard_normal(64)
    means = EmbeddedSequence(small_network, X, y).means(np.eye(350)[:5], [1, 64])
    assert np.isfinite(means).all()


def test_shipped_network_learns_a_curve(rng: Generator) -> None:
    X = rng.random((256, 2))
    y = np.sin(6 * X[:, 0]) + 0.1 * rng.standard_normal(256)
    Q = rng.random((100, 2))
    early, late = EmbeddedBackbone().sequence(X, y).means(Q, [8, 256])
    truth = np.sin(6 * Q[:, 0])
    error = ((np.stack([early, late]) - truth) ** 2).mean(axis=1) / truth.var()
    assert error[1] < 0.05
    assert error[1] < error[0]
