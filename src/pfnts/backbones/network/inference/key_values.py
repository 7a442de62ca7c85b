"""Keys and values of the rows that have entered a cache, and attention to them."""

from __future__ import annotations

import copy
import threading
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from pfnts.backbones.network.inference.cores import ONE_CORE, Cores
from pfnts.backbones.network.inference.stretches import attention_in_parts, parted

FEW = 4
"""Up to as many queries, plain products read keys and values faster than fused attention does."""
FEW_ON_A_CARD = 6144
"""The same on a card, over all heads: fused attention goes through the keys once for every 64 queries, one
key after the other, so that with few queries most of the card has nothing to do."""


class Claims:
    """How much of a storage is used, by all who share it: whoever holds all that is used may use more.

    Examples
    --------
    >>> claims = Claims(3)
    >>> claims.claim(3, 5), claims.claim(3, 4)
    (True, False)
    """

    def __init__(self, used: int) -> None:
        self._used = used
        self._lock = threading.Lock()

    def claim(self, begin: int, end: int) -> bool:
        """Take what lies between, if nobody else has."""
        with self._lock:
            if self._used != begin:
                return False
            self._used = end
            return True


@dataclass(eq=False)
class _Room:
    """Where keys and values lie."""

    key: Tensor
    value: Tensor
    claims: Claims
    """Of the places from the front on."""
    shared: bool = False
    """Whether others may read the tail that is there."""


class KeyValues:
    """Keys and values of one block, each (1, H, n, w), with room to grow along n.

    Whole pieces lie from ``front`` on, one after the other, and the tail before it.
    """

    def __init__(self, *, front: int, growth: float) -> None:
        self._front = self._end = front
        self._growth = growth
        self._room: _Room | None = None

    def fork(self) -> KeyValues:
        """A copy that shares what is there; what either writes, the other does not see."""
        if self._room is not None:
            self._room.shared = True
        return copy.copy(self)

    def write(self, at: int, key: Tensor, value: Tensor) -> None:
        """Put those of m tokens, (1, H, m, w), from ``at`` on."""
        end = at + key.shape[2]
        if not self._may_write(at, end):
            self._move(at, end, key, value)
        assert self._room is not None
        self._room.key[:, :, at:end], self._room.value[:, :, at:end] = key, value
        self._end = end if at >= self._front else self._end

    def view(self, begin: int, end: int) -> tuple[Tensor, Tensor]:
        """Those between two places."""
        assert self._room is not None
        return self._room.key[:, :, begin:end], self._room.value[:, :, begin:end]

    def _may_write(self, at: int, end: int) -> bool:
        """Whether there is room that nobody else uses."""
        room = self._room
        if room is None or end > room.key.shape[2]:
            return False
        return room.claims.claim(at, end) if at >= self._front else not room.shared

    def _move(self, at: int, end: int, *like: Tensor) -> None:
        """Move to a room of its own, where there is place up to ``end``."""
        old, had = ((), 0) if self._room is None else ((self._room.key, self._room.value), self._end)
        length = max(end, int(self._growth * had))
        key, value = (tensor.new_empty(1, tensor.shape[1], length, tensor.shape[3]) for tensor in like)
        for new, before in zip((key, value), old, strict=False):
            new[:, :, :had] = before[:, :, :had]
        self._room = _Room(key, value, Claims(end if at >= self._front else had))


def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None = None,
    seen_by_all: int = 0,
    *,
    cores: Cores = ONE_CORE,
) -> Tensor:
    """Attend from m tokens (1, H, m, w) to n others; a mask (m, n) is added to the scores.

    Keys and values are (1, h, n, w): each serves H / h heads, which are so many more queries. It hides none
    of the first keys that are ``seen_by_all``. Heads may share the ``cores`` where keys are many.
    """
    heads, m, w = query.shape[1:]
    served = key.shape[1]
    share = heads // served
    if m > FEW and query.device.type == "cpu":
        unmasked = key.shape[2] if mask is None else seen_by_all
        if first := parted(unmasked, masked=mask is not None):
            return attention_in_parts(query, key, value, mask, first, cores)
    if mask is not None and m > FEW:  # views: neither keys nor the mask are copied for every head
        key, value = (x.transpose(0, 1).expand(-1, share, -1, -1) for x in (key, value))
        seen = F.scaled_dot_product_attention(query.reshape(served, share, m, w), key, value, attn_mask=mask)
        return seen.reshape(1, heads, m, w)
    if m > FEW and not (query.is_cuda and heads * m <= FEW_ON_A_CARD):
        seen = F.scaled_dot_product_attention(query.reshape(1, served, share * m, w), key, value)
    else:
        scaled = query.new_empty(1, heads, m, w)  # written in the order in which it is read
        torch.mul(query, w**-0.5, out=scaled)
        score = scaled.view(1, served, share * m, w) @ key.mT
        if mask is not None:
            score = score + mask.repeat(share, 1)
        seen = torch.softmax(score, -1) @ value
    return seen.reshape(1, heads, m, w)
