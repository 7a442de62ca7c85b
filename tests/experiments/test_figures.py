"""Regret curves."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from pfnts import policies
from pfnts.experiments import PolicySpec, plan, regret_curves, run_all
from pfnts.experiments.charts import COLOURS, styles_of

SPECS = plan(
    scenarios=["friedman", "linear"], policies=[PolicySpec("uniform")], horizon=20, replications=2, seed=3
)


def test_picture_has_a_panel_for_each_scenario(tmp_path: Path) -> None:
    path = regret_curves(run_all(SPECS), tmp_path / "folder" / "curves.svg")
    text = path.read_text(encoding="utf-8")
    assert text.count('id="axes_') == 2


def test_no_runs_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="runs must hold at least one run, got none"):
        regret_curves([], tmp_path / "curves.png")


def test_missing_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r"pip install \"pfnts\[bench\]\""):
        regret_curves(run_all(SPECS), tmp_path / "curves.png")


def test_every_policy_has_a_style_of_its_own_as_long_as_there_are_enough() -> None:
    *most, last = policies.names()
    names = [*most[: len(COLOURS) - 1], last]  # the last has a place beyond the styles
    assert len(most) >= len(COLOURS)
    assert sorted(styles_of(names)) == list(range(len(COLOURS)))
    assert styles_of(["bayesianbandits-ts", "pfn-ts"])[1] == styles_of(["pfn-ts"])[0]
