"""The file of a policy: a header and its log, as JSON in a zip. Nothing is pickled, nothing in it is run."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pfnts import backbones
from pfnts.contexts import Schema
from pfnts.events import Event, Label, from_dict
from pfnts.events.event import to_dict
from pfnts.files import replacing

FORMAT = "pfnts-policy"
VERSION = 2
_HEADER, _EVENTS = "header.json", "events.jsonl"
_LONGEST_LINE = 256 << 20
_SMALL, _MOST_COMPRESSED = 4 << 20, 250
"""Bytes that a member may always have, and times its size in the file: zlib's level 1 reaches 230 at most."""


class ForeignFileError(ValueError):
    """A file of another policy, or of a later version: whole, but not for here."""


@dataclass(frozen=True)
class Saved:
    """The content of a file."""

    path: str
    arms: list[Label] | dict[Label, Any]
    """Labels, or labels to features."""
    schema: Schema | None
    arm_schema: Schema | None
    settings: dict[str, Any]
    generator: dict[str, Any] | None
    """State of the policy's own random numbers."""
    events: list[Event]


def damaged(path: str, error: BaseException | str) -> ValueError:
    """Return the one error for a file that is not what it should be."""
    why = error if isinstance(error, str) else f"{type(error).__name__}: {str(error)[:200]}"
    return ValueError(f"path must be a saved policy, {path!r} is not one or is damaged ({why})")


def write(path: str | os.PathLike[str], *, header: dict[str, Any], events: Iterable[Event]) -> None:
    """Write a file in one step: a reader sees the old file or the new one, never half of it.

    The file is on the disk when this returns. A file that is replaced keeps its mode.
    """
    target = Path(path)
    kept = target.is_file() and not target.is_symlink()  # a link may have been planted; it is replaced
    mode = target.stat().st_mode & 0o7777 if kept else 0o666 & ~_umask()
    with (
        replacing(target, mode=mode) as file,
        zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
    ):
        archive.writestr(_HEADER, json.dumps({"format": FORMAT, "version": VERSION, **header}))
        with archive.open(_EVENTS, "w", force_zip64=True) as lines:
            for event in events:
                lines.write(json.dumps(to_dict(event), allow_nan=False).encode() + b"\n")


def read(path: str | os.PathLike[str], *, policy: str) -> Saved:
    """Read a file that `write` wrote; any other is a ValueError that says why."""
    name = str(path)
    try:
        with zipfile.ZipFile(path) as archive:
            for member in (_HEADER, _EVENTS):
                _check_size(archive, member, os.path.getsize(path))
            return _saved(archive, name, policy=policy)
    except (FileNotFoundError, PermissionError, ForeignFileError):
        raise
    except Exception as error:  # there is no end to the ways in which a file can be damaged
        raise damaged(name, error) from error


def policy_of(path: str | os.PathLike[str]) -> str:
    """Return the name of the policy in a file; any other file is a ValueError that says why."""
    try:
        with zipfile.ZipFile(path) as archive:
            _check_size(archive, _HEADER, os.path.getsize(path))
            return str(json.loads(archive.read(_HEADER))["policy"])
    except (FileNotFoundError, PermissionError):
        raise
    except Exception as error:
        raise damaged(str(path), error) from error


def _saved(archive: zipfile.ZipFile, name: str, *, policy: str) -> Saved:
    header = json.loads(archive.read(_HEADER))
    found = header["format"], header["version"], header["policy"]
    if found != (FORMAT, VERSION, policy):
        raise ForeignFileError(
            f"path must be a saved {policy!r} policy of format {FORMAT} version {VERSION}, "
            f"{name!r} has {found[0]} version {found[1]} of {found[2]!r}"
        )
    schema, arm_schema = (
        None if header.get(name) is None else Schema.from_json(header[name])
        for name in ("schema", "arm_schema")
    )
    if not isinstance(header["arms"], list) or not isinstance(header["settings"], dict):
        raise TypeError("arms are a list, and settings a mapping")
    events = []
    with archive.open(_EVENTS) as lines:
        while line := lines.readline(_LONGEST_LINE):
            events.append(from_dict(json.loads(line)))
    features = header.get("features")
    arms = header["arms"] if features is None else dict(zip(header["arms"], features, strict=True))
    settings = _of_today(policy, header["settings"])
    return Saved(name, arms, schema, arm_schema, settings, header.get("generator"), events)


def _of_today(policy: str, settings: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of a file, those of version 0.2 under the names of today.

    A backbone must be the package's own: a file may be forged.
    """
    settings = dict(settings)
    settings.pop("summary", None)
    if policy in ("rf-ts", "xgboost-ts", "bf-ts"):
        settings["detector"] = None
    if policy == "epsilon-greedy":
        settings.setdefault("epsilon", settings["explore"])
    given, known = settings.get("backbone"), backbones.names()
    if given is not None and given not in known:
        raise ForeignFileError(f"backbone must be one of {known} in a file, got {given!r}; pass it to load")
    return settings


def _check_size(archive: zipfile.ZipFile, member: str, length: int) -> None:
    """Raise if a member is far larger than the file of that length, whatever its header says."""
    size, compressed = archive.getinfo(member).file_size, archive.getinfo(member).compress_size
    if size > max(_SMALL, _MOST_COMPRESSED * min(compressed, length)):
        raise OverflowError(f"{member} is {size:,} bytes, compressed beyond belief")


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
