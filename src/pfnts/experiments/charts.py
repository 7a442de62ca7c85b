"""Charts as data: what the page draws by its script, and `figures` by matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pfnts import policies

COLOURS = (
    "#0072B2", "#E69F00", "#D55E00", "#CC79A7", "#009E73",
    "#56B4E9", "#882255", "#332288", "#444444", "#999999",
    "#117733", "#AA4499", "#661100", "#6699CC", "#999933",
    "#B15928",
)  # fmt: skip
"""On white. The first six are those of Okabe and Ito, told apart in all common forms of colour blindness."""
DARK_COLOURS = (
    "#4DA3E8", "#F2B233", "#FF7F4D", "#E89AC7", "#2CC796",
    "#96DAFF", "#D0629C", "#9B8CF0", "#C8C8C8", "#858585",
    "#66C07A", "#E070D8", "#C98A5E", "#8FB8E8", "#CFCF5A",
    "#E8A070",
)  # fmt: skip
"""The same on black."""
DASHES = ("", "", "7 3", "", "", "7 3", "2 2", "2 2", "7 3", "2 2", *["6 2 1 2"] * 6)
"""Lengths of dashes and gaps, so that nobody has to rely on the colour."""
FIRST_ROUND = 10
"""Where curves of regret begin on a logarithmic axis: before it the arms are merely pulled in turn."""


@dataclass(frozen=True)
class Line:
    """A curve with a band."""

    series: int
    """Which of the chart's names and colours it has."""
    y: ArrayLike
    """(n,) heights at the panel's places; NaN where there is none."""
    spread: ArrayLike | None = None
    """(n,) how far the band reaches to either side; NaN where there is none."""


@dataclass(frozen=True)
class Panel:
    """Curves over the same places."""

    title: str
    """What stands above it."""
    x: ArrayLike
    """(n,) places."""
    lines: tuple[Line, ...]
    """Curves."""
    tag: str = ""
    """A remark beside the title."""
    fixed: float | None = None
    """A height to compare with."""


@dataclass(frozen=True)
class Chart:
    """Panels with one legend.

    Examples
    --------
    >>> panel = Panel("linear", [1, 2], (Line(0, [0.5, np.nan]),))
    >>> Chart("Regret", (("ts", 8),), (panel,), ylabel="cumulative regret").payload()["panels"][0]["lines"]
    [{'s': 0, 'y': [0.5, None]}]
    """

    heading: str
    """What it shows, with what the bands are."""
    series: tuple[tuple[str, int], ...]
    """Names of the curves with their colours."""
    panels: tuple[Panel, ...]
    """One for each scenario, estimator or task."""
    ylabel: str
    """What is drawn."""
    xlabel: str = "round"
    """Over what."""
    grows: bool = True
    """Whether it grows from 0, as regret does, and is read on logarithmic axes; else heights are linear."""
    first: int = FIRST_ROUND
    """Where curves begin on logarithmic axes."""
    log_x: bool = False
    """Whether the places are on a logarithmic axis all the same."""
    fixed_label: str = "best fixed arm"
    """What the height to compare with is."""

    def payload(self) -> dict[str, Any]:
        """Plain JSON values for the page's script; a number on a screen has five digits."""
        panels = []
        for panel in self.panels:
            fixed = None if panel.fixed is None else _digits([panel.fixed])[0]
            numbers = {"x": np.asarray(panel.x).tolist(), "fixed": fixed}
            panels.append({**vars(panel), **numbers, "lines": list(map(_payload, panel.lines))})
        styles = [(label, colour % len(COLOURS)) for label, colour in self.series]
        series = [{"label": label, "colour": style, "dash": DASHES[style]} for label, style in styles]
        return {**vars(self), "series": series, "panels": panels}


def styles_of(names: Sequence[str]) -> list[int]:
    """Colour and dashes of policies side by side: their own, unless two share a name or one has no own.

    Examples
    --------
    >>> styles_of(["lin-ts", "pfn-ts"]), styles_of(["pfn-ts", "mine.Policy"])
    ([2, 0], [0, 1])
    """
    known = policies.names()
    if len(set(names)) == len(names) and set(names) <= set(known):
        return [known.index(name) % len(COLOURS) for name in names]
    return [place % len(COLOURS) for place in range(len(names))]


def _payload(line: Line) -> dict[str, Any]:
    described: dict[str, Any] = {"s": line.series, "y": _digits(line.y)}
    if line.spread is not None and np.isfinite(np.asarray(line.spread, dtype=float)).any():
        described["sd"] = _digits(line.spread, 3)
    return described


def _digits(values: ArrayLike, digits: int = 5) -> list[float | int | None]:
    # The file is a third of what it would be with all of them.
    heights = np.asarray(values, dtype=float)
    rounded = [float(f"{value:.{digits}g}") if np.isfinite(value) else None for value in heights]
    return [int(v) if v is not None and v.is_integer() else v for v in rounded]
