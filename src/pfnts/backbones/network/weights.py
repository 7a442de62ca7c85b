"""The network's weights as one file: float16, the network's sizes in the header, nothing pickled."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

import torch
from safetensors.torch import save

from pfnts.backbones.network.network import CausalPFN
from pfnts.files import write_file


def export_weights(network: CausalPFN, path: Path, *, about: Mapping[str, str] | None = None) -> None:
    """Write a file that `EmbeddedBackbone` loads, replacing one that is there in a single move.

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
    >>> from pfnts.backbones.network import EmbeddedBackbone
    >>> from pfnts.backbones.network.network import Architecture
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
    write_file(path, save(halved, metadata=header))


def fingerprint(path: Path) -> str:
    """Sixteen hexadecimal digits that change with the weights or with what the header says.

    Examples
    --------
    >>> from importlib.resources import as_file, files
    >>> with as_file(files("pfnts.backbones.network") / "weights.safetensors") as shipped:
    ...     len(fingerprint(shipped))
    16
    """
    try:
        content = path.read_bytes()
        length = int.from_bytes(content[:8], "little")
        # The header is JSON whose keys come in no fixed order.
        header = json.dumps(json.loads(content[8 : 8 + length]), sort_keys=True)
    except (OSError, ValueError) as error:
        raise ValueError(f"weights must be a safetensors file, got {path}: {error}") from error
    digest = hashlib.sha256(header.encode())
    digest.update(content[8 + length :])
    return digest.hexdigest()[:16]
