"""Momentum with orthogonalised steps (Muon), for the matrices between layers.

The step of a matrix is its momentum with every singular value brought near one, so that all directions
learn at one pace; matrices of one shape are done together, as one batch.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import torch
from torch import Tensor, nn


class Muon(torch.optim.Optimizer):
    """Muon over matrices; scaled so that a learning rate means what it means for Adam.

    Parameters
    ----------
    matrices
        Parameters with two dimensions.
    lr
        Learning rate; a tensor where steps are recorded as a CUDA graph.
    momentum
        How much of the running mean of gradients is kept at a step.
    weight_decay
        Share of a weight lost at a step, over the learning rate.
    """

    def __init__(
        self,
        matrices: Iterable[nn.Parameter],
        *,
        lr: float | Tensor,
        momentum: float = 0.95,
        weight_decay: float = 0.01,
    ) -> None:
        by_shape: dict[torch.Size, list[nn.Parameter]] = defaultdict(list)
        for matrix in matrices:
            by_shape[matrix.shape].append(matrix)
        defaults = {"lr": lr, "momentum": momentum, "weight_decay": weight_decay}
        super().__init__([{"params": group} for group in by_shape.values()], defaults)

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]  # noqa: ARG002
        """Move every matrix by one step."""
        for group in self.param_groups:
            params = group["params"]
            gradients = [p.grad for p in params]
            velocity = [self.state[p].setdefault("momentum", torch.zeros_like(p)) for p in params]
            torch._foreach_lerp_(velocity, gradients, 1 - group["momentum"])
            ahead = torch._foreach_lerp(gradients, velocity, group["momentum"])  # Nesterov's look ahead
            direction = orthogonalise(torch.stack(ahead))
            rate = group["lr"] * 0.2 * max(params[0].shape) ** 0.5
            torch._foreach_mul_(params, 1 - group["lr"] * group["weight_decay"])
            torch._foreach_sub_(params, list((rate * direction.to(params[0].dtype)).unbind()))


def orthogonalise(G: Tensor, *, rounds: int = 5) -> Tensor:
    """Bring the singular values of matrices (k, m, n) near one, by a quintic iteration (bfloat16 on a GPU).

    Examples
    --------
    >>> singular = torch.linalg.svdvals(orthogonalise(torch.randn(2, 8, 16)).float())
    >>> bool(((singular > 0.5) & (singular < 1.5)).all())
    True
    """
    X = G.bfloat16() if G.is_cuda else G.float()
    tall = X.shape[-2] > X.shape[-1]
    X = X.mT if tall else X
    X = X / (X.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(rounds):
        A = X @ X.mT
        X = 3.4445 * X + (-4.7750 * A + 2.0315 * A @ A) @ X
    return X.mT if tall else X
