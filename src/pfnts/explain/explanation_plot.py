"""An explanation as a figure."""

from __future__ import annotations

from typing import Any

from pfnts.explain.explanation import Explanation

_LEADER, _OTHER, _MUTED = "#1f6f8b", "#9aa5ad", "#c8ced2"
_MOST_ARMS = _MOST_COLUMNS = 12


def draw(explanation: Explanation) -> Any:
    """Draw intervals and similar rows on the left, effects of columns on the right."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError('a plot needs matplotlib; install it with: pip install "pfnts[bench]"') from error

    arms = explanation.arms[:_MOST_ARMS]
    columns = explanation.columns[:_MOST_COLUMNS]
    height = 1.6 + 0.42 * max(len(arms), len(columns), 2)
    figure = Figure(figsize=(10, height), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(3, 2))
    for place, arm in enumerate(arms):
        colour = _LEADER if place == 0 else _OTHER
        left.plot([row.reward for row in arm.rows], [place] * len(arm.rows), "|", color=colour, ms=9, mew=1)
        left.plot([arm.low, arm.high], [place, place], color=colour, lw=5, alpha=0.35, solid_capstyle="round")
        left.plot(arm.mean, place, "o", color=colour, ms=7)
    left.set_yticks(range(len(arms)), [f"{arm.arm}\nbest {arm.best:.0%}" for arm in arms])
    left.set_ylim(len(arms) - 0.5, -0.5)
    left.set_xlabel(
        f"mean reward: posterior mean, interval of {explanation.level:.0%}; ticks: nearest rewards"
    )
    left.set_title("What each arm is thought to pay", loc="left", fontsize=11)
    for place, column in enumerate(columns):
        right.barh(place, column.effect, color=_LEADER if column.effect > 0 else _MUTED, height=0.6)
    right.set_yticks(range(len(columns)), [f"{c.column} = {_shown(c.value)}" for c in columns])
    right.set_ylim(max(len(columns), 1) - 0.5, -0.5)
    right.axvline(0, color="black", lw=0.8)
    right.set_xlabel(
        f"the lead, less its average with the values\nof {explanation.replacements} other rows in this column"
    )
    if explanation.lead is not None:
        right.set_title(
            f"What makes {explanation.arms[0].arm} lead {explanation.arms[1].arm}", loc="left", fontsize=11
        )
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    return figure


def _shown(value: Any) -> str:
    text = f"{value:.4g}" if isinstance(value, float) else str(value)
    return text if len(text) <= 20 else text[:19] + "…"
