"""One history: which rows a prediction sees, however the rows came, and when work is done."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import torch
from numpy.random import Generator

from pfnts.backbones import Append
from pfnts.backbones.network import EmbeddedBackbone
from pfnts.backbones.network.features.features import features_of
from pfnts.backbones.network.inference import batch
from pfnts.backbones.network.inference.batch import append, prefill
from pfnts.backbones.network.inference.frame import WIDENED, Frame, basis_of
from pfnts.backbones.network.inference.sequence import KEPT_FOR, EmbeddedSequence
from pfnts.backbones.network.inference.step import Result, Step
from pfnts.backbones.network.network import CausalPFN
from pfnts.backbones.network.normalisation import Normalisation

SIZES = [1, 2, 7, 16, 31, 32, 40, 64, 79, 80, 90]
CLOSE = 1e-4
"""Agreement of two ways to the same prediction, in standard deviations of the targets."""


def history(rng: Generator, n: int = 90, features: int = 3) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    X = rng.standard_normal((n, features))
    return X, X[:, 0] + rng.standard_normal(n), rng.standard_normal((6, features))


def assert_close(one: np.ndarray, other: np.ndarray, y: np.ndarray) -> None:
    np.testing.assert_allclose(one, other, rtol=0, atol=CLOSE * y.std())


@pytest.fixture
def rows_entered(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Numbers of rows that each call lets pass through the network."""
    rows: list[int] = []
    run = batch.run

    def counted(network: CausalPFN, steps: Sequence[Step]) -> list[Result]:
        rows.append(sum(len(step.y) for step in steps))
        return run(network, steps)

    monkeypatch.setattr(batch, "run", counted)
    return rows


def test_predictions_are_those_of_the_forward_pass_in_training(
    small_network: CausalPFN, rng: Generator
) -> None:
    X, y, Q = history(rng)
    X[5, 1] = np.nan
    sequence = EmbeddedSequence(small_network, X, y)
    identity = torch.randn(1, 3, 24, generator=torch.Generator().manual_seed(0))
    for size in SIZES:
        found = sequence.predict(Q, sizes=[size], levels=[0.5])
        basis = basis_of(size)
        norm = Normalisation.of(torch.from_numpy(X[:basis]), torch.from_numpy(y[:basis]))
        for i, query in enumerate(Q):
            rows = norm.contexts(torch.from_numpy(np.vstack([X[:size], query])))[None]
            targets = norm.targets(torch.from_numpy(np.append(y[:size], 0.0)))[None]
            mean, quantiles, log_sd = small_network.predict_tables(
                rows.float(), targets.float(), identity, features_of(rows, targets), asked=1
            )
            sd = float(log_sd.exp() * norm.y_scale) * (1 + WIDENED / size)
            assert found.mean_sd is not None
            assert found.mean_sd[i] == pytest.approx(sd, rel=1e-4)
            median = quantiles[0, 0].sort().values[49]
            for value, expected in ((found.means[0, i], mean), (found.quantiles[0, i], median)):
                assert value == pytest.approx(float(expected * norm.y_scale + norm.y_centre), abs=1e-4)


@pytest.mark.parametrize("size", [319, 320, 1279, 2559, 2560, 2611])
def test_later_rows_do_not_reach_back_in_long_histories(
    small_network: CausalPFN, rng: Generator, size: int
) -> None:
    X, y, Q = history(rng, n=2700)
    undisturbed = EmbeddedSequence(small_network, X[:size], y[:size]).means(Q, [size])
    scale = y.copy()
    X[size:], y[size:] = 1e3 * X[size:], 1e5 * y[size:] - 7
    later = EmbeddedSequence(small_network, X, y)
    later.means(Q[:1], [2700])
    assert_close(later.means(Q, [size]), undisturbed, scale)


@pytest.mark.parametrize("seed", range(3))
def test_neither_cuts_of_rows_nor_order_of_questions_matter(small_network: CausalPFN, seed: int) -> None:
    rng = np.random.default_rng(seed)
    X, y, Q = history(rng, n=400)
    whole = EmbeddedSequence(small_network, X, y)
    cut, n = EmbeddedSequence(small_network, X[:1], y[:1]), 1
    while n < 400:
        m = int(rng.integers(1, 60)) if rng.random() < 0.5 else 1
        rows, n = slice(n, n + m), min(400, n + m)
        if rng.random() < 0.5:
            cut.append(X[rows], y[rows])
        else:
            append([Append(cut, X[rows], y[rows], rng.random(len(y[rows])) < 0.3)])
        if rng.random() < 0.3:
            sizes = rng.integers(1, n + 1, 3)
            assert_close(cut.means(Q[:2], sizes), whole.means(Q[:2], sizes), y)
    for size in rng.permutation([*SIZES, 100, 159, 160, 319, 320, 400]):
        one, other = (s.predict(Q, sizes=[size], levels=[0.1, 0.9]) for s in (cut, whole))
        assert_close(one.means, other.means, y)
        assert_close(one.quantiles, other.quantiles, y)
        assert one.mean_sd is not None
        assert other.mean_sd is not None
        assert_close(one.mean_sd, other.mean_sd, y)


