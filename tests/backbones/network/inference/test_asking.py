"""Questions about several histories, and what is asked of the network for them."""

from __future__ import annotations

import copy
import threading

import numpy as np
import pytest
import torch
from numpy.random import Generator

from pfnts.backbones import LinearBackbone, Question
from pfnts.backbones.network import EmbeddedBackbone
from pfnts.backbones.network.inference import asking, growth
from pfnts.backbones.network.inference.asking import answer
from pfnts.backbones.network.inference.cache import Cache
from pfnts.backbones.network.inference.cores import Cores
from pfnts.backbones.network.inference.sequence import EmbeddedSequence
from pfnts.backbones.network.network import CausalPFN


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> list[list[tuple[int, int]]]:
    """Passes of queries through the network: size of the prefix and number of queries, for each slice."""
    seen: list[list[tuple[int, int]]] = []
    run = asking._pass

    def counted(network: CausalPFN, slices: list[asking._Slice], cores: Cores) -> object:
        seen.append([(part.prefix.size, len(part.shown)) for part in slices])
        return run(network, slices, cores)

    monkeypatch.setattr(asking, "_pass", counted)
    return seen


def history(network: CausalPFN, rng: Generator, n: int) -> EmbeddedSequence:
    X = rng.standard_normal((n, 3))
    return EmbeddedSequence(network, X, X[:, 0] + rng.standard_normal(n))


def test_few_queries_of_all_histories_and_prefixes_share_a_pass(
    small_network: CausalPFN, rng: Generator, passes: list[list[tuple[int, int]]]
) -> None:
    one, other = history(small_network, rng, 300), history(small_network, rng, 20)
    x = rng.standard_normal((2, 3))
    answer([Question(one, x, (8, 64, 128, 300)), Question(other, x, (20, 4))])
    assert [sorted(batch) for batch in passes] == [[(4, 2), (8, 2), (20, 2), (64, 2), (128, 2), (300, 2)]]


def test_prefixes_with_different_tails_of_one_cache_take_turns(
    small_network: CausalPFN, rng: Generator, passes: list[list[tuple[int, int]]]
) -> None:
    sequence, x = history(small_network, rng, 300), rng.standard_normal((1, 3))
    sequence.means(x, [200, 203, 250, 192])
    assert passes == [[(192, 1), (200, 1), (203, 1)], [(250, 1)]]  # the tail of 203 has that of 200 in it


def test_answers_about_many_queries_do_not_depend_on_what_else_is_asked(
    small_network: CausalPFN, rng: Generator
) -> None:
    one, other = history(small_network, rng, 90), history(small_network, rng, 50)
    x = rng.standard_normal((100, 3))
    alone = one.predict(x, sizes=[90], levels=[0.5])
    together, _ = answer([Question(one, x, (20, 70, 90), (0.5,)), Question(other, x, (50,))])
    np.testing.assert_array_equal(together.means[2:], alone.means)
    np.testing.assert_array_equal(together.quantiles, alone.quantiles)


