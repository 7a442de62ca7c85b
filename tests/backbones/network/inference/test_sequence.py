"""One history: which rows a prediction knows of, and when work is done."""

from __future__ import annotations

import copy
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import torch
from numpy.random import Generator

from pfnts.backbones.network import EmbeddedBackbone
from pfnts.backbones.network.features.features import Features, features_of
from pfnts.backbones.network.features.table import BASE_PREDICTIONS
from pfnts.backbones.network.inference import asking, growth
from pfnts.backbones.network.inference import sequence as module
from pfnts.backbones.network.inference.asking import prepare
from pfnts.backbones.network.inference.cache import PIECE, SHORT, SIDE_BY_SIDE, Cache, Piece, tail_ends
from pfnts.backbones.network.inference.cores import Cores
from pfnts.backbones.network.inference.key_values import attention
from pfnts.backbones.network.inference.sequence import EmbeddedSequence, basis_of
from pfnts.backbones.network.network import CausalPFN
from pfnts.backbones.network.normalisation import Normalisation

SIZES = [1, 2, 7, 16, 31, 32, 40, 64, 79, 80, 90]


def history(rng: Generator, n: int = 90, features: int = 3) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    X = rng.standard_normal((n, features))
    return X, X[:, 0] + rng.standard_normal(n), rng.standard_normal((6, features))


def test_answers_agree_with_the_pass_used_in_training(small_network: CausalPFN, rng: Generator) -> None:
    X, y, Q = history(rng)
    X[5, 1] = np.nan
    sequence = EmbeddedSequence(small_network, X, y)
    identity = torch.randn(1, 3, 24, generator=torch.Generator().manual_seed(0))
    for size in SIZES:
        said = sequence.predict(Q, sizes=[size], levels=[0.5])
        basis = basis_of(size)
        norm = Normalisation.of(torch.from_numpy(X[:basis]), torch.from_numpy(y[:basis]))
        for i, query in enumerate(Q):
            rows = norm.contexts(torch.from_numpy(np.vstack([X[:size], query])))[None].float()
            targets = norm.targets(torch.from_numpy(np.append(y[:size], 0.0)))[None].float()
            base_predictions = features_of(rows.double(), targets.double())
            mean, quantiles, log_sd = small_network(rows, targets, identity, base_predictions, asked=1)
            sd = float(log_sd.exp() * norm.y_scale) * (1 + asking.WIDENED / size)
            assert said.mean_sd[i] == pytest.approx(sd, rel=1e-4)
            median = quantiles[0, 0].sort().values[49]
            for found, expected in ((said.means[0, i], mean), (said.quantiles[0, i], median)):
                assert found == pytest.approx(float(expected * norm.y_scale + norm.y_centre), abs=1e-4)


@pytest.mark.parametrize("size", [319, 320, 1279, 2559, 2560, 2611])
def test_later_rows_do_not_reach_back_in_long_histories(
    small_network: CausalPFN, rng: Generator, size: int
) -> None:
    X, y, Q = history(rng, n=2700)
    undisturbed = EmbeddedSequence(small_network, X[:size], y[:size]).means(Q, [size])
    X[size:], y[size:] = 1e3 * X[size:], 1e5 * y[size:] - 7
    later = EmbeddedSequence(small_network, X, y)
    later.means(Q[:1], [2700])
    np.testing.assert_array_equal(later.means(Q, [size]), undisturbed)


def test_growing_row_by_row_equals_all_at_once(small_network: CausalPFN, rng: Generator) -> None:
    X, y, Q = history(rng, n=190)
    grown = EmbeddedSequence(small_network, X[:20], y[:20])
    for i in range(20, 190):
        grown.append(X[i : i + 1], y[i : i + 1])
        grown.means(Q[:1], [i + 1])
    for size in [*SIZES, 100, 159, 160, 190]:
        whole = EmbeddedSequence(small_network, X, y)
        np.testing.assert_array_equal(grown.means(Q, [size]), whole.means(Q, [size]))


def test_a_row_of_a_tail_takes_one_pass(small_network: CausalPFN, rng: Generator, entered: list[int]) -> None:
    X, y, Q = history(rng, n=127)
    sequence = EmbeddedSequence(small_network, X[:100], y[:100])
    sequence.means(Q, [100])
    for i in range(100, 127):
        entered.clear()
        sequence.append(X[i : i + 1], y[i : i + 1])
        sequence.means(Q, [i + 1])
        low = (i + 1) & -(i + 1)
        assert entered == [1 if low < 4 else 4 if low < 16 else 16]