@pytest.mark.parametrize("start", [1, 25, 150])
def test_forecasts_are_predictions_from_the_rows_before(
    small_network: CausalPFN, rng: Generator, start: int
) -> None:
    X, y, _ = history(rng, n=350)
    sequence = EmbeddedSequence(small_network, X[:start], y[:start])
    wanted = rng.random(350 - start) < 0.4
    [forecast] = append([Append(sequence, X[start:], y[start:], wanted)], [0.2, 0.8])
    assert forecast is not None
    assert forecast.mean_sd is not None
    whole = EmbeddedSequence(small_network, X, y)
    for at, t in enumerate(start + np.flatnonzero(wanted)):
        expected = whole.predict(X[t : t + 1], sizes=[t], levels=[0.2, 0.8])
        assert expected.mean_sd is not None
        assert_close(forecast.means[0, at], expected.means[0, 0], y)
        assert_close(forecast.quantiles[:, at], expected.quantiles[:, 0], y)
        assert_close(forecast.mean_sd[at], expected.mean_sd[0], y)


def test_appended_rows_pass_through_the_network_once(
    small_network: CausalPFN, rng: Generator, rows_entered: list[int]
) -> None:
    X, y, Q = history(rng, n=260)
    sequence = EmbeddedSequence(small_network, X[:200], y[:200])
    sequence.means(Q, [200])
    sequence.means(Q, [150])
    rows_entered.clear()
    for i in range(200, 256):
        sequence.append(X[i : i + 1], y[i : i + 1])
        if i % 2:
            append([Append(sequence, X[256:256], y[256:256])])
        sequence.means(Q, [i + 1])
        sequence.means(Q, [150])
    assert rows_entered == [1, 0] * 56


def test_no_other_frame_is_computed_for_predictions_from_all_rows(
    small_network: CausalPFN, rng: Generator, rows_entered: list[int]
) -> None:
    X, y, Q = history(rng, n=600)
    sequence = EmbeddedSequence(small_network, X[:1], y[:1])
    for i in range(1, 600, 100):
        append([Append(sequence, X[i : i + 100], y[i : i + 100])])
    assert rows_entered == []
    sequence.means(Q, [600])
    assert sum(rows_entered) <= 600 * (1 + 1 / 8)  # with a share of the next frame


@pytest.mark.parametrize(("gap", "begin", "end"), [(1, 480, 660), (7, 100, 1400)])
def test_no_prediction_has_to_wait_for_a_whole_state(
    small_network: CausalPFN, rng: Generator, rows_entered: list[int], gap: int, begin: int, end: int
) -> None:
    X, y, Q = history(rng, n=end)
    sequence = EmbeddedSequence(small_network, X[:begin], y[:begin])
    sequence.means(Q[:1], [begin])
    rows_entered.clear()
    for i in range(begin, end, gap):
        sequence.append(X[i : i + gap], y[i : i + gap])
        sequence.means(Q[:1], [sequence.size])
    assert max(rows_entered) <= gap + end / 8


def test_predictions_about_the_distant_past_do_not_work_ahead(
    small_network: CausalPFN, rng: Generator, rows_entered: list[int]
) -> None:
    X, y, Q = history(rng, n=2000)
    sequence = EmbeddedSequence(small_network, X, y)
    sequence.means(Q[:1], [150])
    sequence.means(Q[:1], [150])
    assert rows_entered == [150, 0]


def test_states_not_in_use_are_dropped_and_computed_again(
    small_network: CausalPFN, rng: Generator, rows_entered: list[int]
) -> None:
    X, y, Q = history(rng, n=200)
    sequence = EmbeddedSequence(small_network, X, y)
    early = sequence.means(Q[:1], range(1, 201, 10))
    for _ in range(KEPT_FOR):
        sequence.means(Q[:1], [200])
    rows_entered.clear()
    assert_close(sequence.means(Q[:1], range(1, 201, 10)), early, y)
    assert rows_entered[0] > 0
    assert_close(sequence.means(Q[:1], range(1, 201, 10)), early, y)
    assert rows_entered[1:] == [0]


@pytest.mark.parametrize("size", [20, 60, 128, 200])
def test_copies_share_what_was_computed_and_grow_apart(
    small_network: CausalPFN, rng: Generator, rows_entered: list[int], size: int
) -> None:
    X, y, Q = history(rng, n=400)
    others = y + rng.standard_normal(400)
    others[:size] = y[:size]
    one = EmbeddedSequence(small_network, X[:size], y[:size])
    expected = one.means(Q, [size])
    two = copy.deepcopy(one)
    rows_entered.clear()
    assert_close(two.means(Q, [size]), expected, y)
    assert rows_entered == [0]
    sequences = [(one, y), (two, others), (copy.deepcopy(two), others)]

    def grow(sequence: EmbeddedSequence, targets: np.ndarray) -> np.ndarray:
        found = []
        for i in range(size, 400, 5):
            sequence.append(X[i : i + 5], targets[i : i + 5])
            found.append(sequence.means(Q, [size, sequence.size]))
        return np.array(found)

    with ThreadPoolExecutor(3) as threads:  # at the same time
        answers = list(threads.map(lambda pair: grow(*pair), sequences))
    for (_, targets), found in zip(sequences, answers, strict=True):
        alone = EmbeddedSequence(small_network, X[:size], targets[:size])
        assert_close(found, grow(alone, targets), y)


