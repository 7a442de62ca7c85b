"""The network that ships with the package, as a backbone."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import lru_cache
from importlib.resources import as_file, files
from pathlib import Path

from numpy.typing import ArrayLike
from safetensors import SafetensorError, safe_open

from pfnts.backbones.base import Append, Backbone, Prediction, PredictiveSequence, Question
from pfnts.backbones.devices import check_device
from pfnts.backbones.network.inference.batch import append, predict, prefill
from pfnts.backbones.network.inference.sequence import EmbeddedSequence
from pfnts.backbones.network.network import Architecture, CausalPFN
from pfnts.backbones.network.weights import fingerprint


class EmbeddedBackbone(Backbone):
    """A causal prior-data fitted network, in the package: nothing to download, every prefix from one cache.

    Parameters
    ----------
    device
        Where to compute, as PyTorch names it.
    weights
        A safetensors file written by ``pfnts pretrain``, in place of the shipped one.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.linspace(0, 1, 64)[:, None]
    >>> sequence = EmbeddedBackbone().sequence(x, 5 * x[:, 0])
    >>> sequence.means([[0.5]], sizes=[16, 64]).shape
    (2, 1)
    """

    name = "embedded"
    exploration = 0.15  # of 0.15 to 1, benchmarks/exploration.py
    knows_mean_sd = True
    copies = True

    def __init__(self, *, device: str = "cpu", weights: str | Path | None = None) -> None:
        self._device = check_device(device)
        with _file(weights) as path:
            self.fingerprint: str = fingerprint(path)
            self._network = load_network(path, device, self.fingerprint)

    def sequence(self, X: ArrayLike, y: ArrayLike, *, keep: Sequence[int] = ()) -> EmbeddedSequence:
        """Start a history; columns in ``keep`` are never mixed with others."""
        return EmbeddedSequence(self._network, X, y, keep=keep, device=self._device)

    def append(self, appends: Sequence[Append], *, levels: Sequence[float] = ()) -> list[Prediction | None]:
        """Append rows to sequences; each forecast rests on all rows before its own."""
        return append(appends, levels)

    def prepare(self, sequences: Sequence[PredictiveSequence]) -> None:
        """Fill the caches that predictions from all rows will need."""
        prefill(sequences)

    def predict(self, questions: Sequence[Question]) -> list[Prediction]:
        """Answer questions about sequences of this backbone, in as few forward passes as memory allows."""
        return predict(questions)


def _file(weights: str | Path | None) -> AbstractContextManager[Path]:
    """The file given, or the one in the package."""
    if weights is None:
        return as_file(files("pfnts.backbones.network") / "weights.safetensors")
    return nullcontext(Path(weights))


@lru_cache(maxsize=4)
def load_network(weights: Path, device: str, fingerprint: str) -> CausalPFN:  # noqa: ARG001
    """Load a network, once per process and device, and again when the file has changed."""
    try:
        with safe_open(weights, framework="pt") as stored:
            about = stored.metadata() or {}
            tensors = {name: stored.get_tensor(name).float() for name in stored.keys()}  # noqa: SIM118
        network = CausalPFN(Architecture(**json.loads(about["architecture"])))
        network.load_state_dict(tensors)
    except (OSError, SafetensorError, KeyError, TypeError, RuntimeError) as error:
        raise ValueError(
            f"weights must be a safetensors file written by `pfnts pretrain`, got {weights}: {error}"
        ) from error
    return network.to(device).eval().requires_grad_(False)
