"""On a card: what is done many times in the same way, recorded once and launched together.

A pass through the network is some three hundred small kernels, most of them between attentions, where nothing
depends on how many rows a history has. To launch them one by one takes longer than to compute them. So for
passes of few tokens they are recorded as CUDA graphs, one from each attention to the next.
"""

from __future__ import annotations

import threading
import warnings
from collections import Counter
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Protocol, Self, TypeVar

import torch
from torch import Tensor

from pfnts.backbones.network.inference.segments import Asked, Pass, Tokens, blocks, embed, go_on, read
from pfnts.backbones.network.network import CausalPFN

FEWEST = 64
"""Tokens are filled up to this number, or to it times a power of four: to record takes time as well."""
OFTEN = 3
"""Passes of a shape before it is recorded."""
MOST_TOKENS, MOST_CELLS = 1024, 2**15
"""Larger passes have enough to compute."""

T = TypeVar("T")

_ONE_AT_A_TIME = threading.Lock()
"""Held while what was recorded is used, until its answer is taken: recordings share their memory, so that one
may write where another has left what it has not yet told."""


class Record(Protocol):
    """Makes of some work what does it again, and gives what it returns: that is where it will write."""

    def __call__(self, work: Callable[[], T]) -> tuple[Callable[[], None], T]:
        """Record."""
        ...


def passing(network: CausalPFN, tokens: Tokens) -> Pass:
    """Let tokens pass through the network, by what was recorded if that is faster."""
    return recordings(network).passing(tokens) if tokens.X.is_cuda else Pass(network, tokens)


@lru_cache(maxsize=4)
def recordings(network: CausalPFN) -> Recordings:
    """What was recorded of a network on a card."""
    return Recordings(network, CudaGraphs(network.cells.missing.device))


class Recordings:
    """Passes through a network that were recorded, by their shape.

    Parameters
    ----------
    network
        What is recorded.
    record
        How.
    """

    def __init__(self, network: CausalPFN, record: Record) -> None:
        self._network, self._record = network, record
        self._uses: Counter[tuple[int, int, bool]] = Counter()
        self._of_shape: dict[tuple[int, int, bool], Recording] = {}
        self._works = True

    def passing(self, tokens: Tokens) -> Pass:
        """Use what is recorded for the tokens' shape, if it has come often."""
        rows, columns, known = tokens.shape
        room = room_for(rows)
        if room > MOST_TOKENS or room * columns > MOST_CELLS:
            return Pass(self._network, tokens)
        shape = room, columns, known
        with _ONE_AT_A_TIME:
            self._uses[shape] += 1
            if shape not in self._of_shape and self._uses[shape] >= OFTEN and self._works:
                self._try(shape, filled_up(tokens, room))
            recording = self._of_shape.get(shape)
        return Pass(self._network, tokens) if recording is None else RecordedPass(recording, tokens)

    def _try(self, shape: tuple[int, int, bool], tokens: Tokens) -> None:
        """Record a shape; what fails once is not tried again, since it would fail with others too."""
        try:
            self._of_shape[shape] = Recording(self._network, tokens, self._record)
        except RuntimeError as error:
            self._works = False
            warnings.warn(
                f"what is launched on the card could not be recorded, which is slower: {error}", stacklevel=2
            )


class Recording:
    """All that is done to tokens of one shape between attentions.

    Parameters
    ----------
    network
        What is recorded.
    tokens
        Some of that shape: those to come take their place.
    record
        How.
    """

    def __init__(self, network: CausalPFN, tokens: Tokens, record: Record) -> None:
        self.tokens = tokens
        """Where those of a pass are to be put."""
        replay, stage = record(partial(embed, network, tokens))
        self.replays, self.stages = [replay], [stage]
        """Up to each block."""
        self.seen: list[Tensor] = []
        """Where what is seen at each block is to be put."""
        for number in range(len(blocks(network)) - 1):
            self.seen.append(torch.zeros_like(stage.asked[0]))
            replay, stage = record(partial(go_on, network, tokens, stage, number, self.seen[-1]))
            self.replays.append(replay)
            self.stages.append(stage)
        if tokens.y is None:
            self.seen.append(torch.zeros_like(stage.asked[0]))
            self.read, self.said = record(partial(read, network, tokens, stage, self.seen[-1]))


