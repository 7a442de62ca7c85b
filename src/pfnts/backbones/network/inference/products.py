"""Products of matrices in single precision on a CPU, by whichever library is faster.

PyTorch leaves them to MKL, which keeps to narrower instructions on processors of other makers than its own:
half as fast as oneDNN, where both know AVX-512. PyTorch brings oneDNN as well, but has no public call for it
that is as quick for few rows.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

ENOUGH = 2**21
"""Multiplications from which on a product is worth the longer way to oneDNN."""
ROWS = 16
"""As many rows at least, and filled up to a multiple of it: oneDNN prepares itself for every shape."""


@lru_cache(maxsize=1)
def has_onednn() -> bool:
    """Whether oneDNN is there, and faster."""
    wide = torch.backends.cpu.get_cpu_capability() == "AVX512"
    return wide and torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_linear_pointwise")


def by_onednn(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Like ``F.linear`` for x (m, k) and a weight (n, k), which may be packed; without gradients."""
    return torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")


def filled_up(x: Tensor) -> Tensor:
    """Rows (m, k), and below them so many of zeros that oneDNN need not be prepared for their number."""
    missing = -len(x) % ROWS
    return F.pad(x, (0, 0, 0, missing)) if missing else x


class InferenceLinear(nn.Linear):
    """A linear layer whose weights stay as they are, kept as products with few and with many rows like them.

    Parameters
    ----------
    layer
        What it computes.

    Examples
    --------
    >>> layer = nn.Linear(64, 128)
    >>> same = InferenceLinear(layer)
    >>> x = torch.randn(256, 64)
    >>> torch.allclose(same(x), layer(x), atol=1e-5)
    True
    """

    def __init__(self, layer: nn.Linear) -> None:
        super().__init__(layer.in_features, layer.out_features, layer.bias is not None, device="meta")
        self.weight, self.bias = layer.weight, layer.bias
        self.weight.data = layer.weight.data.T.contiguous().T  # as few rows are multiplied by it fastest
        self._packed: Tensor | None = None

    def forward(self, x: Tensor) -> Tensor:
        """Map (..., in) to (..., out)."""
        rows = x.numel() // self.in_features
        few = rows < ROWS or rows * self.weight.numel() < ENOUGH
        if few or torch.is_grad_enabled() or not has_onednn():
            return super().forward(x)
        if self._packed is None:
            self._packed = torch.ops.mkldnn._reorder_linear_weight(self.weight.detach(), rows)
        return by_onednn(filled_up(x.reshape(rows, -1)), self._packed, self.bias)[:rows].view(
            *x.shape[:-1], -1
        )

    def __getstate__(self) -> dict[str, Any]:
        """What a copy has: it packs weights anew."""
        return {**self.__dict__, "_packed": None}


def for_inference(network: nn.Module) -> None:
    """Give a network on a CPU linear layers that are fast, and whose weights can no longer be learned."""
    for parent in list(network.modules()):
        for name, layer in parent.named_children():
            if isinstance(layer, nn.Linear):
                setattr(parent, name, InferenceLinear(layer))
