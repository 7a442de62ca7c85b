"""Attention by products, against fused attention."""

from __future__ import annotations

import pytest
import torch

from pfnts.backbones.network.attention import attend, mask_of
from pfnts.backbones.network.inference import products
from pfnts.backbones.network.inference.products import attend_by_products, has_onednn, pays


def tokens(seed: int, heads: int, shared: int, queries: int, keys: int) -> tuple[torch.Tensor, ...]:
    generator = torch.Generator().manual_seed(seed)
    sizes = ((heads, queries), (shared, keys), (shared, keys))
    return tuple(torch.randn(1, h, n, 8, generator=generator) for h, n in sizes)


@pytest.mark.skipif(not has_onednn(), reason="oneDNN is not the faster library here")
@pytest.mark.parametrize(("heads", "shared"), [(8, 2), (4, 1), (3, 3)])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize(("queries", "keys"), [(64, 256), (300, 1100)])
def test_products_agree_with_fused_attention(
    heads: int, shared: int, masked: bool, queries: int, keys: int
) -> None:
    query, key, value = tokens(queries, heads, shared, queries, keys)
    visible = torch.randperm(queries, generator=torch.Generator().manual_seed(0)) + keys - queries + 1
    mask = mask_of(visible, keys) if masked else None
    expected = attend(query, key, value, mask=mask)
    found = attend_by_products(query, key, value, mask=mask, common=keys - queries + 1)
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)


def test_without_onednn_fused_attention_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    query, key, _ = tokens(0, 8, 2, 64, 256)
    assert pays(query, key) == has_onednn()
    assert not pays(query[:, :, :8], key)
    monkeypatch.setattr(products, "has_onednn", lambda: False)
    assert not pays(query, key)
