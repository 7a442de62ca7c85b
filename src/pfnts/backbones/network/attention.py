"""Attention of whole tables at once, as in training; `key_values` has that of a history in use."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F


def attend(query: Tensor, key: Tensor, value: Tensor, *, mask: Tensor | None = None) -> Tensor:
    """Attention of queries (B, H, m, w) to keys and values (B, h, n, w), each of which serves H / h heads.

    Parameters
    ----------
    query, key, value
        As `CausalBlock.queries` and `CausalBlock.keys_values` give them.
    mask
        (m, n), added to the scores.

    Examples
    --------
    >>> attend(torch.randn(1, 8, 5, 4), torch.randn(1, 2, 7, 4), torch.randn(1, 2, 7, 4)).shape
    torch.Size([1, 8, 5, 4])
    """
    B, H, m, w = query.shape
    h, n = key.shape[1], key.shape[2]
    if mask is None:  # heads that share keys are so many more queries
        seen = F.scaled_dot_product_attention(query.reshape(B, h, H // h * m, w), key, value)
        return seen.reshape(B, H, m, w)
    each = (B * h, H // h, n, w)  # views: nothing is copied
    key, value = (x.reshape(B * h, 1, n, w).expand(each) for x in (key, value))
    seen = F.scaled_dot_product_attention(query.reshape(B * h, H // h, m, w), key, value, attn_mask=mask)
    return seen.reshape(B, H, m, w)


def attend_first(query: Tensor, key: Tensor, value: Tensor, *, before: int) -> Tensor:
    """The same where the last query sees the keys ``before`` it, the one before it one less, and so on.

    Only the first keys are there: who would see others as well sees all of these.
    """
    m = query.shape[2]
    within = max(0, m - (before - key.shape[2]))
    if within == m:
        return attend_before(query, key, value)
    all_seen = attend(query[:, :, within:], key, value)
    if not within:
        return all_seen
    return torch.cat([attend_before(query[:, :, :within], key, value), all_seen], 2)


def attend_before(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """The same where the last query sees all keys, the one before it all but one, and so on."""
    if query.is_cuda and query.dtype != torch.float32:  # fast attention knows this mask
        return torch.ops.aten._scaled_dot_product_flash_attention(query, key, value, 0.0, True)[0]
    m, n = query.shape[2], key.shape[2]
    later = torch.ones(m, n, dtype=torch.bool, device=query.device).triu(n - m + 1)
    mask = torch.zeros(m, n, dtype=query.dtype, device=query.device).masked_fill(later, -torch.inf)
    return attend(query, key, value, mask=mask)
