"""Where the rounds of a run come from: a scenario by its name, or a table of the user's own."""

from __future__ import annotations

import hashlib
import re
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import Generator

from pfnts import environments
from pfnts.dotted import is_dotted, sources
from pfnts.environments import Environment
from pfnts.environments.openml import OpenMLScenario
from pfnts.environments.tables import read_table

_TABLE = re.compile(r"(?P<path>.+\.csv(\.gz)?):(?P<target>.+)", re.IGNORECASE | re.DOTALL)
"""Name of the scenario in which the classes of a table's column are the arms."""
_digests: dict[int, tuple[object, str]] = {}


def check_scenario(scenario: str) -> None:
    """Raise a ValueError where there is no such scenario; a table is read, so that a mistake in it shows."""
    if match := _TABLE.fullmatch(scenario):
        environments.from_csv(match["path"], match["target"], horizon=1, rng=0)  # warns of what it leaves out
    else:
        environments.describe(scenario)


def make_environment(scenario: str, *, horizon: int, rng: Generator, data: Path | None) -> Environment:
    """Draw the rounds of a run; a table may have fewer rows than the ``horizon``."""
    if match := _TABLE.fullmatch(scenario):
        table = read_table(match["path"], target=match["target"])
        return table.environment(name=Path(match["path"]).name.split(".")[0], horizon=horizon, rng=rng)
    return environments.make(scenario, horizon=horizon, rng=rng, data=data)


def data_fingerprint(scenario: str, *, data: Path | None) -> str | None:
    """Hash what a scenario reads beside the package itself: its table, or the module of the user's own."""
    if match := _TABLE.fullmatch(scenario):
        return hashlib.sha256(Path(match["path"]).read_bytes()).hexdigest()[:16]
    if is_dotted(scenario):
        return sources([scenario])
    described = environments.describe(scenario)
    if not isinstance(described, OpenMLScenario):
        return None
    table = (described if data is None else replace(described, data=data)).table()
    # A table read before is the same object: it is hashed once, and kept so that its id stays its own.
    if id(table) not in _digests:
        digest = hashlib.sha256()
        _feed(digest, table)
        _digests[id(table)] = table, digest.hexdigest()[:16]
    return _digests[id(table)][1]


def _feed(digest: Any, value: object) -> None:
    """Add what was read; floats are what was computed from it, and may differ in their last digit."""
    if isinstance(value, np.ndarray):
        digest.update(f"{value.dtype}{value.shape}".encode())
        digest.update(repr(value.tolist()).encode() if value.dtype.hasobject else value.tobytes())
    elif is_dataclass(value):
        for field in fields(value):
            _feed(digest, getattr(value, field.name))
    elif isinstance(value, tuple | list):
        for each in value:
            _feed(digest, each)
    elif not isinstance(value, float):
        digest.update(repr(value).encode())
