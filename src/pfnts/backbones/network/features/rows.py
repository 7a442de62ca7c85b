"""Rows that grow in place where nobody else can see it, and tensors side by side."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import lru_cache

import torch
from torch import Tensor


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


class Rows:
    """A tensor (B, n, ...) that grows along n without being copied at every step.

    Examples
    --------
    >>> import torch
    >>> rows = Rows()
    >>> other = rows.add(torch.zeros(1, 2)).fork()
    >>> rows.add(torch.ones(1, 1)).upto(3), other.add(torch.full((1, 1), 7.0)).upto(3)
    (tensor([[0., 0., 1.]]), tensor([[0., 0., 7.]]))
    """

    def __init__(self) -> None:
        self.length = 0
        self._room: Tensor | None = None
        self._claims = Claims(0)

    def add(self, new: Tensor) -> Rows:
        """Append (B, m, ...)."""
        length, room = self.length + new.shape[1], self._room
        if room is None or length > room.shape[1] or not self._claims.claim(self.length, length):
            larger = new.new_empty(len(new), max(length, 2 * self.length), *new.shape[2:])
            if room is not None:
                larger[:, : self.length] = room[:, : self.length]
            self._room, self._claims = larger, Claims(length)
            room = larger
        room[:, self.length : length] = new
        self.length = length
        return self

    def upto(self, length: int) -> Tensor:
        """The first ``length`` rows."""
        assert self._room is not None
        return self._room[:, :length]

    def at(self, places: Sequence[int]) -> Tensor:
        """Some rows, (B, len(places), ...)."""
        if len(places) == 1:
            return self.upto(places[0] + 1)[:, places[0] :]
        return self.upto(max(places) + 1)[:, places]

    def fork(self) -> Rows:
        """A copy that shares what is there; what either adds, the other does not see."""
        copy = Rows()
        copy.length, copy._room, copy._claims = self.length, self._room, self._claims
        return copy


# On short histories operations are so small that their number is what counts: one tensor is not copied.


def stacked(tensors: Sequence[Tensor]) -> Tensor:
    """K tensors (B, ...) as (B, K, ...)."""
    return tensors[0][:, None] if len(tensors) == 1 else torch.stack(list(tensors), 1)


def joined(tensors: Sequence[Tensor], dim: int = 1) -> Tensor:
    """Tensors (B, k, ...) one after the other."""
    return tensors[0] if len(tensors) == 1 else torch.cat(list(tensors), dim)


def numbers(values: Sequence[float], like: Tensor) -> Tensor:
    """Numbers as a tensor of the same kind, which is not to be changed: it is made once."""
    return _numbers(tuple(values), like.dtype, like.device)


@lru_cache(maxsize=4096)
def _numbers(values: tuple[float, ...], dtype: torch.dtype, device: torch.device) -> Tensor:
    with torch.inference_mode(False):
        return torch.tensor(values, dtype=dtype, device=device)


def twice(rows: Tensor) -> Tensor:
    """A batch (B, ...) and the same again, (2 B, ...)."""
    return rows[None].expand(2, *rows.shape).flatten(0, 1)
