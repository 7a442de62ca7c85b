"""Questions put to the network about any number of histories."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import chain, zip_longest
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from pfnts.backbones.base import Matrix, Prediction, PredictiveSequence, Question, Vector
from pfnts.backbones.checks import check_question
from pfnts.backbones.network.features.rows import joined
from pfnts.backbones.network.inference.cache import Cache, Growth
from pfnts.backbones.network.inference.cores import ONE_CORE, Cores
from pfnts.backbones.network.inference.growth import grow
from pfnts.backbones.network.inference.key_values import attention
from pfnts.backbones.network.inference.recorded import passing
from pfnts.backbones.network.inference.segments import Tokens, blocks
from pfnts.backbones.network.network import CausalPFN, log_position, quantile_levels

if TYPE_CHECKING:
    from pfnts.backbones.network.inference.sequence import EmbeddedSequence

QUERIES_AT_ONCE = {"cpu": 64, "cuda": 4096, "mps": 4096}
"""Queries in one pass: on a CPU enough for fast products, and few enough for every core to have some."""
FEW_QUERIES = {"cpu": 32, "cuda": 4096, "mps": 4096}
"""Up to as many, a pass consists of small operations: histories and prefixes are better asked together."""
TOGETHER = {"cpu": 64, "cuda": 262_144, "mps": 65_536}
"""So many queries at most, unless that makes too many cells."""
CELLS_AT_ONCE = {"cpu": 32_768, "cuda": 262_144, "mps": 65_536}
"""Cells of queries in one pass: what fits into memory."""
WIDENED = 6.0
"""The standard deviation of a mean is larger than the network says by so many parts in the number of rows.
After 3 to 64 rows that a policy chose, the network's own 95 % intervals hold 89 of 100 means of held-out
functions at contexts of anybody, and widened 95; where rows are drawn at random, 93 and 98."""
_LARGEST = np.finfo(np.float64).max


def answer(questions: Sequence[Question]) -> list[Prediction]:
    """Answer questions about histories held by the network.

    An answer does not depend on what else is asked in the call, but for the rounding of single precision
    where few queries share a pass with others.
    """
    checked = [_Checked.of(question) for question in questions]
    if not checked:
        return []
    kind = torch.device(checked[0].sequence.device).type
    with _held(asked.sequence for asked in checked), Cores.lent(kind) as cores, torch.inference_mode():
        largest: dict[EmbeddedSequence, int] = {}
        for asked in checked:
            if asked.sizes and len(asked.x):
                largest[asked.sequence] = max(largest.get(asked.sequence, 0), *asked.sizes)
        for sequence in largest:
            sequence.begin_question()
        prefixes = [p for asked in checked for p in asked.prefixes()]
        current = [sequence for sequence, size in largest.items() if size >= sequence.size / 2]
        ahead = [growth for sequence in current for growth in sequence.ahead()]
        for wave in in_waves(prefixes):
            sizes: dict[EmbeddedSequence, list[int]] = {}
            for prefix in wave:
                sizes.setdefault(prefix.asked.sequence, []).append(prefix.size)
            grow(chain.from_iterable(sequence.reach(each) for sequence, each in sizes.items()), cores)
            _ask(wave, cores, ahead)
            ahead = []
    return [asked.prediction() for asked in checked]


def prepare(sequences: Sequence[PredictiveSequence]) -> None:
    """Let the rows of histories enter their caches ahead of the questions that will need them."""
    checked = [_checked(sequence) for sequence in sequences]
    if checked:
        kind = torch.device(checked[0].device).type
        with _held(checked), Cores.lent(kind) as cores, torch.inference_mode():
            grow(chain.from_iterable(sequence.enter() for sequence in set(checked)), cores)


@contextmanager
def _held(sequences: Iterable[EmbeddedSequence]) -> Iterator[None]:
    """Keep others from asking about these sequences, whose caches will move."""
    with ExitStack() as stack:
        for sequence in sorted(set(sequences), key=id):  # in one order, so that nobody waits in a circle
            stack.enter_context(sequence.lock)
        yield


def _checked(sequence: PredictiveSequence) -> EmbeddedSequence:
    from pfnts.backbones.network.inference.sequence import EmbeddedSequence

    if not isinstance(sequence, EmbeddedSequence):
        raise ValueError(f"questions must be about sequences of this backbone, got a {type(sequence)}")
    return sequence


class _Checked:
    """A question with its arguments as arrays, and what was said to it so far."""

    def __init__(self, sequence: EmbeddedSequence, x: Matrix, sizes: list[int], levels: Vector) -> None:
        self.sequence = sequence
        self.x = x
        self.sizes = sizes
        self.levels = levels
        self.said: dict[int, _Said] = {}

    @staticmethod
    def of(question: Question) -> _Checked:
        sequence = _checked(question.sequence)
        x, sizes, levels = check_question(
            question.queries, question.sizes, question.levels, columns=sequence.columns, held=sequence.size
        )
        return _Checked(sequence, x, sizes.tolist(), levels)

    def prefixes(self) -> list[_Prefix]:
        """Each prefix that is asked about."""
        if not len(self.x):
            return []
        return [_Prefix(self, size, self.sequence.cache_of(size)) for size in dict.fromkeys(self.sizes)]

    def prediction(self) -> Prediction:
        """All that was said."""
        means, quantiles = np.empty((len(self.sizes), len(self.x))), np.empty((len(self.levels), len(self.x)))
        if not self.said:
            return Prediction(means, quantiles)
        for row, size in zip(means, self.sizes, strict=True):
            row[:] = self.said[size].mean
        last = self.said[self.sizes[-1]]
        if len(self.levels):
            known = np.sort(last.quantiles)  # (q, Q)
            at = quantile_levels(known.shape[1]).numpy()
            quantiles = np.array([np.interp(self.levels, at, row) for row in known]).T
        return Prediction(means, quantiles, last.mean_sd)


@dataclass(frozen=True)
class _Said:
    """What the network says about q queries after one prefix, in the units of the targets."""

    mean: Vector
    quantiles: Matrix
    """(q, Q), not yet sorted"""
    mean_sd: Vector


@dataclass(frozen=True, eq=False)
class _Prefix:
    """Queries put to one history after one of its prefixes."""

    asked: _Checked
    size: int
    cache: Cache

    def tell(self, parts: Sequence[_Output]) -> None:
        """Take what the network said about parts of the queries."""
        scale, centre = self.cache.y_scale, self.cache.y_centre
        mean, quantiles = (
            np.clip(torch.cat(out).double().numpy() * scale + centre, -_LARGEST, _LARGEST)
            for out in zip(*[(part.mean, part.quantiles) for part in parts], strict=True)
        )
        widened = scale * (1 + WIDENED / self.size)
        sd = torch.cat([part.log_sd for part in parts]).double().exp().numpy() * widened
        self.asked.said[self.size] = _Said(mean, quantiles, sd)


@dataclass(frozen=True)
class _Output:
    """What the network says about some queries, in units of the cache; on the CPU."""

    mean: Tensor
    quantiles: Tensor
    log_sd: Tensor


@dataclass(frozen=True, eq=False)
class _Slice:
    """Some queries after one prefix, as the network sees them."""

    prefix: _Prefix
    shown: Tensor
    """(q, P'), as the network sees them; on the CPU"""
    told: Tensor
    """(q, P''), as regressions do"""
    say: Callable[[Tensor], Tensor]
    """What regressions say of them."""


def in_waves(prefixes: Iterable[_Prefix]) -> list[list[_Prefix]]:
    """Group prefixes so that a cache can hold the tails of all that are in a group at the same time."""
    by_cache: dict[Cache, list[list[_Prefix]]] = {}
    for prefix in sorted(prefixes, key=lambda prefix: prefix.size):
        own = by_cache.setdefault(prefix.cache, [[]])
        if not all(prefix.cache.together(earlier.size, prefix.size) for earlier in own[-1]):
            own.append([])
        own[-1].append(prefix)
    return [[p for part in wave for p in part] for wave in zip_longest(*by_cache.values(), fillvalue=[])]


def _ask(prefixes: list[_Prefix], cores: Cores, ahead: Sequence[Growth] = ()) -> None:
    """Put queries to prefixes whose caches are ready, while others grow that later questions will need."""
    cut: dict[_Prefix, list[_Slice]] = {}
    for prefix in prefixes:
        (shown, told), kind = prefix.cache.show(prefix.asked.x), prefix.cache.kind
        say = prefix.cache.base_predictions(prefix.size)
        at_once = max(1, min(QUERIES_AT_ONCE[kind], CELLS_AT_ONCE[kind] // shown.shape[1]))
        # How many cores there are must not matter here: another cut rounds differently.
        count = math.ceil(len(shown) / at_once)
        cut[prefix] = [
            _Slice(prefix, *part, say)
            for part in zip(shown.tensor_split(count), told.tensor_split(count), strict=True)
        ]
    alone: list[_Slice] = []
    batches: dict[tuple[CausalPFN, str, int], list[_Slice]] = {}  # by the number of columns
    for prefix, parts in cut.items():
        network, kind = prefix.cache.network, prefix.cache.kind
        if len(parts) == 1 and len(parts[0].shown) <= FEW_QUERIES[kind]:
            batches.setdefault((network, kind, parts[0].shown.shape[1]), []).append(parts[0])
        else:
            alone += parts
    passes = [
        few
        for (_, kind, width), batch in batches.items()
        for few in _cut(batch, min(TOGETHER[kind], CELLS_AT_ONCE[kind] // width))
    ]
    passes += [[part] for part in alone]
    passes.sort(key=lambda few: -max(part.prefix.size for part in few))  # so that cores end together
    own = cores if len(passes) == 1 and not ahead else ONE_CORE

    def grow_ahead() -> list[_Output]:
        grow(ahead, ONE_CORE)
        return []

    jobs: list[Callable[[], list[_Output]]] = [grow_ahead] if ahead else []
    jobs += [partial(_pass, few[0].prefix.cache.network, few, own) for few in passes]
    outputs = cores.each(lambda job: job(), jobs)[-len(passes) :]
    said = {
        part: out
        for few, outs in zip(passes, outputs, strict=True)
        for part, out in zip(few, outs, strict=True)
    }
    for prefix, parts in cut.items():
        prefix.tell([said[part] for part in parts])


def _cut(slices: list[_Slice], queries: int) -> list[list[_Slice]]:
    """Cut slices into batches of at most so many queries, or of one slice."""
    batches: list[list[_Slice]] = []
    room = 0
    for part in slices:
        if len(part.shown) > room:
            batches.append([])
            room = queries
        batches[-1].append(part)
        room -= len(part.shown)
    return batches


def _pass(network: CausalPFN, slices: list[_Slice], cores: Cores) -> list[_Output]:
    """Pass queries through the network, all as one batch but for attention to their own cache."""
    lengths = [len(part.shown) for part in slices]
    sizes = [part.prefix.size for part in slices]
    longest = sorted(range(len(slices)), key=lambda i: -sizes[i])  # first, so that cores end together
    device = network.cells.missing.device
    said = [part.say(part.told).to(device) for part in slices]
    tokens = Tokens(
        joined([part.shown[None] for part in slices]).to(device),
        slices[0].prefix.cache.identity,  # caches with as many columns have the same
        log_position(torch.from_numpy(np.repeat(sizes, lengths)).to(device)),
        joined(said),
    )

    alone = cores if len(slices) == 1 else ONE_CORE

    def look(i: int) -> Tensor:
        key, value = slices[i].prefix.cache.upto(number, sizes[i])
        return attention(parts[i], key, value, cores=alone)

    with passing(network, tokens) as running:
        last = len(blocks(network)) - 1
        (query,) = running.begin()
        for number in range(last + 1):
            parts = query.split(lengths, 2)
            looked = dict(zip(longest, cores.each(look, longest), strict=True))
            seen = joined([looked[i] for i in range(len(slices))], 2)
            if number < last:
                (query,) = running.go_on(number, seen)
        answers = running.read(seen).cpu().split(lengths)
    return [_Output(out[:, 0], out[:, 1:-1], out[:, -1]) for out in answers]
