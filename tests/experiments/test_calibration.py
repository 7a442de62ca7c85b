"""Coverage diagnostics against cases whose coverage is known."""

from __future__ import annotations

import csv
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import ArrayLike

from pfnts.backbones import Backbone, LinearBackbone, Prediction, PredictiveSequence
from pfnts.experiments import LocalEngine, RunStore, calibration, coverage_figure, run_all
from pfnts.experiments.calibration import (
    SIZES,
    TASKS,
    CoverageRow,
    backbone_intervals,
    calibrate,
    draw_history,
    plan_coverage,
)
from pfnts.experiments.heldout import HeldOutDraw
from pfnts.experiments.report import write_report
from pfnts.experiments.report.coverage import read_coverage, write_calibration
from pfnts.posterior import SubCLT, prefix_grid

ROWS = [
    CoverageRow(task, "bart", "mcmc", size, 10, 0.9, 0.02, 3.0, 0.25, 1.0)
    for task in ("linear", "friedman")
    for size in (16, 64)
]


class Oracle(Backbone):
    """A backbone that has been told the answer, and whose means move by a known amount."""

    name = "oracle"

    def __init__(self, step: float) -> None:
        self.step = step

    def sequence(self, X: ArrayLike, y: ArrayLike, *, keep: Any = ()) -> PredictiveSequence:
        step = self.step

        class Sequence(PredictiveSequence):
            size = len(np.asarray(y))

            def predict(self, queries: ArrayLike, *, sizes: Any, levels: Any = ()) -> Prediction:
                truth = np.asarray(queries)[:, 0]
                means = np.array([truth + (step if i % 2 else -step) for i, _ in enumerate(sizes)])
                return Prediction(means, np.zeros((len(levels), len(truth))))

            def append(self, X: ArrayLike, y: ArrayLike) -> None:
                raise AssertionError("a history is read at once")

        return Sequence()


def history(rng: np.random.Generator, size: int = 64) -> HeldOutDraw:
    X, y, queries = rng.random((size, 2)), rng.standard_normal(size), rng.random((50, 2))
    return HeldOutDraw(X, y, queries, latent=queries[:, 0], outcomes=queries[:, 0], seed=1)


def test_the_papers_setting_is_the_default() -> None:
    assert TASKS == ("linear", "friedman")
    assert SIZES == (16, 64, 256, 1024)
    widths = [draw_history(task, 16, number=0, seed=42).X.shape[1] for task in TASKS]
    assert widths == [10, 5]


def test_intervals_are_those_of_the_estimator(rng: np.random.Generator) -> None:
    given = history(rng, size=100)
    lower, upper = backbone_intervals(LinearBackbone(), given)["subclt"]
    grid = prefix_grid(100)
    means = LinearBackbone().sequence(given.X, given.y).means(given.queries, [*grid, 100])
    posterior = SubCLT().from_means(means, grid, 100)
    np.testing.assert_allclose(upper - lower, 2 * 1.959964 * np.sqrt(posterior.variance), rtol=1e-6)
    np.testing.assert_allclose((upper + lower) / 2, posterior.mean)


def test_the_model_s_own_posterior_is_asked_for_where_there_is_one(rng: np.random.Generator) -> None:
    given = history(rng)
    lower, upper = backbone_intervals(LinearBackbone(), given)["network"]
    exact = LinearBackbone().sequence(given.X, given.y).predict(given.queries, sizes=[64])
    assert exact.mean_sd is not None
    np.testing.assert_allclose(upper - lower, 2 * 1.959964 * exact.mean_sd, rtol=1e-6)
    assert list(backbone_intervals(Oracle(step=0.0), given)) == ["shrunk", "subclt"]


def test_shrunk_variances_are_floored_by_the_variance_of_the_rewards(rng: np.random.Generator) -> None:
    """A backbone that never moves and predicts no spread is left with the floor alone."""
    given = history(rng)
    lower, upper = backbone_intervals(Oracle(step=0.0), given)["shrunk"]
    np.testing.assert_allclose((upper - lower) / 2, 1.959964 * 3 / 64 * given.y.std(), rtol=1e-6)


