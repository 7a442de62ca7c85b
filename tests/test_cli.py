"""The command line, run in this process."""

from __future__ import annotations

import errno
import json
import os
import re
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.main import get_command
from typer.testing import CliRunner

from pfnts import environments, policies
from pfnts.cli import app
from pfnts.cli.demo import RIVALS, SCENARIO, saved
from pfnts.cli.run import policy_grid
from pfnts.environments import describe, names
from pfnts.environments.synthetic import SyntheticScenario
from pfnts.experiments import PolicySpec, RunSpec, RunStore, summarize
from pfnts.experiments import run as simulated
from pfnts.experiments import simulations as runner_module
from pfnts.experiments.figures import short_number

runner = CliRunner()
ROOT = Path(__file__).parents[1]
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


def unexplained(command: Any, name: str = "") -> list[str]:
    """Options and arguments, of the command and of those below it, whose help is no help."""
    below = getattr(command, "commands", {})
    found = [each for word, sub in below.items() for each in unexplained(sub, f"{name} {word}".strip())]
    own = [option for option in command.params if len((getattr(option, "help", None) or "").split()) < 2]
    return [*found, *(f"{name} {option.name}" for option in own)]


def test_every_option_of_every_command_explains_itself() -> None:
    assert unexplained(get_command(app)) == []


def test_an_option_without_an_explanation_is_found() -> None:
    silent, inner = typer.Typer(), typer.Typer()
    silent.command()(lambda colour="red": None)
    inner.command("set")(lambda size=1: None)
    silent.add_typer(inner, name="inner")
    assert {each.split()[-1] for each in unexplained(get_command(silent))} == {"colour", "size"}


def test_scenarios_lists_all_of_them() -> None:
    text = pfnts("scenarios")
    for name in environments.names():
        assert name in text


def test_scenarios_fit_a_terminal_of_80_columns_uncut() -> None:
    result = runner.invoke(app, ["scenarios"], env={"COLUMNS": "80"})
    assert max(map(len, result.output.splitlines())) <= 80
    assert "…" not in result.output
    words = " ".join(result.output.split())
    for name in environments.names():
        assert name in words
        assert environments.describe(name).description.split()[-1] in words


def test_info_names_version_policies_backbones_and_extras() -> None:
    text = pfnts("info")
    for word in ("pfnts", "torch", "device", "linear", "bench", *policies.names()):
        assert word in text


def test_info_says_what_an_extra_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    def without_matplotlib(package: str) -> str:
        if package == "matplotlib":
            raise PackageNotFoundError(package)
        return "1.0"

    monkeypatch.setattr("pfnts.cli.info.version", without_matplotlib)
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
    assert len(list(RunStore(tmp_path))) == 4


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
        (["--policy", "uniform", "--device", "abacus"], "device must be one that works here"),
        (["--policy", "uniform", "--device", "meta"], "device must be one that works here"),
        (
            ["--policy", "uniform", "--engine", "slurm"],
            "--engine must be local or ray",
        ),
        (["--policy", "uniform", "--address", "auto"], "--address is of a Ray cluster"),
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


def test_version_is_that_of_the_package() -> None:
    assert pfnts("--version") == f"pfnts {version('pfnts')}\n"


def test_demo_draws_curves_and_says_what_was_saved(tmp_path: Path) -> None:
    text = pfnts("demo", "--horizon", "60", "--backbone", "linear", "--out", tmp_path / "plot.png")
    contestants = {**RIVALS, "pfn-ts": "PFN-TS"}
    lost = {}
    for policy, shown in contestants.items():
        spec = PolicySpec.of(policy, **({"backbone": "linear"} if policy == "pfn-ts" else {}))
        run = RunSpec(SCENARIO, spec, horizon=60, replication=0, seed=42)
        lost[shown] = simulated(run).total_regret
        assert f"{shown} {short_number(lost[shown])}" in text
    assert saved(lost, 60) in text
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")


def test_demo_plays_by_name_the_first_synthetic_scenario_in_which_the_context_decides() -> None:
    synthetic = [describe(name) for name in names() if isinstance(describe(name), SyntheticScenario)]
    assert min(scenario.name for scenario in synthetic if scenario.needs_context) == SCENARIO


