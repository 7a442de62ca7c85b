"""What is kept of a history's rows in one frame: keys, values and features. The network attends to it."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from pfnts.backbones.network.features.regressions import BASE_PREDICTIONS, Regressions
from pfnts.backbones.network.inference.buffer import Buffer
from pfnts.backbones.network.inference.frame import Frame

SHORT = 512
"""Features of a frame with a smaller basis are computed on the CPU, wherever the network is: thousands of
small operations, which take longer to launch on a card than to compute."""


@dataclass(frozen=True)
class State:
    """The first rows of a history, as the network needs them; never changed, so a copy is a reference."""

    frame: Frame
    cache: tuple[Buffer, ...]
    """Keys and values (1, P * heads, tokens, w) of each block; the first token is the start token."""
    features: Features

    @staticmethod
    def empty(frame: Frame, *, blocks: int, device: str) -> State:
        """Return the state before the start token."""
        return State(frame, (Buffer(),) * blocks, Features.none(frame, device=device))

    @property
    def tokens(self) -> int:
        """Number of tokens in the cache, the start token included; 0 before it."""
        return len(self.cache[-1])

    @property
    def size(self) -> int:
        """Number of rows."""
        return max(0, self.tokens - 1)


@dataclass(frozen=True)
class Features:
    """Statistics of a history's rows from which base predictions are made."""

    regressions: Regressions
    device: torch.device

    @staticmethod
    def none(frame: Frame, *, device: str) -> Features:
        """Return those of no rows."""
        where = torch.device("cpu" if frame.basis < SHORT else device)
        return Features(Regressions(frame.names_arm[None].to(where), few_trees_on="cpu"), where)

    def extend(self, X: Tensor, y: Tensor) -> tuple[Features, Tensor]:
        """Append rows X (m, P), y (m,); return also base predictions (m, K), each from the rows before."""
        if not len(y):
            return self, X.new_zeros(0, BASE_PREDICTIONS)
        regressions = self.regressions.fork()
        found = regressions.extend(self._exact(X), self._exact(y))
        return Features(regressions, self.device), found[0]

    def base_predictions(self, X: Tensor, sizes: tuple[int, ...]) -> Tensor:
        """Return base predictions (S * q, K) of contexts X (q, P) after each of S sizes, sizes first."""
        return self.regressions.base_predictions(self._exact(X), sizes)[0]

    def _exact(self, x: Tensor) -> Tensor:
        if self.device.type == "mps":  # has no double precision
            x = x.float()
        return x.to(self.device)[None]
