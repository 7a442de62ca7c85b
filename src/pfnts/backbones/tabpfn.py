"""TabPFN as a backbone, with a cached fit for every prefix size."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.distributions import HalfNormal

from pfnts.backbones.base import Matrix, Vector
from pfnts.backbones.prefix_fits import FittedPrefix
from pfnts.backbones.pretrained import PretrainedBackbone
from pfnts.backbones.tabpfn_weights import weights_path

try:
    from tabpfn import ModelSpecs, TabPFNRegressor
except ImportError as error:
    raise ImportError('tabpfn is missing, install the extra: pip install "pfnts[tabpfn]"') from error

OVERHEAD = 250_000
"""Bytes of a fitted estimator beside its keys and values, as measured."""
_LARGE = 1e30
"""Targets larger than this are divided by the largest: the package squares them."""


class TabPFNBackbone(PretrainedBackbone):
    """TabPFN: the answers of its own estimator, but each prefix is read once and its keys and values kept.

    Without ``weights`` these are the v2 weights in the user cache, where ``pfnts weights tabpfn`` puts them.
    Checkpoints of later versions work as well; their licences exclude commercial use.

    Parameters
    ----------
    device
        Where to compute, as PyTorch names it; on a GPU in half precision, as the package chooses.
    weights
        A checkpoint of a TabPFN regressor.
    n_estimators
        Views of the data whose predictions are averaged; the time grows with them.
    seed
        Of the views.
    cache_gb
        Memory for fits, of all histories together.

    Examples
    --------
    >>> sequence = TabPFNBackbone().sequence(X, y)  # doctest: +SKIP
    >>> sequence.means(queries, sizes=[16, 64]).shape  # doctest: +SKIP
    (2, 5)
    """

    name = "tabpfn"

    def __init__(
        self,
        *,
        device: str = "cpu",
        weights: str | Path | None = None,
        n_estimators: int = 1,
        seed: int = 0,
        cache_gb: float = 4.0,
    ) -> None:
        path = weights_path() if weights is None else Path(weights)
        if not path.is_file():
            remedy = "run `pfnts weights tabpfn` to fetch it" if weights is None else "or leave it out"
            raise ValueError(f"weights must be a file, {path} is not there; {remedy}")
        super().__init__(device=device, weights=path, n_estimators=n_estimators, seed=seed, cache_gb=cache_gb)
        self._specs = load_specs(path, device, self.fingerprint)

    def _fit(self, X: Matrix, y: Vector) -> FittedPrefix:
        if np.ptp(y) == 0:
            return _Constant(float(y[0]))  # as the package answers, which wants two rows even so
        estimator = TabPFNRegressor(
            model_path=self._specs,
            device=self._device,
            n_estimators=self._n_estimators,
            random_state=self._seed,
            fit_mode="fit_with_cache",
            ignore_pretraining_limits=True,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # constant columns and the like: any history is welcome here
            largest = float(np.abs(y).max())
            scale = largest if largest > _LARGE else 1.0
            return _Fitted(estimator.fit(X, y / scale), scale)


class _Fitted:
    """An estimator that has read a prefix."""

    def __init__(self, estimator: Any, scale: float) -> None:
        self._estimator = estimator
        self._scale = scale
        entries = [entry for cache in estimator.executor_.kv_caches for entry in cache.kv.values()]
        self.nbytes = OVERHEAD + sum(entry.key.nbytes + entry.value.nbytes for entry in entries)

    def predict(self, queries: Matrix) -> _Bars:
        """Answer queries (q, P) in one pass."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            said = self._estimator.predict(queries, output_type="full", quantiles=[])
        mean = np.asarray(said["mean"], dtype=np.float64)
        return _Bars(_finite(mean * self._scale), said["logits"], said["criterion"], self._scale)


@dataclass(frozen=True)
class _Bars:
    """A distribution over bars for each query."""

    mean: Vector
    logits: Tensor
    criterion: Any
    scale: float
    """Of the targets, over those that the package has seen."""

    def quantiles(self, levels: Vector) -> Matrix:
        """Predictive quantiles (len(levels), q)."""
        borders = self.criterion.borders
        at = torch.as_tensor(levels, dtype=borders.dtype, device=borders.device)
        found: Matrix = bar_quantiles(self.logits.to(borders), borders, at).double().cpu().numpy()
        return _finite(found * self.scale)


def _finite(values: Matrix) -> Matrix:
    """The largest number there is in the place of larger ones."""
    return np.asarray(np.nan_to_num(values, nan=np.nan))


def bar_quantiles(logits: Tensor, borders: Tensor, levels: Tensor) -> Tensor:
    """Quantiles (L, q) of distributions over B bars, given by logits (q, B) and the bars' borders (B + 1,).

    Within a bar the density is flat; the two outer ones are half normal, with half their mass in their width.
    The package has this for one level at a time, each at the price of all of them.
    """
    probability = logits.softmax(dim=-1)
    below = probability.cumsum(dim=-1)
    wanted = levels.expand(len(logits), -1).contiguous()  # (q, L)
    bar = torch.searchsorted(below, wanted).clamp(max=len(borders) - 2)
    mass = probability.gather(-1, bar)
    inside = ((wanted - below.gather(-1, bar) + mass) / mass).clamp(0, 1)
    width = borders.diff()
    half_normal = HalfNormal(torch.ones_like(width[0]))
    scale = width / half_normal.icdf(torch.full_like(width[0], 0.5))
    flat = borders[bar] + width[bar] * inside
    left = borders[1] - scale[0] * half_normal.icdf(1 - inside)
    right = borders[-2] + scale[-1] * half_normal.icdf(inside)
    return torch.where(bar == 0, left, torch.where(bar == len(borders) - 2, right, flat)).T


@dataclass(frozen=True)
class _Constant:
    """Targets that were all the same, and are predicted to stay so."""

    value: float
    nbytes = 0

    def predict(self, queries: Matrix) -> _Constants:
        """The same for every query."""
        return _Constants(np.full(len(queries), self.value))


@dataclass(frozen=True)
class _Constants:
    """Predictions without spread."""

    mean: Vector

    def quantiles(self, levels: Vector) -> Matrix:
        """The same at every level."""
        return np.tile(self.mean, (len(levels), 1))


@lru_cache(maxsize=4)
def load_specs(weights: Path, device: str, fingerprint: str) -> ModelSpecs:  # noqa: ARG001
    """Load a checkpoint, once per process and device, and again when the file has changed."""
    holder = TabPFNRegressor(model_path=weights, device=device)
    try:
        holder.get_inference_config()  # loads the network, without data
    except Exception as error:
        raise ValueError(f"weights must be a TabPFN regressor, {weights} is not one") from error
    return ModelSpecs(
        model=holder.models_[0],
        architecture_config=holder.configs_[0],
        inference_config=holder.inference_config_,
        norm_criterion=holder.znorm_space_bardist_,
    )
