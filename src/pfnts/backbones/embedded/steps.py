"""Steps of training: gradients of a minibatch's loss, then an update of the weights.

A step is some two thousand small kernels. On a GPU it takes longer to launch them one by one than to compute
them, so when a minibatch of a new shape comes they are recorded as a CUDA graph, and launched together from
then on.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from types import MethodType

import torch
from torch import Tensor, nn

from pfnts.backbones.embedded.device_rng import DeviceRng
from pfnts.backbones.embedded.loss import training_loss
from pfnts.backbones.embedded.minibatches import Minibatch
from pfnts.backbones.embedded.model import CausalPFN
from pfnts.backbones.embedded.recipe import Shape
from pfnts.backbones.embedded.recorded import Record

EXAMPLE = Shape(batch=40, rows=1200, features=11, asked=300, together=False)
"""What the network is compiled on: as large as most minibatches. No two of its sizes agree, and none with one
of the network's: sizes that agree by chance are taken to agree always, and others are compiled anew."""


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
    """The same on a GPU: gradients of a bfloat16 copy, by graphs that are recorded as shapes come.

    Parameters
    ----------
    network, optimisers
        As for `Steps`; on a GPU, learning rates are tensors.
    compiled
        Whether what is done between attentions is fused: a minute at first, for long runs.
    record
        How to record.
    """

    def __init__(
        self,
        network: CausalPFN,
        optimisers: Sequence[torch.optim.Optimizer],
        *,
        compiled: bool,
        record: Record,
    ) -> None:
        super().__init__(network, optimisers)
        torch.backends.cuda.enable_cudnn_sdp(False)  # its backward pass fails on torch 2.11 with an H200
        self._working = copy.deepcopy(network).bfloat16()
        for model in (network, self._working):
            for p in model.parameters():
                p.grad = torch.zeros_like(p)
        if compiled:
            compile_parts(self._working)
        self._record, self._works = record, True
        self._of_shape: dict[Shape, RecordedGradients] = {}
        self._recorded_update: Callable[[], None] | None = None
        self._loss = torch.zeros((), device=network.cells.missing.device)
        self._begun = False
        self._before: torch.cuda.Event | None = None

    def prepare(self, *, rng: DeviceRng) -> None:
        """Compile, and record a first step and the update; weights stay as they are.

        The optimisers must be fresh, with learning rates of zero.
        """
        minibatch = Minibatch.noise(EXAMPLE, rng=rng)
        self._try(minibatch, self.identity(minibatch, rng))
        torch._foreach_zero_(_gradients_of(self._working))
        self._recorded_update, _ = self._record(self._update)
        for optimiser in self.optimisers:
            for state in optimiser.state.values():
                for tensor in state.values():
                    tensor.zero_()

    def __call__(self, minibatch: Minibatch, rng: DeviceRng) -> Tensor:
        """Take a step; return the loss before it."""
        self._keep_pace()
        identity = self.identity(minibatch, rng)
        if recorded := self._of_shape.get(minibatch.shape):
            recorded(minibatch, identity)
        elif not self._works or not self._try(minibatch, identity):
            self._gradients(minibatch, identity)
        self.update()
        return self._loss.clone()

    def update(self) -> None:
        """Move the weights by their gradients, and the copy's with them."""
        (self._recorded_update or self._update)()

    def _keep_pace(self) -> None:
        """Stay no more than a step ahead of the card."""
        if not self._begun:
            self._take_weights()  # they may have been loaded since
            self._begun = True
        if self._before is not None:
            self._before.synchronize()
        if self._loss.is_cuda:
            self._before = torch.cuda.Event()
            self._before.record()

    def _try(self, minibatch: Minibatch, identity: Tensor) -> bool:
        """Compute the gradients and record how; what fails once is not tried again."""
        own, own_identity = minibatch.clone(), identity.clone()
        try:
            replay, _ = self._record(partial(self._gradients, own, own_identity))
        except RuntimeError as error:
            self._works = False
            warnings.warn(f"a step could not be recorded, which is slower: {error}", stacklevel=3)
            return False
        self._of_shape[minibatch.shape] = RecordedGradients(own, own_identity, replay)
        return True

    def _gradients(self, minibatch: Minibatch, identity: Tensor) -> None:
        torch._foreach_zero_(_gradients_of(self._working))
        loss = training_loss(self._working, minibatch, identity)
        loss.backward()
        self._loss.copy_(loss.detach())

    def _update(self) -> None:
        torch._foreach_copy_(_gradients_of(self.network), _gradients_of(self._working))
        super().update()
        self._take_weights()

    def _take_weights(self) -> None:
        """Round the weights into the copy."""
        with torch.no_grad():
            torch._foreach_copy_(list(self._working.parameters()), list(self.network.parameters()))


@dataclass(frozen=True)
class RecordedGradients:
    """Gradients of minibatches of one shape."""

    minibatch: Minibatch
    """Where the graph reads."""
    identity: Tensor
    replay: Callable[[], None]

    def __call__(self, minibatch: Minibatch, identity: Tensor) -> None:
        """Compute the gradients and the loss."""
        torch._foreach_copy_([*self.minibatch.tensors(), self.identity], [*minibatch.tensors(), identity])
        self.replay()


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