def test_demo_plays_another_scenario(tmp_path: Path) -> None:
    out = ("--out", tmp_path / "plot.png", "--horizon", "30", "--backbone", "linear")
    text = pfnts("demo", "--scenario", "friedman", *out)
    assert "30 rounds of friedman: " in text
    assert "one arm is best at every context" in text
    assert "scenario must be one of linear," in pfnts("demo", "--scenario", "freidman", *out, code=2)


def test_demo_needs_no_matplotlib(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    text = pfnts("demo", "--horizon", "30", "--backbone", "linear", "--out", tmp_path / "plot.png")
    assert 'pip install "pfnts[bench]"' in text
    assert "Saved: " in text


def test_table_of_ones_own_is_played(tmp_path: Path) -> None:
    lines = ["name,weight,coat,pet"] + [
        f"n{i},{i % 9},{'ab'[i % 2]},{('cat', 'dog')[i % 9 > 4]}" for i in range(120)
    ]
    (tmp_path / "pets.csv").write_text("\n".join(lines))
    table = (
        "--scenario",
        tmp_path / "pets.csv",
        "--policy",
        "lin-ts",
        "--policy",
        "uniform",
        "--workers",
        "1",
    )
    text = pfnts("run", *table, "--target", "pet", "--replications", "2", "--out", tmp_path / "runs")
    assert "pets.csv:pet" in text
    assert "Final regret after 120 rounds" in text
    assert text.count("left out of the contexts: 'name' (an id)\n") == 1
    assert "Warning" not in text
    assert "drop=" not in text
    means = {row.policy.name: row.mean for row in summarize(RunStore(tmp_path / "runs"))}
    assert means["lin-ts"] < 0.6 * means["uniform"]
    pfnts("report", tmp_path / "runs", "--no-figures")
    assert "Tasks of your own" in (tmp_path / "runs" / "report" / "index.html").read_text()
    assert "a table needs one" in pfnts("run", *table, code=2)
    assert "target must be one of the columns" in pfnts("run", *table, "--target", "animal", code=2)
    assert "there is none at" in pfnts("run", "--scenario", "no.csv", "--target", "pet", code=2)


@pytest.mark.parametrize("command", ["run", "calibrate", "ope", "report", "reproduce", "pretrain"])
def test_out_that_is_a_file_is_refused_in_a_sentence(command: str, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("mine")
    pfnts("run", "--policy", "uniform", *SMALL, "--out", tmp_path / "runs")
    arguments = {
        "run": ["--policy", "uniform", *SMALL],
        "calibrate": ["--backbone", "linear", "--no-bart", "--quick"],
        "ope": ["drinkless-sim", "--policy", "ts", "--people", "3"],
        "report": [str(tmp_path / "runs"), "--no-figures"],
        "reproduce": ["report"],
        "pretrain": ["--recipe", "tiny"],
    }[command]
    text = pfnts(command, *arguments, "--out", tmp_path / "taken", code=2)
    assert "must be a folder, there is a file at" in text
    assert "Traceback" not in text
    assert (tmp_path / "taken").read_text() == "mine"


@pytest.mark.parametrize("command", [["keys", "add", "web"], ["keys", "list"], ["service", "check"]])
def test_store_that_is_a_file_is_refused_in_a_sentence(command: list[str], tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("mine")
    text = pfnts(*command, "--data", tmp_path / "taken", code=2)
    assert str(tmp_path / "taken") in text
    assert "Traceback" not in text


def test_names_are_printed_as_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Brackets are no markup to us, colons no pictures, and codes for terminals stay where they are."""
    naughty = PolicySpec.of("uniform", colour="[/promo] :smile: \x1b[31mred")
    assert "[/promo]" in pfnts("run", "--policy", "[/promo]", "--out", tmp_path, code=2)
    monkeypatch.setattr("pfnts.cli.run.policy_grid", lambda *a, **k: [naughty])
    text = pfnts("run", *SMALL, "--out", tmp_path, code=1)
    assert "[/promo] :smile: \\x1b[31mred" in text
    assert "\x1b" not in text
    monkeypatch.setattr("pfnts.cli.run.policy_grid", _without_an_extra)
    assert 'pip install "pfnts[bench]"' in pfnts("run", "--out", tmp_path, code=2)


ODD = "[/x] :smile: [red]"


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (["run", "--policy", "uniform", "--scenario", f"{ODD}.csv", "--target", ODD], 2),
        (["run", "--policy", f"uniform:{ODD}", *SMALL], 2),
        (["report", f"{ODD}/nothing"], 2),
        (["reproduce", ODD], 2),
        (["calibrate", "--backbone", ODD, "--no-bart", "--quick"], 2),
        (["ope", f"{ODD}.csv", "--action", "a", "--reward", "r", "--propensity", "p"], 2),
        (
            [
                "ope",
                "drinkless-sim",
                "--policy",
                "uniform",
                "--people",
                "3",
                "--replicates",
                "0",
                "--out",
                ODD,
            ],
            0,
        ),
        (["evaluate-backbone", "linear", "--functions", ODD], 2),
        (
            ["evaluate-backbone", "linear", "--functions", "linear-10", "--sizes", "16", "--out", ODD],
            0,
        ),
        (["weights", ODD], 2),
        (["keys", "add", ODD, "--data", f"{ODD}-data"], 0),
        (["keys", "list", "--data", "{filled}"], 0),
        (["keys", "revoke", ODD, "--data", f"{ODD}-data"], 2),
        (["export", ODD, "--data", f"{ODD}-data"], 2),
        (["service", "check", "--data", f"{ODD}-data"], 2),
    ],
    ids=lambda given: " ".join(given[:2]) if isinstance(given, list) else str(given),
)
def test_names_and_paths_with_brackets_are_no_markup(
    command: list[str], code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a name comes back in the answer, it comes back as it is; nothing reads it as a style."""
    monkeypatch.chdir(tmp_path)
    if "{filled}" in command:
        pfnts("keys", "add", ODD)
        command = [part.replace("{filled}", "pfnts-data") for part in command]
    text = pfnts(*command, code=code)
    assert "Traceback" not in text
    if command[:2] != ["keys", "add"]:  # it prints no name
        assert "[/x]" in text


def _without_an_extra(*arguments: object, **options: object) -> None:
    raise ImportError('drawing needs matplotlib; install it with: pip install "pfnts[bench]"')


def test_full_disk_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("pfnts.experiments.files.os.fsync", full)
    text = pfnts("run", "--policy", "uniform", *SMALL, "--out", tmp_path, code=2)
    assert "friedman, uniform, replication 0 cannot be kept (No space left on device); make room" in text
    assert "Traceback" not in text
    monkeypatch.undo()
    pfnts("run", "--policy", "uniform", *SMALL, "--out", tmp_path)
    monkeypatch.setattr("pfnts.experiments.files.os.fsync", full)
    assert "error: No space left on device; make room" in pfnts("report", tmp_path, "--no-figures", code=2)


def test_benchmarks_go_on_after_a_script_that_fails(tmp_path: Path) -> None:
    """The recipe of `make bench` on two scripts, of which the first fails."""
    recipe = re.search(r"^bench:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert recipe is not None
    (tmp_path / "benchmarks").mkdir()
    (tmp_path / "benchmarks" / "a.py").write_text("raise SystemExit(3)")
    (tmp_path / "benchmarks" / "b.py").write_text("print('ran')")
    (tmp_path / "Makefile").write_text(f"BIN := {Path(sys.executable).parent}\nbench:\n{recipe[1]}")
    # Under `make test` this make would think itself a part of that one, and say which folder it leaves.
    alone = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    done = subprocess.run(
        ["make", "bench"], cwd=tmp_path, env=alone, capture_output=True, text=True, check=False
    )
    assert done.returncode != 0
    assert done.stdout.splitlines()[-2:] == ["ran", "failed: benchmarks/a.py"]


def test_reader_who_has_seen_enough_is_no_mistake(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in `pfnts calibrate --help | head`."""

    def closed(*arguments: object) -> None:
        raise BrokenPipeError(errno.EPIPE, "Broken pipe")

    monkeypatch.setattr("pfnts.cli.info.terminal.print", closed)
    assert pfnts("scenarios", code=1) == ""


def test_entry_point_is_the_app() -> None:
    from importlib.metadata import entry_points

    (script,) = entry_points(group="console_scripts", name="pfnts")
    assert script.load() is app
