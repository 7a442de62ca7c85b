"""Fits the network to its prior: the loop behind ``pfnts pretrain``."""

from __future__ import annotations

import copy
import json
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from pfnts.backbones.embedded.dice import Dice
from pfnts.backbones.embedded.model import Architecture, CausalPFN, rows_of
from pfnts.backbones.embedded.muon import Muon
from pfnts.backbones.embedded.normalisation import Normalisation
from pfnts.backbones.embedded.prior import Tables, draw_tables
from pfnts.backbones.embedded.regressions import opinions_on


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
    cells_per_step: int = 1_000_000
    """Tables in a step are as many as fit both."""
    lengths: tuple[int, ...] = (64, 256, 1024, 2048, 4096)
    length_weights: tuple[float, ...] = (0.05, 0.33, 0.42, 0.14, 0.06)
    widths: tuple[int, ...] = (2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 48, 64)
    width_weights: tuple[float, ...] = (
        0.04,
        0.05,
        0.09,
        0.11,
        0.09,
        0.1,
        0.12,
        0.08,
        0.08,
        0.1,
        0.05,
        0.04,
        0.025,
        0.025,
    )
    steps_per_draw: int = 16
    """Steps that share a shape and one call of the prior, which is slow in small calls."""
    uses: int = 2
    """Steps in which a table is used, each time asked about other rows: opinions are costly."""
    shapes_at_once: int = 4
    """Shapes that take turns, so that steps in a row differ in theirs."""
    seed: int = 0


@dataclass
class Progress:
    """Where a training run stands."""

    step: int = 0
    seconds: float = 0.0
    loss: float = math.nan
    log: list[dict[str, Any]] = field(default_factory=list)


def pretrain(
    out: Path,
    recipe: Recipe,
    *,
    architecture: Architecture | None = None,
    device: str = "cpu",
    begin: Path | None = None,
    stop_after: float = math.inf,
    score: Callable[[CausalPFN], dict[str, list[float]]] = lambda _: {},
    report: Callable[[dict[str, Any]], None] = lambda _: None,
    report_every: float = 60.0,
) -> CausalPFN:
    """Train for the recipe's time or for ``stop_after`` seconds, from what is in ``out`` on.

    Where ``out`` holds nothing yet, training begins from random weights, or from those in the file ``begin``.
    Every ``report_every`` seconds the network is scored, a checkpoint written and a row of the log reported.
    """
    out.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(recipe.seed)
    network = CausalPFN(architecture)
    if begin is not None:
        network.load_state_dict(load_file(begin))
    network = network.to(device)
    optimisers = make_optimisers(network, recipe)
    progress = load_checkpoint(out, network, optimisers)
    working = network
    if device != "cpu":
        working = copy.deepcopy(network).bfloat16()
        compile_cells(working)
        torch.backends.cuda.enable_cudnn_sdp(False)  # its backward pass fails on torch 2.11 with an H200
    dice = Dice(recipe.seed + progress.step, device=device)
    mean_loss = torch.tensor(progress.loss, device=device)
    begun, before, reported = time.monotonic(), progress.seconds, progress.seconds
    for lesson in lessons(recipe, dice):
        schedule(optimisers, recipe, progress)
        loss = training_loss(working, lesson, dice)
        loss.backward()
        if working is not network:
            move_gradients(working, network)
        nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        for optimiser in optimisers:
            optimiser.step()
            optimiser.zero_grad()
        if working is not network:
            move_weights(network, working)
        mean_loss = loss.detach() if progress.step == 0 else torch.lerp(mean_loss, loss.detach(), 0.02)
        progress.step += 1
        progress.seconds = before + time.monotonic() - begun
        ended = progress.seconds >= recipe.seconds or progress.seconds - before >= stop_after
        if ended or progress.seconds - reported >= report_every or progress.step == 20:
            reported = progress.seconds
            progress.loss = float(mean_loss)
            row = {
                "step": progress.step,
                "seconds": round(progress.seconds, 1),
                "loss": round(progress.loss, 4),
                "learning_rate": optimisers[0].param_groups[0]["lr"],
                **score(network),
            }
            progress.log.append(row)
            save_checkpoint(out, network, optimisers, progress, recipe)
            report(row)
        if ended:
            break
    return network


