"""Public libraries and the trial on the page and in the results."""

from __future__ import annotations

import csv
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from pfnts.cli import app
from pfnts.experiments import PolicySpec, Run
from pfnts.experiments.jobs import code_fingerprint
from pfnts.experiments.report import write_report
from pfnts.ope import simulated_drinkless
from pfnts.reproduction.paper import PAPER
from pfnts.reproduction.results import write_results

SQUARE = PolicySpec.of("vw", arguments="--squarecb")


@pytest.fixture
def runs(make_run: Callable[..., Run], save_runs: Callable[..., Path], tmp_path: Path) -> Path:
    """Where the libraries win, and where they lose."""
    regrets = {"openml-adult": (90.0, 120.0, 80.0, 300.0), "linear": (10.0, 50.0, 70.0, 60.0)}
    policies = (PolicySpec("pfn-ts"), PolicySpec("vw"), SQUARE, PolicySpec("mabwiser-linucb"))
    made = [
        make_run(scenario, policy, 0, regret, horizon=10_000, rounds=50)
        for scenario, found in regrets.items()
        for policy, regret in zip(policies, found, strict=True)
    ]
    return save_runs(made, tmp_path / "runs")


def test_libraries_stand_beside_ours_with_defaults_and_the_best_of_the_grid(runs: Path) -> None:
    out = write_report(runs, figures=False, beside=PAPER).parent
    text = (out / "libraries.md").read_text(encoding="utf-8")
    assert "| openml-adult | 1 | 90.0 | 120.0 | **80.0** | 300.0 | 300.0 | — | — | — | — |" in text
    assert "| linear | 1 | **10.0** | 50.0 | 50.0 | 60.0 | 60.0 | — | — | — | — |" in text
    assert "vw(arguments=--squarecb)" in text
    assert "vw by arguments" not in (out / "regret.md").read_text(encoding="utf-8")
    page = (out / "index.html").read_text(encoding="utf-8")
    assert "arguments=--squarecb</small>" in page
    with (out / "libraries.csv").open(encoding="utf-8", newline="") as file:
        assert sorted(float(row["mean"]) for row in csv.DictReader(file)) == [50, 60, 70, 80, 120, 300]


def test_results_say_how_the_measured_libraries_compare(runs: Path, tmp_path: Path) -> None:
    text = write_results(runs, tmp_path / "results", figures=False).read_text(encoding="utf-8")
    assert "lower than the best of the public libraries on 1 of 2 tasks (linear)" in text
    assert "the lowest of 11 settings of 4 libraries on the same replications as ours, and of th" in text
    assert "[libraries.md](libraries.md)" in text


def test_libraries_are_compared_on_the_replications_that_all_have(
    make_run: Callable[..., Run], save_runs: Callable[..., Path], tmp_path: Path
) -> None:
    # Of the second replication, in which everybody would lose more, only ours is there.
    regrets = {PolicySpec("pfn-ts"): (40.0, 400.0), PolicySpec("vw"): (50.0,)}
    made = [
        make_run("linear", policy, replication, regret, horizon=10_000, rounds=50)
        for policy, found in regrets.items()
        for replication, regret in enumerate(found)
    ]
    text = write_results(save_runs(made, tmp_path / "runs"), tmp_path / "out", figures=False).read_text()
    assert "| linear | 220.0 ± 180.0 | 2 | 261.4 | 50.0 |" in text
    assert "lower than the best of the public libraries on 1 of 1 tasks" in text
    assert "| linear | 1 | **40.0** | 50.0 | 50.0 |" in (tmp_path / "out" / "libraries.md").read_text()


def test_trial_is_replayed_kept_and_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("bartz")
    trial = simulated_drinkless(rng=np.random.default_rng(0), people=41, days=3)
    monkeypatch.setattr("pfnts.cli.reproduce.read_drinkless", lambda data: trial)
    command = ["drinkless", "--quick", "--policy", "lin-ts", "--workers", "1", "--out", str(tmp_path)]

    def reproduced(*arguments: str) -> str:
        result = CliRunner().invoke(app, ["reproduce", *arguments], env={"COLUMNS": "200", "NO_COLOR": "1"})
        assert result.exit_code == 0, result.output + repr(result.exception)
        return result.output

    assert "3 replays, of which 0 were finished before." in reproduced(*command)
    assert "3 replays, of which 3 were finished before." in reproduced(*command)
    page = (tmp_path / "report" / "index.html").read_text(encoding="utf-8")
    assert "Drink Less trial" in page
    assert "by SNIPS its PFN-TS comes first" in page
    reproduced("report", "--quick", "--out", str(tmp_path))
    assert "Drink Less trial" in (tmp_path / "report" / "index.html").read_text(encoding="utf-8")
    # What another version has replayed is shown beside what is replayed now; half a policy is not.
    for record in (tmp_path / "drinkless").glob("*/run.json"):
        record.write_text(record.read_text().replace(code_fingerprint(), "another"))
    reproduced("drinkless", "--quick", "--policy", "xgboost-ts", "--workers", "1", "--out", str(tmp_path))
    page = (tmp_path / "report" / "index.html").read_text(encoding="utf-8")
    assert ("lin-ts" in page, "xgboost-ts" in page) == (True, True)
    shutil.rmtree(next((tmp_path / "drinkless").glob("xgboost-ts-on-resampled-log-2*")))
    reproduced("report", "--quick", "--out", str(tmp_path))
    page = (tmp_path / "report" / "index.html").read_text(encoding="utf-8")
    assert ("lin-ts" in page, "xgboost-ts" in page) == (True, False)


def test_trial_that_is_not_at_hand_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PFNTS_DATA", raising=False)
    result = CliRunner().invoke(
        app, ["reproduce", "drinkless", "--out", str(tmp_path)], env={"COLUMNS": "200"}
    )
    assert "Note: the Drink Less trial is left out: data must name the folder" in result.output
