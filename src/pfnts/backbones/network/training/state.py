"""State of a training run in files: weights, their average, the optimisers' state, log and recipe."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from pfnts.backbones.network.training.recipe import Recipe
from pfnts.backbones.network.training.step import Learner

LARGEST = 15_000_000
"""Bytes of a file: larger states are split, so that each file is easy to move."""


@dataclass
class Progress:
    """Progress of a training run, and its log."""

    step: int = 0
    rows: int = 0
    """Rows of all minibatches, queries included."""
    seconds: float = 0.0
    loss: float = math.nan
    """Running mean."""
    log: list[dict[str, Any]] = field(default_factory=list)


def save_state(out: Path, learner: Learner, progress: Progress) -> None:
    """Write the state of a run to a folder."""
    parts: list[dict[str, Tensor]] = [{}]
    room = LARGEST
    for key, value in _tensors(learner).items():
        room -= value.nbytes
        if room < 0:
            parts.append({})
            room = LARGEST - value.nbytes
        parts[-1][key] = value.detach().contiguous().clone()
    for number, part in enumerate(parts):
        save_file(part, out / f"state-{number}.safetensors")
    about = {"recipe": asdict(learner.recipe), "progress": asdict(progress)}
    (out / "progress.json").write_text(json.dumps(about, indent=1), encoding="utf-8")


def load_state(out: Path, learner: Learner) -> Progress:
    """Read the state of a run in place; without one, the learner does not change."""
    progress = read_progress(out, learner.recipe)
    if not progress.step:
        return progress
    for optimiser in learner.optimisers:  # an update with no gradient makes its state
        for group in optimiser.param_groups:
            for p in group["params"]:
                p.grad = torch.zeros_like(p) if p.grad is None else p.grad.zero_()
    learner.rates[0].zero_()
    learner.rates[1].zero_()
    learner.update()
    tensors = _tensors(learner)
    with torch.no_grad():
        for path in sorted(out.glob("state-*.safetensors")):
            for key, value in load_file(path).items():
                tensors[key].copy_(value)
    return progress


def read_progress(out: Path, recipe: Recipe) -> Progress:
    """Return how far the run in a folder is, which must have the same recipe."""
    path = out / "progress.json"
    if not path.exists():
        return Progress()
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
        found, progress = stored["recipe"], Progress(**stored["progress"])
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(
            f"--out must not hold a damaged state, {path} is damaged: {error}; delete it"
        ) from error
    expected = json.loads(json.dumps(asdict(recipe)))
    for name, value in expected.items():
        if found.get(name) != value:
            raise ValueError(
                f"--out must hold a run of the same recipe, {out} has {name} {found.get(name)}, got {value}; "
                "choose another folder"
            )
    return progress


def _tensors(learner: Learner) -> dict[str, Tensor]:
    found = {f"network.{name}": value for name, value in learner.network.state_dict().items()}
    found |= {f"average.{name}": value for name, value in learner.average.state_dict().items()}
    for number, optimiser in enumerate(learner.optimisers):
        params = [p for group in optimiser.param_groups for p in group["params"]]
        for i, p in enumerate(params):
            found |= {f"optimiser.{number}.{i}.{key}": x for key, x in optimiser.state[p].items()}
    return found
