"""One file for a policy: a header and its log, as JSON in a zip. Nothing is pickled, nothing in it is run."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pfnts.contexts import Schema
from pfnts.events import Event, Label, from_dict
from pfnts.events.event import to_dict
from pfnts.files import replacing
from pfnts.policies import archive_1

FORMAT = "pfnts-policy"
VERSION = 2
_HEADER, _EVENTS = "header.json", "events.jsonl"
_LONGEST_LINE = 256 << 20
_SMALL, _MOST_COMPRESSED = 4 << 20, 250
"""Bytes that a member may always have, and times its size in the file: zlib's level 1 reaches 230 at most."""

T = TypeVar("T")


class ForeignFileError(ValueError):
    """A file of another policy, or of a later version: whole, but not for here."""


@dataclass(frozen=True)
class Archive:
    """What a file says."""

    path: str
    arms: list[Label] | dict[Label, Any]
    """Labels, or labels to features."""
    schema: Schema | None
    settings: dict[str, Any]
    events: list[Event]
    arm_schema: Schema | None = None

    def made(self, make: Callable[[Any, Schema | None, dict[str, Any]], T]) -> T:
        """Make the policy; settings that do not fit are damage, a ValueError says what is wrong by itself."""
        try:
            return make(self.arms, self.schema, self.settings)
        except (KeyError, TypeError, IndexError, AttributeError, OverflowError, RecursionError) as error:
            raise damaged(self.path, error) from error


def damaged(path: str, error: BaseException | str) -> ValueError:
    """The one error for a file that is not what it should be."""
    why = error if isinstance(error, str) else f"{type(error).__name__}: {str(error)[:200]}"
    return ValueError(f"path must be a saved policy, {path!r} is not one or is damaged ({why})")


def write_archive(path: str | os.PathLike[str], *, header: dict[str, Any], events: Iterable[Event]) -> None:
    """Write an archive in one step: a reader sees the old file or the new one, never half of it.

    The file is on the disk when this returns. A file that is replaced keeps its mode.
    """
    target = Path(path)
    kept = target.is_file() and not target.is_symlink()
    mode = target.stat().st_mode & 0o7777 if kept else 0o666 & ~_umask()
    with (
        replacing(target, mode=mode) as file,
        zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
    ):
        archive.writestr(_HEADER, json.dumps({"format": FORMAT, "version": VERSION, **header}))
        with archive.open(_EVENTS, "w", force_zip64=True) as lines:
            for event in events:
                lines.write(json.dumps(to_dict(event), allow_nan=False).encode() + b"\n")


def read_archive(path: str | os.PathLike[str], *, policy: str) -> Archive:
    """Read an archive; any other file is a ValueError that says why."""
    name = str(path)
    try:
        with zipfile.ZipFile(path) as archive:
            old = _HEADER not in archive.namelist()
            for member in archive_1.MEMBERS if old else (_HEADER, _EVENTS):
                _check_size(archive, member, os.path.getsize(path))
            return (_first_format if old else _format)(archive, name, policy=policy)
    except (FileNotFoundError, PermissionError, ForeignFileError):
        raise
    except Exception as error:  # there is no end to the ways in which a file can be damaged
        raise damaged(name, error) from error


def policy_of(path: str | os.PathLike[str]) -> str:
    """Name of the policy in a file; any other file is a ValueError that says why."""
    try:
        with zipfile.ZipFile(path) as archive:
            if _HEADER not in archive.namelist():
                return str(archive_1.read(archive)[0]["policy"])
            _check_size(archive, _HEADER, os.path.getsize(path))
            return str(json.loads(archive.read(_HEADER))["policy"])
    except (FileNotFoundError, PermissionError):
        raise
    except Exception as error:
        raise damaged(str(path), error) from error


def _format(archive: zipfile.ZipFile, name: str, *, policy: str) -> Archive:
    header = json.loads(archive.read(_HEADER))
    _check(name, header, policy=policy, version=VERSION)
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
    return Archive(name, arms, schema, header["settings"], events, arm_schema)


def _first_format(archive: zipfile.ZipFile, name: str, *, policy: str) -> Archive:
    """Read what version 0.1 wrote."""
    header, arrays = archive_1.read(archive)
    _check(name, header, policy=policy, version=1)
    arms, settings, events = archive_1.convert(header, arrays)
    schema = None if header["schema"] is None else Schema.from_json(header["schema"])
    return Archive(name, arms, schema, settings, events)


def _check_size(archive: zipfile.ZipFile, member: str, length: int) -> None:
    """Complain about a member that is far larger than the file of that length, whatever its header says."""
    if member in archive.namelist():
        size, compressed = archive.getinfo(member).file_size, archive.getinfo(member).compress_size
        if size > max(_SMALL, _MOST_COMPRESSED * min(compressed, length)):
            raise OverflowError(f"{member} is {size:,} bytes, compressed beyond belief")


def _check(name: str, header: dict[str, Any], *, policy: str, version: int) -> None:
    found = header["format"], header["version"], header["policy"]
    if found != (FORMAT, version, policy):
        raise ForeignFileError(
            f"path must be a saved {policy!r} policy of format {FORMAT} up to version {VERSION}, "
            f"{name!r} has {found[0]} version {found[1]} of {found[2]!r}"
        )


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
