"""The run store: complete runs or none."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pfnts.experiments import CorruptRunError, PolicySpec, RunSpec, RunStore, run
from pfnts.experiments import store as store_module
from pfnts.experiments.spec import Option
from pfnts.experiments.store import run_key
from pfnts.policies import PFNTS, Shrunk
from pfnts.simulation import Trajectory

SPEC = RunSpec("friedman", PolicySpec("uniform"), horizon=30, replication=0, seed=42)


@pytest.fixture
def store(tmp_path: Path) -> RunStore:
    return RunStore(tmp_path / "runs")


@pytest.fixture(scope="module")
def trajectory() -> Trajectory:
    return run(SPEC)


def test_what_is_saved_is_loaded(store: RunStore, trajectory: Trajectory) -> None:
    assert SPEC not in store
    store.save(SPEC, trajectory)
    assert SPEC in store
    loaded = store.load(SPEC)
    for name in ("arms", "rewards", "regret", "propensities", "fixed"):
        np.testing.assert_array_equal(getattr(loaded, name), getattr(trajectory, name))
    assert loaded.seconds == trajectory.seconds


def test_run_json_says_what_produced_it(store: RunStore, trajectory: Trajectory) -> None:
    store.save(SPEC, trajectory)
    parameters = json.loads((store.folder(SPEC) / "run.json").read_text())
    assert parameters["scenario"] == "friedman"
    assert parameters["policy"] == {"name": "uniform", "options": {}}
    assert (parameters["horizon"], parameters["replication"], parameters["seed"]) == (30, 0, 42)
    assert {"python", "pfnts", "numpy", "scipy", "torch"} <= set(parameters["versions"])
    assert parameters["machine"]["cores"] >= 1
    assert parameters["machine"]["cpu"]
    assert parameters["seconds"] == trajectory.seconds
    assert parameters["rounds"] == 30
    assert parameters["producer"] == {
        "pfnts": parameters["versions"]["pfnts"],
        "format": "2",
        "settings": {"warmup": 0, "explore": 0.0, "schema": None},
    }
    assert parameters["total_regret"] == pytest.approx(trajectory.total_regret)


def test_run_json_names_the_machine_that_made_it(store: RunStore, trajectory: Trajectory) -> None:
    elsewhere = {"versions": {"python": "3.99"}, "machine": {"cpu": "abacus", "cores": 96}}
    store.save(SPEC, trajectory, made=elsewhere)
    parameters = json.loads((store.folder(SPEC) / "run.json").read_text())
    assert {name: parameters[name] for name in elsewhere} == elsewhere


@pytest.mark.parametrize(
    "other",
    [
        RunSpec("friedman2", PolicySpec("uniform"), horizon=30, replication=0, seed=42),
        RunSpec("friedman", PolicySpec.of("pfn-ts", backbone="linear"), horizon=30, replication=0, seed=42),
        RunSpec("friedman", PolicySpec("uniform"), horizon=31, replication=0, seed=42),
        RunSpec("friedman", PolicySpec("uniform"), horizon=30, replication=1, seed=42),
        RunSpec("friedman", PolicySpec("uniform"), horizon=30, replication=0, seed=43),
    ],
)
def test_anything_different_is_another_run(other: RunSpec, store: RunStore, trajectory: Trajectory) -> None:
    store.save(SPEC, trajectory)
    assert other not in store


@pytest.mark.parametrize("producer", [{"pfnts": "9.9"}, {"pfnts": "0.1.0", "backbone": "embedded:abc"}])
def test_another_version_or_other_weights_is_another_run(
    producer: dict[str, str], store: RunStore, trajectory: Trajectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.save(SPEC, trajectory)
    monkeypatch.setattr(store_module, "producer", lambda spec: producer)
    assert SPEC not in store


@pytest.mark.parametrize(
    "options", [{"refresh": 1.5}, {"base": 2}, {"variance": "shrunk"}, {"device": "cpu"}]
)
def test_default_said_aloud_is_the_same_run(options: dict[str, Option]) -> None:
    said = RunSpec("friedman", PolicySpec.of("pfn-ts", **options), horizon=30, replication=0, seed=42)
    assert run_key(said) == run_key(replace(said, policy=PolicySpec("pfn-ts")))


@pytest.mark.parametrize("options", [{"refresh": 2}, {"base": 3}, {"variance": "subclt"}, {"device": "cuda"}])
def test_option_other_than_the_default_is_another_run(options: dict[str, Option]) -> None:
    said = RunSpec("friedman", PolicySpec.of("pfn-ts", **options), horizon=30, replication=0, seed=42)
    assert run_key(said) != run_key(replace(said, policy=PolicySpec("pfn-ts")))


@pytest.mark.parametrize(("maker", "option", "value"), [(PFNTS, "refresh", 1.75), (Shrunk, "nu0", 7.0)])
def test_changed_default_is_another_run(
    maker: type, option: str, value: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = RunSpec("friedman", PolicySpec("pfn-ts"), horizon=30, replication=0, seed=42)
    before = run_key(spec)
    with monkeypatch.context() as changed:
        changed.setitem(maker.__init__.__kwdefaults__, option, value)  # type: ignore[misc]
        assert run_key(spec) != before
    assert run_key(spec) == before


def test_iterating_reads_everything_back(store: RunStore, trajectory: Trajectory) -> None:
    second = RunSpec("friedman", PolicySpec("uniform"), horizon=30, replication=1, seed=42)
    store.save(SPEC, trajectory)
    store.save(second, trajectory)
    assert {each.spec for each in store} == {SPEC, second}


def test_empty_store_has_no_runs(store: RunStore) -> None:
    assert list(store) == []
    with pytest.raises(KeyError, match="no such run"):
        store.load(SPEC)


def test_interrupted_save_leaves_nothing_behind(
    store: RunStore, trajectory: Trajectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*arguments: object, **arrays: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(np, "savez_compressed", interrupted)
    with pytest.raises(KeyboardInterrupt):
        store.save(SPEC, trajectory)
    assert SPEC not in store
    assert list(store.root.iterdir()) == []


def test_unfinished_folder_of_a_killed_process_is_ignored(store: RunStore, trajectory: Trajectory) -> None:
    store.save(SPEC, trajectory)
    (store.root / ".unfinished-a_b_c_d").mkdir()
    assert [each.spec for each in store] == [SPEC]


def test_tidying_removes_only_what_is_abandoned(store: RunStore, trajectory: Trajectory) -> None:
    store.save(SPEC, trajectory)
    recent, abandoned = store.root / ".unfinished-recent", store.root / ".unfinished-abandoned"
    recent.mkdir()
    abandoned.mkdir()
    (abandoned / "trajectory.npz").touch()
    os.utime(abandoned, (0, 0))
    store.tidy()
    assert recent.is_dir()
    assert not abandoned.exists()
    assert SPEC in store


def test_saving_again_keeps_the_first(store: RunStore, trajectory: Trajectory) -> None:
    store.save(SPEC, trajectory)
    before = (store.folder(SPEC) / "run.json").read_bytes()
    later = Trajectory(
        arms=trajectory.arms,
        rewards=trajectory.rewards,
        regret=trajectory.regret,
        propensities=trajectory.propensities,
        fixed=trajectory.fixed,
        seconds=99.0,
    )
    store.save(SPEC, later)
    assert (store.folder(SPEC) / "run.json").read_bytes() == before
    assert len(list(store.root.iterdir())) == 1


def test_run_of_an_earlier_format_is_refused_by_its_number(store: RunStore, trajectory: Trajectory) -> None:
    store.save(SPEC, trajectory)
    path = store.folder(SPEC) / "run.json"
    path.write_text(path.read_text().replace('"format": "2"', '"format": "1"'))
    with pytest.raises(CorruptRunError, match="written in format 1, where this version reads format 2"):
        list(store)


@pytest.mark.parametrize(
    "damage",
    [
        lambda folder: (folder / "run.json").write_text("{"),
        lambda folder: (folder / "run.json").write_text("{}"),
        lambda folder: (folder / "trajectory.npz").write_bytes(b"PK\x03\x04"),
        lambda folder: (folder / "trajectory.npz").write_bytes(b""),
        lambda folder: (folder / "trajectory.npz").unlink(),
    ],
)
def test_damaged_run_is_named_with_its_remedy(
    damage: Callable[[Path], None], store: RunStore, trajectory: Trajectory
) -> None:
    store.save(SPEC, trajectory)
    damage(store.folder(SPEC))
    with pytest.raises(CorruptRunError, match=r"friedman_uniform_0_\w+ must hold a finished run.*delete it"):
        store.load(SPEC)
