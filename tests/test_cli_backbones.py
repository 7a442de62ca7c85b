"""``pfnts evaluate-backbone`` and ``pfnts pretrain``, run in this process."""

from __future__ import annotations

import csv
import json
from itertools import count
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pfnts import backbones
from pfnts.backbones.network import EmbeddedBackbone
from pfnts.backbones.network.training import step
from pfnts.cli import app

QUICK = ["--recipe", "tiny", "--steps", "72", "--report-every", "0"]


def pfnts(*arguments: str | Path, code: int = 0) -> str:
    result = CliRunner().invoke(
        app, [str(argument) for argument in arguments], env={"COLUMNS": "200", "NO_COLOR": "1"}
    )
    assert result.exit_code == code, result.output + repr(result.exception)
    return result.output


def test_evaluation_prints_a_table_and_writes_it(tmp_path: Path) -> None:
    out = tmp_path / "deep" / "linear"
    text = pfnts(
        "evaluate-backbone",
        "linear",
        "--functions",
        "linear-10,friedman1-10",
        "--sizes",
        "16,256",
        "--draws",
        "2",
        "--out",
        out,
    )
    assert "linear, 2 draws" in text
    with (tmp_path / "deep" / "linear.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [(row["function"], row["size"]) for row in rows] == [
        ("linear-10", "16"),
        ("linear-10", "256"),
        ("friedman1-10", "16"),
        ("friedman1-10", "200"),
        ("friedman1-10", "256"),
    ]
    assert float(rows[1]["r2"]) > 0.8
    assert float(rows[3]["reference"]) == 0.95
    markdown = (tmp_path / "deep" / "linear.md").read_text()
    assert f"| linear-10 | 256 | {float(rows[1]['r2']):.3f} |" in markdown
    assert "linear in 10 features" in markdown


def test_embedded_backbone_is_evaluated_by_default() -> None:
    text = pfnts("evaluate-backbone", "--functions", "binary-5", "--sizes", "16", "--draws", "1")
    assert "embedded, 1 draws" in text
    assert "binary-5" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["lunear"], "backbone must be one of"),
        (["linear", "--device", "cpu"], "--device must be left out for the backbone 'linear'"),
        (
            ["embedded", "--device", "abacus"],
            "device must be one that works here, such as cpu, got 'abacus'",
        ),
        (["linear", "--functions", "nothing"], "functions must be among"),
        (
            ["linear", "--sizes", "16;64"],
            "--sizes must be whole numbers with commas between them, got '16;64'",
        ),
        (["linear", "--sizes", "1"], "sizes must be at least 4"),
        (["embedded", "--weights", "nowhere.safetensors"], "weights must be a safetensors file"),
        (["linear", "--weights", "a.ckpt"], "--weights must be left out for the backbone 'linear'"),
    ],
)
def test_mistakes_in_an_evaluation_are_explained(arguments: list[str], message: str) -> None:
    text = pfnts("evaluate-backbone", *arguments, code=2)
    assert message in text
    assert "Traceback" not in text


def test_place_that_cannot_be_written_to_is_refused_before_an_hour_of_scoring(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pfnts.cli.evaluate_backbone.score_backbone", lambda *a, **k: pytest.fail("scored"))
    (tmp_path / "taken").write_text("mine")
    text = pfnts("evaluate-backbone", "linear", "--out", tmp_path / "taken" / "linear", code=2)
    assert "the folder of --out must be a folder, there is a file at" in text


@pytest.mark.parametrize("name", ["tabicl", "tabpfn"])
def test_weights_and_device_reach_the_pretrained_backbones(name: str, tmp_path: Path) -> None:
    pytest.importorskip(name)
    text = pfnts("evaluate-backbone", name, "--weights", tmp_path / "no.ckpt", "--device", "cpu", code=2)
    assert "weights must be a file" in text
    assert f"{tmp_path / 'no.ckpt'} is not there" in text


def test_help_names_every_backbone() -> None:
    text = pfnts("evaluate-backbone", "--help")
    assert ", ".join(backbones.names()) in text


def test_pretraining_stops_resumes_and_leaves_usable_weights(tmp_path: Path) -> None:
    text = pfnts("pretrain", *QUICK, "--out", tmp_path, "--stop-after", "0")
    assert "24 of 72 steps" in text
    assert "add --resume to continue it" in pfnts("pretrain", *QUICK, "--out", tmp_path, code=2)
    text = pfnts("pretrain", *QUICK, "--out", tmp_path, "--resume", "--stop-after", "0")
    assert "Resuming at step 24 of 72." in text
    assert "48 of 72 steps" in text
    with (tmp_path / "log.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [int(row["step"]) for row in rows] == [24, 48]
    assert {"rows", "seconds", "loss", "learning_rate", "mean CRPS at 16", "linear-10 R2 at 64"} <= set(
        rows[0]
    )
    sequence = EmbeddedBackbone(weights=tmp_path / "weights.safetensors").sequence([[0.0], [1.0]], [0.0, 1.0])
    assert sequence.means([[0.5]], [2]).shape == (1, 1)


def test_finished_training_is_not_overrun(tmp_path: Path) -> None:
    quick = [*QUICK, "--steps", "24", "--resume", "--out", str(tmp_path)]  # which starts a run where none is
    assert "24 of 24 steps" in pfnts("pretrain", *quick)
    assert "--steps must exceed the 24 steps" in pfnts("pretrain", *quick, code=2)


def test_unknown_device_and_recipe_are_explained(tmp_path: Path) -> None:
    text = pfnts("pretrain", *QUICK, "--device", "abacus", "--out", tmp_path, code=2)
    assert "device must be one that works here" in text
    text = pfnts("pretrain", "--recipe", "shiped", "--out", tmp_path, code=2)
    assert "recipe must be one of shipped, tiny" in text


def test_another_recipe_is_not_mixed_in(tmp_path: Path) -> None:
    pfnts("pretrain", *QUICK, "--stop-after", "0", "--out", tmp_path)
    text = pfnts("pretrain", *QUICK, "--seed", "2", "--resume", "--out", tmp_path, code=2)
    assert "--out must hold a run of the same recipe" in text


def test_ctrl_c_keeps_the_last_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    losses = count()
    training_loss = step.training_loss

    def interrupted(*arguments: object) -> object:
        if next(losses) == 30:
            raise KeyboardInterrupt
        return training_loss(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(step, "training_loss", interrupted)
    text = pfnts("pretrain", *QUICK, "--out", tmp_path, code=130)
    assert "holds 24 steps; --resume continues" in text
    assert json.loads((tmp_path / "progress.json").read_text())["progress"]["step"] == 24


@pytest.mark.parametrize("command", ["evaluate-backbone", "pretrain"])
def test_both_commands_explain_themselves(command: str) -> None:
    assert command in pfnts("--help")
    text = pfnts(command, "--help")
    options = [line for line in text.splitlines() if line.strip().startswith("│ --")]
    assert len(options) > 5
    assert all(len(line.split("--", 1)[1].split()) > 3 for line in options)
