"""Attention with shared keys, and the masks of training."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F


def attend(query: Tensor, key: Tensor, value: Tensor, *, mask: Tensor | None = None) -> Tensor:
    """Attention of queries (B, H, m, w) to keys and values (B, h, n, w), each of which serves H / h heads.

    Parameters
    ----------
    query, key, value
        As `CausalBlock.ask` returns them.
    mask
        (m, n), added to the scores.

    Examples
    --------
    >>> attend(torch.randn(1, 8, 5, 4), torch.randn(1, 2, 7, 4), torch.randn(1, 2, 7, 4)).shape
    torch.Size([1, 8, 5, 4])
    """
    B, H, m, w = query.shape
    h, n = key.shape[1], key.shape[2]
    if mask is None:  # heads with the same keys are further queries
        attended = F.scaled_dot_product_attention(query.reshape(B, h, H // h * m, w), key, value)
        return attended.reshape(B, H, m, w)
    each = (B * h, H // h, n, w)  # views: nothing is copied
    key, value = (x.reshape(B * h, 1, n, w).expand(each) for x in (key, value))
    query = query.reshape(B * h, H // h, m, w)
    return F.scaled_dot_product_attention(query, key, value, attn_mask=mask).reshape(B, H, m, w)


@dataclass(frozen=True)
class WithinTables:
    """Attention to the ``data`` tokens of the same table; the last ``asked`` tokens are queries."""

    data: int
    asked: int
    together: bool
    """True if all queries see all data tokens; else the last one does, the one before it all but one, ..."""

    def __call__(
        self,
        block: int,  # noqa: ARG002
        visible: int | None,
        query: Tensor,
        key: Tensor,
        value: Tensor,
    ) -> Tensor:
        """Attend as `pfnts.backbones.network.network.Attend`."""
        key, value = key[:, :, :visible], value[:, :, :visible]
        data, asking = query.split([query.shape[2] - self.asked, self.asked], 2)
        see = attend if self.together else self._causal
        attended = see(asking, key, value)
        return torch.cat([self._causal(data, key, value), attended], 2) if data.shape[2] else attended

    def _causal(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        return attend_first(query, key, value, before=self.data)


def attend_first(query: Tensor, key: Tensor, value: Tensor, *, before: int) -> Tensor:
    """Attention where the last query sees the keys ``before`` it, the one before it one less, and so on.

    If there are fewer keys, queries that would see more see all.
    """
    m = query.shape[2]
    within = max(0, m - (before - key.shape[2]))
    if within == m:
        return attend_before(query, key, value)
    rest = attend(query[:, :, within:], key, value)
    return torch.cat([attend_before(query[:, :, :within], key, value), rest], 2) if within else rest


def attend_before(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Attention where the last query sees all keys, the one before it all but one, and so on."""
    if query.is_cuda and query.dtype != torch.float32:  # a fused kernel knows this mask
        return torch.ops.aten._scaled_dot_product_flash_attention(query, key, value, 0.0, True)[0]
    n, m = key.shape[2], query.shape[2]
    visible = torch.arange(n - m + 1, n + 1, device=query.device)
    return attend(query, key, value, mask=mask_of(visible, n, dtype=query.dtype))


def mask_of(visible: Tensor, keys: int, *, dtype: torch.dtype = torch.float32) -> Tensor:
    """Return the mask (m, keys) of queries each of which sees the first ``visible`` (m,) keys.

    Examples
    --------
    >>> mask_of(torch.tensor([1, 3]), 3)
    tensor([[0., -inf, -inf],
            [0., 0., 0.]])
    """
    hidden = torch.arange(keys, device=visible.device) >= visible[:, None]
    return torch.zeros(hidden.shape, dtype=dtype, device=visible.device).masked_fill(hidden, -torch.inf)
