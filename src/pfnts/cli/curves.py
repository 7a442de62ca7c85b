"""Curves drawn with characters, while they grow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from rich.text import Text

from pfnts.experiments.figures import short_number

Points = Sequence[tuple[float, float]]
"""Places and heights of a curve, places ascending."""

STYLES = ("bold cyan", "yellow", "magenta", "dim")
_ACROSS, _DOWN = 2, 4
_DOTS = np.array([[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]])
"""Bits of the dots (4, 2) of a braille character, from the top left."""
_MARGIN = 7


def draw(curves: Mapping[str, Points], *, x_end: float, width: int, height: int) -> Text:
    """Draw curves that begin at (0, 0), on so many columns and rows without names and numbers.

    Each curve is named where it ends. Those given first lie above the others.

    Examples
    --------
    >>> print(draw({"a": [(4, 8)], "b": [(4, 2)]}, x_end=4, width=8, height=3).plain)
          8 ┤     ⢀⠤⠊a 8
          4 ┤  ⢀⡠⠊⠁
          0 ┤⣠⡲⠥⠤⠔⠒⠒⠊b 2
            0       4
    """
    ends = {name: points[-1] for name, points in curves.items() if points}
    top = max([y for _, y in ends.values()] + [1e-9])
    dots = np.zeros((height, width), dtype=np.int64)
    owner = np.full((height, width), -1)
    for series, points in reversed(list(enumerate(curves.values()))):
        if points:
            drawn = raster(points, x_end=x_end, y_end=top, across=_ACROSS * width, down=_DOWN * height)
            cells = drawn.reshape(height, _DOWN, width, _ACROSS).transpose(0, 2, 1, 3)
            bits = (cells * _DOTS).sum(axis=(2, 3))
            dots |= bits
            owner[bits > 0] = series
    names = _places({name: y / top for name, (_, y) in ends.items()}, height)
    text = Text()
    for row in range(height):
        tick = {0: top, height // 2: top / 2, height - 1: 0.0}.get(row)
        text.append(f"{'' if tick is None else short_number(tick):>{_MARGIN}} {'│' if tick is None else '┤'}")
        for bits, series in zip(dots[row], owner[row], strict=True):
            text.append(chr(0x2800 + bits) if bits else " ", STYLES[series % len(STYLES)] if bits else "")
        if row in names:
            name = names[row]
            style = STYLES[list(curves).index(name) % len(STYLES)]
            text.append(f"{name} {short_number(ends[name][1])}", style)
        text.append("\n")
    end = short_number(x_end)
    text.append(f"{'':{_MARGIN + 1}}0{end:>{width}}")
    return text


def raster(points: Points, *, x_end: float, y_end: float, across: int, down: int) -> NDArray[np.bool_]:
    """Dots (down, across) of a curve from (0, 0) through the points, as far as these go."""
    x, y = np.array([(0.0, 0.0), *points]).T
    reached = min(across, max(1, round(across * x[-1] / x_end)))
    heights = np.interp((np.arange(reached) + 0.5) * x_end / across, x, y)
    rows = np.clip(np.rint((1 - heights / y_end) * (down - 1)), 0, down - 1).astype(int)
    before, place = np.concatenate([rows[:1], rows[:-1]]), np.arange(down)[:, None]
    drawn = np.zeros((down, across), dtype=bool)
    # Steep parts are filled up to the dot before, so that a curve has no gaps.
    filled = (np.minimum(rows, before) <= place) & (place <= np.maximum(rows, before)) & (place != before)
    drawn[:, :reached] = filled | (place == rows)
    return drawn


def _places(heights: Mapping[str, float], rows: int) -> dict[int, str]:
    """Rows of the names: each beside its height or, if that is taken, the nearest free row below or above."""
    taken: dict[int, str] = {}
    for name, height in sorted(heights.items(), key=lambda item: -item[1]):
        wanted = round((1 - height) * (rows - 1))
        free = [row for row in range(rows) if row not in taken]
        if free:
            taken[min(free, key=lambda row: (abs(row - wanted), -row))] = name
    return taken
