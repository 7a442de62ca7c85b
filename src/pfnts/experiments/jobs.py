"""A piece of work, what decides its outcome, and what became of it."""

from __future__ import annotations

import hashlib
import json
import traceback
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar, Protocol

import pfnts
from pfnts.experiments.provenance import provenance

FORMAT = 3
"""Of the files of a `RunStore`."""
_NO_PART_OF_A_RUN = ("cli", "reproduction", "experiments/report")

Progress = Callable[[int, float], None]
"""Told how many steps are done, and the number that goes with them; first with 0 steps."""


class Spec(Protocol):
    """What is to be done, said so exactly that saying it again finds the same outcome."""

    kind: ClassVar[str]
    """What it is called in records."""
    noun: ClassVar[str]
    """What it is called: a run, a replay."""
    measure: ClassVar[str]
    """What the number that it reports on the way is."""
    result: ClassVar[type[Any]]
    """A dataclass of arrays and of ``seconds``."""

    @property
    def title(self) -> str:
        """A few words that tell it apart."""

    @property
    def steps(self) -> int:
        """Steps until it is done."""

    def describe(self) -> dict[str, Any]:
        """Everything that was asked for, as plain JSON values."""
        return {"kind": self.kind, **self.__dict__}

    def decided_by(self, inputs: Any) -> dict[str, Any]:
        """What decides the outcome beside the description and the package, as plain JSON values."""

    def device(self, asked: str) -> str:
        """Where it computes, when ``asked`` is where it may."""

    def perform(self, inputs: Any, *, device: str, progress: Progress) -> Any:
        """Do it, and return a ``result``."""


@dataclass(frozen=True, eq=False)
class Job:
    """A spec with all that decides its outcome, worked out once."""

    spec: Spec
    """What to do."""
    producer: Mapping[str, Any]
    """The software, settings and data behind it; whoever does it must have the same."""
    inputs: Any = None
    """What the spec needs to be done and only names: a folder of tables, a log."""
    asked: str = "cpu"
    """Device on which to compute where there is a choice; no part of what is done."""

    @cached_property
    def key(self) -> str:
        """Hash of everything that decides the outcome."""
        description = self.spec.describe()
        if isinstance(policy := description.get("policy"), dict):
            # By name only: the options are among the settings, where one that equals its default is none.
            description["policy"] = policy["name"]
        text = json.dumps({**description, "producer": self.producer}, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Finished:
    """A job that was done."""

    job: Any
    """What was done: a `Job`, but None on its way between processes."""
    result: Any
    """What came of it."""
    made: dict[str, Any]
    """Versions, machine and time."""


@dataclass(frozen=True)
class Failure:
    """A job that was not done."""

    job: Any
    """What was to be done, likewise."""
    reason: str
    """What happened, in a sentence."""
    traceback: str = ""
    """Where, as far as it is known."""


Listener = Callable[[Job, int, float], None]
"""Told which job is under way, its steps done and the number that goes with them; first with 0 steps."""
Results = Generator[Finished | Failure, None, None]
"""What becomes of jobs, in the order in which they end; closing it ends what is under way."""


class Engine(Protocol):
    """Something that does jobs, several at a time if it can."""

    def execute(self, jobs: Sequence[Job], *, listener: Listener) -> Results:
        """Yield what becomes of every job; one that fails stops no other."""


def job(spec: Spec, *, inputs: Any = None, device: str = "cpu") -> Job:
    """Work out what decides the outcome of a spec.

    Examples
    --------
    >>> from pfnts.experiments import PolicySpec, RunSpec
    >>> spec = RunSpec("friedman", PolicySpec("uniform"), horizon=50, replication=0, seed=42)
    >>> sorted(job(spec).producer), len(job(spec).key)
    (['code', 'format', 'pfnts', 'settings'], 16)
    """
    return Job(spec, _producer(spec, inputs), inputs, device)


def prepare(specs: Iterable[Spec], *, inputs: Any = None, device: str = "cpu") -> list[Job]:
    """Work out what decides the outcome of several specs, each once."""
    return [job(spec, inputs=inputs, device=device) for spec in dict.fromkeys(specs)]


@cache
def code_fingerprint() -> str:
    """Hash the source of the package, but for what only prints and draws."""
    root = Path(pfnts.__path__[0])
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        name = path.relative_to(root).as_posix()
        if not name.startswith(_NO_PART_OF_A_RUN):
            digest.update(name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def work(given: Job, progress: Progress, *, elsewhere: bool = False) -> Finished | Failure:
    """Do one job here and now, perhaps one worked out ``elsewhere``; an error becomes a `Failure`."""
    try:
        if elsewhere and (here := _producer(given.spec, given.inputs)) != given.producer:
            raise RuntimeError(
                "pfnts, its weights and settings, the data and modules of your own must be the same on every "
                f"machine, got {here} on this one and {dict(given.producer)} where the runs are kept"
            )
        progress(0, 0.0)
        result = given.spec.perform(given.inputs, device=given.asked, progress=progress)
        return Finished(given, result, provenance(device=given.spec.device(given.asked)))
    except (Exception, SystemExit) as error:  # somebody's policy may leave Python
        return Failure(given, f"{type(error).__name__}: {error}", traceback.format_exc())


def _producer(spec: Spec, inputs: Any) -> dict[str, Any]:
    software = {"pfnts": version("pfnts"), "code": code_fingerprint(), "format": str(FORMAT)}
    return {**software, **spec.decided_by(inputs)}
