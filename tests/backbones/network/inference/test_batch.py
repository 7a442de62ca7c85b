"""Calls about several histories, and the forward passes that they share."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from numpy.random import Generator

from pfnts.backbones import Append, LinearBackbone, Question
from pfnts.backbones.network.features.features import Features
from pfnts.backbones.network.features.table import BASE_PREDICTIONS
from pfnts.backbones.network.inference import step
from pfnts.backbones.network.inference.batch import append, predict
from pfnts.backbones.network.inference.frame import WIDENED, basis_of
from pfnts.backbones.network.inference.sequence import EmbeddedSequence
from pfnts.backbones.network.inference.state import SHORT
from pfnts.backbones.network.network import CausalPFN


def history(network: CausalPFN, rng: Generator, n: int, features: int = 3) -> EmbeddedSequence:
    X = rng.standard_normal((n, features))
    return EmbeddedSequence(network, X, X[:, 0] + rng.standard_normal(n))


@pytest.fixture
def passes(small_network: CausalPFN, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Numbers of tokens in each forward pass, start tokens included."""
    tokens: list[int] = []
    forward = CausalPFN.forward

    def counted(self: CausalPFN, X: torch.Tensor, *rest: object) -> object:
        tokens.append(X.shape[1])
        return forward(self, X, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(CausalPFN, "forward", counted)
    return tokens


def test_histories_of_the_same_width_share_a_forward_pass(
    small_network: CausalPFN, rng: Generator, passes: list[int]
) -> None:
    one, other, wider = (history(small_network, rng, n, p) for n, p in ((256, 3), (20, 3), (20, 5)))
    x = rng.standard_normal((2, 5))
    predict(
        [
            Question(one, x[:, :3], (200, 250, 256)),
            Question(other, x[:, :3], (20,)),
            Question(wider, x, (20,)),
        ]
    )
    assert passes == [256 + 1 + 6 + 20 + 1 + 2, 20 + 1 + 2]


def test_many_histories_at_once_equal_one_at_a_time(small_network: CausalPFN, rng: Generator) -> None:
    sizes = [1, 5, 31, 40, 64, 90, 170, 260, 700]
    X = rng.standard_normal((sum(sizes), 4))
    y = X[:, 0] + rng.standard_normal(len(X))
    cuts = np.split(np.arange(len(X)), np.cumsum(sizes)[:-1])
    new, targets, wanted = rng.standard_normal((30, 4)), rng.standard_normal(30), rng.random(30) < 0.5

    def sequences() -> list[EmbeddedSequence]:
        return [EmbeddedSequence(small_network, X[rows], y[rows]) for rows in cuts]

    together, alone = sequences(), sequences()
    batches = [
        predict([Question(s, new, (1, s.size), (0.3,)) for s in together]),
        append([Append(s, new, targets, wanted) for s in together], [0.3]),
        predict([Question(s, new[:2], (s.size, 1), (0.3,)) for s in together]),
    ]
    singles = [
        [predict([Question(s, new, (1, s.size), (0.3,))])[0] for s in alone],
        [append([Append(s, new, targets, wanted)], [0.3])[0] for s in alone],
        [predict([Question(s, new[:2], (s.size, 1), (0.3,))])[0] for s in alone],
    ]
    close = {"rtol": 0, "atol": 1e-4 * y.std()}
    for batch, single in zip(batches, singles, strict=True):
        for one, other in zip(batch, single, strict=True):
            assert one is not None
            assert other is not None
            np.testing.assert_allclose(one.means, other.means, **close)
            np.testing.assert_allclose(one.quantiles, other.quantiles, **close)
            np.testing.assert_allclose(one.mean_sd, other.mean_sd, **close)


@pytest.mark.parametrize("cells", [6, 90, 700])
def test_passes_are_cut_to_what_memory_holds(
    small_network: CausalPFN, rng: Generator, passes: list[int], monkeypatch: pytest.MonkeyPatch, cells: int
) -> None:
    X = rng.standard_normal((130, 3))
    y = X[:, 0] + rng.standard_normal(130)
    wanted, queries = rng.random(60) < 0.7, rng.standard_normal((50, 3))

    def found() -> list[np.ndarray]:
        both = [EmbeddedSequence(small_network, X[:n], y[:n]) for n in (70, 40)]
        forecasts = append([Append(s, X[70:], y[70:], wanted) for s in both])
        answers = predict([Question(s, queries, (3, 50, 64, s.size), (0.5,)) for s in both])
        return [each.means for each in (*forecasts, *answers) if each is not None]

    whole = found()
    passes.clear()
    monkeypatch.setitem(step.CELLS_AT_ONCE, "cpu", cells)
    for one, other in zip(found(), whole, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-4 * y.std())
    assert max(passes) <= max(4, cells // 3) + 12  # at most one start token for each state


def test_nothing_is_done_when_one_of_several_is_wrong(
    small_network: CausalPFN, rng: Generator, passes: list[int]
) -> None:
    sequence, x = history(small_network, rng, 40), rng.standard_normal((1, 3))
    with pytest.raises(ValueError, match="sizes must be between 1 and the 40 rows held"):
        predict([Question(sequence, x, (40,)), Question(sequence, x, (41,))])
    stranger = LinearBackbone().sequence(np.zeros((2, 3)), [0.0, 1.0])
    with pytest.raises(ValueError, match=r"sequences must be of this backbone, got.*Linear"):
        predict([Question(sequence, x, (40,)), Question(stranger, x, (2,))])
    with pytest.raises(ValueError, match=r"sequences must be of this backbone, got.*Linear"):
        append([Append(sequence, x, x[:, 0]), Append(stranger, x, x[:, 0])])
    assert sequence.size == 40
    assert passes == []


class HeadThatKnowsTheMean(torch.nn.Module):
    """Returns minus one as the logarithm of the mean's standard deviation."""

    def __init__(self, head: torch.nn.Module) -> None:
        super().__init__()
        self.head = head

    def forward(self, h: torch.Tensor, base_predictions: torch.Tensor) -> tuple[torch.Tensor, ...]:
        mean, quantiles = self.head(h, base_predictions)[:2]
        return mean, quantiles, torch.full_like(mean, -1.0)


def test_standard_deviation_is_in_the_units_of_the_targets(small_network: CausalPFN, rng: Generator) -> None:
    network = copy.deepcopy(small_network)
    network.head = HeadThatKnowsTheMean(network.head)  # type: ignore[assignment]
    X, y = rng.standard_normal((32, 3)), 7 + 5 * rng.standard_normal(32)
    for queries in (2, 100):
        found = EmbeddedSequence(network, X, y).predict(rng.standard_normal((queries, 3)), sizes=[3, 32])
        expected = np.full(queries, np.exp(-1) * y.std() * (1 + WIDENED / 32))
        np.testing.assert_allclose(found.mean_sd, expected, rtol=1e-6)


@pytest.mark.parametrize(("size", "features"), [(40, 3), (40, 50), (800, 3)])
def test_everything_that_a_card_computes_with_is_moved_there(
    small_network: CausalPFN, rng: Generator, monkeypatch: pytest.MonkeyPatch, size: int, features: int
) -> None:
    # The device "meta" stands for a card: it has shapes and no values, so that only the answer is missing.
    from pfnts.backbones.network.inference import cached

    for limits in (step.CELLS_AT_ONCE, step.SCORES_AT_ONCE, cached.TOKENS_AT_ONCE):
        monkeypatch.setitem(limits, "meta", 2**20)
    devices = set()

    def noted(self: Features, X: torch.Tensor, y: torch.Tensor) -> tuple[Features, torch.Tensor]:
        devices.add(X.device.type)
        return self, torch.zeros(1, X.shape[1], BASE_PREDICTIONS, device=X.device)

    monkeypatch.setattr(Features, "extend", noted)
    monkeypatch.setattr(Features, "at", lambda self, X, _: noted(self, X, X)[1])
    X = rng.standard_normal((size, features))
    sequence = EmbeddedSequence(copy.deepcopy(small_network).to("meta"), X, X[:, 0], device="meta")
    with pytest.raises(NotImplementedError, match="Cannot copy out of meta tensor"):
        sequence.means(rng.standard_normal((9, features)), [size])
    assert devices == {"cpu" if basis_of(size) < SHORT else "meta"}
