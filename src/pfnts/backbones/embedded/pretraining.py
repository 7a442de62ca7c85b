"""Fits the network to its prior: the loop behind ``pfnts pretrain``."""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import MethodType
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn import functional as F

from pfnts.backbones.embedded.checkpoints import Progress, load_checkpoint, save_checkpoint
from pfnts.backbones.embedded.device_rng import DeviceRng
from pfnts.backbones.embedded.kernels import CENTRES
from pfnts.backbones.embedded.model import Architecture, CausalPFN
from pfnts.backbones.embedded.muon import Muon
from pfnts.backbones.embedded.normalisation import Normalisation
from pfnts.backbones.embedded.prior import Tables, draw_tables
from pfnts.backbones.embedded.regressions import Regressions

MATRICES = 2**28
"""Entries of matrices that regressions of many tables may hold together."""
MOST_KNOWN = 2048
"""From as many rows on a history keeps its scale."""


@dataclass(frozen=True)
class Recipe:
    """How to train."""

    seconds: float = 900.0
    """Time to train for; the learning rate falls to nothing at its end."""
    learning_rate: float = 4e-3
    adam_rate: float = 1.5e-3
    """Learning rate of what is not a matrix between layers."""
    warmup_steps: int = 200
    rows_per_step: int = 65_536
    cells_per_step: int = 800_000
    """Tables in a step are as many as fit both."""
    lengths: tuple[int, ...] = (0, 64, 128, 256, 512, 1024, 2048, 4096, 8192)
    """Rows of a table; 0 stands for histories of fewer than 32 rows."""
    length_weights: tuple[float, ...] = (0.09, 0.11, 0.14, 0.18, 0.17, 0.17, 0.09, 0.04, 0.01)
    late_length_weights: tuple[float, ...] = (0.08, 0.09, 0.1, 0.14, 0.14, 0.17, 0.13, 0.1, 0.05)
    """The same for the last part of the training."""
    late: float = 0.75
    """Share of the time after which the last part begins."""
    few: tuple[int, ...] = (1, 2, 3, 4, 5, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30)
    """Rows of short histories."""
    widths: tuple[int, ...] = (2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 48, 64, 100)
    width_weights: tuple[float, ...] = (
        *(0.03, 0.05, 0.08, 0.1, 0.09, 0.1, 0.13, 0.08, 0.09, 0.1, 0.05, 0.04, 0.03, 0.02, 0.01),
    )
    steps_per_draw: int = 16
    """Steps that share a shape and one call of the prior, which is slow in small calls."""
    uses: int = 2
    """Steps in which a table is used, its columns told apart in another way each time."""
    shapes_at_once: int = 6
    """Shapes that take turns, so that steps in a row differ in theirs."""
    seed: int = 0


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
    report_every: float = 60.0,
) -> CausalPFN:
    """Train for the recipe's time or for ``stop_after`` seconds, from what is in ``out`` on.

    Where ``out`` holds nothing yet, training begins from random weights, or from those in the file ``begin``.
    On a GPU the network is ``compiled``, which takes two minutes and pays in long runs.
    Every ``report_every`` seconds the network is scored, a checkpoint written and a row of the log reported.
    """
    out.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(recipe.seed)
    network = CausalPFN(architecture)
    if begin is not None:
        network.load_state_dict({name: x.float() for name, x in load_file(begin).items()})
    network = network.to(device)
    optimisers = make_optimisers(network, recipe)
    progress = load_checkpoint(out, network, optimisers)
    working = network
    if device != "cpu":
        working = copy.deepcopy(network).bfloat16()
        torch.backends.cuda.enable_cudnn_sdp(False)  # its backward pass fails on torch 2.11 with an H200
        if compiled:
            compile_parts(working)
    rng = DeviceRng(recipe.seed + progress.step, device=device)
    mean_loss = torch.tensor(progress.loss, device=device)
    begun, before, reported = time.monotonic(), progress.seconds, progress.seconds
    for minibatch in minibatches(recipe, rng, progress):
        schedule(optimisers, recipe, progress)
        loss = training_loss(working, minibatch, rng)
        loss.backward()
        if working is not network:
            move_gradients(working, network)
        nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        for optimiser in optimisers:
            optimiser.step()
        if working is not network:
            move_weights(network, working)
        working.zero_grad()
        mean_loss = loss.detach() if progress.step == 0 else torch.lerp(mean_loss, loss.detach(), 0.02)
        progress.step += 1
        progress.seconds = before + time.monotonic() - begun
        ended = progress.seconds >= recipe.seconds or progress.seconds - before >= stop_after
        if ended or progress.seconds - reported >= report_every or progress.step == 20:
            progress.loss = float(mean_loss)
            row = {
                "step": progress.step,
                "seconds": round(progress.seconds, 1),
                "loss": round(progress.loss, 4),
                "learning_rate": optimisers[0].param_groups[0]["lr"],
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


@dataclass(frozen=True)
class Minibatch:
    """Tables as the network sees them, and what it is to say of their last rows."""

    X: Tensor
    """(B, n, P)"""
    y: Tensor
    """(B, n)"""
    base_predictions: Tensor
    """(B, n, BASE_PREDICTIONS)"""
    mean: Tensor
    """(B, q)"""
    again: Tensor
    """(draws, B, q)"""
    together: bool
    """Whether the last rows are asked for after the rows before the first of them."""

    @classmethod
    def of(cls, tables: Tables, *, asked: int, known: int, together: bool) -> Minibatch:
        """Normalise tables by their first ``known`` rows."""
        norm = Normalisation.of(tables.X[:, :known], tables.y[:, :known])
        X, y = norm.contexts(tables.X), norm.targets(tables.y)
        mean, again = norm.targets(tables.mean[:, -asked:]), norm.targets(tables.again[:, :, -asked:])
        first = X.shape[1] - (asked if together else 1)

        def base_predictions(X: Tensor, y: Tensor) -> Tensor:
            regressions = Regressions()
            said = regressions.extend(X[:, :first], y[:, :first])
            return torch.cat([said, regressions.base_predictions(X[:, first:], [first])], 1)

        basis = max(5 * X.shape[2] + 1, X.shape[2] + 1 + min(CENTRES, X.shape[1]))
        at_once = max(1, MATRICES // basis**2)
        told = [base_predictions(*part) for part in zip(X.split(at_once), y.split(at_once), strict=True)]
        return cls(X, y, torch.cat(told), mean, again, together)

    def parts(self, count: int) -> list[Minibatch]:
        """Split the batch."""
        by_table = [part.chunk(count) for part in (self.X, self.y, self.base_predictions, self.mean)]
        each = zip(*by_table, self.again.chunk(count, 1), strict=True)
        return [Minibatch(X, y, told, mean, again, self.together) for X, y, told, mean, again in each]


def minibatches(recipe: Recipe, rng: DeviceRng, progress: Progress) -> Iterator[Minibatch]:
    """Give step after step what to learn from, without end."""
    drawn: list[list[Minibatch]] = []
    while True:
        while len(drawn) < recipe.shapes_at_once:
            late = progress.seconds >= recipe.late * recipe.seconds
            now = replace(recipe, length_weights=recipe.late_length_weights) if late else recipe
            drawn.append(draw_minibatches(now, rng))
        of_shape = drawn[rng.integer(0, len(drawn) - 1)]
        yield of_shape.pop(rng.integer(0, len(of_shape) - 1))
        drawn = [rest for rest in drawn if rest]


def draw_minibatches(recipe: Recipe, rng: DeviceRng) -> list[Minibatch]:
    """Draw the minibatches of several steps; parts of them differ in how they are normalised.

    A history of t rows is shown normalised by its first b(t): by all of them while they are few, else by 40
    to 100 % of them, and never by more than some 2,048. So are these.
    """
    rows = recipe.lengths[rng.choice(list(recipe.length_weights))]
    features = recipe.widths[rng.choice(list(recipe.width_weights))]
    few, asked = rows == 0, max(32, rows // 4)
    rows = rows or max(recipe.few) + asked
    fit = min(recipe.rows_per_step // rows, recipe.cells_per_step // (rows * features))
    batch, steps = max(8, fit // 8 * 8), recipe.steps_per_draw
    drawn = draw_tables(batch * steps, rows, features, rng=rng, groups=steps)
    order = torch.randperm(len(drawn.X), device=drawn.X.device, generator=rng.generator)
    found: list[Minibatch] = []
    parts = steps // 2 if few else 2
    for part in order.chunk(parts):
        if few:
            known = recipe.few[rng.integer(0, len(recipe.few) - 1)]
            rows = known + asked
        else:
            known = round(rng.log_uniform(min(rows / 2.5, MOST_KNOWN), min(rows - asked, 1.5 * MOST_KNOWN)))
        tables = Tables(
            drawn.X[part, :rows], drawn.y[part, :rows], drawn.mean[part, :rows], drawn.again[:, part, :rows]
        )
        minibatch = Minibatch.of(tables, asked=asked, known=known, together=few)
        found += minibatch.parts(steps // parts)
    return found * recipe.uses


def training_loss(network: CausalPFN, minibatch: Minibatch, rng: DeviceRng) -> Tensor:
    """Squared error and likelihood of the mean, given the true one, and pinball loss, given fresh rewards.

    They have the minimisers of losses against the observed rewards, with far less noise in the gradient.
    """
    batch, _, features = minibatch.X.shape
    asked = minibatch.mean.shape[1]
    identity = rng.normal(batch, features, network.architecture.identity)
    said = network(
        minibatch.X,
        minibatch.y,
        identity,
        minibatch.base_predictions,
        asked=asked,
        together=minibatch.together,
    )
    scale = minibatch.y.std(1, keepdim=True) + 0.1
    # Where noise hides the signal, being near the mean counts as much as where it does not.
    signal = minibatch.mean.std(1, keepdim=True) + 0.2 * scale + 0.03
    mean, quantiles, log_sd = said
    return loss_of(mean, quantiles, log_sd, minibatch.mean, minibatch.again, scale, signal)


def compile_parts(network: CausalPFN, *, backend: str = "inductor") -> None:
    """Fuse what is done between attentions, for all shapes at once; blocks alike share what is compiled."""
    torch._dynamo.config.cache_size_limit = 64
    parts: list[tuple[list[nn.Module], str]] = [
        ([*network.columns, *network.in_context], "ask"),
        ([*network.columns, *network.in_context], "finish"),
        (list(network.across), "forward"),
        ([network.readout], "forward"),
        ([network.cells], "forward"),
        ([network.head], "forward"),
    ]
    for modules, name in parts:
        compiled = torch.compile(getattr(type(modules[0]), name), dynamic=True, backend=backend)
        for module in modules:
            setattr(module, name, MethodType(compiled, module))


@torch.no_grad()
def move_gradients(working: nn.Module, master: nn.Module) -> None:
    """Hand the gradients of the low-precision copy to the weights that are trained."""
    found, to = [], []
    for w, m in zip(working.parameters(), master.parameters(), strict=True):
        if m.grad is None:
            m.grad = torch.zeros_like(m)
        if w.grad is not None:
            found.append(w.grad)
            to.append(m.grad)
    torch._foreach_copy_(to, found)


@torch.no_grad()
def move_weights(master: nn.Module, working: nn.Module) -> None:
    """Round the trained weights into the low-precision copy."""
    torch._foreach_copy_(list(working.parameters()), list(master.parameters()))


SPREAD_WEIGHT = 0.1
FAR = 4.0
"""An error of more than as many standard deviations costs in proportion, not by its square."""


def loss_of(
    mean: Tensor,
    quantiles: Tensor,
    log_sd: Tensor,
    true_mean: Tensor,
    targets: Tensor,
    scale: Tensor,
    signal: Tensor,
) -> Tensor:
    """Loss of predictions (B, n), (B, n, Q), (B, n), given true means (B, n) and targets (draws, B, n).

    Errors of the mean are counted over ``signal`` (B, 1), the pinball loss over ``scale`` (B, 1).
    """
    squared = 2 * F.huber_loss(mean / signal, true_mean / signal, delta=FAR)
    level = quantile_levels(quantiles.shape[-1], device=quantiles.device)
    error = targets[..., None] - quantiles
    pinball = torch.maximum(level * error, (level - 1) * error).mean(-1) / scale
    away = ((true_mean - mean.detach()) * torch.exp(-log_sd)).abs()
    surprise = log_sd + torch.where(away < FAR, away**2 / 2, FAR * away - FAR**2 / 2)
    return squared + pinball.mean() + SPREAD_WEIGHT * surprise.mean()


def quantile_levels(count: int, *, device: str | torch.device = "cpu") -> Tensor:
    """Levels at which the network gives quantiles."""
    return torch.arange(1, count + 1, device=device) / (count + 1)


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
    fused = rest[0].is_cuda
    return [
        Muon(inner, lr=recipe.learning_rate),
        torch.optim.AdamW(rest, lr=recipe.adam_rate, betas=(0.9, 0.98), weight_decay=0.0, fused=fused),
    ]


def schedule(optimisers: list[torch.optim.Optimizer], recipe: Recipe, progress: Progress) -> None:
    """Set the learning rates: a short rise, then a straight line down to nothing."""
    factor = min(1.0, (progress.step + 1) / recipe.warmup_steps) * max(
        0.0, 1 - progress.seconds / recipe.seconds
    )
    for optimiser, rate in zip(optimisers, (recipe.learning_rate, recipe.adam_rate), strict=True):
        for group in optimiser.param_groups:
            group["lr"] = rate * factor
