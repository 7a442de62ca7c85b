"""Attention of the tokens of several histories, each to its own cache."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pfnts.backbones.network.attention import attend, mask_of
from pfnts.backbones.network.inference.buffer import Buffer
from pfnts.backbones.network.inference.products import attend_by_products, pays

FEW_ON_A_CARD = 6144
"""Up to as many queries, over all heads, plain products are faster on a card: fused attention reads all keys
once for every 64 queries, and leaves most of the card idle."""


TOKENS_AT_ONCE = {"cpu": 256, "cuda": 2**16, "mps": 2**12}
"""Tokens of one call, which computes the scores of all keys up to the last that any of them sees."""


class WithCaches:
    """Attention that appends to caches and reads them, as `pfnts.backbones.network.network.Attend`.

    Parameters
    ----------
    caches
        Of each history, the keys and values of every block.
    visible
        Of each history, the number of first tokens in its cache that each of its tokens attends to; data
        tokens, then queries.
    data
        Number of data tokens of each history.
    device
        Where the network is.
    """

    def __init__(
        self,
        caches: Sequence[tuple[Buffer, ...]],
        visible: Sequence[NDArray[np.int64]],
        data: Sequence[int],
        device: torch.device,
    ) -> None:
        self.caches = [list(cache) for cache in caches]
        """With the new tokens, after the pass."""
        self._visible, self._data, self._device = visible, list(data), device
        self._queries = [len(each) - d for each, d in zip(visible, data, strict=True)]
        self._masks: dict[tuple[int, int | None, bool], list[_Span]] = {}
        of_data, of_queries = (np.repeat(np.arange(len(data)), n) for n in (self._data, self._queries))
        # Tokens come in the order data of all, queries of all; attention takes them history by history.
        order = np.argsort(np.concatenate([of_data, of_queries]), kind="stable")
        self._order, self._back = (torch.from_numpy(x).to(device) for x in (order, np.argsort(order)))

    def __call__(self, block: int, visible: int | None, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        """Append keys and values to the caches of a block, and attend to them."""
        for cache, k, v in zip(
            self.caches, key.split(self._data, 2), value.split(self._data, 2), strict=True
        ):
            room = k.shape[2] if visible is None else max(0, visible - len(cache[block]))
            cache[block] = cache[block].append(k[:, :, :room], v[:, :, :room])
        data = query.shape[2] == len(self._order)  # whether data tokens are among the queries
        if len(self.caches) == 1:
            return self._attend(0, block, visible, query, data)
        lengths = [len(each) for each in self._visible] if data else self._queries
        parts = (query.index_select(2, self._order) if data else query).split(lengths, 2)
        attended = torch.cat([self._attend(i, block, visible, x, data) for i, x in enumerate(parts)], 2)
        return attended.index_select(2, self._back) if data else attended

    def _attend(self, i: int, block: int, most: int | None, query: Tensor, data: bool) -> Tensor:
        """Attend from tokens of one history to the first ``most`` tokens of its cache, as far as visible."""
        spans = self._spans(i, most, data)
        parts = zip(query.split([span.tokens for span in spans], 2), spans, strict=True)
        cache = self.caches[i][block]
        attended = [
            attend_fast(part, *cache.upto(span.keys), mask=span.mask, common=span.common)
            for part, span in parts
        ]
        return attended[0] if len(attended) == 1 else torch.cat(attended, 2)

    def _spans(self, i: int, most: int | None, data: bool) -> list[_Span]:
        if (i, most, data) not in self._masks:
            visible = self._visible[i] if data else self._visible[i][self._data[i] :]
            visible = visible if most is None else np.minimum(visible, most)
            at_once = TOKENS_AT_ONCE[self._device.type]
            cuts = [visible[begin : begin + at_once] for begin in range(0, max(1, len(visible)), at_once)]
            self._masks[i, most, data] = [_Span.of(cut, self._device) for cut in cuts]
        return self._masks[i, most, data]


@dataclass(frozen=True)
class _Span:
    """Tokens that attend together: to the first ``keys`` tokens of a cache, but for what a mask hides."""

    tokens: int
    keys: int
    common: int
    """Number of keys that all tokens see."""
    mask: Tensor | None

    @staticmethod
    def of(visible: NDArray[np.int64], device: torch.device) -> _Span:
        keys, common = int(visible.max(initial=1)), int(visible.min(initial=2**62))
        mask = mask_of(torch.from_numpy(visible).to(device), keys) if common < keys else None
        return _Span(len(visible), keys, common, mask)


def attend_fast(query: Tensor, key: Tensor, value: Tensor, *, mask: Tensor | None, common: int) -> Tensor:
    """As `attend`, by the fastest way: it depends on the device and the number of queries."""
    if pays(query, key):
        return attend_by_products(query, key, value, mask=mask, common=common)
    H, m, w = query.shape[1:]
    if not query.is_cuda or H * m > FEW_ON_A_CARD:
        return attend(query, key, value, mask=mask)
    h = key.shape[1]
    score = (query * w**-0.5).reshape(1, h, H // h * m, w) @ key.mT
    if mask is not None:
        score = score + mask.repeat(H // h, 1)
    return (torch.softmax(score, -1) @ value).reshape(1, H, m, w)
