"""``pfnts reproduce``, undisturbed and killed."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from pfnts.cli import app
from pfnts.environments import MissingDatasetError
from pfnts.environments.openml import OpenMLScenario
from pfnts.experiments import RunStore, calibration_bart
from pfnts.experiments import simulations as runner_module

QUICK = ("reproduce", "table-synthetic", "--quick", "--replications", "1", "--no-figures")
TABLE = (*QUICK, "--policy", "lin-ts", "--policy", "uniform")
SMALL = (*QUICK, "--policy", "uniform", "--workers", "1")


def pfnts(*arguments: str | Path, code: int = 0) -> str:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], env={"COLUMNS": "200"})
    assert result.exit_code == code, result.output + repr(result.exception)
    return result.output


def wait_until(condition: Callable[[], bool], *, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads the children of a process from /proc")
def test_killed_and_started_again_it_gives_the_same_tables(tmp_path: Path) -> None:
    undisturbed, killed = tmp_path / "undisturbed", tmp_path / "killed"
    command = [sys.executable, "-c", "from pfnts.cli import app; app()"]
    process = subprocess.Popen(
        [*command, *TABLE, "--workers", "2", "--out", killed], stdout=subprocess.DEVNULL
    )
    try:
        wait_until(lambda: len(list(killed.glob("[!.]*/run.json"))) >= 3)
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    finally:
        process.kill()
        process.wait()
    assert len(children) >= 2
    wait_until(lambda: not any(os.path.exists(f"/proc/{child}") for child in children))
    kept = len(list(RunStore(killed)))
    assert 3 <= kept < 16
    text = pfnts(*TABLE, "--workers", "1", "--out", killed)
    assert f"16 runs, of which {kept} were finished before" in text
    pfnts(*TABLE, "--workers", "1", "--out", undisturbed)
    tables = sorted(path.name for path in (undisturbed / "report").glob("regret.*"))
    assert tables == ["regret.csv", "regret.md", "regret.tex"]
    for name in tables:
        assert (killed / "report" / name).read_bytes() == (undisturbed / "report" / name).read_bytes()


TEN_KILLS = """
import os, random, shutil, signal, sys, time
from pfnts.cli import app

undisturbed, killed, seed, *arguments = sys.argv[1:]
rng = random.Random(int(seed))

def started(out):
    child = os.fork()  # everything is imported by now, so that what is killed is the work
    if child == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        app([*arguments, '--out', out], standalone_mode=False)
        app(['report', out, '--no-figures'], standalone_mode=False)
        os._exit(0)
    return child

began = time.monotonic()
assert os.waitpid(started(undisturbed), 0)[1] == 0
whole, kills = time.monotonic() - began, 0
while kills < 10:
    child = started(killed)
    time.sleep(rng.uniform(0, whole / 3))
    os.kill(child, signal.SIGKILL)
    if os.WIFSIGNALED(os.waitpid(child, 0)[1]):
        kills += 1
    else:  # it was done before: again from nothing
        shutil.rmtree(killed)
assert os.waitpid(started(killed), 0)[1] == 0
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_killed_at_ten_random_moments_it_gives_the_same_tables(
    tmp_path: Path, rng: np.random.Generator
) -> None:
    folders = [tmp_path / "undisturbed", tmp_path / "killed"]
    command = ["run", "--policy", "lin-ts", "--policy", "uniform", "--horizon", "100", "--workers", "1"]
    arguments = [*map(str, folders), str(rng.integers(2**31)), *command]
    subprocess.run([sys.executable, "-c", TEN_KILLS, *arguments], check=True)
    tables = [
        {path.name: path.read_bytes() for path in (folder / "report").glob("regret.*")} for folder in folders
    ]
    assert len(tables[0]) == 3
    assert tables[0] == tables[1]


def test_second_time_runs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pfnts(*SMALL, "--out", tmp_path)
    monkeypatch.setattr(runner_module, "simulate", lambda *a, **k: pytest.fail("ran a finished run again"))
    assert "8 runs, of which 8 were finished before" in pfnts(*SMALL, "--out", tmp_path)


def test_failed_run_is_reported_at_the_end_and_stops_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    simulate = runner_module.simulate

    def breaking(policy: object, environment: object, **options: object) -> object:
        if environment.name == "linear":  # type: ignore[attr-defined]
            raise ZeroDivisionError("as planned")
        return simulate(policy, environment, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(runner_module, "simulate", breaking)
    text = pfnts(*SMALL, "--out", tmp_path, code=1)
    assert "linear, uniform, replication 0: failed, ZeroDivisionError: as planned" in text
    assert "Traceback" in text
    assert "'horizon': 500" in text
    assert "1 run failed and nothing of it is kept" in text
    assert len(list(RunStore(tmp_path))) == 7
    assert (tmp_path / "report" / "regret.csv").exists()


def test_missing_table_is_skipped_with_a_note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(self: OpenMLScenario) -> None:
        raise MissingDatasetError(f"{self.name} needs a table")

    monkeypatch.setattr(OpenMLScenario, "table", missing)
    assert "openml-adult needs a table" in pfnts("reproduce", "table-openml", "--out", tmp_path, code=2)
    text = pfnts("reproduce", "figures", *SMALL[2:], "--out", tmp_path)
    assert "openml-adult is left out: openml-adult needs a table" in text
    assert "15 runs, of which 0 were finished before" in text
    assert len(list(RunStore(tmp_path))) == 15


def test_coverage_is_made_once_for_the_same_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pfnts.cli.reproduce._CALIBRATED", ("linear",))
    monkeypatch.setattr("pfnts.cli.reproduce.QUICK_SIZES", (8,))
    monkeypatch.setattr(
        calibration_bart, "bart_interval", lambda history, level: (history.latent, history.latent)
    )
    coverage = ("reproduce", "coverage", "--quick", "--workers", "1", "--out", tmp_path)
    assert "4 cells, of which 0 were finished before." in pfnts(*coverage)
    assert "4 cells, of which 4 were finished before." in pfnts(*coverage)
    assert "BART | 1.000" in (tmp_path / "coverage" / "coverage.md").read_text()
    assert "Coverage" in (tmp_path / "report" / "index.html").read_text()


def test_unknown_target_is_explained(tmp_path: Path) -> None:
    text = pfnts("reproduce", "table-3", "--out", tmp_path, code=2)
    assert "target must be one of" in text
    assert "Traceback" not in text


def test_device_that_does_not_work_is_explained_before_anything_runs(tmp_path: Path) -> None:
    text = pfnts(*SMALL, "--device", "abacus", "--out", tmp_path, code=2)
    assert "device must be one that works here, such as cpu, got 'abacus'" in text
    assert list(tmp_path.iterdir()) == []
