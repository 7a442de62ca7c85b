from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from numpy.random import Generator
from numpy.typing import NDArray

from pfnts.backbones.network.inference import asking
from pfnts.backbones.network.inference.asking import QUERIES_AT_ONCE
from pfnts.backbones.network.inference.cache import SIDE_BY_SIDE, Growth
from pfnts.backbones.network.inference.cores import ONE_CORE, Cores
from pfnts.backbones.network.inference.key_values import attention
from pfnts.backbones.network.inference.sequence import EmbeddedSequence
from pfnts.backbones.network.network import CausalPFN


@pytest.fixture
def two_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("two_threads")
def test_pieces_are_done_at_the_same_time_and_given_back_in_order() -> None:
    meeting = threading.Barrier(2, timeout=60)

    def work(piece: int) -> tuple[int, int]:
        meeting.wait()  # comes back only if another piece is being done
        return piece, torch.get_num_threads()

    with Cores.lent() as cores:
        assert cores.each(work, [0, 1, 2, 3]) == [(0, 1), (1, 1), (2, 1), (3, 1)]
    assert torch.get_num_threads() == 2


@pytest.mark.usefixtures("two_threads")
def test_threads_of_others_keep_their_number() -> None:
    seen: list[int] = []
    with Cores.lent() as cores:
        cores.each(lambda piece: piece, [0, 1])
    other = threading.Thread(target=lambda: seen.append(torch.get_num_threads()))
    other.start()
    other.join()
    assert seen == [2]


@pytest.mark.usefixtures("two_threads")
def test_an_error_in_a_piece_is_raised_and_the_next_call_works() -> None:
    with pytest.raises(ZeroDivisionError), Cores.lent() as cores:
        cores.each(lambda piece: 1 // piece, [1, 0, 0])
    assert torch.get_num_threads() == 2
    with Cores.lent() as cores:
        assert cores.each(lambda piece: 2 * piece, [1, 2]) == [2, 4]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="only some systems have forks")
@pytest.mark.usefixtures("two_threads")
def test_a_forked_process_has_workers_of_its_own() -> None:
    with Cores.lent() as cores:
        cores.each(lambda piece: piece, [0, 1])
        child = os.fork()
        if child == 0:
            os._exit(sum(cores.each(lambda piece: piece + 1, [1, 2])))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 5


def test_answers_do_not_depend_on_the_number_of_threads(small_network: CausalPFN, rng: Generator) -> None:
    X, y = rng.standard_normal((300, 3)), rng.standard_normal(300)
    Q = rng.standard_normal((3 * QUERIES_AT_ONCE["cpu"] + 1, 3))
    before = torch.get_num_threads()
    answers = []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        answers.append(EmbeddedSequence(small_network, X, y).means(Q, [3, 31, 48, 300]))
    torch.set_num_threads(before)
    np.testing.assert_array_equal(answers[0], answers[1])


@pytest.mark.usefixtures("two_threads")
def test_rows_that_enter_beside_a_question_make_no_difference_to_it(
    small_network: CausalPFN, rng: Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y, Q = rng.standard_normal((700, 3)), rng.standard_normal(700), rng.standard_normal((70, 3))
    grow, ask = asking.grow, asking._pass
    beside: list[str] = []

    def answers(slow: str) -> list[NDArray[np.float64]]:
        def growing(growths: Iterable[Growth], cores: Cores) -> None:
            if cores is ONE_CORE:
                beside.append(slow)
                time.sleep(0.05 * (slow == "growth"))
            grow(growths, cores)

        def asked(*arguments: Any) -> list[asking._Output]:
            time.sleep(0.05 * (slow == "questions"))
            return ask(*arguments)

        monkeypatch.setattr(asking, "grow", growing)
        monkeypatch.setattr(asking, "_pass", asked)
        sequence, said = EmbeddedSequence(small_network, X[:90], y[:90]), []
        for size in range(90, 700, 45):  # past doublings, after which neighbours are measured anew
            sequence.append(X[size : size + 45], y[size : size + 45])
            said.append(sequence.means(Q, [size - size % 64, size]))
        return said

    expected = answers("neither")
    for slow in ("growth", "questions"):
        np.testing.assert_array_equal(answers(slow), expected)
    assert set(beside) == {"neither", "growth", "questions"}
    torch.set_num_threads(1)
    np.testing.assert_array_equal(answers("neither"), expected)


def test_pieces_side_by_side_equal_one_after_the_other(
    small_network: CausalPFN, rng: Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y, Q = rng.standard_normal((300, 3)), rng.standard_normal(300), rng.standard_normal((4, 3))
    together = EmbeddedSequence(small_network, X, y).means(Q, [300])
    monkeypatch.setitem(SIDE_BY_SIDE, "cpu", 1)
    np.testing.assert_array_equal(EmbeddedSequence(small_network, X, y).means(Q, [300]), together)


@pytest.mark.parametrize("keys", [40, 700, 3000])
@pytest.mark.parametrize(("queries", "masked"), [(1, False), (31, False), (64, False), (64, True)])
@pytest.mark.parametrize(("heads", "served"), [(8, 2), (28, 7), (4, 1)])
def test_heads_that_cores_share_see_what_one_core_sees(
    rng: Generator, keys: int, queries: int, masked: bool, heads: int, served: int
) -> None:
    query, key, value = (
        torch.from_numpy(rng.standard_normal((1, *shape, 32))).float()
        for shape in ((heads, queries), (served, keys), (served, keys))
    )
    first = max(0, keys - queries)
    mask = torch.full((queries, keys), -torch.inf).triu(first + 1) if masked else None
    seen = (mask, first) if masked else ()
    with torch.inference_mode():
        expected = attention(query, key, value, *seen)
        for threads in (1, 2, 3):
            found = attention(query, key, value, *seen, cores=Cores(threads))
            assert torch.equal(found, expected)
