"""An evaluation on a log as pictures and as one page."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pfnts.experiments.figures import COLOURS, new_figure, plain_frame, styles_of
from pfnts.experiments.ope_runs import ESTIMATORS, PolicyValue
from pfnts.experiments.report.page import Part, board, board_place, curve_panel, drawing, line, write_page
from pfnts.experiments.report.tables import Cell, Table, html
from pfnts.ope import Bootstrap, Gap, Log, gaps, snips
from pfnts.ope.bootstrap import band

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_POINTS = 200
_TITLES = {"snips": "SNIPS", "dr": "doubly robust"}


def value_board(found: Sequence[PolicyValue]) -> dict[str, Any]:
    """Describe the estimated values over the horizon, with 95 % bands, a panel for each estimator."""
    panels = []
    for estimator in ESTIMATORS:
        rounds = len(found[0].curves[estimator][0])
        places = np.unique(np.linspace(0, rounds - 1, _POINTS).astype(int))
        lines = []
        for number, value in enumerate(found):
            curves = [curve[places] for curve in value.curves[estimator]]
            lines.append(line(number, curves[0], edges=band(curves) if len(curves) > 2 else None))
        panels.append(curve_panel(_TITLES[estimator], places + 1, lines))
    labels = [(value.policy.label, style) for value, style in zip(found, _styles(found), strict=True)]
    return board(labels=labels, panels=panels, ylabel="estimated value", regret=False)


def gap_boxes(found: Sequence[PolicyValue]) -> Figure:
    """Draw the leads over the best of the other policies, a panel for each measure and estimator."""
    figure = new_figure(width=6.4 * len(ESTIMATORS), height=7.0)
    panels = figure.subplots(2, len(ESTIMATORS), squeeze=False)
    for column, estimator in enumerate(ESTIMATORS):
        leads = all_gaps(found, estimator)
        for row, measure in enumerate(("final", "area")):
            panel = panels[row][column]
            chosen = [gap for gap in leads if gap.measure == measure]
            samples = [
                gap.difference.replicates if len(gap.difference.replicates) else [gap.difference.value]
                for gap in chosen
            ]
            panel.boxplot(samples, tick_labels=[gap.policy for gap in chosen])
            panel.plot(
                np.arange(1, len(chosen) + 1), [gap.difference.value for gap in chosen], "D", color="#D55E00"
            )
            panel.axhline(0, color="#999999", linewidth=0.8)
            when = "at the end" if measure == "final" else "on average"
            panel.set(title=f"Lead over the best other {when}, {_TITLES[estimator]}")
            panel.tick_params(axis="x", labelrotation=20)
            plain_frame(panel)
    return figure


def weight_histograms(found: Sequence[PolicyValue]) -> Figure:
    """Draw the importance weights of each policy, counts on a logarithmic axis, with their upper bound."""
    figure = new_figure(width=max(3.2 * len(found), 6.4), height=2.8)
    panels = figure.subplots(1, len(found), squeeze=False, sharey=True)[0]
    for panel, value, style in zip(panels, found, _styles(found), strict=True):
        bound = value.diagnostics.bound
        panel.hist(value.weights, bins=np.linspace(0, bound, 41), color=COLOURS[style])
        panel.axvline(bound, color="#999999", linestyle=":")
        panel.set(title=value.policy.label, xlabel="weight", yscale="log")
        plain_frame(panel)
    return figure


def all_gaps(found: Sequence[PolicyValue], estimator: str) -> list[Gap]:
    """Leads of every policy over the best of the others."""
    return gaps({value.policy.label: value.curves[estimator] for value in found})


def write_report(log: Log, found: Sequence[PolicyValue], path: str | os.PathLike[str], *, title: str) -> Path:
    """Write one HTML page that needs no other file: tables, value curves, leads and weights.

    Parameters
    ----------
    log
        What was done.
    found
        Values of the policies on it.
    path
        Where the page goes.
    title
        Its heading.
    """
    if not found:
        raise ValueError("found must hold at least one policy, got none")
    people = f", {log.n_groups:,} people" if log.clusters is not None else ""
    replicates = max(len(value.curves["snips"]) - 1 for value in found)
    leads = [
        (gap.policy, gap.measure, estimator, gap.baseline, in_words(gap.difference, signed=True))
        for estimator in ESTIMATORS
        for gap in all_gaps(found, estimator)
    ]
    boxes = (
        drawing(gap_boxes(found), name="leads", caption="Leads over resampled logs; diamonds: the log itself")
        if len(found) > 1
        else ""
    )
    rewards = _table(
        "Actions", ("action", "rounds", "logged with probability", "mean reward"), action_rows(log)
    )
    values = _table("Policies", VALUE_HEADER, [value_row(value) for value in found], words=2)
    curves = board_place(0, instead="The curves need JavaScript.")
    compared = _table("Leads", ("policy", "measure", "estimator", "over", "lead"), leads, words=4)
    weights = drawing(
        weight_histograms(found), name="weights", caption="Dotted: the largest weight there can be"
    )
    return write_page(
        path,
        title=title,
        lead=f"{log.rounds:,} rounds{people}, {log.n_arms} actions, mean reward {log.rewards.mean():.4f}. "
        f"Intervals: 95 %, from up to {replicates} resampled logs, each replayed anew.",
        parts=[
            Part("What was done", rewards, "Actions"),
            Part("What each policy would have earned", values + curves, "Values"),
            Part("Leads over the best other policy", compared + boxes, "Leads"),
            Part("Importance weights", weights, "Weights"),
        ],
        boards=[value_board(found)],
    )


VALUE_HEADER = (
    "policy", "person as", "matches", "SNIPS", "SNIPS on average", "DR", "effective rounds", "max weight",
    "seconds",
)  # fmt: skip


def value_row(value: PolicyValue) -> tuple[str, ...]:
    """One row of the table of policies, as text."""
    return (
        value.policy.label,
        value.identity,
        f"{value.matches:,}",
        in_words(value.final("snips")),
        in_words(value.average("snips")),
        in_words(value.final("dr")),
        f"{value.diagnostics.effective_sample_size:,.0f}",
        f"{value.diagnostics.maximum:.2f}",
        f"{value.seconds:,.1f}",
    )


def in_words(spread: Bootstrap, *, signed: bool = False) -> str:
    """Value and, where there is one, its interval.

    Examples
    --------
    >>> in_words(Bootstrap(0.5, np.array([0.4, 0.5, 0.6])))
    '0.5000 [0.0697, 0.9303]'
    """
    sign = "+" if signed else ""
    low, high = spread.interval()
    text = f"{spread.value:{sign}.4f}"
    return text if math.isnan(low) else f"{text} [{low:{sign}.4f}, {high:{sign}.4f}]"


def action_rows(log: Log) -> list[tuple[str, ...]]:
    """Rounds, logging probability and mean reward of each action, as text."""
    rows: list[tuple[str, ...]] = []
    for k, arm in enumerate(log.arms):
        mine = log.actions == k
        if mine.any():
            rate = snips(log, np.tile(np.eye(log.n_arms)[k], (log.rounds, 1))).value
            low, high = log.propensities[mine].min(), log.propensities[mine].max()
            chance = f"{low:g}" if low == high else f"{low:g} to {high:g}"
            rows.append((str(arm), f"{mine.sum():,}", chance, f"{rate:.4f}"))
    return rows


def _table(caption: str, header: tuple[str, ...], rows: Sequence[Sequence[str]], *, words: int = 1) -> str:
    cells = tuple(tuple(Cell(text, _leading_number(text)) for text in row) for row in rows)
    return html(Table(caption, header, cells, text_columns=words, heading=""))


def _leading_number(text: str) -> float | None:
    try:
        return float(text.split(" ")[0].replace(",", ""))
    except ValueError:
        return None


def _styles(found: Sequence[PolicyValue]) -> list[int]:
    return styles_of([value.policy.name for value in found])
