from __future__ import annotations

import pytest
import torch
from torch import nn

from pfnts.backbones.network.training.muon import Muon, orthogonalise


@pytest.mark.parametrize("shape", [(3, 8, 8), (2, 16, 4), (2, 4, 16)])
def test_singular_values_come_near_one_and_directions_stay(shape: tuple[int, ...]) -> None:
    G = torch.randn(*shape, generator=torch.Generator().manual_seed(0))
    out = orthogonalise(G).float()
    assert out.shape == G.shape
    U, _, Vh = torch.linalg.svd(G, full_matrices=False)
    in_basis = U.mT @ out @ Vh.mT
    diagonal = torch.diagonal(in_basis, dim1=-2, dim2=-1)
    # the smallest singular values of a random square matrix may need more rounds
    assert (diagonal > 0.1).all()
    assert (diagonal < 1.4).all()
    assert (in_basis - torch.diag_embed(diagonal)).abs().max() < 0.1


def test_scale_of_the_gradient_does_not_matter() -> None:
    G = torch.randn(1, 6, 9, generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(orthogonalise(1e3 * G), orthogonalise(G), atol=0.05, rtol=0)


def test_zero_gradient_gives_no_step() -> None:
    assert (orthogonalise(torch.zeros(1, 3, 5)) == 0).all()


def test_matrices_of_one_shape_move_as_each_would_alone() -> None:
    generator = torch.Generator().manual_seed(2)
    start = [torch.randn(4, 6, generator=generator) for _ in range(3)]
    gradients = [torch.randn(4, 6, generator=generator) for _ in range(3)]

    def moved(which: list[int]) -> list[torch.Tensor]:
        matrices = [nn.Parameter(start[i].clone()) for i in which]
        optimiser = Muon(matrices, lr=0.1)
        for _ in range(3):
            for matrix, i in zip(matrices, which, strict=True):
                matrix.grad = gradients[i].clone()
            optimiser.step()
        return [matrix.detach() for matrix in matrices]

    for together, i in zip(moved([0, 1, 2]), range(3), strict=True):
        torch.testing.assert_close(together, moved([i])[0], atol=1e-2, rtol=0)


def test_finds_the_minimum_of_a_quadratic() -> None:
    generator = torch.Generator().manual_seed(3)
    target = torch.randn(5, 5, generator=generator)
    matrix = nn.Parameter(torch.zeros(5, 5))
    optimiser = Muon([matrix], lr=0.1, weight_decay=0.0)
    for step in range(200):
        optimiser.param_groups[0]["lr"] = 0.1 * (1 - step / 200)
        optimiser.zero_grad()
        ((matrix - target) ** 2).sum().backward()
        optimiser.step()
    assert ((matrix - target) ** 2).mean() < 0.01
