"""One step of training: the gradient of a minibatch's loss, then the update of the weights.

On a GPU gradients are those of a bfloat16 copy of the network. A step is hundreds of small kernels, which
take longer to launch than to run; so each shape's step is recorded as a CUDA graph and launched as one.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from types import MethodType

import torch
import torch._inductor.config
from torch import Tensor, nn

from pfnts.backbones.network.network import CausalPFN
from pfnts.backbones.network.training.loss import training_loss
from pfnts.backbones.network.training.minibatches import Minibatch
from pfnts.backbones.network.training.muon import Muon
from pfnts.backbones.network.training.recipe import Recipe, Shape

LARGEST_NORM = 1.0
"""Norm at which gradients are clipped."""


class Learner:
    """A network in training, the average of its weights over the last steps, and the optimisers.

    Examples
    --------
    >>> from pfnts.backbones.network.training.recipe import read_recipe
    >>> recipe = read_recipe("tiny")
    >>> learner = Learner(CausalPFN(recipe.architecture), recipe)
    >>> learner.schedule(recipe.steps)
    >>> float(learner.rates[0])
    0.0
    """

    def __init__(self, network: CausalPFN, recipe: Recipe) -> None:
        self.network, self.recipe = network, recipe
        self.average = copy.deepcopy(network).requires_grad_(False)
        self.optimisers, self.rates = make_optimisers(network, recipe)
        self._share = torch.ones((), device=self.rates[0].device)  # of the newest weights in the average

    def schedule(self, step: int) -> None:
        """Set the learning rates, and how much the weights after a step count in the average."""
        recipe = self.recipe
        factor = min(1.0, (step + 1) / recipe.warmup) * max(0.0, 1 - step / recipe.steps)
        for rate, largest in zip(self.rates, (recipe.learning_rate, recipe.adam_rate), strict=True):
            rate.fill_(largest * factor)
        averaged = step - int((1 - recipe.averaged) * recipe.steps)
        self._share.fill_(1 / (1 + max(0, averaged)))

    def update(self) -> None:
        """Update the weights by their gradients, and the average by the weights."""
        nn.utils.clip_grad_norm_(self.network.parameters(), LARGEST_NORM)
        for optimiser in self.optimisers:
            optimiser.step()
        average = tensors_of(self.average)
        with torch.no_grad():
            change = list(torch._foreach_sub(tensors_of(self.network), average))
            torch._foreach_mul_(change, self._share)
            torch._foreach_add_(average, change)

    def step(self, minibatch: Minibatch, identity: Tensor) -> Tensor:
        """Take a step; return the loss before it."""
        loss = training_loss(self.network, minibatch, identity)
        self.network.zero_grad()
        loss.backward()
        self.update()
        return loss.detach()


class GraphLearner(Learner):
    """A `Learner` on a GPU, in bfloat16 and with recorded steps.

    Parameters
    ----------
    compiled
        Whether to fuse what lies between attentions: two minutes at first, for long runs.
    lock
        Held while a step is recorded: no other thread may use the device meanwhile.
    """

    def __init__(self, network: CausalPFN, recipe: Recipe, *, compiled: bool, lock: threading.Lock) -> None:
        super().__init__(network, recipe)
        torch.backends.cuda.enable_cudnn_sdp(False)  # its backward pass fails on torch 2.11 with an H200
        self._working = copy.deepcopy(network).bfloat16()
        for model in (network, self._working):
            for p in model.parameters():
                p.grad = torch.zeros_like(p)
        if compiled:
            compile_parts(self._working)
        self._lock = lock
        self._side = torch.cuda.Stream()
        self._pool = torch.cuda.graph_pool_handle()  # graphs run one at a time and share their memory
        self._seen: set[Shape] = set()
        self._recorded: dict[Shape, RecordedStep] = {}
        self._before = torch.cuda.Event()

    def step(self, minibatch: Minibatch, identity: Tensor) -> Tensor:
        """Take a step; return the loss before it.

        The first step of a shape compiles and sets up what it needs; the second is recorded.
        """
        self._before.synchronize()  # at most one step ahead of the device
        shape = minibatch.shape
        if shape not in self._seen:
            self._seen.add(shape)
            loss = self._step(minibatch, identity)
        else:
            if shape not in self._recorded:
                self._recorded[shape] = self._record(minibatch, identity)
            loss = self._recorded[shape](minibatch, identity)
        self._before.record()
        return loss.clone()

    def _step(self, minibatch: Minibatch, identity: Tensor) -> Tensor:
        gradients = gradients_of(self._working)
        torch._foreach_zero_(gradients)
        with torch.no_grad():  # rounded
            torch._foreach_copy_(tensors_of(self._working), tensors_of(self.network))
        loss = training_loss(self._working, minibatch, identity)
        loss.backward()
        torch._foreach_copy_(gradients_of(self.network), gradients)
        self.update()
        return loss.detach()

    def _record(self, minibatch: Minibatch, identity: Tensor) -> RecordedStep:
        inputs = [x.clone() for x in (*minibatch.tensors(), identity)]
        X, y, told, mean, again, own_identity = inputs
        own = Minibatch(X, y, told, mean, again, minibatch.together)
        graph = torch.cuda.CUDAGraph()
        with self._lock:
            torch.cuda.synchronize()
            with torch.cuda.stream(self._side):
                graph.capture_begin(pool=self._pool)
                try:
                    loss = self._step(own, own_identity)
                finally:
                    graph.capture_end()
            torch.cuda.synchronize()
        return RecordedStep(inputs, graph, loss)


@dataclass(frozen=True)
class RecordedStep:
    """The step of minibatches of one shape."""

    inputs: Sequence[Tensor]
    """Arrays that the graph reads."""
    graph: torch.cuda.CUDAGraph
    loss: Tensor
    """Array that it writes."""

    def __call__(self, minibatch: Minibatch, identity: Tensor) -> Tensor:
        """Take the step; return the loss before it."""
        torch._foreach_copy_(list(self.inputs), [*minibatch.tensors(), identity])
        self.graph.replay()
        return self.loss


def tensors_of(network: nn.Module) -> list[Tensor]:
    """Return the weights."""
    return list(network.parameters())


def gradients_of(network: nn.Module) -> list[Tensor]:
    """Return the gradients, one for each weight."""
    return [p.grad for p in network.parameters() if p.grad is not None]


def compile_parts(network: CausalPFN, *, backend: str = "inductor") -> None:
    """Compile what lies between attentions, for all shapes; equal blocks share the result."""
    torch._dynamo.config.cache_size_limit = 64
    # With padding, kernels for dynamic shapes met unexpected strides (torch 2.11, H200).
    torch._inductor.config.shape_padding = False
    parts: list[tuple[list[nn.Module], str]] = [
        ([*network.columns, *network.in_context], "ask"),
        ([*network.columns, *network.in_context], "finish"),
        (list(network.across), "forward"),
        ([network.readout], "forward"),
        ([network.cells], "forward"),
        ([network.head], "forward"),
    ]
    for modules, name in ((modules, name) for modules, name in parts if modules):
        compiled = torch.compile(getattr(type(modules[0]), name), dynamic=True, backend=backend)
        for module in modules:
            setattr(module, name, MethodType(compiled, module))


def make_optimisers(
    network: CausalPFN, recipe: Recipe
) -> tuple[list[torch.optim.Optimizer], tuple[Tensor, Tensor]]:
    """Return Muon for the matrices between layers and Adam for the rest, and their learning rates."""
    outer = ("cells.", "target.", "head.out.", "head.spread.")
    inner = [
        p
        for name, p in network.named_parameters()
        if p.ndim == 2 and not name.startswith(outer) and "score" not in name and "sharpness" not in name
    ]
    chosen = {id(p) for p in inner}
    rest = [p for p in network.parameters() if id(p) not in chosen]
    device = rest[0].device
    # In a recorded step a number would stay what it was when it was recorded.
    muon, adam = (torch.tensor(rate, device=device) for rate in (recipe.learning_rate, recipe.adam_rate))
    of_rest = torch.optim.AdamW(
        rest,
        lr=adam,
        betas=(0.9, 0.98),
        weight_decay=0.0,
        fused=device.type == "cuda",
        capturable=device.type == "cuda",
    )
    return [Muon(inner, lr=muon), of_rest], (muon, adam)
