"""What the network does to tokens between its attentions."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor

from pfnts.backbones.network.network import CausalBlock, CausalPFN, upto


@dataclass(frozen=True)
class Tokens:
    """Rows that pass through the network together."""

    X: Tensor
    """(1, m, P)"""
    identity: Tensor
    """(1, P, identity), of the columns: the same for all that have as many."""
    position: Tensor
    """(m,), as `pfnts.backbones.network.network.log_position` has it."""
    base_predictions: Tensor
    """(1, m, BASE_PREDICTIONS)"""
    y: Tensor | None = None
    """(1, m), targets of rows that are known; None for queries."""
    start: Tensor | None = None
    """(m,), whether a row is the start row, of which nothing else is used; None where none is."""

    @property
    def shape(self) -> tuple[int, int, bool]:
        """Rows, columns, and whether the rows are known."""
        return self.X.shape[1], self.X.shape[2], self.y is not None


Asked = tuple[Tensor, ...]
"""Queries of tokens at a block (1, P * heads, m, w), and keys and values if they are rows that are known."""


@dataclass(frozen=True)
class Stage:
    """Tokens before a block."""

    h: Tensor
    """(1, m, P, c), or (1, m, 1, d) from the readout on"""
    told: tuple[Tensor, ...]
    """What is added at the readout."""
    asked: Asked


def embed(network: CausalPFN, tokens: Tokens) -> Stage:
    """Tokens before the first block."""
    cells, said = network.cells(tokens.X, tokens.identity), network.base_prediction(tokens.base_predictions)
    if tokens.y is None:
        return _before(
            network, tokens, 0, cells + network.cells.target.unknown, (network.target.unknown, said)
        )
    h, told = cells + network.cells.target(tokens.y)[:, :, None], network.target(tokens.y) + said
    if tokens.start is not None:
        h = torch.where(tokens.start[:, None, None], network.cells.start_row(tokens.identity), h)
        told = told.masked_fill(tokens.start[:, None], 0.0)
    return _before(network, tokens, 0, h, (told,))


def go_on(network: CausalPFN, tokens: Tokens, stage: Stage, number: int, seen: Tensor) -> Stage:
    """Tokens before the next block, from what they have seen at block ``number``."""
    columns, h = len(network.columns), blocks(network)[number].finish(stage.h, seen)
    if number < columns:
        h = network.across[number](h)
    if number == columns - 1:
        h = network.readout(h)
        for told in stage.told:
            h = h + told
        h = h[:, :, None]
    return _before(network, tokens, number + 1, h, stage.told)


def read(network: CausalPFN, tokens: Tokens, stage: Stage, seen: Tensor) -> Tensor:
    """Mean, quantiles and log sd (m, 1 + Q + 1) of queries that have seen the rows at the last block."""
    h = blocks(network)[-1].finish(stage.h, seen)
    mean, quantiles, log_sd = network.head(h[0, :, 0], tokens.base_predictions[0])
    return torch.cat([mean[:, None], quantiles, log_sd[:, None]], 1)


def _before(network: CausalPFN, tokens: Tokens, number: int, h: Tensor, told: tuple[Tensor, ...]) -> Stage:
    block = blocks(network)[number]
    normed = block.norm(h)
    position = tokens.position
    if number < len(network.columns):
        position = upto(position, network.architecture.column_rows)
    query = block.queries(normed, position)
    return Stage(h, told, (query,) if tokens.y is None else (query, *block.keys_values(normed)))


@lru_cache(maxsize=4)
def blocks(network: CausalPFN) -> tuple[CausalBlock, ...]:
    """All blocks in which tokens see rows."""
    return (*network.columns, *network.in_context)


class Pass(AbstractContextManager["Pass"]):
    """Tokens on their way through the network; attention is left to whoever has the keys.

    Parameters
    ----------
    network
        What they pass through.
    tokens
        What passes.
    """

    def __init__(self, network: CausalPFN, tokens: Tokens) -> None:
        self._network, self._tokens = network, tokens

    def __exit__(self, *_: object) -> None:
        """Nothing is held."""

    def begin(self) -> Asked:
        """What is asked at the first block."""
        self._stage = embed(self._network, self._tokens)
        return self._stage.asked

    def go_on(self, number: int, seen: Tensor) -> Asked:
        """What is asked at the block after ``number``, given what was seen there."""
        self._stage = go_on(self._network, self._tokens, self._stage, number, seen)
        return self._stage.asked

    def read(self, seen: Tensor) -> Tensor:
        """What is said of queries (m, 1 + Q + 1), given what was seen at the last block."""
        return read(self._network, self._tokens, self._stage, seen)
