"""Steps of training: gradients of a minibatch's loss, then an update of the weights.

A step is some two thousand small kernels. On a GPU it takes longer to launch them one by one than to compute
them, so for every shape of a minibatch they are recorded once as a CUDA graph and launched together.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from types import MethodType
from typing import TypeVar

import torch
from torch import Tensor, nn

from pfnts.backbones.network.network import CausalPFN
from pfnts.backbones.network.prior.device_rng import DeviceRng
from pfnts.backbones.network.training.loss import training_loss
from pfnts.backbones.network.training.minibatches import Minibatch
from pfnts.backbones.network.training.recipe import Shape

T = TypeVar("T")


class Steps:
    """Takes steps with the network as it is.

    Parameters
    ----------
    network
        What is trained.
    optimisers
        Of all its parameters.
    """

    def __init__(self, network: CausalPFN, optimisers: Sequence[torch.optim.Optimizer]) -> None:
        self.network = network
        self.optimisers = optimisers

    def __call__(self, minibatch: Minibatch, rng: DeviceRng) -> Tensor:
        """Take a step; return the loss before it."""
        loss = training_loss(self.network, minibatch, self.identity(minibatch, rng))
        self.network.zero_grad()
        loss.backward()
        self.update()
        return loss.detach()

    def identity(self, minibatch: Minibatch, rng: DeviceRng) -> Tensor:
        """Vectors that tell the columns of each table apart, (B, P, identity)."""
        batch, _, features = minibatch.X.shape
        return rng.normal(batch, features, self.network.architecture.identity)

    def update(self) -> None:
        """Move the weights by their gradients, which are cut off at norm one."""
        nn.utils.clip_grad_norm_(self.network.parameters(), 1.0)
        for optimiser in self.optimisers:
            optimiser.step()


class GraphSteps(Steps):
    """The same on a GPU: gradients of a bfloat16 copy, by recorded graphs where there is one for the shape.

    Parameters
    ----------
    network, optimisers
        As for `Steps`; learning rates are tensors.
    compiled
        Whether what is done between attentions is fused: minutes at first, for long runs.
    """

    def __init__(
        self, network: CausalPFN, optimisers: Sequence[torch.optim.Optimizer], *, compiled: bool
    ) -> None:
        super().__init__(network, optimisers)
        torch.backends.cuda.enable_cudnn_sdp(False)  # its backward pass fails on torch 2.11 with an H200
        self._working = copy.deepcopy(network).bfloat16()
        for model in (network, self._working):
            for p in model.parameters():
                p.grad = torch.zeros_like(p)
        if compiled:
            compile_parts(self._working)
        self._side = torch.cuda.Stream()
        self._pool = torch.cuda.graph_pool_handle()  # one at a time: they may share their memory
        self._of_shape: dict[Shape, RecordedGradients] = {}
        self._before: torch.cuda.Event | None = None
        self._recorded_update: torch.cuda.CUDAGraph | None = None

    def record(self, shapes: Iterable[Shape], *, rng: DeviceRng, report: Callable[[int], None]) -> None:
        """Record the gradients of minibatches of some shapes, and the update; weights stay as they are.

        The optimisers must be fresh, with learning rates of zero.
        """
        for done, shape in enumerate(shapes):
            minibatch = Minibatch.noise(shape, rng=rng)
            identity = self.identity(minibatch, rng)
            graph, loss = self._record(partial(self._gradients, minibatch, identity))
            self._of_shape[shape] = RecordedGradients(minibatch, identity, graph, loss)
            report(done + 1)
        torch._foreach_zero_(_gradients_of(self._working))
        self._recorded_update, _ = self._record(self._update)
        for optimiser in self.optimisers:
            for state in optimiser.state.values():
                for tensor in state.values():
                    tensor.zero_()

    def __call__(self, minibatch: Minibatch, rng: DeviceRng) -> Tensor:
        """Take a step; return the loss before it."""
        if self._before is None:
            self._take_weights()  # they may have been loaded since
        else:
            self._before.synchronize()  # no more than a step ahead of the card
        self._before = torch.cuda.Event()
        identity = self.identity(minibatch, rng)
        recorded = self._of_shape.get(minibatch.shape)
        self._before.record()
        loss = self._gradients(minibatch, identity) if recorded is None else recorded(minibatch, identity)
        self.update()
        return loss.clone()

    def update(self) -> None:
        """Move the weights by their gradients, and the copy's with them."""
        if self._recorded_update is None:
            self._update()
        else:
            self._recorded_update.replay()

    def _gradients(self, minibatch: Minibatch, identity: Tensor) -> Tensor:
        torch._foreach_zero_(_gradients_of(self._working))
        loss = training_loss(self._working, minibatch, identity)
        loss.backward()
        return loss.detach()

    def _update(self) -> None:
        torch._foreach_copy_(_gradients_of(self.network), _gradients_of(self._working))
        super().update()
        self._take_weights()

    def _take_weights(self) -> None:
        """Round the weights into the copy."""
        with torch.no_grad():
            torch._foreach_copy_(list(self._working.parameters()), list(self.network.parameters()))

    def _record(self, work: Callable[[], T]) -> tuple[torch.cuda.CUDAGraph, T]:
        graph = torch.cuda.CUDAGraph()
        self._side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self._side):
            work()  # once before, so that nothing is set up while recording
            self._side.synchronize()
            graph.capture_begin(pool=self._pool)
            try:
                out = work()
            finally:
                graph.capture_end()
        torch.cuda.current_stream().wait_stream(self._side)
        return graph, out


@dataclass(frozen=True)
class RecordedGradients:
    """Gradients of minibatches of one shape."""

    minibatch: Minibatch
    """Where the graph reads."""
    identity: Tensor
    graph: torch.cuda.CUDAGraph
    loss: Tensor
    """Where it writes."""

    def __call__(self, minibatch: Minibatch, identity: Tensor) -> Tensor:
        """Compute the gradients, and return the loss."""
        torch._foreach_copy_([*self.minibatch.tensors(), self.identity], [*minibatch.tensors(), identity])
        self.graph.replay()
        return self.loss


def _gradients_of(network: nn.Module) -> list[Tensor]:
    return [p.grad for p in network.parameters() if p.grad is not None]


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
