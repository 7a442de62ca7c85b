from __future__ import annotations

import pytest
import torch
from torch import Tensor

from pfnts.backbones.embedded.model import Architecture, CausalPFN
from pfnts.backbones.embedded.regressions import opinions_on

Table = tuple[Tensor, Tensor, Tensor]


def table(seed: int, *, rows: int = 40, features: int = 3, identity: int = 24) -> Table:
    generator = torch.Generator().manual_seed(seed)
    X = torch.randn(2, rows, features, generator=generator)
    y = torch.randn(2, rows, generator=generator)
    return X, y, torch.randn(2, features, identity, generator=generator)


def ask(
    network: CausalPFN, X: Tensor, y: Tensor, identity: Tensor, asked: list[range]
) -> tuple[Tensor, Tensor]:
    return network(X, y, identity, asked, opinions_on(X, y))


@pytest.mark.parametrize("row", [0, 7, 31, 38])
def test_a_target_reaches_later_rows_only(small_network: CausalPFN, row: int) -> None:
    X, y, identity = table(row)
    changed = y.clone()
    changed[:, row] += 1.0
    asked = [range(40)]
    before = ask(small_network, X, y, identity, asked)
    after = ask(small_network, X, changed, identity, asked)
    for old, new in zip(before, after, strict=True):
        assert torch.equal(old[:, : row + 1], new[:, : row + 1])
        assert not torch.equal(old[:, row + 1], new[:, row + 1])


@pytest.mark.parametrize("row", [3, 20])
def test_a_context_reaches_its_own_and_later_rows_only(small_network: CausalPFN, row: int) -> None:
    X, y, identity = table(row)
    changed = X.clone()
    changed[:, row, 1] += 1.0
    asked = [range(40)]
    old, _ = ask(small_network, X, y, identity, asked)
    new, _ = ask(small_network, changed, y, identity, asked)
    assert torch.equal(old[:, :row], new[:, :row])
    assert (old[:, row:] != new[:, row:]).all(1).all()


def test_rows_asked_for_do_not_influence_each_other(small_network: CausalPFN) -> None:
    X, y, identity = table(1)
    every, _ = ask(small_network, X, y, identity, [range(40)])
    some, _ = ask(small_network, X, y, identity, [range(30, 33), range(5, 7), range(31, 40)])
    torch.testing.assert_close(some, every[:, [30, 31, 32, 5, 6, *range(31, 40)]], atol=1e-5, rtol=0)


def test_order_of_columns_does_not_matter(small_network: CausalPFN) -> None:
    X, y, identity = table(2, features=5)
    order = torch.tensor([3, 0, 4, 1, 2])
    mean, _ = ask(small_network, X, y, identity, [range(40)])
    shuffled, _ = ask(small_network, X[:, :, order], y, identity[:, order], [range(40)])
    torch.testing.assert_close(shuffled, mean, atol=1e-5, rtol=0)


def test_first_row_is_predicted_from_nothing(small_network: CausalPFN) -> None:
    X, y, identity = table(3)
    alone, _ = ask(small_network, X[:, :1], y[:, :1], identity, [range(1)])
    among, _ = ask(small_network, X, y, identity, [range(1)])
    torch.testing.assert_close(alone, among, atol=1e-5, rtol=0)


def test_missing_cells_give_finite_predictions_unlike_zeros(small_network: CausalPFN) -> None:
    X, y, identity = table(4)
    X[:, ::3, 0] = torch.nan
    mean, quantiles = ask(small_network, X, y, identity, [range(40)])
    filled, _ = ask(small_network, torch.nan_to_num(X), y, identity, [range(40)])
    assert torch.isfinite(mean).all()
    assert torch.isfinite(quantiles).all()
    assert not torch.allclose(mean, filled, atol=1e-4)


def test_default_sizes_give_99_quantiles() -> None:
    assert Architecture().quantiles >= 99
    assert Architecture().row == Architecture().readouts * Architecture().cell
