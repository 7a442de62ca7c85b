"""Predictions after whole histories of one length, in a batch: what training is scored by."""

from __future__ import annotations

import torch
from torch import Tensor

from pfnts.backbones.network.features.features import features_of
from pfnts.backbones.network.network import CausalPFN
from pfnts.backbones.network.normalisation import Normalisation


@torch.inference_mode()
def predict_after(
    network: CausalPFN, X: Tensor, y: Tensor, queries: Tensor, *, known: int
) -> tuple[Tensor, Tensor]:
    """Means and standard deviations of them, (B, q), at queries (B, q, P) after rows X (B, n, P), y (B, n).

    ``known`` rows are those by which a history of n rows is normalised.

    Examples
    --------
    >>> from pfnts.backbones.network.network import Architecture
    >>> network, X = CausalPFN(Architecture(layers=1)), torch.rand(2, 16, 3)
    >>> mean, sd = predict_after(network, X, X[..., 0], X[:, :5], known=16)
    >>> mean.shape, bool((sd > 0).all())
    (torch.Size([2, 5]), True)
    """
    norm = Normalisation.of(X[:, :known], y[:, :known])
    shown = norm.contexts(torch.cat([X, queries], 1))
    targets = torch.nn.functional.pad(norm.targets(y), (0, queries.shape[1]))
    identity = torch.randn(
        X.shape[2], network.architecture.identity, generator=torch.Generator().manual_seed(0)
    )
    mean, _, log_sd = network.predict_tables(
        shown.float(),
        targets.float(),
        identity.to(X.device).expand(len(X), -1, -1),
        features_of(shown, targets, asked=queries.shape[1]),
        asked=queries.shape[1],
        together=True,
    )
    return mean * norm.y_scale + norm.y_centre, torch.exp(log_sd) * norm.y_scale