@pytest.fixture
def entered(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Rows of every piece that enters a cache."""
    rows: list[int] = []
    run = growth._pass

    def counted(network: CausalPFN, stacks: list[list[Piece]], cores: Cores) -> None:
        rows.extend(piece.length for stack in stacks for piece in stack)
        run(network, stacks, cores)

    monkeypatch.setattr(growth, "_pass", counted)
    return rows


@pytest.mark.parametrize(("gap", "begin", "end"), [(1, 480, 660), (7, 100, 1400)])
def test_no_question_has_to_wait_for_a_whole_cache(
    small_network: CausalPFN, rng: Generator, entered: list[int], gap: int, begin: int, end: int
) -> None:
    X, y, Q = history(rng, n=end)
    sequence, most = EmbeddedSequence(small_network, X[:begin], y[:begin]), 0
    sequence.means(Q[:1], [begin])
    for i in range(begin, end, gap):
        entered.clear()
        sequence.append(X[i : i + gap], y[i : i + gap])
        sequence.means(Q[:1], [sequence.size])
        most = max(most, sum(entered))
    # A piece of this cache, one of the next (two where seven rows come at once), a few rows of the tail.
    assert most <= 2 * 64 + 64 + 16


def test_cache_that_takes_over_is_the_one_made_ahead(
    small_network: CausalPFN, rng: Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []
    start = Cache.__init__

    def counted(self: Cache, *arguments: object, **options: object) -> None:
        start(self, *arguments, **options)
        made.append(self.basis)

    monkeypatch.setattr(Cache, "__init__", counted)
    X, y, Q = history(rng, n=200)
    sequence = EmbeddedSequence(small_network, X[:40], y[:40])
    for i in range(40, 200):
        sequence.append(X[i : i + 1], y[i : i + 1])
        sequence.means(Q[:1], [sequence.size])
    assert made == [32, 64, 128]


def test_questions_about_the_distant_past_do_not_work_ahead(
    small_network: CausalPFN, rng: Generator, entered: list[int]
) -> None:
    X, y, Q = history(rng, n=2000)
    sequence = EmbeddedSequence(small_network, X, y)
    sequence.means(Q[:1], [100])
    entered.clear()
    sequence.means(Q[:1], [100])
    assert entered == []


def test_caches_that_nobody_asks_for_are_dropped(small_network: CausalPFN, rng: Generator) -> None:
    X, y, Q = history(rng, n=300)
    sequence = EmbeddedSequence(small_network, X, y)
    early = sequence.means(Q[:1], range(1, 301, 10))
    for _ in range(module.KEPT_FOR + 1):
        sequence.means(Q[:1], [300])
    assert set(sequence._caches) == {128, 256}  # that which answers, and the next
    np.testing.assert_array_equal(sequence.means(Q[:1], range(1, 301, 10)), early)


@pytest.mark.parametrize("size", [20, 70, 128, 200])
def test_copies_share_what_was_computed_and_grow_apart(
    small_network: CausalPFN, rng: Generator, size: int
) -> None:
    X, y, Q = history(rng, n=400)
    others, Q_before = y + rng.standard_normal(400), Q[:1]
    others[:size] = y[:size]
    one = EmbeddedSequence(small_network, X[:size], y[:size])
    one.means(Q_before, [size])
    two = copy.deepcopy(one)
    sequences = [(one, y), (two, others), (copy.deepcopy(two), others)]

    def grow(sequence: EmbeddedSequence, targets: np.ndarray) -> list[np.ndarray]:
        found = []
        for i in range(size, 400, 5):
            sequence.append(X[i : i + 5], targets[i : i + 5])
            found.append(sequence.means(Q, [size, sequence.size]))
        return found

    with ThreadPoolExecutor(3) as threads:  # at the same time
        answers = list(threads.map(lambda pair: grow(*pair), sequences))
    for (_, targets), found in zip(sequences, answers, strict=True):
        alone = EmbeddedSequence(small_network, X[:size], targets[:size])
        np.testing.assert_array_equal(found, grow(alone, targets))


def test_a_copy_is_told_no_row_again(small_network: CausalPFN, rng: Generator, entered: list[int]) -> None:
    X, y, Q = history(rng, n=200)
    sequence = EmbeddedSequence(small_network, X, y)
    expected = sequence.means(Q, [200])
    entered.clear()
    np.testing.assert_array_equal(copy.deepcopy(sequence).means(Q, [200]), expected)
    assert entered == []


def test_after_preparation_questions_find_every_row_entered(
    small_network: CausalPFN, rng: Generator, entered: list[int]
) -> None:
    X, y, Q = history(rng, n=700)
    sequence = EmbeddedSequence(small_network, X, y)
    expected = EmbeddedSequence(small_network, X, y).means(Q, [512, 640])
    sequence.means(Q[:1], [512])
    prepare([sequence])
    entered.clear()
    np.testing.assert_array_equal(sequence.means(Q, [512, 640]), expected)
    assert entered == []


@pytest.mark.parametrize("fails_at", [1, 4, 7, 20])
def test_interrupted_question_leaves_later_answers_alike(
    small_network: CausalPFN, rng: Generator, monkeypatch: pytest.MonkeyPatch, fails_at: int
) -> None:
    X, y, Q = history(rng, n=200)
    expected = EmbeddedSequence(small_network, X, y).means(Q, [31, 101, 200])
    sequence, calls = EmbeddedSequence(small_network, X[:150], y[:150]), iter(range(1000))
    sequence.means(Q[:1], [150])
    sequence.append(X[150:], y[150:])

    def failing(*arguments: Any, **options: Any) -> torch.Tensor:
        if next(calls) == fails_at:
            raise KeyboardInterrupt
        return attention(*arguments, **options)

    with monkeypatch.context() as patched:
        patched.setattr("pfnts.backbones.network.inference.cache.attention", failing)
        with pytest.raises(KeyboardInterrupt):
            sequence.means(Q, [31, 101, 200])
    np.testing.assert_array_equal(sequence.means(Q, [31, 101, 200]), expected)


def test_pieces_of_a_tail_are_aligned_and_few() -> None:
    for start in (0, 64, 256):
        for size in range(start + 1, start + 64):
            cuts = [start, *tail_ends(start, size)]
            steps = np.diff(cuts)
            assert cuts[-1] == size
            assert len(steps) <= 9
            assert set(steps) <= {1, 4, 16}
            assert all(begin % step == 0 for begin, step in zip(cuts, steps, strict=False))


@pytest.mark.parametrize("shared", [1, 2, 8])
@pytest.mark.parametrize("queries", [1, 4, 9])
def test_attention_is_that_of_the_textbook(rng: Generator, shared: int, queries: int) -> None:
    query, key, value = (
        torch.from_numpy(rng.standard_normal((1, heads, rows, 4)))
        for heads, rows in ((8, queries), (shared, 12), (shared, 12))
    )
    mask = torch.zeros(queries, 12, dtype=torch.float64)
    mask[:, 7:] = -torch.inf
    keys, values = (x.repeat_interleave(8 // shared, 1)[:, :, :7] for x in (key, value))
    weight = torch.softmax(query @ keys.mT / 2, -1)
    torch.testing.assert_close(attention(query, key, value, mask), weight @ values)
    torch.testing.assert_close(attention(query, key[:, :, :7], value[:, :, :7]), weight @ values)


def test_targets_follow_shift_and_scale(small_network: CausalPFN, rng: Generator) -> None:
    X, y, Q = history(rng)
    plain = EmbeddedSequence(small_network, X, y).means(Q, SIZES)
    moved = EmbeddedSequence(small_network, X, 1e4 * y - 7e4).means(Q, SIZES)
    # but for the first row, whose own size is its scale
    np.testing.assert_allclose((moved + 7e4)[1:] / 1e4, plain[1:], atol=1e-4)


def test_arms_keep_their_columns_in_wide_histories(small_network: CausalPFN, rng: Generator) -> None:
    X = np.concatenate([rng.standard_normal((400, 400)), np.eye(2)[rng.integers(2, size=400)]], 1)
    y = X[:, :50].sum(1)  # the arms are worth the same
    sequence = EmbeddedSequence(small_network, X, y, keep=[400, 401])
    sequence.means(X[:1], [31, 100, 400])
    for cache in sequence._caches.values():
        for view in cache._views:
            assert {400, 401} <= set(view._reduce.kept)
    assert len(sequence._caches[256]._views[0]._reduce.rest)


def test_shipped_network_learns_a_curve(rng: Generator) -> None:
    X = rng.random((256, 2))
    y = np.sin(6 * X[:, 0]) + 0.1 * rng.standard_normal(256)
    Q = rng.random((100, 2))
    early, late = EmbeddedBackbone().sequence(X, y).means(Q, [8, 256])
    truth = np.sin(6 * Q[:, 0])
    error = ((np.stack([early, late]) - truth) ** 2).mean(axis=1) / truth.var()
    assert error[1] < 0.05
    assert error[1] < error[0]


@pytest.mark.parametrize(("size", "features"), [(40, 3), (40, 50), (800, 3)])
def test_everything_that_a_card_computes_with_is_moved_there(
    small_network: CausalPFN, rng: Generator, monkeypatch: pytest.MonkeyPatch, size: int, features: int
) -> None:
    # The device "meta" stands for a card: it has shapes and no values, so that only the answer is missing.
    for limits in (PIECE, SIDE_BY_SIDE):
        monkeypatch.setitem(limits, "meta", 8)
    at_once = asking.QUERIES_AT_ONCE, asking.FEW_QUERIES, asking.TOGETHER, asking.CELLS_AT_ONCE
    for limits in (*at_once, growth.CELLS_AT_ONCE):
        monkeypatch.setitem(limits, "meta", 4096)
    seen = set()

    def at(self: Features, X: torch.Tensor, *given: object) -> torch.Tensor:
        seen.add(X.device.type)
        return torch.zeros(1, X.shape[1], BASE_PREDICTIONS, device=X.device)

    monkeypatch.setattr(Features, "extend", lambda self, X, y: (self, at(self, X)))
    monkeypatch.setattr(Features, "at", at)
    X, y, _ = history(rng, n=size, features=features)
    card = copy.deepcopy(small_network).to("meta")
    sequence = EmbeddedSequence(card, X, y, device="meta")
    with pytest.raises(NotImplementedError, match="Cannot copy out of meta tensor"):
        sequence.means(rng.standard_normal((9, features)), [size])
    assert seen == {"cpu" if basis_of(size) < SHORT else "meta"}
    assert sequence.cache_of(size).device == "meta"
