"""Regret curves, and what all pictures share."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pfnts import policies
from pfnts.experiments.outcomes import Outcome, bands, condense
from pfnts.experiments.store import Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLOURS = (
    "#0072B2", "#E69F00", "#D55E00", "#CC79A7", "#009E73",
    "#56B4E9", "#882255", "#332288", "#444444", "#999999",
)  # fmt: skip
"""On white. The first six are those of Okabe and Ito, told apart in all common forms of colour blindness."""
DARK_COLOURS = (
    "#4DA3E8", "#F2B233", "#FF7F4D", "#E89AC7", "#2CC796",
    "#96DAFF", "#D0629C", "#9B8CF0", "#C8C8C8", "#858585",
)  # fmt: skip
"""The same on black."""
DASHES = ("", "", "7 3", "", "", "7 3", "2 2", "2 2", "7 3", "2 2")
"""Lengths of dashes and gaps, so that nobody has to rely on the colour."""

FIRST_ROUND = 10
"""Where curves begin on a logarithmic axis: before it the arms are merely pulled in turn."""

_WIDTH = 1.6


def style_of(policy: str) -> int:
    """Which colour and dashes a policy has, in every picture.

    Examples
    --------
    >>> COLOURS[style_of("pfn-ts")]
    '#0072B2'
    """
    return policies.names().index(policy) % len(COLOURS)


def styles_of(names: Sequence[str]) -> list[int]:
    """Colour and dashes of policies side by side: their own, unless two share a name or one has no own.

    Examples
    --------
    >>> styles_of(["lin-ts", "pfn-ts"]), styles_of(["pfn-ts", "mine.Policy"])
    ([1, 0], [0, 1])
    """
    if len(set(names)) == len(names) and set(names) <= set(policies.names()):
        return [style_of(name) for name in names]
    return [place % len(COLOURS) for place in range(len(names))]


def regret_curves(runs: Iterable[Run], path: str | os.PathLike[str]) -> Path:
    """Draw mean cumulative regret over rounds, a panel for each scenario, and save it.

    Both axes are logarithmic: a policy that never learns is a straight line, one that has learned is flat.
    The band is one standard deviation over replications to either side.

    Parameters
    ----------
    runs
        Finished runs.
    path
        Where the picture goes; its suffix decides the format.
    """
    groups: dict[str, dict[str, list[Outcome]]] = {}
    for run in runs:
        groups.setdefault(run.spec.scenario, {}).setdefault(run.spec.policy.label, []).append(condense(run))
    if not groups:
        raise ValueError("runs must hold at least one run, got none")
    figure = new_figure(width=6.4 * len(groups), height=4.0)
    panels = figure.subplots(1, len(groups), squeeze=False)[0]
    for panel, (scenario, by_policy) in zip(panels, groups.items(), strict=True):
        styles = styles_of([members[0].spec.policy.name for members in by_policy.values()])
        for style, (label, members) in zip(styles, by_policy.items(), strict=True):
            final = np.mean([outcome.regret for outcome in members])
            draw_regret(panel, members, style=style, label=f"{label}: {final:,.0f}")
        dress(panel)
        panel.set(title=scenario, xlabel="round", ylabel="cumulative regret")
        panel.legend(frameon=False)
    return save(figure, path)


def draw_regret(panel: Any, outcomes: Sequence[Outcome], *, style: int, label: str) -> None:
    """Add the curve of one policy, with its band."""
    places, mean, spread = bands(outcomes)
    late = places >= min(FIRST_ROUND, places[-1])
    # A logarithmic axis has no place for 0; what lies there is left out.
    places, mean, spread = places[late], np.where(mean > 0, mean, np.nan)[late], spread[late]
    style %= len(COLOURS)
    # Given in points; matplotlib counts them in widths of the line.
    dashes = tuple(float(length) / _WIDTH for length in DASHES[style].split())
    linestyle = (0, dashes) if dashes else "-"
    panel.plot(places, mean, color=COLOURS[style], linewidth=_WIDTH, linestyle=linestyle, label=label)
    if not np.isnan(spread).all():
        low = np.maximum(mean - spread, 1e-3 * mean)
        panel.fill_between(places, low, mean + spread, color=COLOURS[style], alpha=0.15, linewidth=0)


def dress(panel: Any) -> None:
    """Logarithmic axes that end where the mean curves end, whatever the bands do; no frame."""
    heights = np.concatenate([line.get_ydata() for line in panel.lines])
    heights = heights[np.isfinite(heights)]
    if len(heights):
        panel.set(xscale="log", yscale="log")
        panel.set_ylim(heights.min() / 1.5, heights.max() * 1.5)
        rounds = np.concatenate([line.get_xdata() for line in panel.lines])
        panel.set_xlim(rounds.min(), max(rounds.max(), rounds.min() + 1))
        for axis, limits in ((panel.xaxis, panel.get_xlim()), (panel.yaxis, panel.get_ylim())):
            # Fixed places with plain words are read, and drawn, faster than powers with all that is between.
            places = log_ticks(*limits)
            axis.set_ticks(places, labels=[short_number(place) for place in places])
            axis.set_ticks([], minor=True)
    plain_frame(panel)


def log_ticks(low: float, high: float) -> list[float]:
    """Powers of ten, or 1, 2 and 5 of each where there are few.

    Examples
    --------
    >>> log_ticks(8, 2000), log_ticks(30, 250)
    ([10.0, 100.0, 1000.0], [50.0, 100.0, 200.0])
    """
    steps = (1, 2, 5) if high < 100 * low else (1,)
    powers = range(int(np.floor(np.log10(low))), int(np.ceil(np.log10(high))) + 1)
    ticks = [float(f"{step}e{power}") for power in powers for step in steps]
    return [tick for tick in ticks if low <= tick <= high * 1.001]


def short_number(value: float) -> str:
    """At most three digits.

    Examples
    --------
    >>> short_number(10_000.0), short_number(0.5)
    ('10k', '0.5')
    """
    return f"{value / 1000:.3g}k" if value >= 1000 else f"{value:.3g}"


def plain_frame(panel: Any) -> None:
    """Leave out the two sides of the frame that carry no scale."""
    panel.spines[["top", "right"]].set_visible(False)


def new_figure(*, width: float, height: float, arranged: bool = True) -> Figure:
    """Make a figure of so many inches, arranged by matplotlib or by hand; or say which extra is missing."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError('drawing needs matplotlib; install it with: pip install "pfnts[bench]"') from error
    # A Figure of its own, not pyplot's: nothing is shown, and no state is left in the process.
    return Figure(figsize=(width, height), layout="constrained" if arranged else None)


def save(figure: Figure, path: str | os.PathLike[str]) -> Path:
    """Write a figure in the format of the path's suffix, the same bytes for the same figure."""
    import matplotlib

    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    undated = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(path.suffix)
    with matplotlib.rc_context({"svg.hashsalt": path.stem, "svg.fonttype": "none"}):
        figure.savefig(path, dpi=150, metadata=undated)
    return path
