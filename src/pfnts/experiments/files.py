"""Names and places of what experiments write."""

from __future__ import annotations

import os
import re
from pathlib import Path


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
