"""Finished work on disk: one folder each, named by a hash of what produced it."""

from __future__ import annotations

import errno
import hashlib
import io
import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from pfnts.experiments.files import folder_at, safe_name
from pfnts.experiments.jobs import FORMAT, Job
from pfnts.experiments.provenance import provenance
from pfnts.experiments.simulations import RunSpec
from pfnts.files import UNFINISHED, make_folder, sync, write_file

_RECORD = "run.json"
# By format: the file of the arrays. Format 2 is that of version 0.1, simulations only.
_ARRAYS = {"2": "trajectory.npz", str(FORMAT): "arrays.npz"}


@dataclass(frozen=True)
class Run:
    """Something done, and what came of it."""

    spec: Any
    """What was done: a `RunSpec`, or another kind of spec."""
    result: Any
    """What came of it: of a `RunSpec` a `pfnts.Trajectory`."""


class CorruptRunError(ValueError):
    """A folder in a run store does not hold a finished run."""


class OtherDataError(ValueError):
    """A folder holds runs on other data of the same name."""


class RunStore:
    """A folder of finished runs, made when the first one is saved.

    A run appears in it, and on the disk, all at once or not at all: whatever is found there is complete.

    Examples
    --------
    >>> from pfnts.experiments import PolicySpec, RunSpec, job, run
    >>> spec = RunSpec("friedman", PolicySpec("uniform"), horizon=50, replication=0, seed=42)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = RunStore(folder)
    ...     store.save(job(spec), run(spec))
    ...     job(spec) in store, store.load(job(spec)).horizon
    (True, 50)
    """

    def __init__(self, root: str | os.PathLike[str]) -> None:
        self.root = folder_at(root, name="the folder of runs")

    def folder(self, job: Job) -> Path:
        """Where the run is, or would be."""
        return self.root / f"{safe_name(job.spec.title, most=100)}_{job.key}"

    def __contains__(self, job: Job) -> bool:
        return self.folder(job).is_dir()

    def __iter__(self) -> Iterator[Run]:
        """Every simulation in the folder, whoever put it there, in the order of the folder names."""
        yield from (run for run, _ in filter(None, map(read_simulation, self.folders())))

    def folders(self) -> list[Path]:
        """Where finished runs are; anything else that lies in the folder is left alone."""
        return sorted(path.parent for path in self.root.glob(f"[!.]*/{_RECORD}"))

    def load(self, job: Job) -> Any:
        """Read what came of a job."""
        if job not in self:
            raise KeyError(f"no such run in {self.root}: {job.spec.describe()}")
        folder = self.folder(job)
        return read_result(folder, read_record(folder), job.spec.result)

    def save(self, job: Job, result: Any, *, made: dict[str, Any] | None = None) -> None:
        """Add a finished run, ``made`` with these versions or with ours; one already there stays as it is."""
        buffer = io.BytesIO()
        arrays = {field.name: getattr(result, field.name) for field in fields(result)}
        timed = {"seconds": arrays.pop("seconds")}
        np.savez_compressed(buffer, **arrays)
        checked = {"arrays": hashlib.sha256(buffer.getvalue()).hexdigest()}
        made = provenance() if made is None else made
        about = {**job.spec.describe(), "producer": job.producer, **made, **timed, **checked}
        try:
            self._save(job, about, buffer.getvalue())
        except OSError as error:
            full = error.errno in (errno.ENOSPC, errno.EDQUOT)
            remedy = "make room" if full else "mend it, or name another folder"
            reason = f"{job.spec.title} cannot be kept ({error.strerror}); {remedy}"
            raise OSError(error.errno, reason, str(self.root)) from error

    def _save(self, job: Job, about: dict[str, Any], arrays: bytes) -> None:
        make_folder(self.root)
        # Beside its final place, because a rename is atomic only within one file system.
        temporary = Path(tempfile.mkdtemp(prefix=UNFINISHED, dir=self.root))
        try:
            write_file(temporary / _ARRAYS[str(FORMAT)], arrays)
            write_file(temporary / _RECORD, json.dumps(about, indent=2) + "\n")
            temporary.chmod(0o755)
            try:
                temporary.rename(self.folder(job))
            except OSError:
                # Another process may have finished the same run meanwhile: a folder is never replaced.
                if job not in self:
                    raise
            sync(self.root)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)

    def check_data(self, jobs: Iterable[Job]) -> None:
        """Raise an `OtherDataError` where runs in the folder saw other data of the same name."""
        # Of replays each log is a world of its own: only scenarios have names to be confused.
        named = ((job.spec.describe().get("scenario"), job.producer.get("data")) for job in jobs)
        asked = {scenario: data for scenario, data in named if scenario and data}
        for folder in self.folders() if asked else ():
            with suppress(CorruptRunError):
                about = read_record(folder)
                before, now = about["producer"].get("data"), asked.get(about.get("scenario", ""))
                if before and now and before != now:
                    raise OtherDataError(
                        f"{about['scenario']} must be the same data in all runs of {self.root}, got other "
                        f"than {folder.name} met; use the same data, another folder, or delete those runs"
                    )


def read_record(folder: Path) -> dict[str, Any]:
    """Read what is written about a run, its arrays left alone."""
    try:
        about = json.loads((folder / _RECORD).read_text(encoding="utf-8"))
        found = str(about["producer"]["format"])
        if found not in _ARRAYS:
            known = " and ".join(_ARRAYS)
            raise ValueError(f"a run written in format {found}, where this version reads {known}")
        float(about["seconds"])
        groups = (about.get("machine", {}), about["producer"].get("settings", {}))
        if not all(isinstance(group, dict) for group in groups):
            raise ValueError(f"machine and settings that name nothing, {groups}")
    except (OSError, KeyError, ValueError, TypeError) as error:
        raise _corrupt(folder, error) from error
    return dict(about)


def read_simulation(folder: Path) -> tuple[Run, dict[str, Any]] | None:
    """A simulation, and what is written about it; None for what is no simulation."""
    about = read_record(folder)
    if about.get("kind", RunSpec.kind) != RunSpec.kind:
        return None
    try:
        spec = RunSpec.from_description(about)
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        raise _corrupt(folder, error) from error
    return Run(spec, read_result(folder, about, RunSpec.result)), about


def read_result(folder: Path, about: dict[str, Any], kind: type[Any]) -> Any:
    """Read what came of a run, as the dataclass ``kind``."""
    try:
        content = (folder / _ARRAYS[str(about["producer"]["format"])]).read_bytes()
        digest = hashlib.sha256(content).hexdigest()
        if about.get("arrays", digest) != digest:
            raise ValueError("arrays that are not those that were written")
        with np.load(io.BytesIO(content), allow_pickle=False) as file:
            arrays = {field.name: file[field.name] for field in fields(kind) if field.name != "seconds"}
        return kind(**arrays, seconds=float(about["seconds"]))
    # A damaged archive raises whatever the byte that was hit leads to; nothing else can go wrong here.
    except Exception as error:
        raise _corrupt(folder, error) from error


def _corrupt(folder: Path, error: Exception) -> CorruptRunError:
    return CorruptRunError(f"{folder} must hold a finished run, got {error!r}; delete it to run it anew")
