"""Row buffers that values share while they grow, and small operations on tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor


@dataclass(frozen=True)
class Rows:
    """The first rows of a buffer (B, capacity, ...), which longer values share.

    A value never changes. The first successor of the longest value writes into the buffer's free places; any
    other successor copies the rows.

    Examples
    --------
    >>> rows = Rows.of(torch.zeros(1, 2))
    >>> longer, other = rows.append(torch.ones(1, 1)), rows.append(torch.full((1, 1), 7.0))
    >>> rows.first(2), longer.first(3), other.first(3)
    (tensor([[0., 0.]]), tensor([[0., 0., 1.]]), tensor([[0., 0., 7.]]))
    """

    buffer: Tensor
    length: int
    """Number of rows."""
    free: dict[int, bool]
    """The row where the buffer is free, shared with the buffer. Removing it (atomically) claims the rest."""

    @classmethod
    def of(cls, rows: Tensor) -> Rows:
        """Hold rows (B, n, ...)."""
        return cls(rows, rows.shape[1], {})

    def append(self, new: Tensor) -> Rows:
        """Return these rows followed by new ones (B, m, ...)."""
        length, buffer, free = self.length + new.shape[1], self.buffer, self.free
        if length > buffer.shape[1] or free.pop(self.length, None) is None:
            with torch.inference_mode(False):  # so that later rows may be written in any mode
                buffer = new.new_empty(len(new), max(length, 2 * self.length), *new.shape[2:])
            buffer[:, : self.length] = self.first(self.length)
            free = {}
        buffer[:, self.length : length] = new
        free[length] = True
        return Rows(buffer, length, free)

    def first(self, length: int) -> Tensor:
        """Return the first rows."""
        return self.buffer[:, :length]

    def at(self, places: Sequence[int]) -> Tensor:
        """Return some rows, (B, len(places), ...)."""
        if len(places) == 1:
            return self.buffer[:, places[0] : places[0] + 1]
        return self.buffer[:, list(places)]


# Operations on short histories are so small that their number decides: a single tensor is not copied.


def stacked(tensors: Sequence[Tensor]) -> Tensor:
    """Stack K tensors (B, ...) as (B, K, ...)."""
    return tensors[0][:, None] if len(tensors) == 1 else torch.stack(list(tensors), 1)


def joined(tensors: Sequence[Tensor], dim: int = 1) -> Tensor:
    """Concatenate tensors (B, k, ...)."""
    return tensors[0] if len(tensors) == 1 else torch.cat(list(tensors), dim)


def numbers(values: Sequence[float], like: Tensor) -> Tensor:
    """Return numbers as a tensor of the same dtype and device; it is cached and must not be changed."""
    return _numbers(tuple(values), like.dtype, like.device)


@lru_cache(maxsize=4096)
def _numbers(values: tuple[float, ...], dtype: torch.dtype, device: torch.device) -> Tensor:
    with torch.inference_mode(False):
        return torch.tensor(values, dtype=dtype, device=device)


def twice(x: Tensor) -> Tensor:
    """Repeat a batch (B, ...), (2 B, ...)."""
    return torch.cat([x, x])
