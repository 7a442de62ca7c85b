"""Attention of the tokens of several histories, each to its own cache."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pfnts.backbones.network.attention import attend, mask_of
from pfnts.backbones.network.inference.buffer import Buffer

FEW_ON_A_CARD = 6144
"""Up to as many queries, over all heads, plain products are faster on a card: fused attention reads keys once for
every 64 queries, one key after the other, and leaves most of the card idle."""


class WithCaches:
    """Attention that appends to caches and reads them, as `pfnts.backbones.network.network.Attend`.

    Parameters
    ----------
    caches
        Of each history, the keys and values of every block.
    visible
        Of each history, the number of first tokens that each of its tokens attends to: data tokens, then queries.
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
        self._masks: dict[tuple[int, int, bool], Tensor | None] = {}
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
        if not query.shape[2]:
            return query
        visible = self._visible[i] if data else self._visible[i][self._data[i] :]
        length = int(visible.max()) if most is None else min(most, int(visible.max()))
        which = i, length, data
        if which not in self._masks:
            some_hidden = int(visible.min()) < length
            at = torch.from_numpy(visible).to(self._device)
            self._masks[which] = mask_of(at, length) if some_hidden else None
        return attend_few(query, *self.caches[i][block].upto(length), mask=self._masks[which])


def attend_few(query: Tensor, key: Tensor, value: Tensor, *, mask: Tensor | None) -> Tensor:
    """As `attend`, by plain products where queries are few and on a card."""
    H, m, w = query.shape[1:]
    if not query.is_cuda or H * m > FEW_ON_A_CARD:
        return attend(query, key, value, mask=mask)
    h = key.shape[1]
    score = (query * w**-0.5).reshape(1, h, H // h * m, w) @ key.mT
    if mask is not None:
        score = score + mask.repeat(H // h, 1)
    return (torch.softmax(score, -1) @ value).reshape(1, H, m, w)
