"""The run store: complete runs or none, on the disk as in the folder."""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Callable
from dataclasses import asdict, replace
from functools import reduce
from operator import getitem
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pfnts.experiments import CorruptRunError, Job, PolicySpec, RunSpec, RunStore, job, run
from pfnts.experiments import jobs as jobs_module
from pfnts.experiments import store as store_module
from pfnts.experiments.outcomes import read_outcomes
from pfnts.experiments.report import write_report
from pfnts.experiments.report.contents import regret_table
from pfnts.experiments.report.sections import organize
from pfnts.experiments.spec import Option
from pfnts.files import tidy
from pfnts.policies import PFNTS, Memory, Traffic
from pfnts.simulation import Trajectory

SPEC = RunSpec("friedman", PolicySpec("uniform"), horizon=30, replication=0, seed=42)
ARRAYS = ("arms", "rewards", "regret", "propensities", "fixed")


@pytest.fixture
def store(tmp_path: Path) -> RunStore:
    return RunStore(tmp_path / "runs")


@pytest.fixture(scope="module")
def trajectory() -> Trajectory:
    return run(SPEC)


@pytest.fixture(scope="module")
def done() -> Job:
    return job(SPEC)


def pfn_ts(**options: Option) -> Job:
    return job(replace(SPEC, policy=PolicySpec.of("pfn-ts", **options)))


def test_what_is_saved_is_loaded(store: RunStore, done: Job, trajectory: Trajectory) -> None:
    assert done not in store
    store.save(done, trajectory)
    assert done in store
    loaded = store.load(done)
    for name in ARRAYS:
        np.testing.assert_array_equal(getattr(loaded, name), getattr(trajectory, name))
    assert loaded.seconds == trajectory.seconds


def test_record_says_what_produced_it(store: RunStore, done: Job, trajectory: Trajectory) -> None:
    store.save(done, trajectory)
    about = json.loads((store.folder(done) / "run.json").read_text())
    assert about["scenario"] == "friedman"
    assert about["policy"] == {"name": "uniform", "options": {}}
    assert (about["horizon"], about["replication"], about["seed"]) == (30, 0, 42)
    assert {"python", "pfnts", "numpy", "scipy", "torch"} <= set(about["versions"])
    assert about["machine"]["cores"] >= 1
    assert about["seconds"] == trajectory.seconds
    assert about["producer"] == {
        "pfnts": about["versions"]["pfnts"],
        "code": jobs_module.code_fingerprint(),
        "format": "3",
        "settings": {
            "traffic": {"name": "Traffic", "settings": asdict(Traffic(warmup=0))},
            "schema": None,
            "seed": None,
        },
    }


def test_record_names_the_machine_that_made_it(store: RunStore, done: Job, trajectory: Trajectory) -> None:
    elsewhere = {"versions": {"python": "3.99"}, "machine": {"cpu": "abacus", "cores": 96}}
    store.save(done, trajectory, made=elsewhere)
    about = json.loads((store.folder(done) / "run.json").read_text())
    assert {name: about[name] for name in elsewhere} == elsewhere


@pytest.mark.parametrize(
    "other",
    [
        replace(SPEC, scenario="friedman2"),
        replace(SPEC, policy=PolicySpec.of("pfn-ts", backbone="linear")),
        replace(SPEC, horizon=31),
        replace(SPEC, replication=1),
        replace(SPEC, seed=43),
    ],
)
def test_anything_different_is_another_run(
    other: RunSpec, store: RunStore, done: Job, trajectory: Trajectory
) -> None:
    store.save(done, trajectory)
    assert job(other) not in store


def test_changed_source_of_the_package_is_another_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, done: Job
) -> None:
    """A copy of the package, a comment in one of its policies changed."""
    copy = tmp_path / "pfnts"
    shutil.copytree(Path(jobs_module.pfnts.__path__[0]), copy, ignore=shutil.ignore_patterns("*.safetensors"))
    monkeypatch.setattr(jobs_module.pfnts, "__path__", [str(copy)])

    def key() -> str:
        jobs_module.code_fingerprint.cache_clear()
        return job(SPEC).key

    try:
        assert key() == done.key
        for printed in ("cli/run.py", "experiments/report/page.py", "reproduction/paper.py"):
            (copy / printed).write_text((copy / printed).read_text() + "\n# changed\n")
        assert key() == done.key, "what only prints decides nothing"
        lin_ts = copy / "policies" / "lin_ts.py"
        lin_ts.write_text(lin_ts.read_text() + "\n# changed\n")
        assert key() != done.key
    finally:
        jobs_module.code_fingerprint.cache_clear()


