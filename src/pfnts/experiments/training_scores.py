"""Quick held-out scores for the log of a training run."""

from __future__ import annotations

import numpy as np

from pfnts.backbones.embedded.model import CausalPFN
from pfnts.backbones.embedded.sequence import EmbeddedSequence
from pfnts.experiments.backbone_scores import r2
from pfnts.experiments.heldout_functions import FUNCTIONS

SCORED = ("friedman1-5", "friedman1-20", "linear-10", "steps-10", "binary-5")
SIZES = (16, 64, 256, 1024)


def training_scores(
    network: CausalPFN, *, device: str = "cpu", draws: int = 4, sizes: tuple[int, ...] = SIZES
) -> dict[str, list[float]]:
    """R2 of the latent mean after each of ``sizes`` rows, by function, averaged over draws."""

    def one(name: str, size: int, number: int) -> float:
        draw = FUNCTIONS[name].draw(size, number=number, seed=7)
        sequence = EmbeddedSequence(network, draw.X, draw.y, device=device)
        return r2(sequence.means(draw.queries, [size])[0], draw.latent)

    return {
        name: [
            round(float(np.mean([one(name, size, number) for number in range(draws)])), 3) for size in sizes
        ]
        for name in SCORED
    }
