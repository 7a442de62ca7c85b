"""Rows on their way into the caches of many histories, side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import torch
from torch import Tensor

from pfnts.backbones.embedded.cache import HOST, Growth, Piece, attention
from pfnts.backbones.embedded.cores import Cores
from pfnts.backbones.embedded.model import CausalBlock, CausalPFN, log_position
from pfnts.backbones.embedded.rows import joined

CELLS_AT_ONCE = {"cpu": None, HOST: 4096, "cuda": 262_144, "mps": 65_536}
"""Cells of pieces that pass as one tensor. On a CPU each piece passes by itself: a core can take it, and what
is kept of a row does not depend on what else is entered, not even in the last bit. Elsewhere the last bit is
given up for larger operations."""


def grow(growths: Iterable[Growth], cores: Cores) -> None:
    """Work on several caches until all are done; what is due in each passes through the network together."""
    running = list(growths)
    while running:
        steps = [(growth, next(growth, None)) for growth in running]
        running = [growth for growth, pieces in steps if pieces is not None]
        by_place: dict[tuple[CausalPFN, str], list[Piece]] = {}
        for piece in (piece for _, pieces in steps for piece in pieces or ()):
            by_place.setdefault((piece.network, piece.kind), []).append(piece)
        for (network, kind), pieces in by_place.items():
            for batch in _batches(pieces, CELLS_AT_ONCE[kind]):
                _pass(network, batch, cores)


def _batches(pieces: Sequence[Piece], at_once: int | None) -> list[list[list[Piece]]]:
    """Cut pieces of one network into passes, and each of them into stacks that are one tensor.

    A piece comes no earlier than those of its cache before it, whose keys it sees.
    """
    if at_once is None:
        return [[[piece] for piece in pieces]]
    batches: list[list[list[Piece]]] = []
    width, room = 0, 0
    for piece in sorted(pieces, key=lambda piece: piece.columns):
        if piece.columns != width or room < piece.length:
            width = piece.columns
            room = max(piece.length, at_once // width)
            batches.append([[]])
        batches[-1][0].append(piece)
        room -= piece.length
    return batches


def _pass(network: CausalPFN, stacks: Sequence[Sequence[Piece]], cores: Cores) -> None:
    """Pass data tokens through the network, keeping the keys and values of each block."""
    lengths = [[piece.length for piece in stack] for stack in stacks]
    positions = [log_position(torch.cat([piece.place.position for piece in stack])) for stack in stacks]
    every = range(len(stacks))
    embedded = cores.each(lambda i: _embedded(network, stacks[i]), every)
    h = [cells for cells, _ in embedded]

    def attend(number: int, block: CausalBlock, then: Callable[[Tensor], Tensor]) -> None:
        def ask(i: int) -> tuple[Tensor, Tensor, Tensor]:
            normed = block.norm(h[i])
            return *block.keys_values(normed), block.queries(normed, positions[i])

        def see(i: int) -> Tensor:
            seen = []
            for piece, query in zip(stacks[i], asked[i][2].split(lengths[i], 2), strict=True):
                key, value = piece.held[number].view(piece.place.begin, piece.place.end)
                seen.append(attention(query, key, value, piece.place.mask))
            return then(block.finish(h[i], torch.cat(seen, 2)))

        asked = cores.each(ask, every)
        for stack, length, (key, value, _) in zip(stacks, lengths, asked, strict=True):
            for piece, *new in zip(stack, key.split(length, 2), value.split(length, 2), strict=True):
                piece.held[number].write(piece.place.at, *new)
        h[:] = cores.each(see, every)

    for number, (column, across) in enumerate(zip(network.columns, network.across, strict=True)):
        attend(number, column, across)
    h = cores.each(lambda i: (network.readout(h[i]) + embedded[i][1])[:, :, None], every)
    for number, block in enumerate(network.in_context, len(network.columns)):
        attend(number, block, lambda h: h)


def _embedded(network: CausalPFN, stack: Sequence[Piece]) -> tuple[Tensor, Tensor]:
    """Cells of pieces one after the other, (1, m, P, c), and what rows are told beside them, (1, m, d)."""
    identity, known = stack[0].identity, [piece.rows for piece in stack if piece.rows is not None]
    found: list[tuple[Tensor, Tensor]] = []
    if known:
        X, y = joined([rows.X for rows in known]), joined([rows.y for rows in known])
        told = network.base_prediction(joined([rows.base_predictions for rows in known]))
        cells = network.cells(X, identity) + network.cells.target(y)[:, :, None]
        told = network.target(y) + told
        if len(known) == len(stack):
            return cells, told
        lengths = [rows.y.shape[1] for rows in known]
        found = list(zip(cells.split(lengths, 1), told.split(lengths, 1), strict=True))
    start = network.cells.start_row(identity)
    nothing = start.new_zeros(1, 1, network.architecture.row)
    rest = iter(found)
    both = [(start, nothing) if piece.rows is None else next(rest) for piece in stack]
    return joined([cells for cells, _ in both]), joined([told for _, told in both])
