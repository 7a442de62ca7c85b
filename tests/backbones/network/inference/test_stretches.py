"""Attention in parts is attention."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.random import Generator
from torch import Tensor

from pfnts.backbones.network.inference import stretches
from pfnts.backbones.network.inference.key_values import attention
from pfnts.backbones.network.inference.products import has_onednn
from pfnts.backbones.network.inference.stretches import AT_ONCE, MANY, STRETCH, parted


@pytest.fixture(params=[False, True])
def available(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    if request.param and not has_onednn():
        pytest.skip("no oneDNN that is faster here")
    monkeypatch.setattr(stretches, "has_onednn", lambda: request.param)
    return bool(request.param)


def textbook(query: Tensor, key: Tensor, value: Tensor, mask: Tensor) -> Tensor:
    """In double precision, with keys and values copied for every head."""
    share = query.shape[1] // key.shape[1]
    query, key, value, mask = (x.double() for x in (query, key, value, mask))
    keys, values = (x.repeat_interleave(share, 1) for x in (key, value))
    weight = torch.softmax(query @ keys.mT / query.shape[-1] ** 0.5 + mask, -1)
    return (weight @ values).float()


@pytest.mark.parametrize("shared", [1, 2, 8])
@pytest.mark.parametrize("own", [0, 1, 9])
@pytest.mark.parametrize("before", [MANY, MANY + STRETCH + 3, AT_ONCE + MANY])
@pytest.mark.parametrize("size", [1.0, 30.0])
@pytest.mark.usefixtures("available")
def test_attention_in_parts_is_attention(
    rng: Generator, shared: int, own: int, before: int, size: float
) -> None:
    query, key, value = (
        torch.from_numpy(rng.standard_normal((1, heads, rows, 4)).astype(np.float32))
        for heads, rows in ((8, 9), (shared, before + own), (shared, before + own))
    )
    query *= size  # scores of some hundreds
    mask = torch.zeros(9, before + own)
    mask[:, before:] = torch.full((9, own), -torch.inf).triu(1)
    expected = textbook(query, key, value, mask)
    torch.testing.assert_close(attention(query, key, value, mask, before), expected, rtol=1e-4, atol=1e-4)
    if not own:
        torch.testing.assert_close(attention(query, key, value), expected, rtol=1e-4, atol=1e-4)


def test_parts_are_long(available: bool) -> None:
    assert parted(MANY - 1, masked=True) == 0
    assert parted(MANY + 3, masked=True) == (MANY if available else MANY + 3)
    assert parted(MANY + 3, masked=False) == (MANY if available else 0)