@dataclass(frozen=True)
class Lesson:
    """Tables as the network sees them, and what it is to say."""

    X: Tensor
    """(B, n, P)"""
    y: Tensor
    """(B, n)"""
    opinions: Tensor
    """(B, n, 13)"""
    mean: Tensor
    """(B, n)"""
    again: Tensor
    """(draws, B, n)"""

    @classmethod
    def of(cls, tables: Tables, *, known: int) -> Lesson:
        """Normalise tables by their first ``known`` rows."""
        norm = Normalisation.of(tables.X[:, :known], tables.y[:, :known])
        X, y = norm.contexts(tables.X), norm.targets(tables.y)
        return cls(X, y, opinions_on(X, y), norm.targets(tables.mean), norm.targets(tables.again))

    def parts(self, count: int) -> list[Lesson]:
        """Split the batch."""
        by_table = (part.chunk(count) for part in (self.X, self.y, self.opinions, self.mean))
        return list(map(Lesson, *by_table, self.again.chunk(count, 1)))


def lessons(recipe: Recipe, dice: Dice) -> Iterator[Lesson]:
    """Give step after step what to learn from, without end."""
    drawn: list[list[Lesson]] = []
    while True:
        while len(drawn) < recipe.shapes_at_once:
            drawn.append(draw_lessons(recipe, dice))
        of_shape = drawn[dice.integer(0, len(drawn) - 1)]
        yield of_shape.pop(dice.integer(0, len(of_shape) - 1))
        drawn = [rest for rest in drawn if rest]


