"""Attention of the tokens of several histories, each to its own cache."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pfnts.backbones.network.attention import attend, mask_of
from pfnts.backbones.network.features.rows import Rows
from pfnts.backbones.network.inference.products import attend_by_products, pays
from pfnts.backbones.network.inference.state import Cache

FEW_ON_A_CARD = 6144
"""Up to as many queries, over all heads, plain products are faster on a card: fused attention reads all keys
once for every 64 queries, and leaves most of the card idle."""
TOKENS_AT_ONCE = {"cpu": 256, "cuda": 2**16, "mps": 2**12}
"""Tokens of one call, which computes the scores of all keys up to the last that any of them sees."""

IntVector = NDArray[np.int64]


class WithCaches:
    """Attention that extends caches and reads them, as `pfnts.backbones.network.network.Attend`.

    Parameters
    ----------
    caches
        Of each history, before the pass.
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
        caches: Sequence[Cache],
        visible: Sequence[IntVector],
        data: Sequence[int],
        device: torch.device,
    ) -> None:
        self._before, self._after = caches, [list[tuple[Rows, Rows]]() for _ in caches]
        self._visible, self._data, self._device = visible, list(data), device
        self._queries = [len(each) - d for each, d in zip(visible, data, strict=True)]
        self._spans: dict[tuple[int, int | None, bool], list[Span]] = {}
        of_data, of_queries = (np.repeat(np.arange(len(data)), n) for n in (self._data, self._queries))
        # Tokens come in the order data of all, queries of all; attention takes them history by history.
        order = np.argsort(np.concatenate([of_data, of_queries]), kind="stable")
        self._order, self._back = (torch.from_numpy(x).to(device) for x in (order, np.argsort(order)))

    @property
    def caches(self) -> list[Cache]:
        """After the pass."""
        return [tuple(cache) for cache in self._after]

    def __call__(self, block: int, visible: int | None, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        """Append keys and values to the caches of a block, and attend to them."""
        new = zip(key[0].split(self._data, 1), value[0].split(self._data, 1), strict=True)
        for i, (k, v) in enumerate(new):
            self._after[i].append(_extended(self._before[i], block, k, v, visible))
        data = query.shape[2] == len(self._order)  # whether data tokens are among the queries
        if len(self._data) == 1:
            return self._attend(0, block, visible, query, data)
        lengths = [len(each) for each in self._visible] if data else self._queries
        parts = (query.index_select(2, self._order) if data else query).split(lengths, 2)
        attended = torch.cat([self._attend(i, block, visible, x, data) for i, x in enumerate(parts)], 2)
        return attended.index_select(2, self._back) if data else attended

    def _attend(self, i: int, block: int, most: int | None, query: Tensor, data: bool) -> Tensor:
        """Attend from tokens of one history to the first ``most`` tokens of its cache, as far as visible."""
        if not query.shape[2]:
            return query
        if (i, most, data) not in self._spans:
            visible = self._visible[i] if data else self._visible[i][self._data[i] :]
            self._spans[i, most, data] = spans(np.minimum(visible, most or visible.max()), self._device)
        keys, values = self._after[i][block]
        attended, begin = [], 0
        for span in self._spans[i, most, data]:
            part = query[:, :, begin : begin + span.tokens]
            attended.append(attend_fast(part, keys.first(span.keys), values.first(span.keys), span))
            begin += span.tokens
        return attended[0] if len(attended) == 1 else torch.cat(attended, 2)


def _extended(cache: Cache, block: int, key: Tensor, value: Tensor, most: int | None) -> tuple[Rows, Rows]:
    """Append keys and values (H, m, w) to those of a block, up to ``most`` in all."""
    if not cache:
        # Views of other tensors would be slow to read: products of oneDNN take a hundred times as long.
        return Rows.of(key[:, :most].contiguous()), Rows.of(value[:, :most].contiguous())
    keys, values = cache[block]
    room = key.shape[1] if most is None else max(0, most - keys.length)
    return keys.append(key[:, :room]), values.append(value[:, :room])


@dataclass(frozen=True)
class Span:
    """Tokens of one history that attend in one call."""

    tokens: int
    keys: int
    """Number of keys that some of them see."""
    common: int
    """Number of keys that all of them see."""
    mask: Tensor | None
    """(tokens, keys); None if it would hide nothing."""


def spans(visible: IntVector, device: torch.device) -> list[Span]:
    """Cut tokens, each of which sees the first ``visible`` (m,) keys, into spans."""
    at_once, found = TOKENS_AT_ONCE[device.type], []
    for part in (visible[begin : begin + at_once] for begin in range(0, len(visible), at_once)):
        keys, common = int(part.max()), int(part.min())
        mask = mask_of(torch.from_numpy(part).to(device), keys) if common < keys else None
        found.append(Span(len(part), keys, common, mask))
    return found


def attend_fast(query: Tensor, key: Tensor, value: Tensor, span: Span) -> Tensor:
    """Attend from the tokens of a span (1, H, m, w) to keys and values (h, n, w), in the fastest way."""
    key, value = key[None], value[None]
    if pays(query, key):
        return attend_by_products(query, key, value, mask=span.mask, common=span.common)
    H, m, w = query.shape[1:]
    if not query.is_cuda or H * m > FEW_ON_A_CARD:
        return attend(query, key, value, mask=span.mask)
    h = key.shape[1]
    score = (query * w**-0.5).reshape(1, h, H // h * m, w) @ key.mT
    if span.mask is not None:
        score = score + span.mask.repeat(H // h, 1)
    return (torch.softmax(score, -1) @ value).reshape(1, H, m, w)
