"""Tables to be kept beside the code, and the page that says how they were made."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest
from typer.testing import CliRunner

from pfnts.cli import app
from pfnts.experiments import CoverageRow, Run
from pfnts.experiments.charts import Chart
from pfnts.experiments.report.coverage import write_calibration
from pfnts.reproduction import results, write_results
from pfnts.reproduction.results import busy

MakeRun = Callable[..., Run]
ROOT = Path(__file__).parents[2]


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.setattr(sys, "path", [str(ROOT / "docs"), *sys.path])
    return import_module("make_results")


@pytest.fixture
def whole(tmp_path: Path, make_run: MakeRun, save_runs: Callable[..., Path]) -> Path:
    """Two tasks of the paper at its horizon; linear has two replications, made one after the other."""
    root = tmp_path / "runs"
    machine = {"cpu": "abacus", "cores": 3, "device": "big card"}
    listed = [("linear", 0, 100.0), ("linear", 1, 200.0), ("openml-mushroom", 0, 30.0)]
    for second, (scenario, replication, regret) in enumerate(listed):
        run = make_run(scenario, "pfn-ts", replication, regret, horizon=10_000, seconds=2.0)
        made = {
            "versions": {"pfnts": "0.1.0", "python": "3.99"},
            "machine": machine,
            "finished": f"2026-01-02T03:04:{10 + second}+00:00",
        }
        save_runs([run], root, **made)
    return save_runs([make_run("linear", "ts", 0, 50.0, horizon=10_000)], root)


def test_coverage_that_is_there_is_taken_along(whole: Path, tmp_path: Path) -> None:
    row = CoverageRow("linear", "bart", "mcmc", 16, 10, 0.934, 0.021, 2.5, 0.125, 1.0)
    write_calibration([row], whole / "coverage")
    page = write_results(whole, tmp_path / "results", figures=False)
    assert "| [coverage.md](coverage.md), [coverage.csv](coverage.csv) | 95 % intervals" in page.read_text()
    assert "0.934 ± 0.021" in (page.parent / "coverage.md").read_text(encoding="utf-8")


def test_readme_says_where_we_stand_and_how_it_was_made(whole: Path, tmp_path: Path) -> None:
    text = write_results(whole, tmp_path / "results", figures=False).read_text()
    assert "| linear | 150.0 ± 50.0 | 2 | 261.4 |  |" in text
    assert "| openml-mushroom | 30.0 | 1 | 37.0 | **22.7** |" in text
    assert "Ours is lower than the paper's PFN-TS on 2 of 2 tasks." in text
    assert "Ours is lower than the best of the public libraries on 0 of 1 tasks." in text
    # Three runs of two seconds, one second apart: from 8 to 12.
    assert "| big card; abacus, 3 cores | pfn-ts | 2026-01-02 | 3 | 6.0 | 4.0 |" in text
    assert ", and 4 on mushroom)" in text
    assert "Coverage of intervals: nothing yet." in text
    assert '"refresh": 1.05' in text
    assert "python 3.99, backbone embedded:" in text
    assert "[paper.md](paper.md), [paper.csv](paper.csv), [paper.tex](paper.tex)" in text
    assert "index.html" not in {path.name for path in (tmp_path / "results").iterdir()}


def test_every_run_has_its_row(whole: Path, tmp_path: Path) -> None:
    write_results(whole, tmp_path / "results", figures=False)
    with (tmp_path / "results" / "runs.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["scenario"], row["policy"], float(row["regret"])) for row in rows] == [
        ("linear", "pfn-ts", 100.0),
        ("linear", "pfn-ts", 200.0),
        ("linear", "ts", 50.0),
        ("openml-mushroom", "pfn-ts", 30.0),
    ]
    written = {path.name for path in (tmp_path / "results").iterdir()}
    tables = {f"{name}.{suffix}" for name in ("regret", "times", "paper") for suffix in ("md", "csv", "tex")}
    assert written == {"README.md", "runs.csv", "curves.npz", "settings.json", *tables}


def test_runs_of_another_version_are_told(whole: Path, tmp_path: Path) -> None:
    (folder,) = whole.glob("linear-pfn-ts-replication-1_*")
    about = json.loads((folder / "run.json").read_text())
    about["producer"] |= {"code": "other", "settings": {"refresh": 2.0}}
    (folder / "run.json").write_text(json.dumps(about))
    text = write_results(whole, tmp_path / "results", figures=False).read_text()
    assert "Made by another version of the package than the one at hand: 1 run." in text
    assert '"refresh": 1.05' in text
    assert '"refresh": 2.0' in text


def test_command_draws_a_page_of_curves_for_each_table(whole: Path, tmp_path: Path) -> None:
    result = CliRunner().invoke(
        app, ["reproduce", "report", "--out", str(whole), "--results", str(tmp_path / "out")]
    )
    assert result.exit_code == 0, result.output
    pictures = sorted(path.name for path in (tmp_path / "out").glob("*.png"))
    assert pictures == ["openml-tasks-10000.png", "synthetic-tasks-of-the-paper-10000.png"]
    assert all(f"[{name}]({name})" in (tmp_path / "out" / "README.md").read_text() for name in pictures)


def test_pictures_leave_out_the_curves_of_libraries(
    whole: Path,
    make_run: MakeRun,
    save_runs: Callable[..., Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    save_runs([make_run("linear", name, 0, 70.0, horizon=10_000) for name in ("vw", "rf-ts")], whole)
    charts: list[Chart] = []
    monkeypatch.setattr(results, "figure_of", charts.append)
    monkeypatch.setattr(results, "save", lambda *_: None)
    write_results(whole, tmp_path / "results")
    assert [name for name, _ in charts[0].series] == ["pfn-ts", "rf-ts", "ts"]
    assert "vw" in (tmp_path / "results" / "regret.md").read_text(encoding="utf-8")


def test_store_without_runs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="root must hold at least one finished run"):
        write_results(tmp_path, tmp_path / "results")


@pytest.mark.parametrize(("spans", "seconds"), [([], 0.0), ([(0, 2), (1, 5), (2, 3), (9, 10)], 6.0)])
def test_time_shared_by_runs_counts_once(spans: list[tuple[float, float]], seconds: float) -> None:
    assert busy(spans) == seconds


def test_readme_and_results_page_are_filled_from_the_tables(
    whole: Path, tmp_path: Path, script: ModuleType
) -> None:
    write_results(whole, tmp_path / "results", figures=False)
    (tmp_path / "docs").mkdir()
    for path in (tmp_path / "README.md", tmp_path / "docs" / "results.md"):
        path.write_text(f"before\n{script.BEGIN}\nstale\n{script.END}\nafter\n")
    readme, page = script.pages(tmp_path).values()
    assert readme.startswith("before\n")
    assert readme.endswith("\nafter\n")
    assert "stale" not in readme
    assert "| linear | 150.0 ± 50.0 | 261.4 | | page-blocks | | | |" in readme
    assert "| friedman3 | | | | mushroom | 30.0 | 37.0 | 22.7 |" in readme
    assert "of 2 replications (openml-mushroom 1)" in readme
    assert "| openml-mushroom | 30.0 | 1 | 37.0 | **22.7** |" in page
    [lacking] = [line for line in page.splitlines() if line.startswith("Fewer than five")]
    assert "2 on linear)" in lacking.partition("; bf-ts (none on all)")[0]
    assert "1 on mushroom; 2 on linear)" in lacking


@pytest.mark.skipif(not (ROOT / "results").is_dir(), reason="no results are kept beside the code yet")
def test_pages_show_the_results_that_are_kept(script: ModuleType) -> None:
    for path, text in script.pages().items():
        assert path.read_text(encoding="utf-8") == text, "run: python docs/make_results.py"
