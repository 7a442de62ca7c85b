"""A history in one frame: keys and values of each block, and features."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from pfnts.backbones.network.features.features import Features
from pfnts.backbones.network.features.rows import Rows
from pfnts.backbones.network.features.table import BASE_PREDICTIONS
from pfnts.backbones.network.inference.frame import Frame

SHORT = 512
"""Features of a frame with a smaller basis are computed on the CPU, wherever the network is: thousands of
small operations, which take longer to launch on a card than to compute."""

Cache = tuple[tuple[Rows, Rows], ...]
"""Keys and values (P * heads, tokens, w) of each block; the first token is the start token."""


@dataclass(frozen=True)
class State:
    """The first rows of a history, as the network needs them; never changed, so a copy is a reference."""

    frame: Frame
    cache: Cache
    """Empty before the start token."""
    features: Features

    @staticmethod
    def empty(frame: Frame, *, device: str) -> State:
        """Return the state before the start token."""
        where = torch.device("cpu" if frame.basis < SHORT else device)
        dtype = torch.float32 if where.type == "mps" else torch.float64  # there is no double precision
        like = torch.zeros(1, 0, len(frame.names_arm), dtype=dtype, device=where)
        return State(frame, (), Features.none(like, names_arm=frame.names_arm[None].to(where)))

    @property
    def tokens(self) -> int:
        """Number of tokens, the start token included; 0 before it."""
        return self.cache[-1][0].length if self.cache else 0

    @property
    def size(self) -> int:
        """Number of rows."""
        return self.features.rows

    def features_after(self, X: Tensor, y: Tensor) -> tuple[Features, Tensor]:
        """Append rows X (m, P), y (m,) to the features; return also those of each row, (m, K)."""
        like = self.features.X.buffer
        if not len(y):
            return self.features, like.new_zeros(0, BASE_PREDICTIONS)
        features, of_rows = self.features.extend(X.to(like)[None], y.to(like)[None])
        return features, of_rows[0]


def features_at(features: Features, X: Tensor, sizes: tuple[int, ...]) -> Tensor:
    """Return features (S q, BASE_PREDICTIONS) of contexts X (q, P) after each of S sizes, sizes first."""
    return features.at(X.to(features.X.buffer)[None], sizes)[0]
