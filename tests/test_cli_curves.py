"""Curves drawn with characters."""

from __future__ import annotations

import numpy as np
import pytest

from pfnts.cli.curves import draw, raster


def test_every_column_up_to_the_last_point_has_the_dot_of_its_height(rng: np.random.Generator) -> None:
    x = np.sort(rng.uniform(0, 90, 30))
    y = np.cumsum(rng.exponential(size=30))
    dots = raster(list(zip(x, y, strict=True)), x_end=100, y_end=y[-1], across=60, down=40)
    reached = round(60 * x[-1] / 100)
    assert dots[:, :reached].any(axis=0).all()
    assert not dots[:, reached:].any()
    for column in range(reached):
        height = np.interp((column + 0.5) * 100 / 60, [0, *x], [0, *y])
        assert dots[int(np.rint((1 - height / y[-1]) * 39)), column]


def test_a_curve_has_no_gaps(rng: np.random.Generator) -> None:
    y = np.cumsum(rng.pareto(0.8, size=50))
    dots = raster(list(enumerate(y, start=1)), x_end=50, y_end=y[-1], across=50, down=30)
    for left, right in zip(dots.T[:-1], dots.T[1:], strict=True):
        gap = np.abs(np.subtract.outer(np.flatnonzero(left), np.flatnonzero(right))).min()
        assert gap <= 1


@pytest.mark.parametrize("count", [0, 1, 4])
def test_every_curve_is_named_once_whatever_the_heights(count: int) -> None:
    curves = {f"policy {i}": [(10.0, 5.0)] for i in range(count)}
    text = draw(curves, x_end=10, width=20, height=6).plain
    for name in curves:
        assert text.count(name) == 1
    assert draw({"waiting": []}, x_end=10, width=20, height=6).plain.count("waiting") == 0
