"""The network's weights as one file: float16, with the sizes of the network in its header, nothing pickled."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

import torch
from safetensors.torch import save

from pfnts.backbones.embedded.model import CausalPFN


def export_weights(network: CausalPFN, path: Path, *, about: Mapping[str, str] | None = None) -> None:
    """Write a file that `EmbeddedBackbone` loads; one that is there already is replaced at the end, in one move.

    Parameters
    ----------
    network
        What to write.
    path
        Where to.
    about
        Words to keep in the file's header beside the architecture.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from pfnts.backbones.embedded import EmbeddedBackbone
    >>> from pfnts.backbones.embedded.model import Architecture
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "small.safetensors"
    ...     export_weights(CausalPFN(Architecture(layers=1)), path)
    ...     EmbeddedBackbone(weights=path).name
    'embedded'
    """
    halved = {
        name: tensor.detach().cpu().half().contiguous() for name, tensor in network.state_dict().items()
    }
    for name, tensor in halved.items():
        if not torch.isfinite(tensor).all():
            raise ValueError(
                f"network must have weights within the range of float16, got others in {name}; "
                "train with a lower learning rate"
            )
    header = {**(about or {}), "architecture": json.dumps(asdict(network.architecture))}
    unfinished = path.with_name(f"{path.name}.part")
    unfinished.write_bytes(save(halved, metadata=header))
    os.replace(unfinished, path)


def fingerprint(path: Path) -> str:
    """Sixteen hexadecimal digits that change with the file's content.

    Examples
    --------
    >>> from importlib.resources import as_file, files
    >>> with as_file(files("pfnts.backbones.embedded") / "weights.safetensors") as shipped:
    ...     len(fingerprint(shipped))
    16
    """
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]
