"""Regret curves."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pfnts.experiments.store import Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Told apart in every common form of colour blindness.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")


def regret_curves(runs: Iterable[Run], path: str | os.PathLike[str]) -> Path:
    """Draw mean cumulative regret over rounds, a panel for each scenario, and save it.

    Both axes are logarithmic: a policy that never learns is a straight line, one that has learned is flat.
    The band is one standard error over replications to either side.

    Parameters
    ----------
    runs
        Finished runs.
    path
        Where the picture goes; its suffix decides the format.
    """
    groups: dict[str, dict[str, list[Run]]] = {}
    for run in runs:
        groups.setdefault(run.spec.scenario, {}).setdefault(run.spec.policy.label, []).append(run)
    if not groups:
        raise ValueError("runs must hold at least one run, got none")
    figure = _figure(width=6.4 * len(groups), height=4.0)
    panels = figure.subplots(1, len(groups), squeeze=False)[0]
    for panel, (scenario, by_policy) in zip(panels, groups.items(), strict=True):
        for (label, members), colour in zip(by_policy.items(), _cycle(len(by_policy)), strict=True):
            _curve(panel, label, members, colour)
        panel.set(title=scenario, xlabel="round", ylabel="cumulative regret", xscale="log", yscale="log")
        panel.spines[["top", "right"]].set_visible(False)
        panel.legend(frameon=False)
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    return path


def _curve(panel: Any, label: str, runs: list[Run], colour: str) -> None:
    curves = np.array([run.trajectory.cumulative_regret for run in runs])
    # From round 10, because before it the arms are merely pulled in turn; no more points than pixels.
    last = curves.shape[1]
    rounds = np.unique(np.geomspace(min(10, last), last, 400).astype(int))
    at_rounds = curves[:, rounds - 1]
    mean = at_rounds.mean(axis=0)
    panel.plot(rounds, mean, color=colour, label=f"{label}: {mean[-1]:,.0f}")
    if len(curves) > 1:
        error = at_rounds.std(axis=0, ddof=1) / np.sqrt(len(curves))
        panel.fill_between(rounds, mean - error, mean + error, color=colour, alpha=0.2, linewidth=0)


def _cycle(n: int) -> list[str]:
    return [_COLOURS[i % len(_COLOURS)] for i in range(n)]


def _figure(*, width: float, height: float) -> Figure:
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError('drawing needs matplotlib; install it with: pip install "pfnts[bench]"') from error
    # A Figure of its own, not pyplot's: nothing is shown, and no state is left in the process.
    return Figure(figsize=(width, height), layout="constrained")
