"""Files that are there whole or not at all, even after a kill or a power cut."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import time
from contextlib import suppress
from pathlib import Path

UNFINISHED = ".unfinished-"
"""How the name of what is still being written begins."""
_ABANDONED = 3600.0
"""Seconds after which what is still unfinished belongs to nobody: writing takes far less."""


def write_file(path: Path, content: bytes | str) -> Path:
    """Replace a file at once by one with this content, making its folder where there is none.

    Examples
    --------
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_file(Path(folder) / "new" / "a.txt", "whole").read_text()
    'whole'
    """
    make_folder(path.parent)
    # Beside its final place, because a rename is atomic only within one file system.
    handle, temporary = tempfile.mkstemp(prefix=UNFINISHED, dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).chmod(0o644)
        os.replace(temporary, path)
    finally:
        Path(temporary).unlink(missing_ok=True)
    sync(path.parent)
    return path


def make_folder(folder: Path) -> None:
    """Make a folder and those above it, and put their names on the disk."""
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for each in missing:
        sync(each.parent)


def tidy(folder: Path) -> None:
    """Remove what processes that were killed while writing have left in a folder."""
    for path in folder.glob(f"{UNFINISHED}*"):
        with suppress(OSError):
            if time.time() - path.stat().st_mtime > _ABANDONED:
                shutil.rmtree(path) if path.is_dir() else path.unlink()


def sync(folder: Path) -> None:
    """Put the names in a folder on the disk, as a file's own `os.fsync` does not."""
    if os.name != "posix":
        return  # elsewhere a folder cannot be opened, and is written with its files
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def folder_at(path: str | os.PathLike[str], *, name: str) -> Path:
    """Give a path back unless something that is no folder is there."""
    folder = Path(path)
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{name} must be a folder, there is a file at {folder}; name another place")
    return folder


def safe_name(text: str, *, most: int = 60) -> str:
    """Turn any text into a short part of a file's name.

    Examples
    --------
    >>> safe_name("data/my pets.csv:pet"), len(safe_name("x" * 300))
    ('data-my-pets.csv-pet', 60)
    """
    return re.sub(r"[^\w.-]+", "-", text, flags=re.ASCII).strip("-.")[:most] or "unnamed"
