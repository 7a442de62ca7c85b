"""A history held by the network: one cache of keys and values gives the prediction after every prefix."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor
from torch.nn import functional as F

from pfnts.backbones.checks import check_levels, check_queries, check_rows, check_sizes
from pfnts.backbones.embedded.columns import ColumnReduction
from pfnts.backbones.embedded.cores import side_by_side
from pfnts.backbones.embedded.model import CausalBlock, CausalPFN
from pfnts.backbones.embedded.normalisation import Normalisation
from pfnts.backbones.embedded.pretraining import quantile_levels
from pfnts.backbones.embedded.regressions import Regressions

ROWS_AT_ONCE = {"cpu": 256, "cuda": 2048, "mps": 1024}
"""Rows added to the cache in one pass."""
QUERIES_AT_ONCE = {"cpu": 32, "cuda": 4096, "mps": 4096}
"""Queries in one pass: on a CPU enough for fast products, and few enough for every core to have some."""
CELLS_AT_ONCE = {"cpu": 32_768, "cuda": 262_144, "mps": 65_536}
"""Their cells, counted for every prefix size: what fits into memory."""


class EmbeddedSequence:
    """The network's `pfnts.backbones.base.PredictiveSequence`.

    The history is shown to the network normalised by its first ``2 ** floor(log2(size))`` rows. While that
    number stays, appended rows extend the cache; when it doubles, the cache is made anew. Rows wait until
    they are needed for a prediction.
    """

    def __init__(self, network: CausalPFN, X: ArrayLike, y: ArrayLike, *, device: str = "cpu") -> None:
        self._network = network
        self._device = device
        self._kind = torch.device(device).type
        self._X, self._y = (rows.copy() for rows in check_rows(X, y, columns=None))
        self._cache: _Cache | None = None
        self._last: _Answer | None = None

    @property
    def size(self) -> int:
        """Number of observations held."""
        return len(self._y)

    def append(self, X: ArrayLike, y: ArrayLike) -> None:
        """Add observations at the end."""
        X_new, y_new = check_rows(X, y, columns=self._X.shape[1])
        self._X = np.concatenate([self._X, X_new])
        self._y = np.concatenate([self._y, y_new])

    def means(self, queries: ArrayLike, sizes: Sequence[int]) -> NDArray[np.float64]:
        """Predictive means after each prefix, (len(sizes), q)."""
        x = check_queries(queries, self._X.shape[1])
        chosen = check_sizes(sizes, self.size).tolist()
        if not chosen or not len(x):
            return np.empty((len(chosen), len(x)))
        answer = self._answer(x, chosen)
        return np.stack([answer.means[t] for t in chosen])

    def quantiles(self, queries: ArrayLike, size: int, levels: ArrayLike) -> NDArray[np.float64]:
        """Predictive quantiles after ``size`` rows, (len(levels), q), interpolated between the network's."""
        x = check_queries(queries, self._X.shape[1])
        check_sizes([size], self.size)
        level = check_levels(levels)
        if not len(x):
            return np.empty((len(level), 0))
        known = np.sort(self._answer(x, [size]).quantiles)  # (q, Q)
        at = quantile_levels(known.shape[1]).numpy()
        return np.array([np.interp(level, at, row) for row in known]).T

    @torch.inference_mode()
    def _answer(self, x: NDArray[np.float64], sizes: list[int]) -> _Answer:
        """Means after each prefix, quantiles after the last; what was said before is not worked out again."""
        cache, last = self._cache_for(max(sizes)), sizes[-1]
        said = None if self._last is None else self._last.about(x, cache)
        means = {} if said is None else {t: said.means[t] for t in sizes if t in said.means}
        if said is not None and said.size == last and len(means) == len(set(sizes)):
            return said
        new = [t for t in dict.fromkeys(sizes) if t not in means and t != last] + [last]
        shown = cache.show(x)
        cells = CELLS_AT_ONCE[self._kind] // (len(new) * shown.shape[1])
        at_once = max(1, min(QUERIES_AT_ONCE[self._kind], cells))
        # How many cores there are must not matter here: another cut rounds differently.
        cut = shown.chunk(math.ceil(len(x) / at_once))
        each = side_by_side if self._kind == "cpu" else map
        parts = list(each(lambda part: cache.predict(self._network, part, new), cut))
        mean = torch.cat([m for m, _ in parts], 1).double().cpu().numpy() * cache.y_scale + cache.y_centre
        quantiles = torch.cat([q for _, q in parts]).double().cpu().numpy() * cache.y_scale + cache.y_centre
        means |= dict(zip(new, mean, strict=True))
        self._last = _Answer(cache, x.copy(), means, last, quantiles)
        return self._last

    def _cache_for(self, size: int) -> _Cache:
        """Bring the cache up to ``size`` rows."""
        basis = 2 ** int(math.log2(self.size))
        if self._cache is None or self._cache.basis != basis:
            self._cache = _Cache(self._network, self._X[:basis], self._y[:basis], device=self._device)
        while self._cache.rows < size:
            rows = slice(self._cache.rows, min(size, self._cache.rows + ROWS_AT_ONCE[self._kind]))
            self._cache.extend(self._network, self._X[rows], self._y[rows])
        return self._cache


