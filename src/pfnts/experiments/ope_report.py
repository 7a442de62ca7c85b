"""An evaluation on a log as pictures and as one page."""

from __future__ import annotations

import base64
import io
import math
import os
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pfnts.experiments.figures import _cycle, _figure
from pfnts.experiments.ope_runs import ESTIMATORS, PolicyValue
from pfnts.ope import Bootstrap, Gap, Log, gaps, snips
from pfnts.ope.bootstrap import band

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_POINTS = 400
_TITLES = {"snips": "SNIPS", "dr": "doubly robust"}


def value_curves(found: Sequence[PolicyValue]) -> Figure:
    """Draw the estimated values over the horizon, with 95 % bands, a panel for each estimator."""
    figure = _figure(width=6.4 * len(ESTIMATORS), height=4.2)
    panels = figure.subplots(1, len(ESTIMATORS), squeeze=False, sharey=True)[0]
    for panel, estimator in zip(panels, ESTIMATORS, strict=True):
        heights = []
        for value, colour in zip(found, _cycle(len(found)), strict=True):
            curves = value.curves[estimator]
            places = np.unique(np.linspace(0, len(curves[0]) - 1, _POINTS).astype(int))
            own = curves[0][places]
            panel.plot(places + 1, own, color=colour, label=f"{value.policy.label}: {own[-1]:.4f}")
            if len(curves) > 2:
                low, high = band([curve[places] for curve in curves])
                panel.fill_between(places + 1, low, high, color=colour, alpha=0.12, linewidth=0)
            heights.append(own[len(own) // 20 :])
        # The first few matches are all noise; they would flatten everything else.
        low, high = np.nanmin(heights), np.nanmax(heights)
        panel.set_ylim(low - 0.15 * (high - low) - 1e-9, high + 0.25 * (high - low) + 1e-9)
        panel.set(title=_TITLES[estimator], xlabel="round", ylabel="estimated value")
        _plain(panel)
        panel.legend(frameon=False, fontsize="small")
    return figure


def gap_boxes(found: Sequence[PolicyValue]) -> Figure:
    """Draw the leads over the best of the other policies, a panel for each measure and estimator."""
    figure = _figure(width=6.4 * len(ESTIMATORS), height=7.0)
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
            _plain(panel)
    return figure


def weight_histograms(found: Sequence[PolicyValue]) -> Figure:
    """Draw the importance weights of each policy, counts on a logarithmic axis, with their upper bound."""
    figure = _figure(width=3.2 * len(found), height=2.8)
    panels = figure.subplots(1, len(found), squeeze=False, sharey=True)[0]
    for panel, value, colour in zip(panels, found, _cycle(len(found)), strict=True):
        bound = value.diagnostics.bound
        panel.hist(value.weights, bins=np.linspace(0, bound, 41), color=colour)
        panel.axvline(bound, color="#999999", linestyle=":")
        panel.set(title=value.policy.label, xlabel="weight", yscale="log")
        _plain(panel)
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
    parts = [
        f"<h1>{escape(title)}</h1>",
        f"<p>{log.rounds:,} rounds{people}, {log.n_arms} actions, mean reward {log.rewards.mean():.4f}. "
        f"Intervals: 95 %, from up to {replicates} resampled logs, each replayed anew.</p>",
        "<h2>What was done</h2>",
        _table(("action", "rounds", "logged with probability", "mean reward"), action_rows(log)),
        "<h2>What each policy would have earned</h2>",
        _table(VALUE_HEADER, [value_row(value) for value in found]),
        _image(value_curves(found)),
        "<h2>Leads</h2>",
        _table(
            ("policy", "measure", "estimator", "over", "lead"),
            [
                (gap.policy, gap.measure, estimator, gap.baseline, in_words(gap.difference, signed=True))
                for estimator in ESTIMATORS
                for gap in all_gaps(found, estimator)
            ],
        ),
        _image(gap_boxes(found)) if len(found) > 1 else "",
        "<h2>Weights</h2>",
        _image(weight_histograms(found)),
    ]
    head = f"<head><meta charset='utf-8'><title>{escape(title)}</title>{_STYLE}</head>"
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    body = "<body>" + "\n".join(parts) + "</body>"
    path.write_text(f"<!doctype html><html lang='en'>{head}{body}</html>\n", encoding="utf-8")
    return path


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


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><tr>{head}</tr>{body}</table>"


def _image(figure: Figure) -> str:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=120)
    return f'<img alt="" src="data:image/png;base64,{base64.b64encode(buffer.getvalue()).decode()}">'


def _plain(panel: Any) -> None:
    panel.spines[["top", "right"]].set_visible(False)


_STYLE = """<style>
body { font: 16px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto;
  padding: 0 1rem; color: #222 }
img { max-width: 100%; height: auto }
table { border-collapse: collapse; margin: 1rem 0; font-size: 0.9rem; font-variant-numeric: tabular-nums }
th, td { padding: 0.25rem 0.75rem; border-bottom: 1px solid #ddd; text-align: left }
</style>"""
