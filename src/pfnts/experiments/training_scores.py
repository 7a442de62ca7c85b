"""Quick held-out scores for the log of a training run."""

from __future__ import annotations

import numpy as np
import torch

from pfnts.backbones.network.inference.frame import basis_of
from pfnts.backbones.network.network import CausalPFN
from pfnts.backbones.network.training.after import predict_after
from pfnts.experiments.heldout import FUNCTIONS

SCORED = ("friedman1-5", "friedman1-20", "linear-10", "steps-10", "binary-5", "binary-rare-5")
SIZES = (16, 64, 256, 1024)


def training_scores(
    network: CausalPFN, *, device: str = "cpu", draws: int = 6, sizes: tuple[int, ...] = SIZES
) -> dict[str, list[float]]:
    """R2 of the latent mean, and the share of it within 95 % intervals, by function and size."""
    found: dict[str, list[float]] = {}
    for name in SCORED:
        drawn = [FUNCTIONS[name].draw(max(sizes), number=number, seed=7) for number in range(draws)]
        X, y, queries, latent = (
            torch.tensor(np.stack(part), dtype=torch.float32, device=device)
            for part in zip(*((d.X, d.y, d.queries, d.latent) for d in drawn), strict=True)
        )
        scores = []
        for n in sizes:
            mean, sd = predict_after(network, X[:, :n], y[:, :n], queries, known=basis_of(n))
            error = mean - latent
            r2 = (1 - (error**2).mean(1) / latent.var(1, correction=0)).mean()
            scores.append((float(r2), float((error.abs() <= 1.96 * sd).float().mean())))
        found[f"{name} R2"], found[f"{name} within 95 %"] = (
            [round(score, 3) for score in part] for part in zip(*scores, strict=True)
        )
    return found
