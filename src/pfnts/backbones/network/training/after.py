"""Predictions after whole histories of one length, in a batch: what training is scored by."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from pfnts.backbones.network.features.features import features_of
from pfnts.backbones.network.network import CausalPFN
from pfnts.backbones.network.normalisation import Normalisation


@dataclass(frozen=True)
class Histories:
    """Histories of one length and queries after them, normalised and with the features of every row.

    Examples
    --------
    >>> from pfnts.backbones.network.network import Architecture
    >>> network, X = CausalPFN(Architecture(layers=1)), torch.rand(2, 16, 3)
    >>> mean, sd = Histories.of(X, X[..., 0], X[:, :5], known=16).predict(network)
    >>> mean.shape, bool((sd > 0).all())
    (torch.Size([2, 5]), True)
    """

    X: Tensor
    """(B, n + q, P)"""
    y: Tensor
    """(B, n + q), zero for the queries."""
    told: Tensor
    """(B, n + q, BASE_PREDICTIONS)"""
    queries: int
    norm: Normalisation

    @classmethod
    def of(cls, X: Tensor, y: Tensor, queries: Tensor, *, known: int) -> Histories:
        """Normalise rows X (B, n, P), y (B, n) and queries (B, q, P) by the first ``known`` rows."""
        norm, asked = Normalisation.of(X[:, :known], y[:, :known]), queries.shape[1]
        shown = norm.contexts(torch.cat([X, queries], 1))
        targets = torch.nn.functional.pad(norm.targets(y), (0, asked))
        told = features_of(shown, targets, asked=asked)
        return cls(shown.float(), targets.float(), told, asked, norm)

    @torch.inference_mode()
    def predict(self, network: CausalPFN) -> tuple[Tensor, Tensor]:
        """Return the posterior means and standard deviations of the mean rewards at the queries, (B, q)."""
        batch, _, features = self.X.shape
        generator = torch.Generator().manual_seed(0)
        identity = torch.randn(features, network.architecture.identity, generator=generator)
        identity = identity.to(self.X.device).expand(batch, -1, -1)
        mean, _, log_sd = network.predict_tables(
            self.X, self.y, identity, self.told, asked=self.queries, together=True
        )
        return mean * self.norm.y_scale + self.norm.y_centre, torch.exp(log_sd) * self.norm.y_scale
