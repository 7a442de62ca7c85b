"""A small network with random weights, for facts that hold whatever the weights are."""

from __future__ import annotations

import pytest
import torch

from pfnts.backbones.network.network import Architecture, CausalPFN

SMALL = Architecture(
    cell=16, cell_heads=2, cell_layers=2, column_rows=64, readouts=2, heads=4, keys=2, layers=2
)


@pytest.fixture(scope="session")
def small_network() -> CausalPFN:
    torch.manual_seed(0)
    network = CausalPFN(SMALL)
    with torch.no_grad():
        for parameter in network.parameters():  # what starts at zero must not hide a mistake
            parameter.add_(0.1 * torch.randn_like(parameter))
    return network.eval().requires_grad_(False)
