"""A history held by the network: one cache of keys and values gives the prediction after every prefix."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from pfnts.backbones.checks import check_levels, check_queries, check_rows, check_sizes
from pfnts.backbones.embedded.columns import ColumnReduction
from pfnts.backbones.embedded.cores import Cores
from pfnts.backbones.embedded.model import CausalBlock, CausalPFN, attend
from pfnts.backbones.embedded.normalisation import Normalisation
from pfnts.backbones.embedded.pretraining import quantile_levels
from pfnts.backbones.embedded.regressions import Regressions

ROWS_AT_ONCE = {"cpu": 1024, "cuda": 2048, "mps": 1024}
"""Rows added to the cache in one pass."""
ROWS_APART = {"cpu": 256, "cuda": 2048, "mps": 1024}
"""Of these, as many are one piece of work for a core."""
QUERIES_AT_ONCE = {"cpu": 64, "cuda": 4096, "mps": 4096}
"""Queries in one pass: on a CPU enough for fast products, and few enough for every core to have some."""
FEW_QUERIES = 8
"""Up to as many, a pass consists of small operations, and histories are better asked together."""
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
        self._asked: list[int] = []  # the last sizes of `means`, likely to be asked for until rows are added

    @property
    def size(self) -> int:
        """Number of observations held."""
        return len(self._y)

    def append(self, X: ArrayLike, y: ArrayLike) -> None:
        """Add observations at the end."""
        X_new, y_new = check_rows(X, y, columns=self._X.shape[1])
        self._X = np.concatenate([self._X, X_new])
        self._y = np.concatenate([self._y, y_new])
        self._asked = []

    def means(self, queries: ArrayLike, sizes: Sequence[int]) -> NDArray[np.float64]:
        """Predictive means after each prefix, (len(sizes), q)."""
        x = check_queries(queries, self._X.shape[1])
        chosen = check_sizes(sizes, self.size).tolist()
        if not chosen or not len(x):
            return np.empty((len(chosen), len(x)))
        with Cores.lent(self._kind) as cores:
            answer = self._answer(x, chosen, cores)
        self._asked = chosen
        return np.stack([answer.means[t] for t in chosen])

    def quantiles(self, queries: ArrayLike, size: int, levels: ArrayLike) -> NDArray[np.float64]:
        """Predictive quantiles after ``size`` rows, (len(levels), q), interpolated between the network's."""
        x = check_queries(queries, self._X.shape[1])
        check_sizes([size], self.size)
        level = check_levels(levels)
        if not len(x):
            return np.empty((len(level), 0))
        with Cores.lent(self._kind) as cores:
            known = np.sort(self._answer(x, [size], cores).quantiles)  # (q, Q)
        at = quantile_levels(known.shape[1]).numpy()
        return np.array([np.interp(level, at, row) for row in known]).T

    @torch.inference_mode()
    def _answer(self, x: NDArray[np.float64], sizes: list[int], cores: Cores) -> _Answer:
        """Means after each prefix, quantiles after the last; what was said before is not worked out again."""
        cache, last = self._cache_for(max(sizes), cores), sizes[-1]
        said = None if self._last is None else self._last.about(x, cache)
        means = {} if said is None else {t: said.means[t] for t in sizes if t in said.means}
        if said is not None and said.size == last and len(means) == len(set(sizes)):
            return said
        new = [t for t in dict.fromkeys(sizes) if t not in means and t != last] + [last]
        shown = cache.show(x)
        cells = CELLS_AT_ONCE[self._kind] // (len(new) * shown.shape[1])
        at_once = max(1, min(QUERIES_AT_ONCE[self._kind], cells))
        # How many cores there are must not matter here: another cut rounds differently.
        cut = [_Question(cache, part, new) for part in shown.chunk(math.ceil(len(x) / at_once))]
        if len(cut) == 1:
            parts = predict(self._network, cut, cores)
        else:
            parts = cores.each(lambda part: predict(self._network, [part], Cores())[0], cut)
        mean, quantiles = torch.cat([m for m, _ in parts], 1), torch.cat([q for _, q in parts])
        self._last = cache.answer(x, new, mean, quantiles)
        self._last.means.update(means)
        return self._last

    def _cache_for(self, size: int, cores: Cores) -> _Cache:
        """Bring the cache up to ``size`` rows."""
        basis = 2 ** int(math.log2(self.size))
        if self._cache is None or self._cache.basis != basis:
            self._cache = _Cache(self._network, self._X[:basis], self._y[:basis], device=self._device)
        while self._cache.rows < size:
            rows = slice(self._cache.rows, min(size, self._cache.rows + ROWS_AT_ONCE[self._kind]))
            self._cache.extend(self._network, self._X[rows], self._y[rows], cores)
        return self._cache


