"""Tensors that grow in place where nobody else can see it."""

from __future__ import annotations

from torch import Tensor


class Buffer:
    """Tensors (..., n, w) of one length n; appending returns a longer buffer and leaves this one as it is.

    Buffers share storage: the first append to a buffer writes behind its rows, any other append copies them.
    Room grows by doubling. Threads may read and append at the same time.

    Examples
    --------
    >>> import torch
    >>> one = Buffer().append(torch.zeros(2, 1))
    >>> two, three = one.append(torch.ones(1, 1)), one.append(torch.full((1, 1), 7.0))
    >>> two.upto(3)[0].ravel(), three.upto(3)[0].ravel(), len(one)
    (tensor([0., 0., 1.]), tensor([0., 0., 7.]), 2)
    """

    def __init__(
        self, storage: tuple[Tensor, ...] = (), length: int = 0, claims: dict[int, object] | None = None
    ) -> None:
        self._storage, self._length = storage, length
        self._claims = {} if claims is None else claims
        """Lengths from which somebody has written on."""

    def __len__(self) -> int:
        return self._length

    def append(self, *new: Tensor) -> Buffer:
        """Return a buffer with the rows of ``new`` (..., m, w) added to each tensor."""
        rows = new[0].shape[-2]
        if not rows:
            return self
        length, mine = self._length + rows, object()
        storage, claims = self._storage, self._claims
        # `setdefault` is atomic: one of several threads finds its own claim.
        if not storage or length > storage[0].shape[-2] or claims.setdefault(self._length, mine) is not mine:
            room, claims = max(length, 2 * self._length), {}
            larger = tuple(x.new_empty(*x.shape[:-2], room, x.shape[-1]) for x in new)
            for to, old in zip(larger, storage, strict=False):
                to[..., : self._length, :] = old[..., : self._length, :]
            storage = larger
        for to, x in zip(storage, new, strict=True):
            to[..., self._length : length, :] = x
        return Buffer(storage, length, claims)

    def first(self, length: int) -> Buffer:
        """Return a buffer of the first rows."""
        return Buffer(self._storage, length, self._claims)

    def upto(self, length: int) -> tuple[Tensor, ...]:
        """Return views of the first ``length`` rows."""
        return tuple(x[..., :length, :] for x in self._storage)
