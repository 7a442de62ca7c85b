"""Passes that are recorded; in place of a card, work is done again and put where it was put before."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
import pytest
import torch
from numpy.random import Generator
from torch.utils._python_dispatch import TorchDispatchMode

from pfnts.backbones.base import Question
from pfnts.backbones.network.inference import asking, growth, recorded
from pfnts.backbones.network.inference.asking import answer
from pfnts.backbones.network.inference.recorded import RecordedPass, Recordings, filled_up
from pfnts.backbones.network.inference.segments import Pass, Stage, Tokens, blocks
from pfnts.backbones.network.inference.sequence import EmbeddedSequence
from pfnts.backbones.network.network import CausalPFN

T = TypeVar("T")


def tensors(out: object) -> list[torch.Tensor]:
    if isinstance(out, Stage):
        return [out.h, *out.told, *out.asked]
    assert isinstance(out, torch.Tensor)
    return [out]


def doing_it_again(work: Callable[[], T]) -> tuple[Callable[[], None], T]:
    out = work()

    def replay() -> None:
        for place, new in zip(tensors(out), tensors(work()), strict=True):
            place.copy_(new)

    return replay, out


@pytest.fixture
def used(small_network: CausalPFN, monkeypatch: pytest.MonkeyPatch) -> list[tuple[type[Pass], int, bool]]:
    """Everything passes as on a card; the kind of each pass, its rows, and whether they are known."""
    seen: list[tuple[type[Pass], int, bool]] = []
    recordings = Recordings(small_network, doing_it_again)

    def passing(network: CausalPFN, tokens: Tokens) -> Pass:
        assert network is small_network
        found = recordings.passing(tokens)
        seen.append((type(found), tokens.shape[0], tokens.shape[2]))
        return found

    for module in (asking, growth):
        monkeypatch.setattr(module, "passing", passing)
    monkeypatch.setitem(growth.CELLS_AT_ONCE, "cpu", 4096)  # one pass at a time, as on a card
    return seen


def questions(network: CausalPFN, X: np.ndarray, y: np.ndarray) -> list[np.ndarray]:
    sequence, found = EmbeddedSequence(network, X[:100], y[:100]), []
    for size, queries in ((100, 5), (103, 64), (141, 3), (150, 70), (151, 33), (300, 1), (333, 9)):
        if size > sequence.size:
            sequence.append(X[sequence.size : size], y[sequence.size : size])
        said = sequence.predict(X[:queries], sizes=[size // 2, size], levels=[0.1, 0.9])
        found += [said.means, said.quantiles, said.mean_sd]
    return found


def test_answers_are_those_of_passes_that_are_not_recorded(
    small_network: CausalPFN, rng: Generator, used: list[tuple[type[Pass], int, bool]]
) -> None:
    X = rng.standard_normal((333, 4))
    y = X[:, 0] + rng.standard_normal(333)
    with pytest.MonkeyPatch.context() as plain:
        for module in (asking, growth):
            plain.setattr(module, "passing", Pass)
        expected = questions(small_network, X, y)
    assert not used
    for found, wanted in zip(questions(small_network, X, y), expected, strict=True):
        np.testing.assert_allclose(found, wanted, atol=5e-5)
    kinds = {(kind, known) for kind, _, known in used}
    assert kinds == {(Pass, True), (Pass, False), (RecordedPass, True), (RecordedPass, False)}
    for known in (True, False):  # fewer than there is room for, after more
        assert len({rows for kind, rows, other in used if kind is RecordedPass and other == known}) > 1


def test_a_shape_is_recorded_when_it_comes_often(small_network: CausalPFN) -> None:
    recordings = Recordings(small_network, doing_it_again)
    with torch.inference_mode():
        for rows, wanted in (([3, 64, 9, 1], 2), ([65, 256, 99], 1), ([1025] * 9, 0)):
            kinds = [type(recordings.passing(tokens(m, small_network))) for m in rows]
            assert kinds == [Pass] * (len(rows) - wanted) + [RecordedPass] * wanted


def test_start_rows_are_where_they_are_said_to_be(small_network: CausalPFN) -> None:
    recordings = Recordings(small_network, doing_it_again)
    places = torch.tensor([[True, False, False], [False, False, True], [False, False, False]])
    for start in [None, None, *places, places[1], None]:
        given = replace(tokens(3, small_network, known=True), X=torch.rand(1, 3, 4), start=start)
        with (
            torch.inference_mode(),
            recordings.passing(given) as other,
            Pass(small_network, given) as plain,
        ):
            found, wanted = other.begin(), plain.begin()
            for number in range(len(blocks(small_network)) - 1):
                for each in zip(found, wanted, strict=True):
                    torch.testing.assert_close(*each, atol=1e-5, rtol=0)
                found, wanted = other.go_on(number, found[0] / 9), plain.go_on(number, wanted[0] / 9)


def tokens(rows: int, network: CausalPFN, *, known: bool = False) -> Tokens:
    base_predictions = torch.zeros(1, rows, network.base_prediction.in_features)
    identity = torch.ones(1, 4, network.architecture.identity)
    y = torch.ones(1, rows) if known else None
    return Tokens(torch.zeros(1, rows, 4), identity, torch.ones(rows), base_predictions, y)


@pytest.mark.parametrize("rows", [5, 64])
def test_the_place_for_tokens_is_no_tokens_own(small_network: CausalPFN, rows: int) -> None:
    given = tokens(rows, small_network, known=True)
    place = filled_up(given, 64)
    assert place.shape == (64, 4, True)
    for name in ("X", "identity", "position", "base_predictions", "y"):
        assert getattr(place, name).data_ptr() != getattr(given, name).data_ptr()


def test_what_cannot_be_recorded_is_launched_one_by_one(small_network: CausalPFN, rng: Generator) -> None:
    def failing(work: Callable[[], T]) -> tuple[Callable[[], None], T]:
        raise RuntimeError("operation not permitted when stream is capturing")

    recordings = Recordings(small_network, failing)
    given = [tokens(5, small_network)] * 4 + [tokens(5, small_network, known=True)] * 4
    with (
        torch.inference_mode(),
        pytest.warns(UserWarning, match="could not be recorded.*capturing") as warned,
    ):
        kinds = [type(recordings.passing(each)) for each in given]
    assert kinds == [Pass] * 8
    assert len(warned) == 1  # another shape is not tried


class NothingMoved(TorchDispatchMode):
    """Fails where a card would be given numbers from the CPU, or asked for some: neither can be recorded."""

    def __torch_dispatch__(self, operation: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        moved = (
            "lift_fresh",
            "where.Scalar",
            "_local_scalar",
            "nonzero",
            "masked_select",
            "unique",
            "aten.index",
        )
        assert not any(name in str(operation) for name in moved), operation
        return operation(*args, **(kwargs or {}))


def test_nothing_moves_between_card_and_cpu_in_what_is_recorded(small_network: CausalPFN) -> None:
    given = replace(tokens(3, small_network, known=True), start=torch.tensor([True, False, False]))
    with torch.inference_mode(), NothingMoved():
        for each in (given, tokens(3, small_network)):
            running = Pass(small_network, each)
            seen = running.begin()[0]
            for number in range(len(blocks(small_network)) - 1):
                seen = running.go_on(number, seen)[0]
        running.read(seen)


def test_threads_take_turns(
    small_network: CausalPFN, rng: Generator, used: list[tuple[type[Pass], int, bool]]
) -> None:
    X = rng.standard_normal((200, 4))
    sequences = [EmbeddedSequence(small_network, X, X[:, i]) for i in range(4)]

    def ask(sequence: EmbeddedSequence) -> list[np.ndarray]:
        return [answer([Question(sequence, X[:9], (200,))])[0].means for _ in range(20)]

    expected = [ask(sequence) for sequence in sequences]
    with ThreadPoolExecutor(4) as threads:
        for found, wanted in zip(threads.map(ask, sequences), expected, strict=True):
            np.testing.assert_allclose(found, wanted, atol=5e-5)
    assert recorded.RecordedPass in {kind for kind, *_ in used}
