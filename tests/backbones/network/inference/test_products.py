"""Products by oneDNN are those of PyTorch, and a layer that uses them is a linear layer."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from numpy.random import Generator
from torch import Tensor, nn
from torch.nn import functional as F

from pfnts.backbones.network.inference import products
from pfnts.backbones.network.inference.products import (
    ROWS,
    InferenceLinear,
    by_onednn,
    filled_up,
    for_inference,
    has_onednn,
)
from pfnts.backbones.network.network import CausalPFN

onednn = pytest.mark.skipif(not has_onednn(), reason="no oneDNN that is faster here")


def matrix(rng: Generator, *shape: int) -> Tensor:
    return torch.from_numpy(rng.standard_normal(shape).astype(np.float32))


@onednn
@pytest.mark.parametrize("rows", [1, 16, 31, 64, 1001])
def test_product_is_that_of_pytorch(rng: Generator, rows: int) -> None:
    x, weight, bias = matrix(rng, rows, 256), matrix(rng, 100, 256), matrix(rng, 100)
    expected = F.linear(x.double(), weight.double(), bias.double()).float()
    packed = torch.ops.mkldnn._reorder_linear_weight(weight, 64)
    for same in (weight, packed, weight.T.contiguous().T):
        torch.testing.assert_close(by_onednn(x, same, bias), expected, rtol=1e-5, atol=1e-4)
    torch.testing.assert_close(by_onednn(x, weight), expected - bias, rtol=1e-5, atol=1e-4)
    full = filled_up(x)
    assert len(full) % ROWS == 0
    torch.testing.assert_close(by_onednn(full, packed, bias)[:rows], expected, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("available", [False, pytest.param(True, marks=onednn)])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("shape", [(1,), (3, 5), (64,), (2, 50, 3)])
def test_layer_for_inference_is_the_layer(
    rng: Generator, monkeypatch: pytest.MonkeyPatch, shape: tuple[int, ...], bias: bool, available: bool
) -> None:
    monkeypatch.setattr(products, "has_onednn", lambda: available)
    layer, x = nn.Linear(256, 512, bias=bias), matrix(rng, *shape, 256)
    expected, fast = layer(x), InferenceLinear(layer)
    with torch.inference_mode():
        torch.testing.assert_close(fast(x), expected, rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(copy.deepcopy(fast)(x), expected, rtol=1e-5, atol=1e-5)
    assert (fast._packed is not None) == (available and x.numel() >= 64 * 256)
    assert fast.state_dict().keys() == layer.state_dict().keys()


def test_gradients_pass_through_a_layer_for_inference(rng: Generator) -> None:
    layer, x = nn.Linear(256, 512), matrix(rng, 64, 256).requires_grad_()
    expected = torch.autograd.grad(layer(x).sum(), x)
    torch.testing.assert_close(torch.autograd.grad(InferenceLinear(layer)(x).sum(), x), expected)


def test_network_for_inference_has_the_same_weights(small_network: CausalPFN) -> None:
    network = copy.deepcopy(small_network)
    for_inference(network)
    assert all(type(layer) is not nn.Linear for layer in network.modules())
    for (name, weight), (same, others) in zip(
        small_network.state_dict().items(), network.state_dict().items(), strict=True
    ):
        assert name == same
        torch.testing.assert_close(weight, others, rtol=0, atol=0)
