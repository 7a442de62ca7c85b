"""``pfnts calibrate``, run in this process."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from pfnts.cli import app
from pfnts.cli import calibrate as command
from pfnts.experiments import calibration

runner = CliRunner()


def pfnts(*arguments: str | Path, code: int = 0) -> str:
    result = runner.invoke(app, [str(argument) for argument in arguments], env={"COLUMNS": "160"})
    assert result.exit_code == code, result.output + repr(result.exception)
    return result.output


def test_table_and_files(tmp_path: Path) -> None:
    out = tmp_path / "deep" / "folder"
    text = pfnts("calibrate", "--backbone", "linear", "--no-bart", "--quick", "--workers", "1", "--out", out)
    assert "linear, shrunk" in text
    assert "2 replications" in text
    assert "n = 256" in text
    assert "n = 1,024" not in text
    written = sorted(path.name for path in out.iterdir() if path.is_file())
    assert written == [
        "coverage.csv",
        "coverage.md",
        "coverage.png",
        "coverage_length.png",
        "coverage_times.csv",
    ]
    assert (out / "coverage.png").stat().st_size > 10_000


def test_finished_cells_are_not_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = (
        "calibrate",
        "--backbone",
        "linear",
        "--no-bart",
        "--quick",
        "--workers",
        "1",
        "--out",
        tmp_path,
    )
    first = pfnts(*arguments)
    table = (tmp_path / "coverage.csv").read_bytes()
    monkeypatch.setattr(calibration, "draw_history", lambda *a, **k: pytest.fail("made a cell again"))
    second = pfnts(*arguments)
    assert "6 cells, of which 6 were finished before." in second
    assert first.splitlines()[-6:] == second.splitlines()[-6:]
    assert (tmp_path / "coverage.csv").read_bytes() == table


def test_sizes_and_replications_may_be_chosen(tmp_path: Path) -> None:
    options = ["--backbone", "linear", "--no-bart", "--workers", "1", "--out", tmp_path]
    text = pfnts("calibrate", *options, "--quick", "--sizes", "8,32", "--replications", "3")
    assert "3 replications" in text
    assert "n = 8" in text
    assert "n = 16" not in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--sizes", "8;16"], "--sizes must be whole numbers with commas between them, got '8;16'"),
        (["--sizes", "2", "--backbone", "linear"], "sizes must be at least 3"),
        (["--backbone", "tabnet"], "backbone must be one of"),
    ],
)
def test_mistakes_are_told_in_a_sentence(arguments: list[str], message: str, tmp_path: Path) -> None:
    text = pfnts("calibrate", "--no-bart", "--workers", "1", *arguments, "--out", tmp_path, code=2)
    assert message in text
    assert "Traceback" not in text


def test_quick_is_a_part_of_the_whole() -> None:
    assert command.QUICK_SIZES == (16, 64, 256)
    assert command.QUICK_REPLICATIONS == 2
