"""Checkpoints of a training run: weights, the optimisers' state, log and recipe."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

LARGEST = 15_000_000
"""Bytes of a file: more are split, so that each is easy to move."""


@dataclass
class Progress:
    """Where a training run stands."""

    step: int = 0
    seconds: float = 0.0
    loss: float = math.nan
    log: list[dict[str, Any]] = field(default_factory=list)


def save_checkpoint(
    out: Path,
    network: nn.Module,
    optimisers: list[torch.optim.Optimizer],
    progress: Progress,
    about: dict[str, Any],
) -> None:
    """Write weights, optimiser state (in bfloat16), log and what else is to be known."""
    _save(out, "network", dict(network.state_dict()))
    state = {f"{o}.{i}.{key}": value for o, opt in enumerate(optimisers) for i, key, value in _state(opt)}
    _save(out, "optimisers", {name: x.bfloat16() if x.ndim else x for name, x in state.items()})
    (out / "progress.json").write_text(json.dumps({**about, "progress": asdict(progress)}, indent=1))


def load_checkpoint(out: Path, network: nn.Module, optimisers: list[torch.optim.Optimizer]) -> Progress:
    """Read what `save_checkpoint` wrote, if it is there."""
    if not (out / "progress.json").exists():
        return Progress()
    device = str(next(network.parameters()).device)
    network.load_state_dict(_load(out, "network", device))
    state = _load(out, "optimisers", device)
    for o, optimiser in enumerate(optimisers):
        params = [p for group in optimiser.param_groups for p in group["params"]]
        for name, value in state.items():
            which, index, key = name.split(".", 2)
            if int(which) == o:
                found = optimiser.state[params[int(index)]].setdefault(key, torch.empty_like(value).float())
                found.copy_(value)  # in place: recorded graphs know where it lies
    return Progress(**json.loads((out / "progress.json").read_text())["progress"])


def _save(out: Path, name: str, tensors: dict[str, Tensor]) -> None:
    parts: list[dict[str, Tensor]] = [{}]
    room = LARGEST
    for key, value in tensors.items():
        room -= value.nbytes
        if room < 0:
            parts.append({})
            room = LARGEST - value.nbytes
        parts[-1][key] = value.contiguous()
    for number, part in enumerate(parts):
        save_file(part, out / f"{name}-{number}.safetensors")


def _load(out: Path, name: str, device: str) -> dict[str, Tensor]:
    found: dict[str, Tensor] = {}
    for path in sorted(out.glob(f"{name}-*.safetensors")):
        found |= load_file(path, device=device)
    return found


def _state(optimiser: torch.optim.Optimizer) -> Iterator[tuple[int, str, Tensor]]:
    params = [p for group in optimiser.param_groups for p in group["params"]]
    for i, p in enumerate(params):
        for key, value in optimiser.state[p].items():
            yield i, key, value.detach().clone().contiguous()
