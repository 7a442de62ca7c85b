"""A disk that loses, at any moment, whatever was not synced."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from pfnts.experiments import CorruptRunError, PolicySpec, RunSpec, RunStore, job, run
from pfnts.experiments.store import read_record, read_result
from pfnts.files import write_file

SPECS = [RunSpec("friedman", PolicySpec("uniform"), horizon=20, replication=r, seed=3) for r in range(2)]


class Disk:
    """Remembers what of a folder would survive a power cut, and what may have.

    A file's content survives as it was when it was synced, and so do the names in a folder. What was not
    synced may survive or not, each name by itself: a rename before the content it names, for example.
    """

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root = root
        self.moments: list[tuple[dict[int, bytes], dict[int, dict[str, int]], dict[int, dict[str, int]]]] = []
        self._contents: dict[int, bytes] = {}
        self._names: dict[int, dict[str, int]] = {}
        self._held: list[int] = []  # an inode that somebody holds is given to no other file
        self._hold(root)
        self._names[root.stat().st_ino] = {}

        def watched_fsync(handle: int) -> None:
            self._held.append(os.dup(handle))
            inode, path = os.fstat(handle).st_ino, Path(f"/proc/self/fd/{handle}").resolve()
            if stat.S_ISDIR(os.fstat(handle).st_mode):
                self._names[inode] = names_in(path)
            else:
                self._contents[inode] = path.read_bytes()
            self.remember()

        monkeypatch.setattr(os, "fsync", watched_fsync)
        for module, name in ((os, "replace"), (Path, "rename"), (Path, "mkdir"), (Path, "unlink")):
            monkeypatch.setattr(module, name, self._watched(getattr(module, name)))

    def _hold(self, path: Path) -> None:
        self._held.append(os.open(path, os.O_RDONLY))

    def _watched(self, call: Callable[..., object]) -> Callable[..., object]:
        def watched(*arguments: object, **options: object) -> object:
            self.remember()
            done = call(*arguments, **options)
            self.remember()
            return done

        return watched

    def remember(self) -> None:
        now = {}
        for folder in (self.root, *(path for path in self.root.rglob("*") if path.is_dir())):
            now[folder.stat().st_ino] = names_in(folder)
        self.moments.append((dict(self._contents), {k: dict(v) for k, v in self._names.items()}, now))

    def after(self, moment: int, new: Path, keeps: Callable[[], bool]) -> Path:
        """Write what is left after a power cut; ``keeps`` says of a name not synced whether it is there."""
        contents, synced, now = self.moments[moment]

        def restore(inode: int, folder: Path) -> None:
            folder.mkdir()
            there, meant = synced.get(inode, {}), now.get(inode, synced.get(inode, {}))
            for name in sorted(there.keys() | meant.keys()):
                found = meant.get(name) if there.get(name) != meant.get(name) and keeps() else there.get(name)
                if found is None:
                    continue
                if found in now or found in synced:
                    restore(found, folder / name)
                else:
                    (folder / name).write_bytes(contents.get(found, b""))

        restore(self.root.stat().st_ino, new)
        return new

    def close(self) -> None:
        for handle in self._held:
            os.close(handle)


def names_in(folder: Path) -> dict[str, int]:
    return {path.name: path.lstat().st_ino for path in folder.iterdir()}


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Disk]:
    (tmp_path / "disk").mkdir()
    made = Disk(tmp_path / "disk", monkeypatch)
    yield made
    made.close()


@pytest.mark.skipif(not os.path.exists("/proc/self/fd"), reason="looks up open files in /proc")
def test_runs_survive_a_power_cut_whole_or_not_at_all(disk: Disk, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    store = RunStore(disk.root / "new" / "runs")
    saved = []
    for spec in SPECS:
        store.save(job(spec), run(spec))
        saved.append(len(disk.moments))
    assert len(disk.moments) > 20
    for moment in range(len(disk.moments)):
        for number, keeps in enumerate((lambda: False, lambda: True, lambda: rng.random() < 0.5)):
            left = RunStore(disk.after(moment, tmp_path / f"{moment}-{number}", keeps) / "new" / "runs")
            folders = left.folders()
            for folder in folders:
                read_result(folder, read_record(folder), RunSpec.result)  # raises where it is not whole
            assert len(folders) >= sum(moment >= since for since in saved), (moment, number)
    final = RunStore(disk.after(len(disk.moments) - 1, tmp_path / "end", lambda: False) / "new" / "runs")
    assert {each.spec for each in final} == set(SPECS)


@pytest.mark.skipif(not os.path.exists("/proc/self/fd"), reason="looks up open files in /proc")
def test_files_of_a_report_survive_a_power_cut_old_or_new(disk: Disk, tmp_path: Path) -> None:
    write_file(disk.root / "report" / "page.html", "old")
    since = len(disk.moments)
    write_file(disk.root / "report" / "page.html", "new")
    for moment in range(since, len(disk.moments)):
        for number, kept in enumerate((False, True)):
            left = disk.after(moment, tmp_path / f"{moment}-{number}", lambda kept=kept: kept)  # type: ignore[misc]
            assert (left / "report" / "page.html").read_text() in ("old", "new")
    end = disk.after(len(disk.moments) - 1, tmp_path / "end", lambda: False)
    assert (end / "report" / "page.html").read_text() == "new"


@pytest.mark.skipif(not os.path.exists("/proc/self/fd"), reason="looks up open files in /proc")
def test_the_disk_notices_what_was_not_synced(
    disk: Disk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same without a single sync: then a name may be there without its content."""
    monkeypatch.setattr(os, "fsync", lambda handle: None)
    store = RunStore(disk.root / "runs")
    store.save(job(SPECS[0]), run(SPECS[0]))
    disk.remember()
    last = len(disk.moments) - 1
    assert RunStore(disk.after(last, tmp_path / "lost", lambda: False) / "runs").folders() == []
    (folder,) = RunStore(disk.after(last, tmp_path / "empty", lambda: True) / "runs").folders()
    with pytest.raises(CorruptRunError):
        read_record(folder)
