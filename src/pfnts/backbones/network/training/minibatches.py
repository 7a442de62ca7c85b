"""Minibatches: tables of the prior, normalised as histories are in use, with their base predictions."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import count, islice
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pfnts.backbones.network.features.features import features_of
from pfnts.backbones.network.features.kernels import CENTRES
from pfnts.backbones.network.normalisation import Normalisation
from pfnts.backbones.network.prior.device_rng import DeviceRng
from pfnts.backbones.network.prior.tables import Tables, draw_tables
from pfnts.backbones.network.training.recipe import Recipe, Shape, queries_of

MATRICES = 2**27
"""Largest number of entries of the matrices of all regressions that are fitted together."""
MOST_KNOWN = 2048
"""Number of rows from which on a history keeps its scale."""
DRAWS = 4
"""Fresh rewards at every query."""


@dataclass(frozen=True)
class Minibatch:
    """Tables, and what to predict of their last rows."""

    X: Tensor
    """(B, n, P)"""
    y: Tensor
    """(B, n)"""
    base_predictions: Tensor
    """(B, n, BASE_PREDICTIONS)"""
    mean: Tensor
    """(B, q), true mean rewards of the last rows."""
    again: Tensor
    """(draws, B, q), fresh rewards."""
    together: bool
    """If true, the last rows are predicted from the rows before the first of them."""

    @property
    def shape(self) -> Shape:
        """Its shape."""
        batch, rows, features = self.X.shape
        return Shape(batch, rows, features, self.mean.shape[1], self.together)

    def tensors(self) -> list[Tensor]:
        """Its arrays."""
        return [self.X, self.y, self.base_predictions, self.mean, self.again]

    def parts(self, number: int) -> list[Minibatch]:
        """Split the tables into equal parts."""
        by_table = [x.chunk(number) for x in (self.X, self.y, self.base_predictions, self.mean)]
        each = zip(*by_table, self.again.chunk(number, 1), strict=True)
        return [Minibatch(X, y, told, mean, again, self.together) for X, y, told, mean, again in each]


def minibatch_of(tables: Tables, *, queries: int, known: int, together: bool) -> Minibatch:
    """Normalise tables by their first ``known`` rows and compute the base predictions of every row."""
    norm = Normalisation.of(tables.X[:, :known], tables.y[:, :known])
    X, y = norm.contexts(tables.X), norm.targets(tables.y)
    mean, again = norm.targets(tables.mean[:, -queries:]), norm.targets(tables.again[:, :, -queries:])
    basis = max(5 * X.shape[2] + 1, X.shape[2] + 1 + min(CENTRES, X.shape[1]))
    at_once = max(1, MATRICES // basis**2)
    each = zip(*(x.split(at_once) for x in (X, y, tables.names_arm)), strict=True)
    asked = queries if together else 1
    told = torch.cat([features_of(X, y, asked=asked, names_arm=names_arm) for X, y, names_arm in each])
    return Minibatch(X, y, told, mean, again, together)


def draw_minibatches(recipe: Recipe, number: int, *, device: str) -> list[Minibatch]:
    """Draw the minibatches of one call of the prior: a function of the recipe and the call's number.

    In use, a history of t rows is normalised by its first b(t) rows: by all of them while they are few, else
    by 40 to 100 % of them, and never by more than some 2,048. So are these.
    """
    rng = DeviceRng(seed_of(recipe.seed, number), device=device)
    late = number * recipe.steps_per_draw * recipe.uses >= recipe.late * recipe.steps
    weights = recipe.late_length_weights if late else recipe.length_weights
    rows = recipe.lengths[rng.choice(list(weights))]
    few, queries = rows == 0, queries_of(rows)
    widths = recipe.widths_of(rows)
    features = widths[rng.choice(list(recipe.width_weights[: len(widths)]))]
    size, draws = recipe.batch(rows, features), recipe.steps_per_draw
    rows = rows or recipe.most_of_few
    drawn = draw_tables(
        size * draws,
        rows,
        features,
        queries=queries,
        rng=rng,
        mixture=recipe.prior,
        groups=draws,
        draws=DRAWS,
    )
    order = torch.randperm(len(drawn.X), device=drawn.X.device, generator=rng.generator)
    parts = draws // 2 if few else 2
    found: list[Minibatch] = []
    for part in order.chunk(parts):
        if few:
            known = recipe.few[rng.integer(0, len(recipe.few) - 1)]
        else:
            known = round(rng.log_uniform(min(rows / 2.5, MOST_KNOWN), min(rows - queries, 1.5 * MOST_KNOWN)))
        tables = drawn.take(part, first=known if few else rows - queries, last=queries)
        whole = minibatch_of(tables, queries=queries, known=known, together=few)
        found += whole.parts(draws // parts)
    return found


def rounds(
    recipe: Recipe, first: int, *, device: str, lock: AbstractContextManager[Any]
) -> Iterator[list[Minibatch]]:
    """Yield the minibatches of each round from the round ``first`` on, in the order of the steps.

    On a GPU a thread draws ahead; it launches kernels only while it holds the lock.
    """
    calls: Iterator[list[Minibatch]] = (
        draw_minibatches(recipe, call, device=device) for call in count(first * recipe.draws_per_round)
    )
    if device != "cpu":
        calls = drawn_ahead(calls, most=recipe.draws_per_round, lock=lock)
    for number in count(first):
        drawn = [minibatch for call in islice(calls, recipe.draws_per_round) for minibatch in call]
        order = np.random.default_rng([recipe.seed, number])
        yield [drawn[i] for i in order.permutation(np.repeat(np.arange(len(drawn)), recipe.uses))]


def seed_of(seed: int, number: int) -> int:
    """Return the seed of the numbered child of a seed."""
    return int(np.random.SeedSequence([seed, number]).generate_state(1, np.uint64)[0] >> 1)


def drawn_ahead(
    calls: Iterator[list[Minibatch]], *, most: int, lock: AbstractContextManager[Any]
) -> Iterator[list[Minibatch]]:
    """Draw up to ``most`` calls ahead in a thread and on a stream of its own."""
    waiting: queue.Queue[list[Minibatch] | BaseException] = queue.Queue(most)
    own, closed = torch.cuda.Stream(), threading.Event()

    def work() -> None:
        try:
            while not closed.is_set():
                with lock, torch.cuda.stream(own):
                    drawn = next(calls)
                    own.synchronize()
                waiting.put(drawn)
        except BaseException as error:
            waiting.put(error)

    threading.Thread(target=work, name="pfnts-draws", daemon=True).start()
    try:
        while True:
            drawn = waiting.get()
            if isinstance(drawn, BaseException):
                raise drawn
            for minibatch in drawn:
                for tensor in minibatch.tensors():
                    tensor.record_stream(torch.cuda.current_stream())
            yield drawn
    finally:
        closed.set()
        while not waiting.empty():  # the thread may wait for room
            waiting.get()
