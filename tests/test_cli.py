"""The command line, run in this process."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pfnts import environments, policies
from pfnts.cli import app
from pfnts.cli.run import policy_grid
from pfnts.experiments import RunStore
from pfnts.experiments import runner as runner_module

runner = CliRunner()
# One worker is this process, where a test can reach into a run.
SMALL = ["--horizon", "30", "--replications", "2", "--workers", "1"]


@pytest.fixture(autouse=True)
def wide_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("NO_COLOR", "1")


def pfnts(*arguments: str | Path, code: int = 0) -> str:
    result = runner.invoke(app, [str(argument) for argument in arguments], env={"COLUMNS": "200"})
    assert result.exit_code == code, result.output + repr(result.exception)
    return result.output


def test_help_lists_every_command() -> None:
    text = pfnts("--help")
    for command in ("demo", "run", "scenarios", "info"):
        assert command in text


@pytest.mark.parametrize("command", ["demo", "run", "scenarios", "info"])
def test_every_command_explains_itself(command: str) -> None:
    text = pfnts(command, "--help")
    options = [line for line in text.splitlines() if "--" in line and "--help" not in line]
    assert all(len(line.split("--", 1)[1].split()) > 3 for line in options if line.strip().startswith("│ --"))


def test_scenarios_lists_all_of_them() -> None:
    text = pfnts("scenarios")
    for name in environments.names():
        assert name in text
    assert "568.6" in text


def test_info_names_version_policies_backbones_and_extras() -> None:
    text = pfnts("info")
    for word in ("pfnts", "torch", "device", "linear", "bench", *policies.names()):
        assert word in text


def test_info_says_what_an_extra_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pfnts.cli.info._is_installed", lambda package: package != "matplotlib")
    assert 'lacks matplotlib; pip install "pfnts[bench]"' in pfnts("info")


def test_run_keeps_runs_and_prints_a_table(tmp_path: Path) -> None:
    text = pfnts(
        "run",
        "--scenario",
        "friedman",
        "--scenario",
        "linear",
        "--policy",
        "uniform",
        *SMALL,
        "--out",
        tmp_path,
    )
    assert "Final regret after 30 rounds" in text
    assert "the paper's PFN-TS" not in text
    assert len(list(RunStore(tmp_path))) == 4


def test_paper_s_figures_stand_beside_a_full_run(tmp_path: Path) -> None:
    text = pfnts("run", "--policy", "uniform", "--replications", "1", "--out", tmp_path)
    assert "the paper's PFN-TS" in text
    assert "233.0" in text


def test_run_again_only_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = ("run", "--policy", "uniform", *SMALL, "--out", tmp_path)
    first = pfnts(*arguments)
    monkeypatch.setattr(runner_module, "simulate", lambda *a, **k: pytest.fail("ran a finished run again"))
    second = pfnts(*arguments)
    assert "2 runs, of which 2 were finished before" in second
    assert first.splitlines()[-2] == second.splitlines()[-2]


def test_ctrl_c_keeps_finished_runs_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    simulate = runner_module.simulate

    def interrupted(*arguments: object, **options: object) -> object:
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return simulate(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(runner_module, "simulate", interrupted)
    text = pfnts("run", "--policy", "uniform", *SMALL, "--out", tmp_path, code=130)
    assert "1 of 2 runs are kept" in text
    assert len(list(RunStore(tmp_path))) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--policy", "uniform", "--scenario", "freidman"], "scenario must be one of"),
        (["--policy", "unifrom"], "policy must be one of"),
        (["--policy", "uniform:colour=red"], "does not fit"),
        (
            ["--policy", "uniform", "--encoding", "joint"],
            "--encoding needs a policy that has one, got uniform",
        ),
        (["--policy", "pfn-ts", "--backbone", "lunear"], "lunear"),
        (["--policy", "uniform", "--device", "abacus"], "--device must be one that works here"),
        (["--policy", "uniform", "--device", "meta"], "--device must be one that works here"),
    ],
)
def test_mistakes_are_explained_without_a_traceback(
    arguments: list[str], message: str, tmp_path: Path
) -> None:
    text = pfnts("run", *arguments, "--out", tmp_path, code=2)
    assert message in text
    assert "Traceback" not in text
    assert list(tmp_path.iterdir()) == []


def test_run_made_on_another_device_is_the_same_run(tmp_path: Path) -> None:
    arguments = ("run", "--policy", "pfn-ts", *SMALL, "--out", tmp_path)
    pfnts(*arguments, "--device", "cpu:0")
    (made,) = {json.loads(path.read_text())["machine"]["device"] for path in tmp_path.glob("*/run.json")}
    assert made == "cpu:0"
    assert "2 runs, of which 2 were finished before" in pfnts(*arguments)


def test_damaged_run_is_explained_without_a_traceback(tmp_path: Path) -> None:
    arguments = ("run", "--policy", "uniform", *SMALL, "--out", tmp_path)
    pfnts(*arguments)
    next(tmp_path.glob("*/run.json")).write_text("{")
    assert "delete it to run it anew" in pfnts(*arguments, code=2)


def test_policies_get_every_backbone_and_encoding_they_take() -> None:
    specs = policy_grid(["pfn-ts", "uniform"], backbone=["linear"], encoding=["joint", "disjoint"])
    assert [spec.label for spec in specs] == [
        "pfn-ts(backbone=linear, encoding=joint)",
        "pfn-ts(backbone=linear, encoding=disjoint)",
        "uniform",
    ]


def test_own_option_beats_the_common_one() -> None:
    (spec,) = policy_grid(["pfn-ts:encoding=block"], backbone=["linear"], encoding=["joint"])
    assert spec.label == "pfn-ts(backbone=linear, encoding=block)"


def test_demo_prints_a_table_and_saves_a_plot(tmp_path: Path) -> None:
    text = pfnts("demo", "--horizon", "60", "--backbone", "linear", "--out", tmp_path / "plot.png")
    assert "pfn-ts(backbone=linear)" in text
    assert "uniform" in text
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")


def test_entry_point_is_the_app() -> None:
    from importlib.metadata import entry_points

    (script,) = entry_points(group="console_scripts", name="pfnts")
    assert script.load() is app
