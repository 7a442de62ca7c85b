"""Regret curves."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from pfnts.experiments import PolicySpec, plan, regret_curves, run_all

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