def draw_lessons(recipe: Recipe, dice: Dice) -> list[Lesson]:
    """Draw the lessons of several steps, all of one shape; halves differ in how they are normalised."""
    rows = recipe.lengths[dice.choice(list(recipe.length_weights))]
    features = recipe.widths[dice.choice(list(recipe.width_weights))]
    fit = min(recipe.rows_per_step // rows, recipe.cells_per_step // (rows * features))
    batch = max(8, fit // 8 * 8)
    drawn = draw_tables(batch * recipe.steps_per_draw, rows, features, dice=dice, groups=16)
    order = torch.randperm(len(drawn.X), device=drawn.X.device, generator=dice.generator)
    found: list[Lesson] = []
    for half in order.chunk(2):
        tables = Tables(drawn.X[half], drawn.y[half], drawn.mean[half], drawn.again[:, half])
        known = 2 + round((rows - 2) * dice.log_uniform(0.002, 1.0))
        found += Lesson.of(tables, known=known).parts(recipe.steps_per_draw // 2)
    return found * recipe.uses


def training_loss(network: CausalPFN, lesson: Lesson, dice: Dice) -> Tensor:
    """Squared error of the mean, against the true one, and pinball loss, against fresh rewards.

    Both have the minimisers of losses against the observed rewards, with far less noise in the gradient.
    """
    batch, rows, features = lesson.X.shape
    stretches = draw_stretches(rows, dice)
    asked = rows_of(stretches, device=dice.device)
    identity = dice.normal(batch, features, network.architecture.identity)
    mean, quantiles = network(lesson.X, lesson.y, identity, stretches, lesson.opinions)
    scale = lesson.y.std(1, keepdim=True) + 0.1
    # Where noise hides the signal, being near the mean counts as much as where it does not.
    signal = lesson.mean.std(1, keepdim=True) + 0.2 * scale
    return loss_of(mean, quantiles, lesson.mean[:, asked], lesson.again[:, :, asked], scale, signal)


def draw_stretches(rows: int, dice: Dice, *, dense: int = 32) -> list[range]:
    """Choose the rows to predict: the first ones, where most is learned, and two stretches further on."""
    if rows <= dense:
        return [range(rows)]
    length = max(1, min(rows // 8, rows - dense))
    starts = [dice.integer(dense, rows - length) for _ in range(2)]
    return [range(dense), *(range(start, start + length) for start in starts)]


def compile_cells(network: CausalPFN) -> None:
    """Fuse what is done to every cell: most of the memory traffic; the rest is fast as it is."""
    row_wise: list[nn.Module] = [network.cells, *network.across, network.readout.pool]
    for block in network.columns:
        row_wise += [block.norm, block.feed_forward]
    for module in row_wise:
        module.compile(dynamic=True)


def move_gradients(working: nn.Module, master: nn.Module) -> None:
    """Hand the gradients of the low-precision copy to the weights that are trained."""
    pairs = [
        (w.grad, m)
        for w, m in zip(working.parameters(), master.parameters(), strict=True)
        if w.grad is not None
    ]
    for gradient, m in pairs:
        m.grad = gradient.float() if m.grad is None else m.grad.copy_(gradient)
    working.zero_grad()


@torch.no_grad()
def move_weights(master: nn.Module, working: nn.Module) -> None:
    """Round the trained weights into the low-precision copy."""
    torch._foreach_copy_(list(working.parameters()), list(master.parameters()))


def loss_of(
    mean: Tensor, quantiles: Tensor, true_mean: Tensor, targets: Tensor, scale: Tensor, signal: Tensor
) -> Tensor:
    """Loss of predictions (B, n), (B, n, Q) given means (B, n), over ``signal``, and targets, over ``scale``.

    Targets are (draws, B, n), ``signal`` and ``scale`` (B, 1).
    """
    squared = (((mean - true_mean) / signal) ** 2).mean()
    level = quantile_levels(quantiles.shape[-1], device=quantiles.device)
    error = targets[..., None] - quantiles
    pinball = torch.maximum(level * error, (level - 1) * error).mean(-1) / scale
    return squared + pinball.mean()


def quantile_levels(count: int, *, device: str | torch.device = "cpu") -> Tensor:
    """Levels at which the network gives quantiles."""
    return torch.arange(1, count + 1, device=device) / (count + 1)


def make_optimisers(network: CausalPFN, recipe: Recipe) -> list[torch.optim.Optimizer]:
    """Muon for the matrices between layers, Adam for embeddings, norms and the head."""
    outer = ("cells.", "target.", "head.out.")
    inner = [
        p
        for name, p in network.named_parameters()
        if p.ndim == 2 and not name.startswith(outer) and "score" not in name
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


def save_checkpoint(
    out: Path, network: CausalPFN, optimisers: list[torch.optim.Optimizer], progress: Progress, recipe: Recipe
) -> None:
    """Write weights, optimiser state, log and recipe."""
    save_file(dict(network.state_dict()), out / "network.safetensors")
    state = {f"{o}.{i}.{key}": value for o, opt in enumerate(optimisers) for i, key, value in _state(opt)}
    save_file(state, out / "optimisers.safetensors")
    about = {
        "recipe": asdict(recipe),
        "architecture": asdict(network.architecture),
        "progress": asdict(progress),
    }
    (out / "progress.json").write_text(json.dumps(about, indent=1))


def load_checkpoint(out: Path, network: CausalPFN, optimisers: list[torch.optim.Optimizer]) -> Progress:
    """Read what `save_checkpoint` wrote, if it is there."""
    if not (out / "progress.json").exists():
        return Progress()
    network.load_state_dict(load_file(out / "network.safetensors"))
    state = load_file(out / "optimisers.safetensors", device=str(next(network.parameters()).device))
    for o, optimiser in enumerate(optimisers):
        params = [p for group in optimiser.param_groups for p in group["params"]]
        for name, value in state.items():
            which, index, key = name.split(".", 2)
            if int(which) == o:
                optimiser.state[params[int(index)]][key] = value
    return Progress(**json.loads((out / "progress.json").read_text())["progress"])


def _state(optimiser: torch.optim.Optimizer) -> Iterator[tuple[int, str, Tensor]]:
    params = [p for group in optimiser.param_groups for p in group["params"]]
    for i, p in enumerate(params):
        for key, value in optimiser.state[p].items():
            yield i, key, value.detach().clone().contiguous()
