"""What the network has made of a history's rows: keys and values at every causal block."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from pfnts.backbones.network.columns import ColumnReduction
from pfnts.backbones.network.features.features import Features
from pfnts.backbones.network.features.table import BASE_PREDICTIONS
from pfnts.backbones.network.inference.cores import Cores
from pfnts.backbones.network.inference.key_values import KeyValues, attention
from pfnts.backbones.network.network import CausalPFN
from pfnts.backbones.network.normalisation import Normalisation

Array = NDArray[np.float64]

SMALLEST_BASIS = 32
PIECE = {"cpu": 64, "cuda": 256, "mps": 256}
"""Rows that enter a cache together."""
BASE = 4
"""Ratio of the pieces of a tail: smaller takes fewer passes for a new tail, larger less for a row more."""
SIDE_BY_SIDE = {"cpu": 4, "cuda": 8, "mps": 4}
"""Pieces in one pass."""
KEPT = 4
"""Whole pieces after each of which a cache remembers what regressions knew: a tail may begin there."""
NARROW = 40
"""As many columns are always shown, and no more are told to regressions, whose time grows with their cube."""
CELLS = 16_384
"""More columns are shown as long as they times the rows of the basis are no more than this."""
SHORT = 512
"""Regressions of a cache with a smaller basis are made on the CPU, wherever the network is: these are
thousands of small operations, and to start one on a card takes longer than to do it here."""


class Cache:
    """Rows of a history as the network sees them, normalised by the first ``basis`` of them.

    What is stored about a row must not depend on when it came or what was asked, not even in the last bit,
    and products of other shapes round differently. So rows enter in whole pieces only. The rows after the
    last whole piece, the tail of a prefix, enter in pieces of 16, 4 and 1 rows, aligned likewise: a row more
    takes one pass, and any tail at most nine. The tail lies before the first row, next to which it can be
    read in one stretch whatever whole pieces follow. Where the last bit is given up, all that is missing of a
    tail enters at once.

    Parameters
    ----------
    network
        What sees the rows.
    X
        The first rows, (basis, P); NaN where missing.
    y
        Their targets.
    keep
        Columns that are never mixed with others.
    device
        Where to compute, and where the network is.
    """

    def __init__(
        self,
        network: CausalPFN,
        X: Array,
        y: Array,
        *,
        keep: Sequence[int],
        device: str,
    ) -> None:
        self.kind = kind = torch.device(device).type
        """Of the device where it is kept."""
        self.device = device
        """Where it is kept."""
        self.basis = len(y)
        self.piece = PIECE[kind] if len(y) >= SMALLEST_BASIS else len(y)
        self.rows = 0
        """Rows entered in whole pieces."""
        self.network = network
        self._at_once = SIDE_BY_SIDE[kind] * self.piece
        self._regress_on = "cpu" if len(y) < SHORT else device
        self._views = [View(X, y, width=max(NARROW, CELLS // len(y)), keep=keep)]
        if self._views[0].columns > NARROW:
            self._views.append(View(X, y, width=NARROW, keep=keep))
        norm = self._views[0].norm
        self.y_centre, self.y_scale = float(norm.y_centre), float(norm.y_scale)
        generator = torch.Generator().manual_seed(0)
        identity = torch.randn(self._views[0].columns, network.architecture.identity, generator=generator)
        self.identity = identity[None].to(device)
        # Blocks run out of room at different sizes, so that no question waits for all of them to be moved.
        blocks = len(network.columns) + len(network.in_context)
        self._held = [KeyValues(front=self._front, growth=1.1 + 0.2 * i / blocks) for i in range(blocks)]
        self._names_arm = self._views[-1].names_arm[None].to(self._regress_on)
        # By the whole pieces that they were told, the last few.
        self._regressions = {0: self._untold()}
        self._tail: list[tuple[int, Features]] = []  # sizes after each of its pieces, and what is known
        start = self._piece(self._place(0, 1, before=None), KnownRows.none(self.identity))
        self._start = [replace(start, start=True)]

    @property
    def empty(self) -> bool:
        """Whether nothing has entered, not even the start row."""
        return bool(self._start)

    def fork(self) -> Cache:
        """A copy that grows on its own; what has entered is shared, not copied."""
        assert not self.empty
        other = copy.copy(self)
        other._held = [held.fork() for held in self._held]
        other._regressions, other._tail = dict(self._regressions), list(self._tail)
        return other

    def show(self, X: Array) -> tuple[Tensor, Tensor]:
        """Contexts as the network sees them, (m, P), and as regressions do; on the CPU."""
        shown = self._views[0].contexts(X)
        return shown, shown if len(self._views) == 1 else self._views[-1].contexts(X)

    def reach(self, sizes: Sequence[int], X: Array, y: Array) -> Growth:
        """Make ready to answer after each of ``sizes`` rows of the history X (n, P), y (n,), all `together`.

        Few rows take one pass.
        """
        tail = [size for size in sizes if size % self.piece]
        start = max(sizes) // self.piece * self.piece
        while self.rows < start - self._at_once:
            yield from self._enter(self.rows + self._at_once, X, y, tail=())
        if self.rows < start or not all(map(self.holds, tail)):
            yield from self._enter(max(self.rows, start), X, y, tail=tail)

    def enter(self, rows: int, X: Array, y: Array) -> Growth:
        """Let the whole pieces among the first ``rows`` of the history enter, ahead of questions."""
        while self.lacks(rows):
            whole = rows - rows % self.piece
            yield from self._enter(min(whole, self.rows + self._at_once), X, y, tail=())

    def lacks(self, rows: int) -> bool:
        """Whether a whole piece among the first ``rows`` has not entered."""
        return self.rows + self.piece <= rows

    def holds(self, size: int) -> bool:
        """Whether it can answer after ``size`` rows as it is."""
        if size % self.piece == 0:
            return size <= self.rows
        return size in [end for end, _ in self._tail]

    def together(self, smaller: int, size: int) -> bool:
        """Whether it can hold the tails of both prefixes at the same time."""
        start = size - size % self.piece
        if smaller % self.piece == 0:
            return True
        return smaller >= start if self.gives_up_last_bit else smaller in tail_ends(start, size)

    @property
    def gives_up_last_bit(self) -> bool:
        """Whether what is stored about a row may depend, in the last bit, on what was asked."""
        return self.kind != "cpu"

    def _tail_ends(self, start: int, sizes: Sequence[int]) -> list[int]:
        """Sizes after the pieces in which the tails of prefixes enter."""
        if not self.gives_up_last_bit:
            return tail_ends(start, max(sizes))
        held = [end for end, _ in self._tail[1:]] if self._tail and self._tail[0][0] == start else []
        return sorted({*sizes, *(end for end in held if end < max(sizes))})

    def _enter(self, size: int, X: Array, y: Array, *, tail: Sequence[int]) -> Growth:
        """Enter whole pieces of the history, up to ``size`` rows, and the tails of prefixes."""
        told, pieces = dict(self._regressions), list(self._start)
        for end in range(self.rows + self.piece, size + 1, self.piece):
            told[end], piece = self._known(end - self.piece, end, X, y, told[end - self.piece], None)
            pieces.append(piece)
        known: list[tuple[int, Features]] = []
        if tail:
            start = max(tail) - max(tail) % self.piece
            ends = self._tail_ends(start, tail)
            if not self._tail or self._tail[0][0] != start:
                self._tail = [(start, told[start] if start in told else self._told(start, X, y))]
            common = sum(end == held for end, (held, _) in zip(ends, self._tail[1:], strict=False))
            del self._tail[1 + common :]  # other rows will stand in their places
            known = self._tail[-1:]
            for end in ends[common:]:
                features, piece = self._known(known[-1][0], end, X, y, known[-1][1], start)
                pieces.append(piece)
                known.append((end, features))
        yield pieces
        self._start, self.rows = [], size
        self._regressions = dict(sorted(told.items())[-KEPT:])
        self._tail += known[1:]

    def base_predictions(self, size: int) -> Callable[[Tensor], Tensor]:
        """Say what regressions on the first ``size`` rows do about contexts (q, P), (1, q, base predictions).

        It stays the same to the last bit, whatever enters meanwhile.
        """
        known = self._regressions[self.rows] if size % self.piece == 0 else dict(self._tail)[size]
        return lambda shown: known.at(self._exact(shown), [size]).float()

    def upto(self, block: int, size: int) -> tuple[Tensor, Tensor]:
        """Keys and values of the start row and the first ``size`` rows at a block, by its number."""
        if block < len(self.network.columns):
            size = min(size, self.network.architecture.column_rows)
        tail = size % self.piece
        return self._held[block].view(self._front - tail, self._front + 1 + size - tail)

    @property
    def _front(self) -> int:
        """Where the start row stands; a tail lies before it, the other rows behind."""
        return self.piece - 1

    def _untold(self) -> Features:
        """Return the features of no rows."""
        like = torch.zeros(1, 1, self._views[-1].columns, device=self._regress_on)
        return Features.none(self._exact(like[0]), names_arm=self._names_arm)

    def _told(self, size: int, X: Array, y: Array) -> Features:
        """Compute the features after whole pieces that entered long ago."""
        features = self._untold()
        for end in range(self.piece, size + 1, self.piece):
            rows = slice(end - self.piece, end)
            features, _ = self._tell(self.show(X[rows])[1], self._views[0].targets(y[rows]), features)
        return features

    def _tell(self, X: Tensor, y: Tensor, features: Features) -> tuple[Features, Tensor]:
        """Append rows to features, and return their own, (1, m, BASE_PREDICTIONS)."""
        features, told = features.extend(self._exact(X), self._exact(y))
        return features, told.float().to(self.device)

    def _exact(self, x: Tensor) -> Tensor:
        """What regressions see, where they are made, in double precision if there is it."""
        x = x.to(self._regress_on)[None]
        return x if x.device.type == "mps" else x.double()

    def _known(
        self, begin: int, end: int, X: Array, y: Array, features: Features, start: int | None
    ) -> tuple[Features, Piece]:
        """Rows from ``begin`` to ``end``, a whole piece or one of the tail that begins at ``start``."""
        (shown, told), target = self.show(X[begin:end]), self._views[0].targets(y[begin:end])
        features, of_rows = self._tell(told, target, features)
        place = self._place(begin + 1, end + 1, before=start)
        rows = shown[None], target[None], of_rows
        return features, self._piece(place, KnownRows(*(x.to(self.device) for x in rows)))

    def _piece(self, place: _Place, rows: KnownRows) -> Piece:
        return Piece(self.network, self.kind, self.identity, rows, place, self._held)

    def _place(self, begin: int, end: int, *, before: int | None) -> _Place:
        """Where tokens at positions ``begin`` to ``end`` stand; in the tail if it begins ``before`` them."""
        position, count = torch.arange(begin, end, device=self.device), end - begin
        most = self.network.architecture.column_rows
        columns = (self._front, self._front + 1 + most) if begin > most else None
        if before is None:
            at, seen, mask = self._front + begin, self._front, _mask(count, begin, 0, self.device)
            return _Place(position, at, seen, at + count, mask, columns)
        at = self._front - (end - 1 - before)
        seen = self._front + 1 + before
        return _Place(position, at, at, seen, _mask(count, 0, seen - at - count, self.device), columns)


class View:
    """Rows with their columns reduced, and normalised, by the first of them.

    Parameters
    ----------
    X
        The first rows, (basis, P); NaN where missing.
    y
        Their targets.
    width
        Columns to be left.
    keep
        Columns that are never mixed with others.
    """

    def __init__(self, X: Array, y: Array, *, width: int, keep: Sequence[int]) -> None:
        self._reduce = ColumnReduction.of(X, y, width=width, keep=keep)
        reduced = torch.from_numpy(self._reduce(X))
        self.columns = reduced.shape[1]
        """Columns left."""
        self.names_arm = torch.zeros(self.columns, dtype=torch.bool)
        """Which of them were in ``keep``."""
        self.names_arm[self._reduce.places(keep)] = True
        self.norm = Normalisation.of(reduced, torch.from_numpy(y))

    def contexts(self, X: Array) -> Tensor:
        """Contexts (m, P) as they are shown, in the network's precision."""
        return self.norm.contexts(torch.from_numpy(self._reduce(X))).float()

    def targets(self, y: Array) -> Tensor:
        """Targets (m,) as they are shown, likewise."""
        return self.norm.targets(torch.from_numpy(y)).float()


