"""Rows on their way into the caches of many histories, side by side."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from functools import partial

from pfnts.backbones.network.features.rows import joined
from pfnts.backbones.network.inference.cache import Growth, Piece
from pfnts.backbones.network.inference.cores import ONE_CORE, Cores
from pfnts.backbones.network.inference.recorded import passing
from pfnts.backbones.network.inference.segments import Asked, Tokens, blocks
from pfnts.backbones.network.network import CausalPFN, log_position

CELLS_AT_ONCE = {"cpu": None, "cuda": 262_144, "mps": 65_536}
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
    every, last = range(len(stacks)), len(blocks(network)) - 1
    alone = cores if len(stacks) == 1 else ONE_CORE
    with ExitStack() as opened:
        passes = [opened.enter_context(passing(network, _tokens(stack))) for stack in stacks]

        def see(number: int, i: int) -> Asked:
            queries = asked[i][0].split(lengths[i], 2)
            seen = [piece.look(number, query, alone) for piece, query in zip(stacks[i], queries, strict=True)]
            return passes[i].go_on(number, joined(seen, 2))

        asked = cores.each(lambda i: passes[i].begin(), every)
        for number in range(last + 1):
            for stack, length, (_, key, value) in zip(stacks, lengths, asked, strict=True):
                for piece, *new in zip(stack, key.split(length, 2), value.split(length, 2), strict=True):
                    piece.keep(number, *new)
            if number < last:  # nobody sees what rows have seen in the last block
                asked = cores.each(partial(see, number), every)


def _tokens(stack: Sequence[Piece]) -> Tokens:
    """Pieces one after the other."""
    position = joined([piece.place.position[None] for piece in stack])[0]
    return Tokens(
        joined([piece.rows.X for piece in stack]),
        stack[0].identity,
        log_position(position),
        joined([piece.rows.base_predictions for piece in stack]),
        joined([piece.rows.y for piece in stack]),
        position == 0 if any(piece.start for piece in stack) else None,
    )
