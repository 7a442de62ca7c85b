"""What the console shows of runs under way."""

from __future__ import annotations

import io

import pytest

from pfnts.cli import progress
from pfnts.cli.console import PlainConsole
from pfnts.experiments import PolicySpec, RunStore, plan, prepare

SPECS = plan(scenarios=["friedman"], policies=[PolicySpec("uniform")], horizon=2_000, replications=2, seed=3)


def shown(monkeypatch: pytest.MonkeyPatch, *, terminal: bool, store: RunStore | None = None) -> str:
    file = io.StringIO()
    monkeypatch.setattr(progress, "terminal", PlainConsole(file=file, force_terminal=terminal, width=100))
    assert {run.spec for run in progress.finish_all(prepare(SPECS), store=store)[0]} == set(SPECS)
    return file.getvalue()


def test_terminal_shows_a_bar_for_all_and_one_for_each_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    text = shown(monkeypatch, terminal=True)
    assert "all runs" in text
    assert "0/2 runs" in text
    assert "2/2 runs" in text


def test_elsewhere_every_run_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = shown(monkeypatch, terminal=False).splitlines()
    assert first.startswith("1/2 friedman, uniform, replication 0: regret ")
    assert second.startswith("2/2 friedman, uniform, replication 1: regret ")


def test_elsewhere_a_long_run_is_mentioned_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "_LINE_EVERY", 0.0)
    lines = shown(monkeypatch, terminal=False).splitlines()
    assert lines[0] == "under way: friedman, uniform, replication 0: 0 of 2,000, regret 0"


def test_finished_runs_are_counted_not_listed(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    store = RunStore(tmp_path_factory.mktemp("runs"))
    shown(monkeypatch, terminal=False, store=store)
    assert shown(monkeypatch, terminal=False, store=store) == "2 runs, of which 2 were finished before.\n"
