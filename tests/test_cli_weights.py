"""`pfnts weights`, without downloading anything."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from pfnts.backbones import tabpfn_weights
from pfnts.cli import app

runner = CliRunner()


def test_path_and_licence_are_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tabpfn_weights, "fetch", lambda: tmp_path / "weights.ckpt")
    result = runner.invoke(app, ["weights", "tabpfn"])
    assert result.exit_code == 0
    assert str(tmp_path / "weights.ckpt") in result.output
    assert "Prior Labs License" in result.output
    assert "Built with PriorLabs-TabPFN" in result.output


def test_failure_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def fetch() -> Path:
        raise ValueError("pip must be able to download it")

    monkeypatch.setattr(tabpfn_weights, "fetch", fetch)
    result = runner.invoke(app, ["weights", "tabpfn"])
    assert result.exit_code == 2
    assert "pip must be able to download it" in result.output
    assert "Traceback" not in result.output


@pytest.mark.parametrize(
    ("name", "words"),
    [("tabicl", "Hugging Face hub"), ("embedded", "in the package"), ("gpt", "no such backbone")],
)
def test_other_backbones_say_where_their_weights_are(name: str, words: str) -> None:
    result = runner.invoke(app, ["weights", name])
    assert result.exit_code == 2
    assert f"NAME must be tabpfn, got '{name}'" in result.output
    assert words in result.output.replace("\n", " ")
