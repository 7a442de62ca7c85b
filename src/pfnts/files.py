"""Files that are there whole or not at all, even after a kill or a power cut."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

UNFINISHED = ".unfinished-"
"""How the name of what is still being written begins."""
_ABANDONED = 3600.0
"""Seconds after which what is still unfinished belongs to nobody: writing takes far less."""


@contextmanager
def replacing(path: Path, *, mode: int = 0o644) -> Iterator[BinaryIO]:
    """Open a file that takes the place of another at once when it is written, and is on the disk then."""
    # Beside its final place, because a rename is atomic only within one file system.
    handle, temporary = tempfile.mkstemp(prefix=UNFINISHED, dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            os.chmod(temporary, mode)
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        Path(temporary).unlink(missing_ok=True)
    sync(path.parent)


def write_file(path: Path, content: bytes | str) -> Path:
    """Replace a file at once by one with this content, making its folder where there is none.

    Examples
    --------
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_file(Path(folder) / "new" / "a.txt", "whole").read_text()
    'whole'
    """
    make_folder(path.parent)
    with replacing(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)
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
