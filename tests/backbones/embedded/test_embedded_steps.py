from __future__ import annotations

import copy
from collections.abc import Callable
from typing import TypeVar

import pytest
import torch

from pfnts.backbones.embedded.device_rng import DeviceRng
from pfnts.backbones.embedded.loss import training_loss
from pfnts.backbones.embedded.minibatches import Minibatch
from pfnts.backbones.embedded.model import Architecture, CausalPFN
from pfnts.backbones.embedded.pretraining import make_optimisers, set_rates
from pfnts.backbones.embedded.prior import draw_tables
from pfnts.backbones.embedded.recipe import Recipe, Shape
from pfnts.backbones.embedded.recorded import Record
from pfnts.backbones.embedded.regressions import BASE_PREDICTIONS
from pfnts.backbones.embedded.steps import EXAMPLE, GraphSteps, Steps, compile_parts

T = TypeVar("T")

TINY = Architecture(cell=16, cell_heads=2, cell_layers=1, readouts=2, heads=2, keys=1, layers=1)
SHORT, LONG = Shape(8, 12, 2, 4, together=True), Shape(4, 20, 3, 5, together=False)


class Tape:
    """Records on a CPU: does the work once, as on a card, and again whenever it is replayed."""

    def __init__(self) -> None:
        self.recorded = 0

    def __call__(self, work: Callable[[], T]) -> tuple[Callable[[], None], T]:
        self.recorded += 1

        def replay() -> None:
            work()

        return replay, work()


class Broken(Tape):
    """Does the work, and fails to record it."""

    def __call__(self, work: Callable[[], T]) -> tuple[Callable[[], None], T]:
        super().__call__(work)
        raise RuntimeError("operation not permitted when stream is capturing")


def graph_steps(record: Record) -> GraphSteps:
    torch.manual_seed(0)
    network = CausalPFN(TINY)
    return GraphSteps(network, make_optimisers(network, Recipe()), compiled=False, record=record)


def losses_of(steps: Steps, shapes: list[Shape]) -> list[float]:
    rng = DeviceRng(1)
    return [float(steps(Minibatch.noise(shape, rng=rng), rng)) for shape in shapes]


def weights_of(steps: Steps) -> torch.Tensor:
    return torch.cat([p.detach().flatten() for p in steps.network.parameters()])


def test_a_shape_is_recorded_when_it_comes_and_used_from_then_on() -> None:
    tape = Tape()
    losses_of(graph_steps(tape), [SHORT, LONG, SHORT, LONG, LONG])
    assert tape.recorded == 2


def test_recorded_steps_are_the_steps_that_are_not() -> None:
    recorded, plain = graph_steps(Tape()), graph_steps(Broken())
    shapes = [SHORT, LONG, SHORT, LONG, LONG]
    with pytest.warns(UserWarning, match="could not be recorded.*capturing"):
        expected = losses_of(plain, shapes)
    assert losses_of(recorded, shapes) == expected
    torch.testing.assert_close(weights_of(recorded), weights_of(plain), rtol=0, atol=0)


def test_what_fails_to_be_recorded_is_not_tried_again() -> None:
    broken = Broken()
    with pytest.warns(UserWarning, match="could not be recorded"):
        losses_of(graph_steps(broken), [SHORT, LONG, SHORT])
    assert broken.recorded == 1


def test_steps_in_half_precision_lower_the_loss_as_full_ones_do() -> None:
    half = graph_steps(Tape())
    torch.manual_seed(0)
    network = CausalPFN(TINY)
    full = Steps(network, make_optimisers(network, Recipe()))
    ours, theirs = (losses_of(steps, [LONG] * 12) for steps in (half, full))
    assert ours[-1] < ours[0]
    assert ours == pytest.approx(theirs, rel=0.05)


def test_to_prepare_leaves_weights_and_optimisers_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pfnts.backbones.embedded.steps.EXAMPLE", SHORT)
    tape = Tape()
    prepared, fresh = graph_steps(tape), graph_steps(Tape())
    before = weights_of(prepared)
    set_rates(prepared.optimisers, Recipe(), 0.0)
    prepared.prepare(rng=DeviceRng(3))
    assert tape.recorded == 2  # a step and the update
    torch.testing.assert_close(weights_of(prepared), before, rtol=0, atol=0)
    moments = [x for o in prepared.optimisers for state in o.state.values() for x in state.values()]
    assert moments
    assert not any(x.any() for x in moments)
    set_rates(prepared.optimisers, Recipe(), 1.0)
    assert losses_of(prepared, [LONG] * 3) == losses_of(fresh, [LONG] * 3)


@pytest.mark.parametrize("together", [False, True])
def test_compiled_parts_give_the_same_loss(together: bool) -> None:
    network = CausalPFN(TINY)
    compiled = copy.deepcopy(network)
    compile_parts(compiled, backend="eager")
    tables = draw_tables(8, 20, 3, asked=5, rng=DeviceRng(1), groups=2)
    minibatch = Minibatch.of(tables, asked=4, known=8, together=together)
    identity = DeviceRng(2).normal(8, 3, TINY.identity)
    one, other = (training_loss(net, minibatch, identity) for net in (network, compiled))
    torch.testing.assert_close(one, other)


def test_what_is_compiled_for_the_example_serves_every_shape() -> None:
    network = CausalPFN(Architecture(layers=2, cell_layers=1)).to("meta")
    compile_parts(network, backend="eager")
    torch._dynamo.utils.counters.clear()

    def graphs_after(shape: Shape) -> int:
        batch, rows, features, asked, together = shape
        network(
            torch.empty(batch, rows, features, device="meta"),
            torch.empty(batch, rows, device="meta"),
            torch.empty(batch, features, network.architecture.identity, device="meta"),
            torch.empty(batch, rows, BASE_PREDICTIONS, device="meta"),
            asked=asked,
            together=together,
        )
        return int(torch._dynamo.utils.counters["stats"]["unique_graphs"])

    compiled = graphs_after(EXAMPLE)
    shapes = list(Recipe().shapes())
    some = {min(shapes), max(shapes), *shapes[:: len(shapes) // 8]}
    assert {shape: graphs_after(shape) for shape in some} == dict.fromkeys(some, compiled)