def test_coverage_and_length_of_one_replication(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of the queries are off by more than the interval reaches."""

    def half_right(_: Any, given: HeldOutDraw) -> dict[str, Any]:
        centre = given.latent + np.where(np.arange(50) < 25, 0.0, 3.0)
        return dict.fromkeys(("network", "shrunk", "subclt"), (centre - 1, centre + 1))

    monkeypatch.setattr(calibration, "backbone_intervals", half_right)
    row, *_ = calibrate(backbones=["linear"], bart=False, tasks=["linear"], sizes=[16], replications=1)
    assert (row.coverage, row.length) == (0.5, 2.0)
    assert math.isnan(row.coverage_error)
    assert row.method == "linear, network"


def test_exact_model_covers_about_as_often_as_it_says() -> None:
    """On linear rewards the linear backbone is right, and SubCLT about right after 1,024 rows.

    Shrunk variances are made for low regret: their intervals are shorter, and cover less.
    """
    exact, shrunk, subclt = calibrate(
        backbones=["linear"], bart=False, tasks=["linear"], sizes=[1024], replications=8
    )
    assert 0.9 < exact.coverage < 0.99
    assert 0.85 < subclt.coverage < 0.99
    assert 0 < subclt.coverage_error < 0.06
    assert shrunk.length < subclt.length
    assert 0.6 < shrunk.coverage < subclt.coverage


def test_every_method_meets_the_same_histories_and_every_replication_another() -> None:
    first, again, other = (draw_history("linear", 64, number=n, seed=42) for n in (0, 0, 1))
    np.testing.assert_array_equal(first.y, again.y)
    np.testing.assert_array_equal(first.latent, again.latent)
    assert not np.isclose(first.latent, other.latent).any()
    assert first.seed == again.seed != other.seed
    alone, together = (
        calibrate(backbones=names, bart=False, tasks=["friedman"], sizes=[16], replications=2)
        for names in (["linear"], ["embedded", "linear"])
    )
    pairs = [(row.coverage, row.length) for row in together if row.model == "linear"]
    assert pairs == [(row.coverage, row.length) for row in alone]


def test_listener_hears_of_every_replication() -> None:
    heard: list[tuple[str, int]] = []
    specs = plan_coverage(backbones=["linear"], bart=False, sizes=[16], replications=2, seed=42)
    list(run_all(specs, listener=lambda job, done, share: heard.append((job.spec.task, done))))
    assert heard == [(task, number) for task in TASKS for number in (0, 1, 2)]


def test_backbone_is_handed_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[dict[str, str]] = []
    monkeypatch.setattr(
        "pfnts.backbones.load", lambda name, **options: asked.append(options) or LinearBackbone()
    )
    calibration.loaded.cache_clear()
    try:
        calibrate(backbones=["embedded"], bart=False, sizes=[16], replications=1, device="cpu:0")
    finally:
        calibration.loaded.cache_clear()
    assert {"device": "cpu:0"} in asked


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sizes": [2]}, r"sizes must be at least 3, got \[2\]"),
        ({"replications": 0}, "replications must be a positive integer, got 0"),
        ({"tasks": ["openml-adult"]}, "tasks must be scenarios with known mean rewards, got 'openml-adult'"),
        ({"tasks": ["freidman"]}, "scenario must be one of"),
        ({"backbones": []}, "backbones must name at least one"),
    ],
)
def test_what_cannot_be_run_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        calibrate(**{"backbones": ["linear"], "bart": False, **options})


def test_bart_holds_a_plain_function(monkeypatch: pytest.MonkeyPatch) -> None:
    bart = pytest.importorskip("pfnts.experiments.calibration_bart")
    monkeypatch.setattr(bart, "TREES", 20)
    monkeypatch.setattr(bart, "DRAWS", 100)
    monkeypatch.setattr(bart, "BURN_IN", 100)
    (row,) = calibrate(backbones=[], tasks=["linear"], sizes=[64], replications=1)
    assert (row.method, row.variance) == ("BART", "mcmc")
    assert row.coverage > 0.6
    assert 0.5 < row.length < 6


def test_bart_is_asked_for_the_prior_of_chipman_and_others(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    bart = pytest.importorskip("pfnts.experiments.calibration_bart")
    asked: list[dict[str, Any]] = []

    class Fitted:
        yhat_test = np.linspace(0, 1, 1001)[:, None] + np.arange(50)

    def gbart(*_: Any, **options: Any) -> Fitted:
        asked.append(options)
        return Fitted()

    monkeypatch.setattr(bart, "gbart", gbart)
    lower, upper = bart.bart_interval(history(rng), level=0.95)
    np.testing.assert_allclose(lower, np.arange(50) + 0.025)
    np.testing.assert_allclose(upper, np.arange(50) + 0.975)
    wanted = {"base": 0.95, "power": 2.0, "ntree": 100, "ndpost": 500, "nskip": 500}
    assert {name: asked[0][name] for name in wanted} == wanted
    assert "sigest" not in asked[0]
    bart.bart_interval(history(rng, size=3), level=0.95)
    assert asked[1]["sigest"] > 0


def test_rows_as_csv_and_markdown(tmp_path: Path) -> None:
    write_calibration(ROWS, tmp_path)
    with (tmp_path / "coverage.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    assert [(line["task"], line["size"]) for line in lines] == [(row.task, str(row.size)) for row in ROWS]
    text = (tmp_path / "coverage.md").read_text()
    assert "| linear | BART | 0.900 ± 0.020 | 0.900 ± 0.020 |" in text
    assert "| friedman | BART | 3.000 ± 0.250 | 3.000 ± 0.250 |" in text


def test_seconds_are_in_a_file_of_their_own(tmp_path: Path) -> None:
    slower = [replace(row, seconds=9.0) for row in ROWS]
    for folder, rows in (("a", ROWS), ("b", slower)):
        write_calibration(rows, tmp_path / folder)
    first, second = ((tmp_path / folder / "coverage.csv").read_bytes() for folder in "ab")
    assert first == second
    with (tmp_path / "b" / "coverage_times.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    assert [(line["task"], line["size"], float(line["seconds"])) for line in lines] == [
        (row.task, str(row.size), 9.0) for row in ROWS
    ]


def test_what_was_written_is_read_back(tmp_path: Path) -> None:
    write_calibration(ROWS, tmp_path)
    again = read_coverage(tmp_path / "coverage.csv")
    assert [replace(row, seconds=1.0) for row in again] == ROWS
    whole = (tmp_path / "coverage.csv").read_text()
    header, line = whole.splitlines()[:2]
    for damaged in ("task,size\nlinear,much\n", header, "", f"{header}\n{line.rpartition(',')[0]}"):
        (tmp_path / "coverage.csv").write_text(damaged)
        with pytest.raises(ValueError, match="must be a table of pfnts calibrate"):
            read_coverage(tmp_path / "coverage.csv")
        assert "must be a table of pfnts calibrate" in write_report(tmp_path, figures=False).read_text()


def test_picture_is_written_the_same_twice(tmp_path: Path) -> None:
    first = coverage_figure(ROWS, tmp_path / "a" / "coverage.svg")
    second = coverage_figure(ROWS, tmp_path / "b" / "coverage.svg")
    assert first.read_bytes() == second.read_bytes()
    for word in ("linear", "friedman", "BART", "coverage"):
        assert word in first.read_text(encoding="utf-8")


def test_picture_needs_rows(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="rows must hold at least one row, got none"):
        coverage_figure([], tmp_path / "coverage.png")


def test_cells_in_processes_give_the_rows_of_one_process_and_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: dict[str, Any] = {"backbones": ["linear"], "bart": False, "sizes": [8, 16], "replications": 2}
    store = RunStore(tmp_path)
    cells = calibrate(**asked, seed=7, store=store, engine=LocalEngine(workers=2))
    whole = calibrate(**asked, seed=7)
    assert [replace(row, seconds=0.0) for row in cells] == [replace(row, seconds=0.0) for row in whole]
    assert [(row.task, row.size, row.variance) for row in whole[:3]] == [
        ("linear", 8, "network"),
        ("linear", 8, "shrunk"),
        ("linear", 8, "subclt"),
    ]
    monkeypatch.setattr(calibration, "draw_history", lambda *a, **k: pytest.fail("made a cell again"))
    assert calibrate(**asked, seed=7, store=store) == cells
