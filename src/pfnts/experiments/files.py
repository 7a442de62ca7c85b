"""Names and places of what experiments write."""

from __future__ import annotations

import hashlib
import os
import re
from collections import Counter
from collections.abc import Sequence
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


def safe_names(texts: Sequence[str]) -> list[str]:
    """Do the same for several texts, each with a name of its own, on disks that know no capitals as well.

    Examples
    --------
    >>> safe_names(["linear", "my pets.csv:pet", "My pets.csv:pet"])
    ['linear', 'my-pets.csv-pet-c9a2447a', 'My-pets.csv-pet-86ed0aca']
    """
    short = [safe_name(text) for text in texts]
    alike = Counter(name.lower() for name in short)
    sums = [hashlib.sha256(text.encode()).hexdigest()[:8] for text in texts]
    return [
        name if alike[name.lower()] == 1 else f"{name}-{own}" for name, own in zip(short, sums, strict=True)
    ]
