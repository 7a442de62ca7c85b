"""Attention of many queries on a CPU, by products of oneDNN: half the time of PyTorch's fused attention.

PyTorch's products come from MKL, which uses narrower instructions on processors that are not Intel's.
"""

from __future__ import annotations

import math
from functools import lru_cache

import torch
from torch import Tensor

FEWEST_QUERIES, FEWEST_KEYS = 64, 256
SCORES = 2**18
"""Scores held at a time: what fits into a core's cache."""


@lru_cache(maxsize=1)
def has_onednn() -> bool:
    """Return whether oneDNN is available and faster."""
    wide = torch.backends.cpu.get_cpu_capability() == "AVX512"
    return wide and torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_linear_pointwise")


def pays(query: Tensor, key: Tensor) -> bool:
    """Return whether products are faster for queries (1, H, m, w) and keys (1, h, n, w)."""
    enough = query.shape[2] >= FEWEST_QUERIES and key.shape[2] >= FEWEST_KEYS
    return enough and query.device.type == "cpu" and query.dtype == torch.float32 and has_onednn()


def attend_by_products(
    query: Tensor, key: Tensor, value: Tensor, *, mask: Tensor | None, common: int
) -> Tensor:
    """As `pfnts.backbones.network.attention.attend`, for one history on a CPU with oneDNN, without gradients.

    The mask hides none of the first ``common`` keys.

    Examples
    --------
    >>> query, key = torch.randn(1, 4, 70, 8), torch.randn(1, 2, 300, 8)
    >>> same = torch.nn.functional.scaled_dot_product_attention(query, key, key, enable_gqa=True)
    >>> found = attend_by_products(query, key, key, mask=None, common=300) if has_onednn() else same
    >>> torch.allclose(found, same, atol=1e-5)
    True
    """
    H, m, w = query.shape[1:]
    h, n = key.shape[1:3]
    share = H // h
    query = (query * (math.log2(math.e) / w**0.5)).view(h, share, m, w)  # powers of two are quicker than of e
    attended = torch.empty_like(query)
    rows = max(32, SCORES // (share * n))
    for of_head, k, v, out in zip(query, key[0], value[0].mT, attended, strict=True):
        for begin in range(0, m, rows):
            part = slice(begin, begin + rows)
            score = _product(of_head[:, part].reshape(-1, w), k)
            if mask is not None:
                score.view(share, -1, n)[:, :, common:] += mask[part, common:]
            score.sub_(score.amax(1, keepdim=True)).exp2_()
            out[:, part] = (_product(score, v) / score.sum(1, keepdim=True)).view(share, -1, w)
    return attended.view(1, H, m, w)


def _product(x: Tensor, weight: Tensor) -> Tensor:
    """Return x (m, k) times a weight (n, k)."""
    product: Tensor = torch.ops.mkldnn._linear_pointwise(x, weight, None, "none", [], "")
    return product
