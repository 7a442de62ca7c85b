"""Results that add up: runs of earlier results stay until newer ones replace them."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pfnts.experiments import CoverageRow, PolicySpec, Run
from pfnts.experiments.outcomes import Outcome, condense
from pfnts.experiments.report.coverage import read_coverage, write_calibration
from pfnts.reproduction import write_results
from pfnts.reproduction.kept import accumulate, keep, read_kept

MakeRun = Callable[..., Run]
SaveRuns = Callable[..., Path]
MADE = {
    "versions": {"pfnts": "0.1.0", "python": "3.99"},
    "machine": {"cpu": "abacus, 8 GHz", "cores": 3, "device": "big card"},
    "finished": "2026-01-02T03:04:05+00:00",
}


@pytest.fixture
def runs(make_run: MakeRun) -> list[Run]:
    """Regrets and times with more digits than are written, options of all kinds, two horizons."""
    libraries = (
        PolicySpec.of("vw", arguments="--bag 5 --cubic cca"),
        PolicySpec.of("mabwiser-linucb", alpha=0.1, intercept=True),
    )
    return [
        make_run(
            "linear",
            policy,
            replication,
            100 / 3 + 7 * replication,
            horizon=horizon,
            fixed=(1 / 3, 2e4 / 3),
            seconds=2 / 3,
        )
        for policy in ("lin-ts", "uniform", *libraries)
        for replication in range(3)
        for horizon in (40, 1000)
    ]


def outcome(make_run: MakeRun, policy: PolicySpec | str, replication: int, weights: str, day: int) -> Outcome:
    run = make_run("linear", policy, replication, 10.0 * day)
    return condense(run, {"producer": {"backbone": weights}, "finished": f"2026-01-0{day}T00:00:00+00:00"})


def test_results_in_two_steps_are_those_at_once(runs: list[Run], tmp_path: Path, save_runs: SaveRuns) -> None:
    both = write_results(save_runs(runs, tmp_path / "all", **MADE), tmp_path / "at-once").parent
    for name, some in {"some": runs[:7], "rest": runs[5:]}.items():
        steps = write_results(save_runs(some, tmp_path / name, **MADE), tmp_path / "in-steps").parent
    written = sorted(path.name for path in both.iterdir())
    assert {"curves.npz", "settings.json", "synthetic-tasks-of-the-paper-1000.png"} < set(written)
    assert sorted(path.name for path in steps.iterdir()) == written
    for name in written:
        if name != "README.md":  # which says what was taken over
            assert (steps / name).read_bytes() == (both / name).read_bytes(), name
    assert "Taken over from earlier results: 5 runs, of lin-ts (5)." in (steps / "README.md").read_text()
    assert "Taken over" not in (both / "README.md").read_text()


def test_what_is_kept_says_how_it_was_made(runs: list[Run], tmp_path: Path) -> None:
    about = {**MADE, "producer": {"backbone": "embedded:abc", "code": "123", "settings": {"nu": 1.0}}}
    before = [condense(run, about) for run in runs]
    keep(before, tmp_path)
    after = {each.spec: each for each in read_kept(tmp_path)}
    assert set(after) == {run.spec for run in runs}
    for each in before:
        found = after[each.spec]
        # Regret grows evenly in these runs, so that every place of a curve is known by hand.
        assert np.allclose(found.curve, each.regret * found.places / each.rounds, rtol=1e-5)
        assert (found.rounds, found.machine) == (each.rounds, "big card; abacus, 8 GHz, 3 cores")
        assert found.settings == {"nu": 1.0}
        assert found.about["producer"] == about["producer"]
        assert found.about["versions"] == about["versions"]
        assert found.met_the_rounds_of(each)
    assert len(after[runs[1].spec].places) < 120


def test_a_new_run_replaces_the_earlier_one(make_run: MakeRun, tmp_path: Path, save_runs: SaveRuns) -> None:
    for regret in (30.0, 50.0):
        root = save_runs([make_run("linear", "ts", 0, regret)], tmp_path / str(regret))
        page = write_results(root, tmp_path / "results", figures=False)
    with (page.parent / "runs.csv").open(newline="") as file:
        assert [float(row["regret"]) for row in csv.DictReader(file)] == [50.0]
    assert "Taken over" not in page.read_text()


def test_a_picture_whose_curves_are_gone_goes_with_them(
    runs: list[Run], tmp_path: Path, save_runs: SaveRuns
) -> None:
    root = save_runs(runs, tmp_path / "runs")
    pictures = [f"synthetic-tasks-of-the-paper-{horizon}.png" for horizon in (40, 1000)]
    page = write_results(root, tmp_path / "results")
    assert all((page.parent / name).is_file() and name in page.read_text() for name in pictures)
    (page.parent / "curves.npz").unlink()
    some = save_runs([run for run in runs if run.spec.horizon == 40], tmp_path / "some")
    page = write_results(some, tmp_path / "results")
    assert [(page.parent / name).is_file() for name in pictures] == [True, False]
    assert [name in page.read_text() for name in pictures] == [True, False]


def test_no_mean_is_over_two_networks(make_run: MakeRun) -> None:
    joint = PolicySpec.of("pfn-ts", encoding="joint")
    earlier = [outcome(make_run, policy, i, "net:old", 1) for policy in ("pfn-ts", joint) for i in range(3)]
    new = [outcome(make_run, "pfn-ts", 0, "net:new", 2)]
    kept, notes = accumulate(earlier, new)
    weights = {(each.spec.policy.label, each.about["producer"]["backbone"]) for each in kept}
    assert weights == {("pfn-ts", "net:new"), ("pfn-ts(encoding=joint)", "net:old")}
    assert [each.spec.replication for each in kept if each.spec.policy == joint] == [0, 1, 2]
    assert notes == [
        "Taken over from earlier results: 3 runs, of pfn-ts(encoding=joint) with net:old (3).",
        "Left out, because newer runs of the same policy have other weights: "
        "2 runs, of pfn-ts with net:old (2).",
        "Made with earlier weights than the newest runs, for want of newer ones: "
        "3 runs, of pfn-ts(encoding=joint) with net:old (3).",
    ]


def test_another_network_is_not_an_earlier_one(make_run: MakeRun) -> None:
    large = PolicySpec.of("pfn-ts", backbone="large")
    earlier = [outcome(make_run, large, 0, "large:x", 1)]
    kept, notes = accumulate(earlier, [outcome(make_run, "pfn-ts", 0, "net:new", 2)])
    assert len(kept) == 2
    assert notes == ["Taken over from earlier results: 1 run, of pfn-ts(backbone=large) with large:x (1)."]


def test_runs_that_met_other_rounds_do_not_stand_beside(make_run: MakeRun) -> None:
    earlier = [condense(make_run("linear", "ts", 0, 9.0, fixed=(1.0, 2.0)))]
    new = [condense(make_run("linear", policy, 0, 9.0)) for policy in ("lin-ts", "uniform")]
    kept, notes = accumulate(earlier, new)
    assert [each.spec for each in kept] == [each.spec for each in new]
    assert notes == ["Left out, because they met other rounds than the runs beside them: 1 run, of ts (1)."]


def test_a_run_without_a_curve_is_in_the_tables_and_not_in_the_curves(
    make_run: MakeRun, tmp_path: Path, save_runs: SaveRuns
) -> None:
    whole = condense(make_run("linear", "lin-ts", 0, 80.0))
    keep([replace(whole, places=whole.places[-1:], curve=whole.curve[-1:])], tmp_path / "results")
    root = save_runs([make_run("linear", "lin-ts", 1, 40.0)], tmp_path / "runs")
    page = write_results(root, tmp_path / "results")
    assert "| lin-ts | **60.0 ± 20.0** |" in (page.parent / "regret.md").read_text(encoding="utf-8")
    assert "Known by their final regret alone, without a curve: 1 run, of lin-ts (1)." in page.read_text()


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("runs.csv", b"a,b\n1,2\n", "no column scenario, policy"),
        ("runs.csv", b"\xff\xfe", "invalid start byte"),
        ("curves.npz", b"PK\x03\x04 torn", "BadZipFile"),
        ("settings.json", b"{}", "KeyError"),
        ("settings.json", b"{", "JSONDecodeError"),
    ],
)
def test_damaged_and_foreign_results_are_refused_and_left_alone(
    name: str, content: bytes, said: str, make_run: MakeRun, tmp_path: Path, save_runs: SaveRuns
) -> None:
    root = save_runs([make_run("linear", "lin-ts", 0, 80.0)], tmp_path / "runs")
    out = write_results(root, tmp_path / "results", figures=False).parent
    (out / name).write_bytes(content)
    before = {path: path.read_bytes() for path in out.iterdir()}
    with pytest.raises(ValueError, match=f"results must be a new folder or one that holds.*{said}.*restore"):
        write_results(root, out, figures=False)
    assert {path: path.read_bytes() for path in out.iterdir()} == before


@pytest.mark.parametrize("column", ["rounds", "regret", "fixed", "options", "policy", "seconds"])
def test_an_emptied_cell_is_refused(column: str, runs: list[Run], tmp_path: Path) -> None:
    keep(map(condense, runs), tmp_path)
    with (tmp_path / "runs.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    rows[3][column] = ""
    with (tmp_path / "runs.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    with pytest.raises(ValueError, match="restore them, or name another folder"):
        read_kept(tmp_path)


def test_coverage_of_earlier_results_stays(make_run: MakeRun, tmp_path: Path, save_runs: SaveRuns) -> None:
    bart = CoverageRow("linear", "bart", "mcmc", 16, 10, 0.9, 0.02, 2.5, 0.125, 1.0)
    network = CoverageRow("linear", "embedded", "network", 16, 10, 0.8, 0.02, 2.5, 0.125, 1.0)
    root = save_runs([make_run("linear", "ts", 0, 1.0)], tmp_path / "runs")
    for rows in ([bart, network], [replace(network, coverage=0.95)]):
        write_calibration(rows, root / "coverage")
        page = write_results(root, tmp_path / "results", figures=False)
    found = {row.model: row.coverage for row in read_coverage(page.parent / "coverage.csv")}
    assert found == {"bart": 0.9, "embedded": 0.95}


def test_trial_of_earlier_results_is_named(make_run: MakeRun, tmp_path: Path, save_runs: SaveRuns) -> None:
    root = save_runs([make_run("linear", "ts", 0, 1.0)], tmp_path / "runs")
    assert (
        "Drink Less trial: nothing yet." in write_results(root, tmp_path / "out", figures=False).read_text()
    )
    rows = "policy,estimator,value,backbone\npfn-ts,snips,0.1,net:old\nlin-ts,snips,0.1,\n"
    (tmp_path / "out" / "drinkless-values.csv").write_text(rows)
    text = write_results(root, tmp_path / "out", figures=False).read_text()
    assert "Drink Less trial: pfn-ts (backbone net:old), lin-ts; missing: rf-ts, xgboost-ts, bf-ts." in text


def test_settings_are_listed_by_their_hash(runs: list[Run], tmp_path: Path) -> None:
    keep([condense(run, {"producer": {"settings": {"nu": 1.0}}}) for run in runs], tmp_path)
    [(key, settings)] = json.loads((tmp_path / "settings.json").read_text()).items()
    assert settings == {"nu": 1.0}
    assert {each.settings["nu"] for each in read_kept(tmp_path)} == {1.0}
    assert f",{key}\n" in (tmp_path / "runs.csv").read_text()