def test_threads_read_while_one_extends(small_network: CausalPFN, rng: Generator) -> None:
    X, y, Q = history(rng, n=300)
    sequence = EmbeddedSequence(small_network, X[:100], y[:100])
    sizes = [10, 60, 90, 100]
    expected = sequence.means(Q, sizes)

    def read(_: int) -> np.ndarray:
        return np.stack([sequence.means(Q, sizes) for _ in range(10)])

    with ThreadPoolExecutor(4) as threads:
        found = threads.map(read, range(3))
        for i in range(100, 300, 5):
            append([Append(sequence, X[i : i + 5], y[i : i + 5], np.ones(5, dtype=bool))])
        for answers in found:
            assert_close(answers, np.broadcast_to(expected, answers.shape), y)
    assert_close(sequence.means(Q, [300]), EmbeddedSequence(small_network, X, y).means(Q, [300]), y)


def test_after_filling_caches_no_row_waits(
    small_network: CausalPFN, rng: Generator, rows_entered: list[int]
) -> None:
    X, y, Q = history(rng, n=500)
    sequence = EmbeddedSequence(small_network, X, y)
    prefill([sequence])
    assert rows_entered == [500]
    assert_close(sequence.means(Q, [500]), EmbeddedSequence(small_network, X, y).means(Q, [500]), y)
    assert rows_entered[1] == 0


@pytest.mark.parametrize("fails_at", [1, 4, 7])
def test_interrupted_calls_leave_later_predictions_alike(
    small_network: CausalPFN, rng: Generator, monkeypatch: pytest.MonkeyPatch, fails_at: int
) -> None:
    X, y, Q = history(rng, n=200)
    expected = EmbeddedSequence(small_network, X, y).means(Q, [31, 101, 200])
    sequence, calls = EmbeddedSequence(small_network, X[:150], y[:150]), iter(range(1000))
    sequence.means(Q[:1], [150])
    attention = torch.nn.functional.scaled_dot_product_attention

    def failing(*arguments: Any, **options: Any) -> torch.Tensor:
        if next(calls) == fails_at:
            raise KeyboardInterrupt
        return attention(*arguments, **options)

    forecast = np.ones(50, dtype=bool)
    for call in (
        lambda: append([Append(sequence, X[150:], y[150:], forecast)]),
        lambda: sequence.means(Q, [31, 101, sequence.size]),
    ):
        calls = iter(range(1000))
        with monkeypatch.context() as patched:
            patched.setattr(torch.nn.functional, "scaled_dot_product_attention", failing)
            with pytest.raises(KeyboardInterrupt):
                call()
        assert sequence.size == 150
    sequence.append(X[150:], y[150:])
    assert_close(sequence.means(Q, [31, 101, 200]), expected, y)


def test_targets_follow_shift_and_scale(small_network: CausalPFN, rng: Generator) -> None:
    X, y, Q = history(rng)
    plain = EmbeddedSequence(small_network, X, y).means(Q, SIZES)
    moved = EmbeddedSequence(small_network, X, 1e4 * y - 7e4).means(Q, SIZES)
    # but for the first row, whose own size is its scale
    np.testing.assert_allclose((moved + 7e4)[1:] / 1e4, plain[1:], atol=1e-4)


def test_arms_keep_their_columns_in_wide_histories(rng: Generator) -> None:
    X = np.concatenate([rng.standard_normal((400, 400)), np.eye(2)[rng.integers(2, size=400)]], 1)
    y = X[:, :50].sum(1)  # both arms are worth the same
    for basis in (50, 64, 256):
        frame = Frame.of(X[:basis], y[:basis], keep=[400, 401])
        for view in frame.views:
            assert {400, 401} <= set(view.reduction.kept)
            assert len(view.reduction.rest)
        assert int(frame.names_arm.sum()) == 2


def test_shipped_network_learns_a_curve(rng: Generator) -> None:
    X = rng.random((256, 2))
    y = np.sin(6 * X[:, 0]) + 0.1 * rng.standard_normal(256)
    Q = rng.random((100, 2))
    early, late = EmbeddedBackbone().sequence(X, y).means(Q, [8, 256])
    truth = np.sin(6 * Q[:, 0])
    error = ((np.stack([early, late]) - truth) ** 2).mean(axis=1) / truth.var()
    assert error[1] < 0.05
    assert error[1] < error[0]
