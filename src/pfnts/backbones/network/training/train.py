"""Fits the network to its prior: the loop behind ``pfnts pretrain``."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file

from pfnts.backbones.network.network import Architecture, CausalPFN
from pfnts.backbones.network.prior.device_rng import DeviceRng
from pfnts.backbones.network.training.checkpoints import Progress, load_checkpoint, save_checkpoint
from pfnts.backbones.network.training.minibatches import minibatches
from pfnts.backbones.network.training.muon import Muon
from pfnts.backbones.network.training.recipe import Recipe
from pfnts.backbones.network.training.steps import GraphSteps, Steps


def pretrain(
    out: Path,
    recipe: Recipe,
    *,
    architecture: Architecture | None = None,
    device: str = "cpu",
    begin: Path | None = None,
    compiled: bool = True,
    stop_after: float = math.inf,
    score: Callable[[CausalPFN], dict[str, list[float]]] = lambda _: {},
    report: Callable[[dict[str, Any]], None] = lambda _: None,
    prepared: Callable[[int], None] = lambda _: None,
    report_every: float = 60.0,
) -> CausalPFN:
    """Train for the recipe's time or for ``stop_after`` seconds, from what is in ``out`` on.

    Where ``out`` holds nothing yet, training begins from random weights, or from those in the file ``begin``.
    On a GPU the network is ``compiled``, which takes two minutes and pays in long runs, and steps for every
    shape of a minibatch are recorded; ``prepared`` is told how many are. None of this counts as time.
    Every ``report_every`` seconds the network is scored, a checkpoint written and a row of the log reported.
    """
    out.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(recipe.seed)
    network = CausalPFN(architecture)
    if begin is not None:
        network.load_state_dict({name: x.float() for name, x in load_file(begin).items()})
    network = network.to(device)
    optimisers = make_optimisers(network, recipe)
    if device == "cpu":
        step = Steps(network, optimisers)
    else:
        set_rates(optimisers, recipe, 0.0)
        step = GraphSteps(network, optimisers, compiled=compiled)
        step.record(recipe.shapes(), rng=DeviceRng(recipe.seed, device=device), report=prepared)
    progress = load_checkpoint(out, network, optimisers)
    rng = DeviceRng(recipe.seed + progress.step, device=device)
    for_columns = DeviceRng(recipe.seed + progress.step + 1, device=device)
    mean_loss = torch.tensor(progress.loss, device=device)
    begun, before, reported = time.monotonic(), progress.seconds, progress.seconds
    for minibatch in minibatches(recipe, rng, progress):
        schedule(optimisers, recipe, progress)
        loss = step(minibatch, for_columns)
        mean_loss = loss if progress.step == 0 else torch.lerp(mean_loss, loss, 0.02)
        progress.step += 1
        progress.seconds = before + time.monotonic() - begun
        ended = progress.seconds >= recipe.seconds or progress.seconds - before >= stop_after
        if ended or progress.seconds - reported >= report_every or progress.step == 20:
            progress.loss = float(mean_loss)
            row = {
                "step": progress.step,
                "seconds": round(progress.seconds, 1),
                "loss": round(progress.loss, 4),
                "learning_rate": float(optimisers[0].param_groups[0]["lr"]),
                **score(network),
            }
            progress.log.append(row)
            about = {"recipe": asdict(recipe), "architecture": asdict(network.architecture)}
            save_checkpoint(out, network, optimisers, progress, about)
            report(row)
            reported = progress.seconds
        if ended:
            break
    return network


def make_optimisers(network: CausalPFN, recipe: Recipe) -> list[torch.optim.Optimizer]:
    """Muon for the matrices between layers, Adam for embeddings, norms and the head."""
    outer = ("cells.", "target.", "head.out.", "head.spread.")
    inner = [
        p
        for name, p in network.named_parameters()
        if p.ndim == 2 and not name.startswith(outer) and "score" not in name and "sharpness" not in name
    ]
    chosen = {id(p) for p in inner}
    rest = [p for p in network.parameters() if id(p) not in chosen]
    on_gpu = rest[0].is_cuda
    # In recorded steps a number would be what it was when they were recorded.
    muon, adam = (
        torch.tensor(rate, device=rest[0].device) if on_gpu else rate
        for rate in (recipe.learning_rate, recipe.adam_rate)
    )
    of_rest = torch.optim.AdamW(
        rest, lr=adam, betas=(0.9, 0.98), weight_decay=0.0, fused=on_gpu, capturable=on_gpu
    )
    return [Muon(inner, lr=muon), of_rest]


def schedule(optimisers: Sequence[torch.optim.Optimizer], recipe: Recipe, progress: Progress) -> None:
    """Set the learning rates: a short rise, then a straight line down to nothing."""
    rise = min(1.0, (progress.step + 1) / recipe.warmup_steps)
    set_rates(optimisers, recipe, rise * max(0.0, 1 - progress.seconds / recipe.seconds))


def set_rates(optimisers: Sequence[torch.optim.Optimizer], recipe: Recipe, factor: float) -> None:
    """Set the learning rates to a share of the largest."""
    for optimiser, rate in zip(optimisers, (recipe.learning_rate, recipe.adam_rate), strict=True):
        for group in optimiser.param_groups:
            if isinstance(group["lr"], torch.Tensor):
                group["lr"].fill_(rate * factor)
            else:
                group["lr"] = rate * factor
