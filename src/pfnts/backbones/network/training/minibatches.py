"""What the network learns from, step by step: tables of the prior as they are shown in use."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from pfnts.backbones.network.features.features import Features
from pfnts.backbones.network.features.kernels import CENTRES
from pfnts.backbones.network.features.table import BASE_PREDICTIONS
from pfnts.backbones.network.normalisation import Normalisation
from pfnts.backbones.network.prior.device_rng import DeviceRng
from pfnts.backbones.network.prior.tables import Tables, draw_tables
from pfnts.backbones.network.training.checkpoints import Progress
from pfnts.backbones.network.training.recipe import Recipe, Shape, asked_of

MATRICES = 2**27
"""Entries of matrices that regressions of many tables may hold together."""
MOST_KNOWN = 2048
"""From as many rows on a history keeps its scale."""
DRAWS = 4
"""Fresh rewards at every context."""


@dataclass(frozen=True)
class Minibatch:
    """Tables as the network sees them, and what it is to say of their last rows."""

    X: Tensor
    """(B, n, P)"""
    y: Tensor
    """(B, n)"""
    base_predictions: Tensor
    """(B, n, BASE_PREDICTIONS)"""
    mean: Tensor
    """(B, q)"""
    again: Tensor
    """(draws, B, q)"""
    together: bool
    """Whether the last rows are asked for after the rows before the first of them."""

    @classmethod
    def of(cls, tables: Tables, *, asked: int, known: int, together: bool) -> Minibatch:
        """Normalise tables by their first ``known`` rows."""
        norm = Normalisation.of(tables.X[:, :known], tables.y[:, :known])
        X, y = norm.contexts(tables.X), norm.targets(tables.y)
        mean, again = norm.targets(tables.mean[:, -asked:]), norm.targets(tables.again[:, :, -asked:])
        first = X.shape[1] - (asked if together else 1)

        def base_predictions(X: Tensor, y: Tensor, names_arm: Tensor) -> Tensor:
            features, of_rows = Features.none(X, names_arm=names_arm).extend(X[:, :first], y[:, :first])
            return torch.cat([of_rows, features.at(X[:, first:], [first])], 1)

        basis = max(5 * X.shape[2] + 1, X.shape[2] + 1 + min(CENTRES, X.shape[1]))
        at_once = max(1, MATRICES // basis**2)
        each = zip(*(x.split(at_once) for x in (X, y, tables.names_arm)), strict=True)
        told = [base_predictions(*part) for part in each]
        return cls(X, y, torch.cat(told), mean, again, together)

    @classmethod
    def noise(cls, shape: Shape, *, rng: DeviceRng) -> Minibatch:
        """A minibatch of a shape, filled with noise."""
        batch, rows, features, asked, together = shape
        return cls(
            rng.normal(batch, rows, features),
            rng.normal(batch, rows),
            rng.normal(batch, rows, BASE_PREDICTIONS),
            rng.normal(batch, asked),
            rng.normal(DRAWS, batch, asked),
            together,
        )

    @property
    def shape(self) -> Shape:
        """Its shape."""
        batch, rows, features = self.X.shape
        return Shape(batch, rows, features, self.mean.shape[1], self.together)

    def tensors(self) -> list[Tensor]:
        """All that is known of its tables."""
        return [self.X, self.y, self.base_predictions, self.mean, self.again]

    def used_by(self, stream: torch.cuda.Stream) -> None:
        """Say that a stream will read it, so that its memory is kept until then."""
        for tensor in self.tensors():
            tensor.record_stream(stream)

    def parts(self, count: int) -> list[Minibatch]:
        """Split the batch."""
        by_table = [part.chunk(count) for part in (self.X, self.y, self.base_predictions, self.mean)]
        each = zip(*by_table, self.again.chunk(count, 1), strict=True)
        return [Minibatch(X, y, told, mean, again, self.together) for X, y, told, mean, again in each]


def minibatches(recipe: Recipe, rng: DeviceRng, progress: Progress) -> Iterator[Minibatch]:
    """Give step after step what to learn from, without end; on a GPU it is drawn in the background."""
    draws = _draws(recipe, rng, progress)
    if rng.device != "cpu":
        draws = in_background(draws, device=rng.device)
    order = np.random.default_rng([recipe.seed, progress.step])
    drawn: list[list[Minibatch]] = []
    while True:
        while len(drawn) < recipe.shapes_at_once:
            drawn.append(next(draws))
        of_shape = drawn[order.integers(len(drawn))]
        yield of_shape.pop(order.integers(len(of_shape)))
        drawn = [rest for rest in drawn if rest]


def _draws(recipe: Recipe, rng: DeviceRng, progress: Progress) -> Iterator[list[Minibatch]]:
    while True:
        late = progress.seconds >= recipe.late * recipe.seconds
        now = replace(recipe, length_weights=recipe.late_length_weights) if late else recipe
        yield draw_minibatches(now, rng)


def in_background(draws: Iterator[list[Minibatch]], *, device: str) -> Iterator[list[Minibatch]]:
    """Draw in a thread, on a stream of its own: drawing is many small kernels, which leave the card idle."""
    waiting: queue.Queue[list[Minibatch] | BaseException] = queue.Queue(2)
    own = torch.cuda.Stream(device)
    closed = threading.Event()

    def work() -> None:
        try:
            with torch.cuda.stream(own):
                for drawn in draws:
                    own.synchronize()
                    waiting.put(drawn)
                    if closed.is_set():
                        return
        except BaseException as error:
            waiting.put(error)

    threading.Thread(target=work, name="pfnts-draws", daemon=True).start()
    try:
        while True:
            drawn = waiting.get()
            if isinstance(drawn, BaseException):
                raise drawn
            for minibatch in drawn:
                minibatch.used_by(torch.cuda.current_stream(device))
            yield drawn
    finally:
        closed.set()
        while not waiting.empty():  # the thread may wait for room
            waiting.get()


def draw_minibatches(recipe: Recipe, rng: DeviceRng) -> list[Minibatch]:
    """Draw the minibatches of several steps; parts of them differ in how they are normalised.

    A history of t rows is shown normalised by its first b(t): by all of them while they are few, else by 40
    to 100 % of them, and never by more than some 2,048. So are these.
    """
    rows = recipe.lengths[rng.choice(list(recipe.length_weights))]
    few, asked = rows == 0, asked_of(rows)
    widths = recipe.widths_of(rows)
    features = widths[rng.choice(list(recipe.width_weights[: len(widths)]))]
    batch, steps = recipe.batch(rows, features), recipe.steps_per_draw
    rows = rows or recipe.most_of_few
    drawn = draw_tables(batch * steps, rows, features, asked=asked, rng=rng, groups=steps, draws=DRAWS)
    order = torch.randperm(len(drawn.X), device=drawn.X.device, generator=rng.generator)
    found: list[Minibatch] = []
    parts = steps // 2 if few else 2
    for part in order.chunk(parts):
        if few:
            known = recipe.few[rng.integer(0, len(recipe.few) - 1)]
        else:
            known = round(rng.log_uniform(min(rows / 2.5, MOST_KNOWN), min(rows - asked, 1.5 * MOST_KNOWN)))
        tables = drawn.take(part, first=known if few else rows - asked, last=asked)
        minibatch = Minibatch.of(tables, asked=asked, known=known, together=few)
        found += minibatch.parts(steps // parts)
    return found * recipe.uses