@pytest.mark.parametrize(
    "options",
    [
        {"refresh": 1.05},
        {"encoding": "averaged"},
        {"warmup": 5},
        {"device": "cpu"},
        {"estimator": "network"},
        {"exploration": 0.15},
        {"exploration": 0.15, "estimator": "network"},
    ],
)
def test_default_said_aloud_is_the_same_run(options: dict[str, Option]) -> None:
    assert pfn_ts(**options).key == pfn_ts().key


@pytest.mark.parametrize(
    "options", [{"refresh": 2}, {"exploration": 0.9}, {"estimator": "subclt"}, {"device": "cuda"}]
)
def test_option_other_than_the_default_is_another_run(options: dict[str, Option]) -> None:
    assert pfn_ts(**options).key != pfn_ts().key


@pytest.mark.parametrize(
    ("maker", "option", "value"), [(PFNTS, "memory", Memory(refresh=1.75)), (PFNTS, "encoding", "joint")]
)
def test_changed_default_is_another_run(
    maker: type, option: str, value: Memory | str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = pfn_ts().key
    with monkeypatch.context() as changed:
        changed.setitem(maker.__init__.__kwdefaults__, option, value)  # type: ignore[misc]
        assert pfn_ts().key != before
    assert pfn_ts().key == before


def test_iterating_reads_everything_back(store: RunStore, done: Job, trajectory: Trajectory) -> None:
    second = job(replace(SPEC, replication=1))
    store.save(done, trajectory)
    store.save(second, trajectory)
    assert {each.spec for each in store} == {SPEC, second.spec}


def test_empty_store_has_no_runs(store: RunStore, done: Job) -> None:
    assert list(store) == []
    with pytest.raises(KeyError, match="no such run"):
        store.load(done)


def test_interrupted_save_leaves_nothing_behind(
    store: RunStore, done: Job, trajectory: Trajectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(store_module, "write_file", interrupted)
    with pytest.raises(KeyboardInterrupt):
        store.save(done, trajectory)
    assert done not in store
    assert list(store.root.iterdir()) == []


def test_unfinished_folder_of_a_killed_process_is_ignored(
    store: RunStore, done: Job, trajectory: Trajectory
) -> None:
    store.save(done, trajectory)
    shutil.copytree(store.folder(done), store.root / ".unfinished-a_b_c_d")
    assert [each.spec for each in store] == [SPEC]


def test_other_folders_in_the_store_are_left_alone(
    store: RunStore, done: Job, trajectory: Trajectory
) -> None:
    store.save(done, trajectory)
    page = write_report(store.root, store.root / "report_for_the_team", figures=False)
    assert [each.spec for each in store] == [SPEC]
    assert write_report(store.root, page.parent, figures=False) == page


def test_tidying_removes_only_what_is_abandoned(store: RunStore, done: Job, trajectory: Trajectory) -> None:
    store.save(done, trajectory)
    recent, abandoned = store.root / ".unfinished-recent", store.root / ".unfinished-abandoned"
    recent.mkdir()
    abandoned.mkdir()
    (abandoned / "arrays.npz").touch()
    file = store.root / ".unfinished-file"
    file.touch()
    for old in (abandoned, file):
        os.utime(old, (0, 0))
    tidy(store.root)
    assert recent.is_dir()
    assert not abandoned.exists()
    assert not file.exists()
    assert done in store


def test_saving_again_keeps_the_first(store: RunStore, done: Job, trajectory: Trajectory) -> None:
    store.save(done, trajectory)
    before = (store.folder(done) / "run.json").read_bytes()
    store.save(done, replace(trajectory, seconds=99.0))
    assert (store.folder(done) / "run.json").read_bytes() == before
    assert len(list(store.root.iterdir())) == 1


def rewritten(store: RunStore, done: Job, **changes: Any) -> Path:
    folder = store.folder(done)
    about = json.loads((folder / "run.json").read_text())
    about["producer"] |= changes
    for later in ("kind", "arrays"):
        del about[later]
    (folder / "run.json").write_text(json.dumps(about))
    return folder


def test_run_of_version_0_1_is_read(store: RunStore, done: Job, trajectory: Trajectory) -> None:
    store.save(done, trajectory)
    folder = rewritten(store, done, format="2")
    (folder / "arrays.npz").rename(folder / "trajectory.npz")
    (found,) = store
    assert found.spec == SPEC
    np.testing.assert_array_equal(found.result.arms, trajectory.arms)


def test_run_of_an_unknown_format_is_refused_by_its_number(
    store: RunStore, done: Job, trajectory: Trajectory
) -> None:
    store.save(done, trajectory)
    rewritten(store, done, format="1")
    with pytest.raises(CorruptRunError, match="written in format 1, where this version reads 2 and 3"):
        list(store)


@pytest.mark.parametrize(
    "damage",
    [
        lambda folder: (folder / "run.json").write_text("{"),
        lambda folder: (folder / "run.json").write_text("{}"),
        lambda folder: (folder / "run.json").write_text("[]"),
        lambda folder: (folder / "arrays.npz").write_bytes(b"PK\x03\x04"),
        lambda folder: (folder / "arrays.npz").write_bytes(b""),
        lambda folder: (folder / "arrays.npz").unlink(),
    ],
)
def test_damaged_run_is_named_with_its_remedy_and_stops_no_report(
    damage: Callable[[Path], object], store: RunStore, done: Job, trajectory: Trajectory
) -> None:
    for each in (done, job(replace(SPEC, replication=1))):
        store.save(each, trajectory)
    damage(store.folder(done))
    with pytest.raises(
        CorruptRunError, match=r"friedman-uniform-replication-0_\w+ must hold a finished run.*delete it"
    ):
        store.load(done)
    page = write_report(store.root, figures=False).read_text()
    assert f"Damaged and left out: {store.folder(done).name}. Delete them to run them anew." in page
    assert "1 run." in page


def test_every_flipped_byte_is_noticed(
    store: RunStore, done: Job, trajectory: Trajectory, rng: np.random.Generator
) -> None:
    store.save(done, trajectory)
    folder = store.folder(done)
    original = (folder / "arrays.npz").read_bytes()
    for kept_sum in (True, False):
        if not kept_sum:
            # Version 0.1 had no sum: there whatever the archive itself notices must be told in one way.
            rewritten(store, done)
        for place in rng.integers(len(original), size=200):
            flipped = bytearray(original)
            flipped[place] ^= 1 << int(rng.integers(8))
            (folder / "arrays.npz").write_bytes(flipped)
            if kept_sum:
                with pytest.raises(CorruptRunError):
                    store.load(done)
                continue
            try:
                store.load(done)
            except CorruptRunError:
                continue


def test_flipped_bytes_of_a_record_stop_no_report(
    store: RunStore, done: Job, trajectory: Trajectory, rng: np.random.Generator
) -> None:
    for each in (done, job(replace(SPEC, replication=1))):
        store.save(each, trajectory)
    record = store.folder(done) / "run.json"
    original = record.read_bytes()
    for place in rng.integers(len(original), size=200):
        flipped = bytearray(original)
        flipped[place] ^= 1 << int(rng.integers(8))
        record.write_bytes(flipped)
        try:
            list(store)
        except CorruptRunError:
            assert read_outcomes(store)[1][-1].startswith("Damaged and left out")
        assert read_outcomes(store)[0]


ODD = (None, [], {}, ["a"], {"a": 1}, "x", -1, 1.5, True, "<script>")


def places(record: Any, above: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Where something is written in a record, groups of it included."""
    inner = record.items() if isinstance(record, dict) else ()
    return [*filter(None, [above]), *(place for key, part in inner for place in places(part, (*above, key)))]


def test_records_with_anything_in_any_place_stop_no_report(
    store: RunStore, done: Job, trajectory: Trajectory
) -> None:
    varied = job(replace(SPEC, policy=PolicySpec.of("lin-ts", nu=2.0)))
    for each in (done, varied, job(replace(SPEC, policy=PolicySpec("lin-ts")))):
        store.save(each, trajectory)
    for each in (done, job(replace(SPEC, policy=PolicySpec("lin-ts")))):
        record = store.folder(each) / "run.json"
        original = record.read_text()
        for *above, key in places(json.loads(original)):
            for value in ODD:
                about = json.loads(original)
                reduce(getitem, above, about)[key] = value
                record.write_text(json.dumps(about))
                outcomes, _ = read_outcomes(store)
                assert len(outcomes) >= 2
                sections = organize(outcomes)
                for section in sections:
                    regret_table(section)
                assert all(isinstance(outcome.machine, str) for outcome in outcomes)
        record.write_text(original)


def test_full_disk_is_said_in_a_sentence(
    store: RunStore, done: Job, trajectory: Trajectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*arguments: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=r"friedman, uniform, replication 0 cannot be kept .*make room"):
        store.save(done, trajectory)
    assert list(store.root.iterdir()) == []


def test_folder_of_runs_must_not_be_a_file(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("mine")
    with pytest.raises(ValueError, match="the folder of runs must be a folder, there is a file at"):
        RunStore(tmp_path / "runs")


def test_long_and_odd_names_make_folders(store: RunStore, trajectory: Trajectory) -> None:
    spec = replace(SPEC, scenario="../data/pets & co.csv:p/t", policy=PolicySpec("mine." + "P" * 240))
    odd = Job(spec, {"format": "3"})
    store.save(odd, trajectory)
    assert odd in store
    assert store.folder(odd).parent == store.root
    assert read_outcomes(store)[0][0].spec == spec
