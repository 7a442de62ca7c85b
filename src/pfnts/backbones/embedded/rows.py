"""Rows that grow in place where that cannot be seen by anyone else."""

from __future__ import annotations

import torch
from torch import Tensor


class Rows:
    """A tensor (B, n, ...) that grows along n without being copied at every step.

    Examples
    --------
    >>> rows = Rows()
    >>> other = rows.add(torch.zeros(1, 2)).fork()
    >>> rows.add(torch.ones(1, 1)).upto(3), other.add(torch.full((1, 1), 7.0)).upto(3)
    (tensor([[0., 0., 1.]]), tensor([[0., 0., 7.]]))
    """

    def __init__(self) -> None:
        self.length = 0
        self._room: Tensor | None = None
        self._mine = True

    def add(self, new: Tensor) -> Rows:
        """Append (B, m, ...)."""
        length = self.length + new.shape[1]
        room = self._room
        if room is None or not self._mine or length > room.shape[1]:
            size = max(length, 2 * self.length if room is not None else 0)
            larger = new.new_empty(len(new), size, *new.shape[2:])
            if room is not None:
                larger[:, : self.length] = room[:, : self.length]
            self._room = room = larger
            self._mine = True
        room[:, self.length : length] = new
        self.length = length
        return self

    def upto(self, length: int) -> Tensor:
        """The first ``length`` rows."""
        assert self._room is not None
        return self._room[:, :length]

    def fork(self) -> Rows:
        """A copy that shares what is there; what either adds, the other does not see."""
        copy = Rows()
        copy.length, copy._room, copy._mine = self.length, self._room, False
        return copy
