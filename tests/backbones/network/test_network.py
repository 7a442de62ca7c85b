from __future__ import annotations

import pytest
import torch
from torch import Tensor

from pfnts.backbones.network.attention import attend, attend_first
from pfnts.backbones.network.features.features import features_of
from pfnts.backbones.network.network import Architecture, CausalPFN

Table = tuple[Tensor, Tensor, Tensor]


def table(seed: int, *, rows: int = 40, features: int = 3, identity: int = 24) -> Table:
    generator = torch.Generator().manual_seed(seed)
    X = torch.randn(2, rows, features, generator=generator)
    y = torch.randn(2, rows, generator=generator)
    return X, y, torch.randn(2, features, identity, generator=generator)


def ask(
    network: CausalPFN, X: Tensor, y: Tensor, identity: Tensor, asked: int = 39
) -> tuple[Tensor, Tensor, Tensor]:
    """What is said of the last rows, each from the rows before it."""
    return network.predict_tables(X, y, identity, features_of(X, y), asked=asked)


@pytest.mark.parametrize("row", [1, 7, 31, 38])
def test_a_target_reaches_later_rows_only(small_network: CausalPFN, row: int) -> None:
    X, y, identity = table(row)
    changed = y.clone()
    changed[:, row] += 1.0
    before = ask(small_network, X, y, identity)
    after = ask(small_network, X, changed, identity)
    for old, new in zip(before, after, strict=True):
        assert torch.equal(old[:, :row], new[:, :row])
        assert not torch.equal(old[:, row], new[:, row])


@pytest.mark.parametrize("row", [3, 20])
def test_a_context_reaches_its_own_and_later_rows_only(small_network: CausalPFN, row: int) -> None:
    X, y, identity = table(row)
    changed = X.clone()
    changed[:, row, 1] += 1.0
    old, *_ = ask(small_network, X, y, identity)
    new, *_ = ask(small_network, changed, y, identity)
    assert torch.equal(old[:, : row - 1], new[:, : row - 1])
    assert (old[:, row - 1 :] != new[:, row - 1 :]).all(1).all()


def test_rows_asked_for_do_not_influence_each_other(small_network: CausalPFN) -> None:
    X, y, identity = table(1)
    every = ask(small_network, X, y, identity)
    some = ask(small_network, X, y, identity, asked=5)
    for all_of, few in zip(every, some, strict=True):
        torch.testing.assert_close(few, all_of[:, -5:], atol=1e-5, rtol=0)


def test_rows_asked_for_together_see_the_rows_before_the_first(small_network: CausalPFN) -> None:
    X, y, identity = table(5)
    base_predictions = features_of(X, y, asked=6)
    together = small_network.predict_tables(X, y, identity, base_predictions, asked=6, together=True)
    for row in range(34, 40):
        rows = [*range(34), row]
        alone = small_network.predict_tables(
            X[:, rows], y[:, rows], identity, base_predictions[:, rows], asked=1
        )
        for one, many in zip(alone, together, strict=True):
            torch.testing.assert_close(one[:, 0], many[:, row - 34], atol=1e-5, rtol=0)


@pytest.mark.parametrize("asked", [1, 20, 60, 99])
def test_rows_asked_for_after_those_that_columns_see_are_asked_alike(
    small_network: CausalPFN, asked: int
) -> None:
    X, y, identity = table(6, rows=100)  # of which 64 are seen down the columns
    said = ask(small_network, X, y, identity, asked)
    for row in {99, 100 - asked, 70, 65, 64, 63} & set(range(100 - asked, 100)):
        alone = ask(small_network, X[:, : row + 1], y[:, : row + 1], identity, 1)
        for one, many in zip(alone, said, strict=True):
            torch.testing.assert_close(one[:, 0], many[:, row - 100 + asked], atol=1e-5, rtol=0)


@pytest.mark.parametrize(("queries", "keys"), [(9, 9), (9, 4), (5, 4), (3, 4), (9, 1)])
def test_the_first_keys_are_seen_by_all_that_they_come_before(queries: int, keys: int) -> None:
    generator = torch.Generator().manual_seed(queries)
    query, key, value = (
        torch.randn(1, 2, length, 4, generator=generator) for length in (queries, keys, keys)
    )
    score = query @ key.mT / 2
    for i in range(queries):  # the i-th of the last queries before place 9
        score[:, :, i, 9 - queries + i + 1 :] = -torch.inf
    expected = torch.softmax(score, -1) @ value
    torch.testing.assert_close(attend_first(query, key, value, before=9), expected)


def test_order_of_columns_does_not_matter(small_network: CausalPFN) -> None:
    X, y, identity = table(2, features=5)
    order = torch.tensor([3, 0, 4, 1, 2])
    mean, *_ = ask(small_network, X, y, identity)
    shuffled, *_ = ask(small_network, X[:, :, order], y, identity[:, order])
    torch.testing.assert_close(shuffled, mean, atol=1e-3, rtol=0)


def test_missing_cells_give_finite_predictions_unlike_zeros(small_network: CausalPFN) -> None:
    X, y, identity = table(4)
    X[:, ::3, 0] = torch.nan
    said = ask(small_network, X, y, identity)
    filled, *_ = ask(small_network, torch.nan_to_num(X), y, identity)
    assert all(torch.isfinite(part).all() for part in said)
    assert not torch.allclose(said[0], filled, atol=1e-4)


def test_attention_sharpens_with_the_rows_seen_and_never_turns_round(small_network: CausalPFN) -> None:
    block = small_network.in_context[0]
    normed = torch.randn(1, 3, 1, small_network.architecture.row, generator=torch.Generator().manual_seed(0))
    few, more, most = (block.queries(normed, torch.full((3,), n)) for n in (0, 100, 10_000))
    ratio = more / few
    assert (ratio > 1).all()
    assert (most / few > ratio).all()


@pytest.mark.parametrize(("heads", "keys"), [(8, 2), (4, 1), (6, 6)])
@pytest.mark.parametrize("masked", [False, True])
def test_shared_keys_are_those_of_each_head_written_out(heads: int, keys: int, masked: bool) -> None:
    generator = torch.Generator().manual_seed(0)
    query, key, value = (
        torch.randn(2, h, n, 5, generator=generator) for h, n in ((heads, 3), (keys, 7), (keys, 7))
    )
    mask = torch.randn(3, 7, generator=generator) if masked else None
    whole = [x.repeat_interleave(heads // keys, 1) for x in (key, value)]
    expected = torch.nn.functional.scaled_dot_product_attention(query, *whole, attn_mask=mask)
    torch.testing.assert_close(attend(query, key, value, mask=mask), expected)


def test_default_sizes_give_99_quantiles() -> None:
    assert Architecture().quantiles >= 99
    assert Architecture().row == Architecture().readouts * Architecture().cell
