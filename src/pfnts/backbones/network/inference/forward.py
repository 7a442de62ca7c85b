"""Extend states and predict: forward passes over the tokens of many histories, each with its own cache."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import pad

from pfnts.backbones.base import Matrix
from pfnts.backbones.network.features.features import Features
from pfnts.backbones.network.inference.cached import WithCaches
from pfnts.backbones.network.inference.state import Cache, State, features_at
from pfnts.backbones.network.inference.step import CELLS_AT_ONCE, Output, Result, Step, parts_of, whole
from pfnts.backbones.network.network import CausalPFN

FEW = 128
"""Tokens that one thread computes: the operations are short, and where other processes use the cores, threads
that wait for one another at the end of each take a hundred times longer."""


def run(network: CausalPFN, steps: Sequence[Step]) -> list[Result]:
    """Take steps of any number of histories, in as few forward passes as memory allows.

    Every step has rows or queries, and none asks for more rows than its state has after it.
    """
    kind = network.cells.missing.device.type
    waiting = [parts_of(step, kind) for step in steps]
    results: list[list[Result]] = [[] for _ in steps]
    states = [step.state for step in steps]
    with torch.inference_mode(), threads_for(sum(step.tokens for step in steps)):
        while left := [i for i, parts in enumerate(waiting) if parts]:
            columns = states[left[0]].frame.columns
            room, chosen = CELLS_AT_ONCE[kind] // columns, list[int]()
            for i in left:  # the next part of each history, as far as there is room
                tokens = waiting[i][0].tokens
                if states[i].frame.columns == columns and (tokens <= room or not chosen):
                    chosen.append(i)
                    room -= tokens
            found = forward(network, [replace(waiting[i].pop(0), state=states[i]) for i in chosen])
            for i, result in zip(chosen, found, strict=True):
                results[i].append(result)
                states[i] = result.state
    return [whole(step, parts) for step, parts in zip(steps, results, strict=True)]


@contextmanager
def threads_for(tokens: int) -> Iterator[None]:
    """Compute few tokens by one thread of PyTorch, others by as many as are set."""
    threads = torch.get_num_threads()
    if threads == 1 or tokens > FEW:
        yield
        return
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def forward(network: CausalPFN, steps: Sequence[Step]) -> list[Result]:
    """Take steps of histories with the same number of columns, in one forward pass."""
    device = network.cells.missing.device
    tokens = [_Tokens.of(step) for step in steps]
    data, queries = [len(one.y) for one in tokens], [len(one.X) - len(one.y) for one in tokens]

    def in_order(each: Sequence[Tensor]) -> Tensor:
        """Concatenate the data tokens of all histories, then the queries of all."""
        parts = [(x[:d], x[d:]) for x, d in zip(each, data, strict=True)]
        return torch.cat([x for x, _ in parts] + [x for _, x in parts]).to(device)

    attend = WithCaches([step.state.cache for step in steps], [one.rows + 1 for one in tokens], data, device)
    mean, quantiles, log_sd = network(
        in_order([one.X for one in tokens])[None],
        torch.cat([one.y for one in tokens]).to(device)[None],
        _identity(tokens[0].X.shape[1], network.architecture.identity, device),
        in_order([one.base_predictions.to(device) for one in tokens])[None],
        in_order([torch.from_numpy(one.rows) for one in tokens]),
        attend,
    )
    found = torch.cat([mean[0, :, None], quantiles[0], log_sd[0, :, None]], 1).cpu().double()
    each = zip(steps, tokens, attend.caches, found.split(queries), strict=True)
    return [_result(step, one, cache, out.numpy()) for step, one, cache, out in each]


@dataclass(frozen=True)
class _Tokens:
    """Tokens of a step: data tokens, then forecasts, then queries (sizes first)."""

    X: Tensor
    """(d + q, P)"""
    y: Tensor
    """(d,)"""
    base_predictions: Tensor
    """(d + q, K)"""
    rows: NDArray[np.int64]
    """(d + q,), number of rows that each sees."""
    features: Features
    """After the step."""

    @staticmethod
    def of(step: Step) -> _Tokens:
        """Normalise rows and queries, and compute their base predictions."""
        state, frame, start = step.state, step.state.frame, int(step.state.tokens == 0)
        (shown, narrow), y = frame.contexts(step.X), frame.targets(step.y)
        features, of_rows = state.features_after(narrow, y)
        at = np.flatnonzero(step.forecast)
        X = [pad(shown, (0, 0, start, 0)), shown[at]]
        base_predictions = [pad(of_rows, (0, 0, start, 0)), of_rows[at]]
        rows = [np.arange(start + len(y)) + state.tokens, at + state.size]
        for queries in step.queries:
            shown, narrow = frame.contexts(queries.X)
            X.append(shown.repeat(len(queries.sizes), 1))
            base_predictions.append(features_at(features, narrow, queries.sizes))
            rows.append(np.repeat(queries.sizes, len(shown)))
        return _Tokens(
            torch.cat(X).float(),
            pad(y, (start, 0)).float(),
            torch.cat(base_predictions).float(),
            np.concatenate(rows),
            features,
        )


def _result(step: Step, tokens: _Tokens, cache: Cache, out: Matrix) -> Result:
    """Return the state after a step and its predictions, from the network's output (q, 1 + Q + 1)."""
    frame, sizes = step.state.frame, tokens.rows[len(tokens.y) :]
    rewards, sd = frame.rewards(out[:, :-1]), frame.mean_sd(out[:, -1], sizes)
    shapes = [(1, int(step.forecast.sum())), *((len(x.sizes), len(x.X)) for x in step.queries)]
    cuts = np.cumsum([rows * columns for rows, columns in shapes])[:-1]
    outputs = [
        Output(r[:, 0].reshape(shape), r[:, 1:].reshape(*shape, r.shape[1] - 1), s.reshape(shape))
        for shape, r, s in zip(shapes, np.split(rewards, cuts), np.split(sd, cuts), strict=True)
    ]
    return Result(State(frame, cache, tokens.features), outputs[0], tuple(outputs[1:]))


@lru_cache(maxsize=64)
def _identity(columns: int, length: int, device: torch.device) -> Tensor:
    """Return the vectors (1, columns, length) that tell columns apart, the same for all histories."""
    with torch.inference_mode(False):
        generator = torch.Generator().manual_seed(0)
        return torch.randn(1, columns, length, generator=generator).to(device)