@torch.inference_mode()
def answer_together(sequences: Sequence[EmbeddedSequence], queries: NDArray[np.float64]) -> None:
    """Let sequences of one network find their answers to the same few queries in one batch.

    Each is taken to be asked about the prefixes that it was asked about the last time. What they answer when
    they are asked is the same without it; a batch spares them the small operations of all passes but one.
    """
    batches: dict[int, list[tuple[EmbeddedSequence, _Question]]] = {}
    for sequence in sequences if len(queries) <= FEW_QUERIES else ():
        cache, last = sequence._cache, sequence._last
        if cache is None or not sequence._asked or (last is not None and last.about(queries, cache)):
            continue
        question = _Question(cache, cache.show(queries), list(dict.fromkeys(sequence._asked)))
        batches.setdefault(question.shown.shape[1], []).append((sequence, question))
    for batch in batches.values():
        asker, questions = batch[0][0], [question for _, question in batch]
        if sum(len(a.sizes) * a.shown.numel() for a in questions) <= CELLS_AT_ONCE[asker._kind]:
            with Cores.lent(asker._kind) as cores:
                said = predict(asker._network, questions, cores)
            for (sequence, a), answer in zip(batch, said, strict=True):
                sequence._last = a.cache.answer(queries, a.sizes, *answer)


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
        self.identity = identity[None].to(device)
        self._held: dict[CausalBlock, tuple[_Growing, _Growing]] = {}
        self._regressions = Regressions()
        start = network.cells.start_row(self.identity)  # (1, 1, P, c)
        self._extend(network, start, torch.zeros(1, 1, network.architecture.row, device=device), Cores())

    def show(self, X: NDArray[np.float64]) -> Tensor:
        """Contexts as the network sees them, (m, P)."""
        return self._norm.contexts(torch.from_numpy(self._columns(X))).float().to(self._device)

    def extend(
        self, network: CausalPFN, X: NDArray[np.float64], y: NDArray[np.float64], cores: Cores
    ) -> None:
        """Add rows."""
        shown = self.show(X)[None]
        target = self._norm.targets(torch.from_numpy(y)).float().to(self._device)[None]
        cells = network.cells(shown, self.identity) + network.cells.target(target)[:, :, None]
        opinions = self._regressions.extend(self._exact(shown), self._exact(target)).float()
        self._extend(network, cells, network.target(target) + network.opinion(opinions), cores)

    def _extend(self, network: CausalPFN, h: Tensor, target: Tensor, cores: Cores) -> None:
        """Pass data tokens (1, m, P, c) through the network, keeping the keys and values of each block."""
        m, before = h.shape[1], self.rows + 1
        position = torch.arange(before, before + m, device=self._device)
        later = torch.arange(before + m, device=self._device) > position[:, None]
        mask = torch.zeros_like(later, dtype=h.dtype).masked_fill(later, -torch.inf)  # as attention adds it
        apart = ROWS_APART[h.device.type]
        pieces = [slice(begin, min(begin + apart, m)) for begin in range(0, m, apart)]

        def attend_all(block: CausalBlock, h: list[Tensor], then: Callable[[Tensor], Tensor]) -> list[Tensor]:
            def ask(i: int) -> tuple[Tensor, Tensor, Tensor]:
                normed = block.norm(h[i])
                return *block.keys_values(normed), block.queries(normed, position[pieces[i]])

            def see(i: int) -> Tensor:
                end = before + pieces[i].stop
                seen = attend(queries[i], key[:, :, :end], value[:, :, :end], mask=mask[pieces[i], :end])
                return then(block.finish(h[i], seen))

            keys, values, queries = zip(*cores.each(ask, range(len(h))), strict=True)
            held_keys, held_values = self._of(block)
            key, value = held_keys.add(torch.cat(keys, 2)), held_values.add(torch.cat(values, 2))
            return cores.each(see, range(len(h)))

        parts = [h[:, rows] for rows in pieces]
        for column, across in zip(network.columns, network.across, strict=True):
            parts = attend_all(column, parts, across)
        parts = cores.each(
            lambda i: (network.readout(parts[i]) + target[:, pieces[i]])[:, :, None], range(len(parts))
        )
        for block in network.in_context:
            parts = attend_all(block, parts, lambda h: h)
        self.rows += m

    def answer(self, x: NDArray[np.float64], sizes: list[int], mean: Tensor, quantiles: Tensor) -> _Answer:
        """What the network says about queries, (S, q) and (q, Q), in the units of the rewards."""
        means, beyond = (
            out.double().cpu().numpy() * self.y_scale + self.y_centre for out in (mean, quantiles)
        )
        return _Answer(self, x.copy(), dict(zip(sizes, means, strict=True)), sizes[-1], beyond)

    def opinions(self, x: Tensor, sizes: list[int]) -> Tensor:
        """What the regressions say about queries (q, P) after each prefix, (1, S * q, opinions)."""
        return self._regressions.opinions(self._exact(x[None]), sizes).float()

    def upto(self, block: CausalBlock, size: int) -> tuple[Tensor, Tensor]:
        """Keys and values of the start row and the first ``size`` rows."""
        key, value = self._of(block)
        return key.upto(size + 1), value.upto(size + 1)

    def _exact(self, x: Tensor) -> Tensor:
        """The same numbers in the precision that regressions want, where the device has it."""
        return x if x.device.type == "mps" else x.double()

    def _of(self, block: CausalBlock) -> tuple[_Growing, _Growing]:
        return self._held.setdefault(block, (_Growing(), _Growing()))


