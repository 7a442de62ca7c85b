"""Finished runs on disk: one folder each, named by a hash of what produced it."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
import time
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from pfnts.experiments.provenance import provenance
from pfnts.experiments.spec import RunSpec
from pfnts.simulation import Trajectory

_FORMAT = 2
_UNFINISHED = ".unfinished-"
_ABANDONED = 3600.0
"""Seconds after which a folder that is still unfinished belongs to nobody: saving takes far less."""
_ARRAYS = ("arms", "rewards", "regret", "propensities", "fixed")


@dataclass(frozen=True)
class Run:
    """A finished run."""

    spec: RunSpec
    """What was run."""
    trajectory: Trajectory
    """What came of it."""


class CorruptRunError(ValueError):
    """A folder in a run store does not hold a finished run."""


class RunStore:
    """A folder of finished runs.

    A run appears in it all at once or not at all, so whatever is found there is complete.

    Parameters
    ----------
    root
        The folder; made when the first run is saved.

    Examples
    --------
    >>> from pfnts.experiments import PolicySpec, RunSpec, run
    >>> spec = RunSpec("friedman", PolicySpec("uniform"), horizon=50, replication=0, seed=42)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = RunStore(folder)
    ...     store.save(spec, run(spec))
    ...     spec in store, store.load(spec).horizon
    (True, 50)
    """

    def __init__(self, root: str | os.PathLike[str]) -> None:
        self.root = Path(root)

    def folder(self, spec: RunSpec) -> Path:
        """Where the run is, or would be."""
        key = run_key(spec)
        return self.root / f"{spec.scenario}_{spec.policy.name}_{spec.replication}_{key}"

    def __contains__(self, spec: RunSpec) -> bool:
        return self.folder(spec).is_dir()

    def __iter__(self) -> Iterator[Run]:
        """Every run in the folder, whoever put it there, in the order of the folder names."""
        for folder in sorted(self.root.glob("[!.]*_*_*_*")):
            yield _read(folder)

    def load(self, spec: RunSpec) -> Trajectory:
        """Read a finished run."""
        if spec not in self:
            raise KeyError(f"no such run in {self.root}: {spec.describe()}")
        return _read(self.folder(spec)).trajectory

    def save(self, spec: RunSpec, trajectory: Trajectory, *, made: dict[str, Any] | None = None) -> None:
        """Add a finished run; one that is already there stays as it is.

        Parameters
        ----------
        spec
            What was run.
        trajectory
            What came of it.
        made
            Versions and machine, where another process made it; this one's when left out.
        """
        self.root.mkdir(parents=True, exist_ok=True)
        # Beside its final place, because a rename is atomic only within one file system.
        temporary = Path(tempfile.mkdtemp(prefix=_UNFINISHED, dir=self.root))
        try:
            arrays = {name: getattr(trajectory, name) for name in _ARRAYS}
            np.savez_compressed(temporary / "trajectory.npz", **arrays)
            parameters = json.dumps(_parameters(spec, trajectory, made), indent=2)
            (temporary / "run.json").write_text(parameters + "\n", encoding="utf-8")
            temporary.chmod(0o755)
            try:
                temporary.rename(self.folder(spec))
            except OSError:
                # Another process may have finished the same run meanwhile: a folder is never replaced.
                if spec not in self:
                    raise
        finally:
            shutil.rmtree(temporary, ignore_errors=True)

    def tidy(self) -> None:
        """Remove what a process that was killed while saving has left behind."""
        for folder in self.root.glob(f"{_UNFINISHED}*"):
            with suppress(FileNotFoundError):
                if time.time() - folder.stat().st_mtime > _ABANDONED:
                    shutil.rmtree(folder, ignore_errors=True)


def run_key(spec: RunSpec) -> str:
    """Hash what decides a run's outcome: its description, all settings, the version, weights, own files."""
    # By name only: the options are among the settings, where one that equals its default is none.
    description = {**spec.describe(), "policy": spec.policy.name}
    text = json.dumps({**description, "producer": producer(spec)}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def producer(spec: RunSpec) -> dict[str, Any]:
    """Name the software and the settings that decide the outcome, beyond the description."""
    software = {"pfnts": version("pfnts"), "format": str(_FORMAT), "settings": spec.policy.settings()}
    # What a run does not have is left out, so that it is found under the same key as ever.
    behind = {"backbone": spec.policy.backbone(), "sources": spec.policy.sources(spec.scenario)}
    return {**software, **{name: value for name, value in behind.items() if value is not None}}


def _parameters(spec: RunSpec, trajectory: Trajectory, made: dict[str, Any] | None) -> dict[str, Any]:
    return {
        **spec.describe(),
        "producer": producer(spec),
        **(provenance() if made is None else made),
        "seconds": trajectory.seconds,
        "rounds": trajectory.horizon,
        "total_regret": trajectory.total_regret,
    }


def _read(folder: Path) -> Run:
    try:
        parameters = json.loads((folder / "run.json").read_text(encoding="utf-8"))
        _check_format(parameters["producer"]["format"])
        with np.load(folder / "trajectory.npz", allow_pickle=False) as file:
            arrays = {name: file[name] for name in _ARRAYS}
        spec = RunSpec.from_description(parameters)
        return Run(spec, Trajectory(**arrays, seconds=float(parameters["seconds"])))
    except (OSError, EOFError, KeyError, ValueError, TypeError, zipfile.BadZipFile) as error:
        raise CorruptRunError(
            f"{folder} must hold a finished run, got {error!r}; delete it to run it anew"
        ) from error


def _check_format(found: str) -> None:
    if found != str(_FORMAT):
        raise ValueError(f"a run written in format {found}, where this version reads format {_FORMAT}")
