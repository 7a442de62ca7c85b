"""Held-out scores for the log of a training run."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from pfnts.backbones.network.inference.frame import basis_of
from pfnts.backbones.network.network import CausalPFN
from pfnts.backbones.network.training.after import Histories
from pfnts.experiments.heldout import FUNCTIONS

SCORED = ("friedman1-5", "friedman1-20", "linear-10", "steps-10", "binary-5", "binary-rare-5")
SIZES = (16, 64, 256, 1024)


def training_scores(
    network: CausalPFN,
    *,
    device: str = "cpu",
    draws: int = 6,
    sizes: tuple[int, ...] = SIZES,
    functions: tuple[str, ...] = SCORED,
) -> dict[str, list[float]]:
    """Score the posterior of the latent mean on held-out functions, at each size.

    Returns
    -------
    For each function R2, the share of latent means within 95 % intervals, and the CRPS over the standard
    deviation of the latent means; and the means of R2 and CRPS over the functions.
    """
    r2, within, crps = (np.empty((len(functions), len(sizes))) for _ in range(3))
    for width in {FUNCTIONS[name].n_features for name in functions}:
        alike = tuple(name for name in functions if FUNCTIONS[name].n_features == width)
        at = [functions.index(name) for name in alike]
        for i, n in enumerate(sizes):
            histories, latent = heldout_histories(alike, n, max(sizes), draws, device)
            mean, sd = histories.predict(network)
            error, variance = mean - latent, latent.var(1, correction=0)
            each = torch.stack(
                [
                    1 - (error**2).mean(1) / variance,
                    (error.abs() <= 1.96 * sd).float().mean(1),
                    crps_normal(latent, mean, sd).mean(1) / variance.sqrt(),
                ]
            )
            r2[at, i], within[at, i], crps[at, i] = each.unflatten(1, (len(alike), -1)).mean(2).cpu().numpy()
    found = {"mean R2": r2.mean(0), "mean CRPS": crps.mean(0)}
    for k, name in enumerate(functions):
        found |= {f"{name} R2": r2[k], f"{name} within 95 %": within[k], f"{name} CRPS": crps[k]}
    return {name: [round(float(x), 4) for x in scores] for name, scores in found.items()}


@lru_cache(maxsize=64)
def heldout_histories(
    names: tuple[str, ...], n: int, most: int, draws: int, device: str
) -> tuple[Histories, Tensor]:
    """Return histories of n rows of held-out functions of one width, with queries, and their latent means."""
    drawn = [FUNCTIONS[name].draw(most, number=number, seed=7) for name in names for number in range(draws)]
    X, y, queries, latent = (
        torch.tensor(np.stack(part), dtype=torch.float32, device=device)
        for part in zip(*((d.X, d.y, d.queries, d.latent) for d in drawn), strict=True)
    )
    return Histories.of(X[:, :n], y[:, :n], queries, known=basis_of(n)), latent


def crps_normal(x: Tensor, mean: Tensor, sd: Tensor) -> Tensor:
    """CRPS of normal distributions at outcomes x, all of one shape.

    Examples
    --------
    >>> crps_normal(torch.zeros(1), torch.zeros(1), torch.ones(1))  # (2 ** 0.5 - 1) / pi ** 0.5
    tensor([0.2337])
    """
    z = (x - mean) / sd
    density = torch.exp(-(z**2) / 2) / math.sqrt(2 * math.pi)
    return sd * (z * torch.erf(z / math.sqrt(2)) + 2 * density - 1 / math.sqrt(math.pi))
