"""Rows that grow in place where nobody else can see it."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor


@dataclass
class _Room:
    """A tensor with more room than is used; whoever holds all that is used may use more."""

    tensor: Tensor
    used: int


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
        self._room: _Room | None = None

    def add(self, new: Tensor) -> Rows:
        """Append (B, m, ...)."""
        length, room = self.length + new.shape[1], self._room
        if room is None or room.used != self.length or length > room.tensor.shape[1]:
            larger = new.new_empty(len(new), max(length, 2 * self.length), *new.shape[2:])
            if room is not None:
                larger[:, : self.length] = room.tensor[:, : self.length]
            self._room = room = _Room(larger, self.length)
        room.tensor[:, self.length : length] = new
        self.length = room.used = length
        return self

    def upto(self, length: int) -> Tensor:
        """The first ``length`` rows."""
        assert self._room is not None
        return self._room.tensor[:, :length]

    def fork(self) -> Rows:
        """A copy that shares what is there; what either adds, the other does not see."""
        copy = Rows()
        copy.length, copy._room = self.length, self._room
        return copy
