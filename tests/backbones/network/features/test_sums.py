"""Ridge regressions on few rows, against those from sums over rows."""

from __future__ import annotations

import pytest
import torch

from pfnts.backbones.network.features.regressions import RidgeRegression, halvings
from pfnts.backbones.network.features.sums import FewRows, Sums, inverses, solve

PENALTIES = (0.3, 3.0, 30.0)


def rows(n: int, features: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(n + features)
    Z = torch.randn(2, n, features, generator=generator, dtype=torch.float64)
    return Z, Z[..., 0] + torch.randn(2, n, generator=generator, dtype=torch.float64)


@pytest.mark.parametrize("sizes", [[1], [1, 2, 3, 4], [5, 30], [30]])
@pytest.mark.parametrize("features", [1, 7, 40])
def test_few_rows_give_what_their_sums_give(sizes: list[int], features: int) -> None:
    Z, y = rows(sizes[-1], features)
    sums, few = Sums.none(2, features, Z).through(Z, y, sizes), FewRows(Z, y, sizes)
    for found, wanted in zip(few.solve(penalties=PENALTIES), solve(sums, penalties=PENALTIES), strict=True):
        torch.testing.assert_close(found, wanted, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(few.inverses(penalty=3.0), inverses(sums, penalty=3.0), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("steps", [[1] * 45, [10, 20, 15], [16, 4, 25], [45]])
@pytest.mark.parametrize("features", [3, 60])
def test_rows_may_come_in_any_pieces(steps: list[int], features: int) -> None:
    X, y = rows(45, features)
    whole = RidgeRegression(torch.sin, leverage=True, refits=halvings)
    whole.extend(X, y)
    grown, begin = RidgeRegression(torch.sin, leverage=True, refits=halvings), 0
    for step in steps:
        before, grown = grown, grown.fork()
        grown.extend(X[:, begin : begin + step], y[:, begin : begin + step])
        before.extend(torch.full_like(X[:, :step], 9.0), y[:, :step])  # what one adds, the other does not see
        begin += step
    for size in (1, 6, 31, 45):
        for found, wanted in zip(
            grown.say_with_leverage(X, [size]), whole.say_with_leverage(X, [size]), strict=True
        ):
            torch.testing.assert_close(found, wanted, rtol=1e-9, atol=1e-9)
        torch.testing.assert_close(grown.evidence(size), whole.evidence(size), rtol=1e-9, atol=1e-9)