@dataclass(frozen=True)
class _Question:
    """Queries put to one history after several prefixes."""

    cache: _Cache
    shown: Tensor
    """(q, P)"""
    sizes: list[int]


@torch.inference_mode()
def predict(network: CausalPFN, questions: Sequence[_Question], cores: Cores) -> list[tuple[Tensor, Tensor]]:
    """Means (S, q) after each prefix and quantiles (q, Q) after the last, for each question."""
    # Tokens: questions outside, then sizes, then queries. All are one batch but for attention, where each
    # size has its own slice of its cache; that beats masks over the whole of it even for a single query.
    slices = [(question.cache, len(question.shown), t) for question in questions for t in question.sizes]
    lengths = [q for _, q, _ in slices]
    longest = sorted(range(len(slices)), key=lambda i: -slices[i][2])  # first, so that cores end together
    position = torch.tensor([t for _, q, t in slices for _ in range(q)], device=questions[0].shown.device)

    def attend_all(block: CausalBlock, h: Tensor) -> Tensor:
        parts = block.queries(block.norm(h), position).split(lengths, 2)
        seen = dict(zip(longest, cores.each(lambda i: look(block, parts[i], i), longest), strict=True))
        return block.finish(h, torch.cat([seen[i] for i in range(len(parts))], 2))

    def look(block: CausalBlock, query: Tensor, i: int) -> Tensor:
        cache, _, t = slices[i]
        return attend(query, *cache.upto(block, t))

    cells = [network.cells(a.shown[None], a.cache.identity).repeat(1, len(a.sizes), 1, 1) for a in questions]
    h = torch.cat(cells, 1) + network.cells.target.unknown  # (1, m, P, c)
    for column, across in zip(network.columns, network.across, strict=True):
        h = across(attend_all(column, h))
    opinions = torch.cat([a.cache.opinions(a.shown, a.sizes) for a in questions], 1)  # (1, m, opinions)
    h = (network.readout(h) + network.target.unknown + network.opinion(opinions))[:, :, None]
    for block in network.in_context:
        h = attend_all(block, h)
    mean, quantiles, _ = network.head(h[0, :, 0], opinions[0])
    ends = [len(a.sizes) * len(a.shown) for a in questions]
    return [
        (m.unflatten(0, (len(a.sizes), -1)), q[-len(a.shown) :])
        for a, m, q in zip(questions, mean.split(ends), quantiles.split(ends), strict=True)
    ]


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
