"""The training loop of ``pfnts pretrain``."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from pfnts.backbones.network.network import CausalPFN
from pfnts.backbones.network.prior.device_rng import DeviceRng
from pfnts.backbones.network.training.minibatches import rounds, seed_of
from pfnts.backbones.network.training.recipe import Recipe
from pfnts.backbones.network.training.state import load_state, save_state
from pfnts.backbones.network.training.step import GraphLearner, Learner

Report = Callable[[dict[str, Any]], None]
Score = Callable[[CausalPFN], dict[str, list[float]]]


def pretrain(
    out: Path,
    recipe: Recipe,
    *,
    device: str = "cpu",
    compiled: bool = True,
    stop_after: float = math.inf,
    score: Score = lambda _: {},
    report: Report = lambda _: None,
    report_every: float = 60.0,
) -> CausalPFN:
    """Train until the recipe's last step, or for ``stop_after`` seconds; resume from the state in ``out``.

    Every ``report_every`` seconds, and at the end, the averaged network is scored, the state is written and a
    row of the log reported. All randomness follows from the recipe's seed and the number of the round, so a
    run that was interrupted sees the same minibatches as one that was not.

    Returns
    -------
    The network with averaged weights.
    """
    out.mkdir(parents=True, exist_ok=True)
    lock = threading.Lock()
    learner = make_learner(recipe, device=device, compiled=compiled, lock=lock)
    progress = load_state(out, learner)
    mean_loss = torch.tensor(progress.loss, device=device)
    begun, before, reported = time.monotonic(), progress.seconds, progress.seconds
    number = progress.step // recipe.steps_per_round
    for minibatches in rounds(recipe, number, device=device, lock=lock):
        rng = DeviceRng(seed_of(recipe.seed + 1, number), device=device)
        number += 1
        for minibatch in minibatches:
            learner.schedule(progress.step)
            batch, rows, features = minibatch.X.shape
            loss = learner.step(minibatch, rng.normal(batch, features, recipe.architecture.identity))
            mean_loss = loss if progress.step == 0 else torch.lerp(mean_loss, loss, 0.02)
            progress.step += 1
            progress.rows += batch * rows
        if device != "cpu":
            torch.cuda.synchronize()
        progress.seconds = before + time.monotonic() - begun
        ended = progress.step >= recipe.steps or progress.seconds - before >= stop_after
        if ended or progress.seconds - reported >= report_every:
            reported, progress.loss = progress.seconds, float(mean_loss)
            row = {
                "step": progress.step,
                "rows": progress.rows,
                "seconds": round(progress.seconds, 1),
                "loss": round(progress.loss, 4),
                "learning_rate": float(learner.rates[0]),
                **score(learner.average),
            }
            progress.log.append(row)
            save_state(out, learner, progress)
            report(row)
        if ended:
            break
    return learner.average


def make_learner(recipe: Recipe, *, device: str, compiled: bool, lock: threading.Lock) -> Learner:
    """Return a network with random weights and what trains it; on a GPU it is ``compiled`` or not."""
    torch.manual_seed(recipe.seed)
    network = CausalPFN(recipe.architecture).to(device)
    if device == "cpu":
        return Learner(network, recipe)
    return GraphLearner(network, recipe, compiled=compiled, lock=lock)