class RecordedPass(Pass):
    """Tokens on their way through what was recorded for their shape.

    Parameters
    ----------
    recording
        What was recorded.
    tokens
        What passes: as many as there is room for, or fewer.
    """

    def __init__(self, recording: Recording, tokens: Tokens) -> None:
        self._recording, self._tokens, self._rows = recording, tokens, tokens.shape[0]

    def __enter__(self) -> Self:
        _ONE_AT_A_TIME.acquire()
        return self

    def __exit__(self, *_: object) -> None:
        """Let others use it."""
        _ONE_AT_A_TIME.release()

    def begin(self) -> Asked:
        """What is asked at the first block."""
        take(self._recording.tokens, self._tokens)
        return self._ask(0)

    def go_on(self, number: int, seen: Tensor) -> Asked:
        """What is asked at the block after ``number``, given what was seen there."""
        self._recording.seen[number][:, :, : self._rows].copy_(seen)
        return self._ask(number + 1)

    def read(self, seen: Tensor) -> Tensor:
        """What is said of queries (m, 1 + Q + 1), given what was seen at the last block."""
        self._recording.seen[-1][:, :, : self._rows].copy_(seen)
        self._recording.read()
        return self._recording.said[: self._rows].clone()

    def _ask(self, number: int) -> Asked:
        self._recording.replays[number]()
        return tuple(x[:, :, : self._rows] for x in self._recording.stages[number].asked)


class CudaGraphs:
    """Records what is launched on a card.

    Parameters
    ----------
    device
        The card.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        with torch.cuda.device(device):
            self._side = torch.cuda.Stream()
            self._pool = torch.cuda.graph_pool_handle()

    def __call__(self, work: Callable[[], T]) -> tuple[Callable[[], None], T]:
        """Record some work."""
        with torch.cuda.device(self._device):
            graph, now = torch.cuda.CUDAGraph(), torch.cuda.current_stream()
            self._side.wait_stream(now)
            with torch.cuda.stream(self._side):
                work()  # once before, so that nothing is set up while recording
                self._side.synchronize()
                # Other threads may use the card meanwhile.
                graph.capture_begin(pool=self._pool, capture_error_mode="thread_local")
                try:
                    out = work()
                finally:
                    graph.capture_end()
            now.wait_stream(self._side)
        return graph.replay, out


def room_for(rows: int) -> int:
    """Rows to which some are filled up.

    Examples
    --------
    >>> [room_for(rows) for rows in (1, 64, 65, 300)]
    [64, 64, 256, 1024]
    """
    room = FEWEST
    while room < rows:
        room *= 4
    return room


def filled_up(tokens: Tokens, rows: int) -> Tokens:
    """A copy with so many rows, of which those at the end are empty."""
    X, said, known = tokens.X, tokens.base_predictions, tokens.y is not None
    copy = Tokens(
        X.new_zeros(1, rows, X.shape[2]),
        tokens.identity.clone(),
        tokens.position.new_zeros(rows),
        said.new_zeros(1, rows, said.shape[2]),
        X.new_zeros(1, rows) if known else None,
        X.new_zeros(rows, dtype=torch.bool) if known else None,
    )
    take(copy, tokens)
    return copy


def take(places: Tokens, tokens: Tokens) -> None:
    """Put tokens where others were; what is behind them is left."""
    rows = tokens.shape[0]
    places.X[:, :rows].copy_(tokens.X)
    places.position[:rows].copy_(tokens.position)
    places.base_predictions[:, :rows].copy_(tokens.base_predictions)
    if tokens.y is not None and places.y is not None and places.start is not None:
        places.y[:, :rows].copy_(tokens.y)
        places.start.zero_()
        if tokens.start is not None:
            places.start[:rows].copy_(tokens.start)
