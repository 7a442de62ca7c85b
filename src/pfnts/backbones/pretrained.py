"""What the backbones on somebody else's checkpoint have in common."""

from __future__ import annotations

import hashlib
import math
from abc import abstractmethod
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import torch
from numpy.typing import ArrayLike

from pfnts.backbones.base import Backbone, Matrix, Vector
from pfnts.backbones.devices import check_device
from pfnts.backbones.prefix_fits import FittedPrefix, LRUCache, RefittedSequence

CELLS_AT_ONCE = {"cpu": 8_192, "cuda": 65_536}
"""Query cells in one pass: enough to keep the device busy, few enough for a table of one narrow column, whose
predictive distributions then take the memory."""


class PretrainedBackbone(Backbone):
    """A network that reads a whole prefix at once; a subclass says how.

    Parameters
    ----------
    device
        Where to compute, as PyTorch names it.
    weights
        The checkpoint.
    n_estimators
        Views of the data whose predictions are averaged.
    seed
        Of the views.
    cache_gb
        Memory for fits, of all histories together.
    """

    def __init__(self, *, device: str, weights: Path, n_estimators: int, seed: int, cache_gb: float) -> None:
        if n_estimators < 1:
            raise ValueError(f"n_estimators must be at least 1, got {n_estimators}")
        if not (math.isfinite(cache_gb) and cache_gb >= 0):
            raise ValueError(f"cache_gb must be finite and not negative, got {cache_gb}")
        self._device = check_device(device)
        self.fingerprint: str = fingerprint(weights)
        self._weights = weights
        self._n_estimators = n_estimators
        self._seed = seed
        self._fits = LRUCache(capacity=int(cache_gb * 1e9))
        self._at_once = CELLS_AT_ONCE.get(torch.device(device).type, CELLS_AT_ONCE["cpu"])

    def sequence(self, X: ArrayLike, y: ArrayLike, *, keep: Sequence[int] = ()) -> RefittedSequence:
        """Start a history from ``X`` (n, P) and ``y`` (n,), n >= 1."""
        return RefittedSequence(X, y, keep=keep, fit=self._fit, fits=self._fits, at_once=self._at_once)

    @abstractmethod
    def _fit(self, X: Matrix, y: Vector) -> FittedPrefix:
        """Let the network read rows ``X`` (t, P) and targets ``y`` (t,)."""


def fingerprint(path: Path) -> str:
    """Sixteen hexadecimal digits that change with the file's content."""
    about = path.stat()
    return _fingerprint(path, about.st_mtime_ns, about.st_size)


@lru_cache(maxsize=16)
def _fingerprint(path: Path, changed: int, size: int) -> str:  # noqa: ARG001
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]
