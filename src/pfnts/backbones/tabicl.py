"""TabICL as a backbone, with a cached fit for every prefix size."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from pfnts.backbones.base import Matrix, Vector
from pfnts.backbones.prefix_fits import FittedPrefix
from pfnts.backbones.pretrained import PretrainedBackbone

try:
    from huggingface_hub import hf_hub_download
    from tabicl import TabICLRegressor
    from tabicl._model.tabicl import TabICL
except ImportError as error:
    raise ImportError('tabicl is missing, install the extra: pip install "pfnts[tabicl]"') from error

REPOSITORY = "jingang/TabICL"
CHECKPOINT = "tabicl-regressor-v2-20260212.ckpt"


class TabICLBackbone(PretrainedBackbone):
    """TabICL v2, the paper's own: the answers of its estimator, but the network is loaded once per process.

    Each prefix is read once, and what the network made of it is kept. Without ``weights`` the checkpoint is
    that of the Hugging Face hub, downloaded when it is not in the hub's cache.

    Parameters
    ----------
    device
        Where to compute, as PyTorch names it; on a GPU in half precision where the package chooses to.
    weights
        A checkpoint of a TabICL regressor.
    n_estimators
        Views of the data whose predictions are averaged; the paper saw no loss from 8 to 1.
    seed
        Of the views.
    cache
        "kv" keeps keys and values, the fastest; "repr" keeps rows as the network sees them, a small part of
        the memory, and runs its last stage again for every question.
    cache_gb
        Memory for fits, of all histories together.
    download
        Whether the hub may be asked for the checkpoint.

    Examples
    --------
    >>> sequence = TabICLBackbone().sequence(X, y)  # doctest: +SKIP
    >>> sequence.means(queries, sizes=[16, 64]).shape  # doctest: +SKIP
    (2, 5)
    """

    name = "tabicl"

    def __init__(
        self,
        *,
        device: str = "cpu",
        weights: str | Path | None = None,
        n_estimators: int = 1,
        seed: int = 42,
        cache: Literal["kv", "repr"] = "kv",
        cache_gb: float = 4.0,
        download: bool = True,
    ) -> None:
        if cache not in ("kv", "repr"):
            raise ValueError(f'cache must be "kv" or "repr", got {cache!r}')
        path = from_hub(download=download) if weights is None else Path(weights)
        if not path.is_file():
            raise ValueError(f"weights must be a file, {path} is not there; leave it out for the hub's")
        super().__init__(device=device, weights=path, n_estimators=n_estimators, seed=seed, cache_gb=cache_gb)
        self._cache = cache
        self._network = load_network(path, device, self.fingerprint)

    def _fit(self, X: Matrix, y: Vector) -> FittedPrefix:
        estimator = _Estimator(
            n_estimators=self._n_estimators,
            random_state=self._seed,
            kv_cache=self._cache,
            device=self._device,
        )
        estimator.network = self._network
        return _Fitted(estimator, X, y)


class _Estimator(TabICLRegressor):  # type: ignore[misc]
    """The package's estimator on a network at hand; the package itself loads one at every fit."""

    network: TabICL

    def _load_model(self) -> None:
        self.model_ = self.network


class _Fitted:
    """An estimator that has read a prefix."""

    def __init__(self, estimator: _Estimator, X: Matrix, y: Vector) -> None:
        # The package standardises targets in single precision, which is too late for large ones.
        size = np.abs(y).max() or 1.0  # whose square need not be finite
        self._centre = (y / size).mean() * size
        self._scale = ((y - self._centre) / size).std() * size or abs(self._centre) or 1.0
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # constant columns and the like: any history is welcome here
            estimator.fit(X, (y - self._centre) / self._scale)
        self._estimator = estimator
        self.nbytes = sum(_nbytes(cache) for cache in estimator.model_kv_cache_.values())

    def predict(self, queries: Matrix) -> _Quantiles:
        """Answer queries (q, P) in one pass."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            known = self._estimator.predict(queries, output_type="raw_quantiles")
        self._estimator.model_.clear_cache()  # else the network would hold on to this fit
        return _Quantiles(known.astype(np.float64) * self._scale + self._centre)


@dataclass(frozen=True)
class _Quantiles:
    """The network's 999 quantiles for each query."""

    known: Matrix
    """(q, 999), ascending."""

    @property
    def mean(self) -> Vector:
        """(q,) their average."""
        mean: Vector = self.known.mean(axis=1)
        return mean

    def quantiles(self, levels: Vector) -> Matrix:
        """Interpolated (len(levels), q), constant beyond the outermost."""
        at = np.linspace(0, 1, self.known.shape[1] + 2)[1:-1]
        return np.array([np.interp(levels, at, row) for row in self.known]).T


def _nbytes(cache: Any) -> int:
    entries = [*cache.col_cache.kv.values(), *cache.icl_cache.kv.values()]
    tensors = [tensor for entry in entries for tensor in (entry.key, entry.value)] + [cache.row_repr]
    return sum(tensor.nbytes for tensor in tensors if tensor is not None)


def from_hub(*, download: bool) -> Path:
    """Path of the official checkpoint in the hub's cache, downloaded if need be."""
    try:
        return Path(hf_hub_download(REPOSITORY, CHECKPOINT, local_files_only=True))
    except OSError as error:
        if not download:
            raise ValueError(
                f"weights must be given, or {CHECKPOINT} in the hub's cache; it is not, and download is off"
            ) from error
    try:
        return Path(hf_hub_download(REPOSITORY, CHECKPOINT))
    except Exception as error:
        raise ValueError(
            f"weights must be given where the Hugging Face hub cannot be reached: {CHECKPOINT} of "
            f"{REPOSITORY} could not be downloaded ({error}); get it elsewhere and pass its path as weights"
        ) from error


@lru_cache(maxsize=4)
def load_network(weights: Path, device: str, fingerprint: str) -> TabICL:  # noqa: ARG001
    """Load a checkpoint, once per process and device, and again when the file has changed."""
    try:
        stored = torch.load(weights, map_location="cpu", weights_only=True)
        network = TabICL(**stored["config"])
        network.load_state_dict(stored["state_dict"])
    except Exception as error:
        raise ValueError(f"weights must be a TabICL regressor, {weights} is not one") from error
    if network.max_classes:
        raise ValueError(f"weights must be a TabICL regressor, {weights} is a classifier")
    return network.to(device).eval().requires_grad_(False)
