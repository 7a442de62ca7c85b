"""The examples of the gallery run, in a smaller size, and draw their figures."""

from __future__ import annotations

import math
import runpy
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
SCRIPTS = sorted((DOCS / "gallery").glob("*.py"))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_example_runs_and_draws(script: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = runpy.run_path(str(script))["main"](tmp_path, rounds=150, backbone="linear")
    assert all(math.isfinite(value) for value in found.values())
    assert found.get("given although not allowed", 0) == 0  # a rule of dose finding
    printed = capsys.readouterr().out
    assert all(name in printed for name in found)
    assert [path.name for path in tmp_path.iterdir()] == [f"{script.stem}.png"]
    assert (tmp_path / f"{script.stem}.png").stat().st_size > 10_000


def test_each_example_has_its_figure_and_its_line_in_the_list() -> None:
    listed = (DOCS / "gallery" / "index.md").read_text(encoding="utf-8")
    assert len(SCRIPTS) == 5
    for script in SCRIPTS:
        assert f"]({script.name})" in listed
        assert script.with_suffix(".png").exists()
        assert script.with_suffix(".txt").exists()