@dataclass(frozen=True)
class _Place:
    """Where some data tokens stand among all, and which they see."""

    position: Tensor
    """(m,), how many rows each is allowed to know of; 0 for the start row."""
    at: int
    """Where the first of them is kept."""
    begin: int
    end: int
    """What they see lies between, but for what the mask hides."""
    mask: Tensor | None
    columns: tuple[int, int] | None
    """Where what they see down each column lies, if they come too late to be among it."""


@dataclass(frozen=True)
class KnownRows:
    """Some rows of a history as the network is shown them."""

    X: Tensor
    """(1, m, P)"""
    y: Tensor
    """(1, m)"""
    base_predictions: Tensor
    """(1, m, BASE_PREDICTIONS)"""

    @staticmethod
    def none(identity: Tensor) -> KnownRows:
        """What is shown of the start row: nothing."""
        zeros = identity.new_zeros
        return KnownRows(zeros(1, 1, identity.shape[1]), zeros(1, 1), zeros(1, 1, BASE_PREDICTIONS))


@dataclass(frozen=True)
class Piece:
    """Data tokens on their way into a cache."""

    network: CausalPFN
    """Through which they will pass."""
    kind: str
    """Of the device where it is."""
    identity: Tensor
    """(1, P, identity), of the columns; caches with as many columns have the same."""
    rows: KnownRows
    """Nothing is known of the start row."""
    place: _Place
    held: list[KeyValues]
    """Where the keys and values of each block are kept."""
    start: bool = False
    """Whether it is the start row."""

    def keep(self, number: int, key: Tensor, value: Tensor) -> None:
        """Keep the keys and values of its tokens at a block, if anybody will see them."""
        if not self._late(number):
            self.held[number].write(self.place.at, key, value)

    def look(self, number: int, query: Tensor, cores: Cores) -> Tensor:
        """Attend from its tokens to the rows that they see at a block."""
        place = self.place
        if self._late(number):
            assert place.columns is not None
            return attention(query, *self.held[number].view(*place.columns), cores=cores)
        key, value = self.held[number].view(place.begin, place.end)
        return attention(query, key, value, place.mask, place.at - place.begin, cores=cores)

    def _late(self, number: int) -> bool:
        return self.place.columns is not None and number < len(self.network.columns)

    @property
    def length(self) -> int:
        """Number of tokens."""
        return len(self.place.position)

    @property
    def columns(self) -> int:
        """Number of columns."""
        return self.identity.shape[1]


Growth = Iterator[list[Piece]]
"""Work on a cache, step by step: each gives the pieces that must pass through the network before the next."""


def tail_ends(start: int, size: int) -> list[int]:
    """Sizes after the pieces of a tail, the largest piece first.

    Examples
    --------
    >>> tail_ends(64, 64 + 37)
    [80, 96, 100, 101]
    """
    ends, step = [], 1
    while size > start:
        ends.append(size)
        while size % (BASE * step) == 0:
            step *= BASE
        size -= step
    return ends[::-1]


def _mask(count: int, before: int, after: int, device: str) -> Tensor | None:
    """Let each of ``count`` tokens see those up to itself, and all before and after them."""
    if count == 1:
        return None
    square = torch.full((count, count), -torch.inf, device=device).triu(1)
    return F.pad(square, (before, after))
