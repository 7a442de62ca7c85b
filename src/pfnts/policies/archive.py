"""One file of arrays and JSON: how policies are saved. Nothing is pickled."""

from __future__ import annotations

import json
import os
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

_FORMAT = "pfnts-policy"
_VERSION = 1


def write_archive(
    path: str | os.PathLike[str], *, policy: str, header: dict[str, Any], arrays: dict[str, NDArray[Any]]
) -> None:
    """Write an archive in one step: a reader sees the old file or the new one, never half of it.

    Parameters
    ----------
    path
        Where to; taken as it is, whatever its ending.
    policy
        Name of the policy, which `read_archive` asks for.
    header
        Plain JSON.
    arrays
        Numeric arrays by name.
    """
    target = Path(path)
    text = json.dumps({"format": _FORMAT, "version": _VERSION, "policy": policy, **header})
    partial = target.with_name(target.name + ".partial")
    with partial.open("wb") as file:
        np.savez_compressed(file, allow_pickle=False, header=np.frombuffer(text.encode(), np.uint8), **arrays)
    partial.replace(target)


def read_archive(
    path: str | os.PathLike[str], *, policy: str
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Read the header and the arrays of an archive; any other file is a ValueError that says why."""
    try:
        with np.load(Path(path), allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        header = json.loads(arrays.pop("header").tobytes().decode())
        found = header["format"], header["version"], header["policy"]
    except FileNotFoundError:
        raise
    except (
        OSError,
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        EOFError,
        zipfile.BadZipFile,
        zlib.error,
    ) as error:
        raise ValueError(
            f"path must be a saved policy, {str(path)!r} is not one or is damaged ({type(error).__name__})"
        ) from error
    if found != (_FORMAT, _VERSION, policy):
        raise ValueError(
            f"path must be a saved {policy!r} policy of format {_FORMAT} version {_VERSION}, "
            f"{str(path)!r} has {found[0]} version {found[1]} of {found[2]!r}"
        )
    return header, arrays