@dataclass(frozen=True)
class _Answer:
    """What was said about some queries, and from which cache: while that lasts, so does what was said."""

    cache: _Cache
    queries: NDArray[np.float64]
    means: dict[int, NDArray[np.float64]]
    """By prefix size, (q,)."""
    size: int
    """Prefix of the quantiles."""
    quantiles: NDArray[np.float64]

    @cached_property
    def _rows(self) -> dict[bytes, int]:
        return {query.tobytes(): row for row, query in enumerate(self.queries)}

    def about(self, x: NDArray[np.float64], cache: _Cache) -> _Answer | None:
        """The same for queries ``x``, if nothing has changed and all of them are among these."""
        if cache is not self.cache:
            return None
        rows = [self._rows.get(query.tobytes(), -1) for query in x]
        if -1 in rows:
            return None
        means = {size: mean[rows] for size, mean in self.means.items()}
        return _Answer(cache, x, means, self.size, self.quantiles[rows])


class _Cache:
    """Keys and values of the data tokens at every causal block, under one normalisation."""

    def __init__(
        self, network: CausalPFN, X: NDArray[np.float64], y: NDArray[np.float64], *, device: str
    ) -> None:
        self.basis = len(y)
        self.rows = -1  # the start row comes first
        self._device = device
        self._columns = ColumnReduction.of(X, y)
        reduced = torch.from_numpy(self._columns(X))
        self._norm = Normalisation.of(reduced, torch.from_numpy(y))
        self.y_centre, self.y_scale = float(self._norm.y_centre), float(self._norm.y_scale)
        features = reduced.shape[1]
        identity = torch.randn(
            features, network.architecture.identity, generator=torch.Generator().manual_seed(0)
        )
        self._identity = identity[None].to(device)
        self._held: dict[CausalBlock, tuple[_Growing, _Growing]] = {}
        self._regressions = Regressions()
        start = network.cells.start_row(self._identity)  # (1, 1, P, c)
        self._extend(network, start, torch.zeros(1, 1, network.architecture.row, device=device))

    def show(self, X: NDArray[np.float64]) -> Tensor:
        """Contexts as the network sees them, (m, P)."""
        return self._norm.contexts(torch.from_numpy(self._columns(X))).float().to(self._device)

    def extend(self, network: CausalPFN, X: NDArray[np.float64], y: NDArray[np.float64]) -> None:
        """Add rows."""
        shown = self.show(X)[None]
        target = self._norm.targets(torch.from_numpy(y)).float().to(self._device)[None]
        cells = network.cells(shown, self._identity) + network.cells.target(target)[:, :, None]
        opinions = self._regressions.extend(self._exact(shown), self._exact(target)).float()
        self._extend(network, cells, network.target(target) + network.opinion(opinions))

    def _extend(self, network: CausalPFN, h: Tensor, target: Tensor) -> None:
        """Pass data tokens (1, m, P, c) through the network, keeping the keys and values of each block."""
        m, before = h.shape[1], self.rows + 1
        position = torch.arange(before, before + m, device=self._device)
        mask = torch.arange(before + m, device=self._device) <= position[:, None]

        def attend(block: CausalBlock, h: Tensor) -> Tensor:
            normed = block.norm(h)
            key, value = (
                held.add(new) for held, new in zip(self._of(block), block.keys_values(normed), strict=True)
            )
            query = block.queries(normed, position)
            return block.finish(h, F.scaled_dot_product_attention(query, key, value, attn_mask=mask))

        for column, across in zip(network.columns, network.across, strict=True):
            h = across(attend(column, h))
        h = (network.readout(h) + target)[:, :, None]
        for block in network.in_context:
            h = attend(block, h)
        self.rows += m

    @torch.inference_mode()
    def predict(self, network: CausalPFN, x: Tensor, sizes: list[int]) -> tuple[Tensor, Tensor]:
        """Predict queries (q, P): means (S, q) after each prefix, and quantiles (q, Q) after the last."""
        q = len(x)
        # Tokens: sizes outside, queries inside. All are one batch but for attention, where each size has its
        # own slice of the cache; that beats masks over the whole of it even for a single query.
        position = torch.tensor(sizes, device=self._device).repeat_interleave(q)

        def attend(block: CausalBlock, h: Tensor) -> Tensor:
            key, value = (held.upto(max(sizes) + 1) for held in self._of(block))
            seen = [
                F.scaled_dot_product_attention(part, key[:, :, : t + 1], value[:, :, : t + 1])
                for t, part in zip(sizes, block.queries(block.norm(h), position).split(q, 2), strict=True)
            ]
            return block.finish(h, torch.cat(seen, 2))

        cells = network.cells(x[None], self._identity) + network.cells.target.unknown
        h = cells.repeat(1, len(sizes), 1, 1)  # (1, S * q, P, c)
        for column, across in zip(network.columns, network.across, strict=True):
            h = across(attend(column, h))
        opinions = self._regressions.opinions(self._exact(x[None]), sizes).float()  # (1, S * q, 6)
        h = (network.readout(h) + network.target.unknown + network.opinion(opinions))[:, :, None]
        for block in network.in_context:
            h = attend(block, h)
        mean, quantiles = network.head(h[0, :, 0], opinions[0])
        return mean.unflatten(0, (len(sizes), q)), quantiles[-q:]

    def _exact(self, x: Tensor) -> Tensor:
        """The same numbers in the precision that regressions want, where the device has it."""
        return x if x.device.type == "mps" else x.double()

    def _of(self, block: CausalBlock) -> tuple[_Growing, _Growing]:
        return self._held.setdefault(block, (_Growing(), _Growing()))


class _Growing:
    """A tensor (1, H, n, w) that grows along n without copying at every step."""

    def __init__(self) -> None:
        self._room: Tensor | None = None
        self._length = 0

    def add(self, new: Tensor) -> Tensor:
        """Append (1, H, m, w), and return all of it."""
        length = self._length + new.shape[2]
        if self._room is None or length > self._room.shape[2]:
            room = new.new_empty(1, new.shape[1], max(length, 2 * self._length, 64), new.shape[3])
            if self._room is not None:
                room[:, :, : self._length] = self._room[:, :, : self._length]
            self._room = room
        self._room[:, :, self._length : length] = new
        self._length = length
        return self._room[:, :, :length]

    def upto(self, length: int) -> Tensor:
        """The first ``length`` entries."""
        assert self._room is not None
        return self._room[:, :, :length]
