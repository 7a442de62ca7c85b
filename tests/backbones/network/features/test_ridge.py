"""Ridge regressions on few rows, against those from sums over rows."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from pfnts.backbones.network.features.refits import latest
from pfnts.backbones.network.features.ridge import Ridge
from pfnts.backbones.network.features.sums import Sums, inverses, solve, solve_few

PENALTIES = (0.3, 3.0, 30.0)


def rows(n: int, features: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(n + features)
    Z = torch.randn(2, n, features, generator=generator, dtype=torch.float64)
    return Z, Z[..., 0] + torch.randn(2, n, generator=generator, dtype=torch.float64)


@pytest.mark.parametrize("sizes", [[1], [1, 2, 3, 4], [5, 30], [30]])
@pytest.mark.parametrize("features", [1, 7, 40])
def test_few_rows_equal_their_sums(sizes: list[int], features: int) -> None:
    Z, y = rows(sizes[-1], features)
    sums = Sums.none(2, features, Z).through(Z, y, sizes)
    few = solve_few(Z, y, sizes, penalties=PENALTIES)
    for found, wanted in zip(few, solve(sums, penalties=PENALTIES), strict=True):
        torch.testing.assert_close(found, wanted, rtol=1e-9, atol=1e-9)


def test_inverses_are_of_the_matrix_and_the_penalty() -> None:
    Z, y = rows(30, 7)
    product = inverses(Sums.none(2, 7, Z).through(Z, y, [5, 30]), penalty=3.0)[:, 1] @ (
        Z.mT @ Z + 3.0 * torch.eye(7)
    )
    torch.testing.assert_close(product, torch.eye(7).double().expand(2, -1, -1))


@pytest.mark.parametrize("steps", [[1] * 45, [10, 20, 15], [16, 4, 25], [45]])
@pytest.mark.parametrize("features", [3, 60])
@pytest.mark.parametrize("kind", [Ridge.lines, Ridge.waves])
def test_rows_may_be_added_in_any_steps(
    steps: list[int], features: int, kind: Callable[[torch.Tensor], Ridge]
) -> None:
    X, y = rows(45, features)
    whole, grown, end = kind(X).extend(X, y), kind(X), 0
    for step in steps:
        end += step
        grown = grown.extend(X[:, :end], y[:, :end])
    for size in (0, 1, 6, 31, 45):
        torch.testing.assert_close(grown.at(X, [size]), whole.at(X, [size]), rtol=1e-9, atol=1e-9)
        one, other = latest(grown.fits, size), latest(whole.fits, size)
        torch.testing.assert_close(one.evidence, other.evidence, rtol=1e-9, atol=1e-9)
    if kind == Ridge.lines:
        torch.testing.assert_close(grown.leverage(X, [6, 45]), whole.leverage(X, [6, 45]))
