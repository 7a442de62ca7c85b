"""Quick scores on functions the prior does not contain as such, for the log of a training run."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from pfnts.backbones.embedded.model import CausalPFN
from pfnts.backbones.embedded.normalisation import Normalisation


@torch.no_grad()
def heldout_scores(
    network: CausalPFN, *, device: str = "cpu", tables: int = 64, sizes: tuple[int, ...] = (16, 64, 256, 1024)
) -> dict[str, list[float]]:
    """R2 of the predicted mean around each of ``sizes``, by function."""
    scores = {}
    for name, (features, function, binary) in _FUNCTIONS.items():
        generator = torch.Generator().manual_seed(7)
        X = torch.rand(tables, max(sizes) + 32, features, generator=generator)
        value = function(X, generator)
        if binary:
            value = torch.sigmoid(value - value.mean(1, keepdim=True))
            y = torch.bernoulli(value, generator=generator)
        else:
            y = value + torch.randn(value.shape, generator=generator)
        identity = torch.randn(tables, features, network.architecture.identity, generator=generator)
        X, y, value, identity = (t.to(device) for t in (X, y, value, identity))
        scores[name] = [round(_r2(network, X, y, value, identity, size), 3) for size in sizes]
    return scores


def _r2(network: CausalPFN, X: Tensor, y: Tensor, value: Tensor, identity: Tensor, size: int) -> float:
    last = size + max(2, size // 8)  # rows beyond ``size`` are predicted from a few more than ``size``
    last = min(last, X.shape[1])
    norm = Normalisation.of(X[:, :size], y[:, :size])
    asked = torch.arange(size, last, device=X.device)
    mean, _ = network(norm.contexts(X[:, :last]), norm.targets(y[:, :last]), identity, asked)
    predicted = mean * norm.y_scale + norm.y_centre
    error = (predicted - value[:, size:last]) ** 2
    return float(1 - error.mean() / value.var(1).mean())


def friedman1(X: Tensor) -> Tensor:
    """The function of Friedman (1991) of five columns."""
    return (
        10 * torch.sin(math.pi * X[..., 0] * X[..., 1])
        + 20 * (X[..., 2] - 0.5) ** 2
        + 10 * X[..., 3]
        + 5 * X[..., 4]
    )


def _linear(X: Tensor, generator: torch.Generator) -> Tensor:
    return (X * torch.randn(len(X), 1, X.shape[-1], generator=generator)).sum(-1)


def _steps(X: Tensor, generator: torch.Generator) -> Tensor:
    weight = torch.randn(len(X), 1, 3, generator=generator)
    cut = torch.rand(len(X), 1, 3, generator=generator) * 0.6 + 0.2
    return 3 * ((X[..., :3] > cut) * weight).sum(-1)


_Function = Callable[[Tensor, torch.Generator], Tensor]
_FUNCTIONS: dict[str, tuple[int, _Function, bool]] = {
    "friedman-5": (5, lambda X, _: friedman1(X), False),
    "friedman-20": (20, lambda X, _: friedman1(X), False),
    "linear-10": (10, _linear, False),
    "steps-10": (10, _steps, False),
    "binary-5": (5, lambda X, _: friedman1(X), True),
}