def test_too_many_cells_for_one_pass_are_cut(
    small_network: CausalPFN,
    rng: Generator,
    passes: list[list[tuple[int, int]]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sequence, x = history(small_network, rng, 70), rng.standard_normal((100, 3))
    whole = sequence.means(x, [70])
    passes.clear()
    monkeypatch.setitem(asking.CELLS_AT_ONCE, "cpu", 90)
    np.testing.assert_allclose(sequence.means(x, [70]), whole, atol=1e-5)
    assert [batch[0][1] for batch in passes] == [25] * 4


def test_nothing_is_done_when_a_question_of_several_is_wrong(
    small_network: CausalPFN, rng: Generator, passes: list[list[tuple[int, int]]]
) -> None:
    sequence, x = history(small_network, rng, 40), rng.standard_normal((1, 3))
    with pytest.raises(ValueError, match="sizes must be between 1 and the 40 rows held"):
        answer([Question(sequence, x, (40,)), Question(sequence, x, (41,))])
    stranger = LinearBackbone().sequence(np.zeros((2, 3)), [0.0, 1.0])
    with pytest.raises(ValueError, match=r"questions must be about sequences of this backbone, got.*Linear"):
        answer([Question(sequence, x, (40,)), Question(stranger, x, (2,))])
    assert passes == []


class HeadThatKnowsTheMean(torch.nn.Module):
    """Says that the logarithm of the mean's deviation is minus one."""

    def __init__(self, head: torch.nn.Module) -> None:
        super().__init__()
        self.head = head

    def forward(self, h: torch.Tensor, base_predictions: torch.Tensor) -> tuple[torch.Tensor, ...]:
        mean, quantiles = self.head(h, base_predictions)[:2]
        return mean, quantiles, torch.full_like(mean, -1.0)


def test_deviation_of_the_mean_is_in_the_units_of_the_targets(
    small_network: CausalPFN, rng: Generator
) -> None:
    network = copy.deepcopy(small_network)
    network.head = HeadThatKnowsTheMean(network.head)  # type: ignore[assignment]
    X, y = rng.standard_normal((32, 3)), 7 + 5 * rng.standard_normal(32)
    for queries in (2, 100):
        said = EmbeddedSequence(network, X, y).predict(rng.standard_normal((queries, 3)), sizes=[3, 32])
        widened = 1 + asking.WIDENED / 32  # from few rows less is known than the network says
        np.testing.assert_allclose(said.mean_sd, np.full(queries, np.exp(-1) * y.std() * widened), rtol=1e-6)


def test_threads_get_the_answers_of_one(small_network: CausalPFN, rng: Generator) -> None:
    sequence, Q = history(small_network, rng, 200), rng.standard_normal((4, 3))
    asked = [(Q[i % 4 : i % 4 + 1], [1 + 37 * i % 200]) for i in range(24)]
    alone = [EmbeddedSequence.means(sequence, *question) for question in asked]
    found: dict[int, np.ndarray] = {}

    def ask(first: int) -> None:
        for i in range(first, 24, 4):
            found[i] = sequence.means(*asked[i])

    threads = [threading.Thread(target=ask, args=(first,)) for first in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for i, expected in enumerate(alone):
        np.testing.assert_array_equal(found[i], expected)


@pytest.mark.parametrize("device", ["abacus", *([] if torch.cuda.is_available() else ["cuda", "cuda:1"])])
def test_device_that_is_not_there_is_named(device: str) -> None:
    with pytest.raises(ValueError, match=f"device must be one that works here, such as cpu, got '{device}'"):
        EmbeddedBackbone(device=device)


@pytest.mark.parametrize("cells", [100, 10_000])
def test_histories_and_tails_that_pass_as_one_tensor_say_the_same_up_to_rounding(
    small_network: CausalPFN, monkeypatch: pytest.MonkeyPatch, cells: int
) -> None:
    def said() -> list[np.ndarray]:
        rng = np.random.default_rng(0)
        lengths, widths = (20, 33, 90, 200, 301), (3, 3, 2, 3, 2)
        tables = [rng.standard_normal((n + 60, p)) for n, p in zip(lengths, widths, strict=True)]
        sequences = [EmbeddedSequence(small_network, X[:-60], X[:-60, 0]) for X in tables]
        found = []
        for step in range(0, 60, 20):  # they grow, and are asked about the past as well
            asked = [
                Question(s, X[-9:], (s.size, s.size // 2), (0.5,))
                for s, X in zip(sequences, tables, strict=True)
            ]
            found += [part for answered in answer(asked) for part in vars(answered).values()]
            for sequence, X, n in zip(sequences, tables, lengths, strict=True):
                rows = X[n + step : n + step + 20]
                sequence.append(rows, rows[:, 0])
        return found

    alone = said()
    monkeypatch.setitem(growth.CELLS_AT_ONCE, "cpu", cells)
    monkeypatch.setitem(asking.FEW_QUERIES, "cpu", 4096)
    monkeypatch.setattr(Cache, "gives_up_last_bit", True)  # as on a card
    for one, other in zip(alone, said(), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("seed", range(4))
def test_prefixes_asked_in_any_order_are_ready_together_as_on_a_card(
    small_network: CausalPFN, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    # After 277 rows were asked about, 270, 277 and 300 once lost 277: 270 took the place of its tail.
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((400, 2))
    asked = [[277], [270, 277, 300], *(sorted(rng.integers(140, 400, 5).tolist()) for _ in range(12))]

    def said() -> list[np.ndarray]:
        sequence = EmbeddedSequence(small_network, X, X[:, 0])
        return [sequence.predict(X[:5], sizes=sizes).means for sizes in asked]

    alone = said()
    monkeypatch.setattr(Cache, "gives_up_last_bit", True)
    for one, other in zip(alone, said(), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)
