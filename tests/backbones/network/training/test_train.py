from __future__ import annotations

import copy
import json
import math
from collections import Counter
from dataclasses import replace
from functools import partial
from importlib.resources import as_file, files
from itertools import count, islice
from pathlib import Path

import pytest
import torch

from pfnts.backbones.network.backbone import load_network
from pfnts.backbones.network.features.features import features_of
from pfnts.backbones.network.network import Architecture, CausalPFN, quantile_levels
from pfnts.backbones.network.prior.device_rng import DeviceRng
from pfnts.backbones.network.prior.tables import Tables, draw_tables
from pfnts.backbones.network.training import loss as losses
from pfnts.backbones.network.training import minibatches
from pfnts.backbones.network.training import train as pretraining
from pfnts.backbones.network.training.checkpoints import Progress, load_checkpoint
from pfnts.backbones.network.training.loss import training_loss
from pfnts.backbones.network.training.minibatches import Minibatch, draw_minibatches
from pfnts.backbones.network.training.recipe import Recipe
from pfnts.backbones.network.training.steps import compile_parts
from pfnts.backbones.network.training.train import pretrain
from pfnts.experiments.training_scores import training_scores

TINY = Architecture(cell=16, cell_heads=2, cell_layers=1, readouts=2, heads=2, keys=1, layers=1)
RECIPE = Recipe(
    seconds=80,
    warmup_steps=5,
    rows_per_step=512,
    lengths=(0, 64),
    length_weights=(0.3, 0.7),
    late_length_weights=(0.3, 0.7),
    widths=(3,),
    width_weights=(1.0,),
    steps_per_draw=4,
    shapes_at_once=2,
)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every look at the clock finds it a second later, so that the number of steps is known."""
    ticks = count()
    monkeypatch.setattr(pretraining.time, "monotonic", lambda: float(next(ticks)))


def stored(out: Path) -> dict[str, object]:
    return json.loads((out / "progress.json").read_text())["progress"]


@pytest.mark.usefixtures("clock")
def test_training_lowers_the_loss(tmp_path: Path) -> None:
    tables = draw_tables(64, 64, 3, asked=16, rng=DeviceRng(77), groups=16)
    minibatch = Minibatch.of(tables, asked=32, known=16, together=False)
    identity = DeviceRng(1).normal(64, 3, TINY.identity)
    torch.manual_seed(RECIPE.seed)
    fresh = CausalPFN(TINY)
    rows: list[dict[str, object]] = []
    score = partial(training_scores, draws=1, sizes=(16,))
    trained = pretrain(tmp_path, RECIPE, architecture=TINY, score=score, report=rows.append, report_every=30)
    with torch.no_grad():
        before, after = (float(training_loss(network, minibatch, identity)) for network in (fresh, trained))
    assert after < 0.9 * before
    assert [row["step"] for row in rows] == [20, 50, 80]
    assert all(math.isfinite(row["loss"]) for row in rows)
    assert set(rows[0]) > {
        "step",
        "seconds",
        "loss",
        "learning_rate",
        "friedman1-5 R2",
        "linear-10 within 95 %",
    }


@pytest.mark.usefixtures("clock")
def test_training_goes_on_where_it_stopped(tmp_path: Path) -> None:
    pretrain(tmp_path, RECIPE, architecture=TINY, stop_after=3)
    assert (stored(tmp_path)["step"], stored(tmp_path)["seconds"]) == (3, 3.0)
    pretrain(tmp_path, RECIPE, architecture=TINY, stop_after=2)
    assert (stored(tmp_path)["step"], stored(tmp_path)["seconds"]) == (5, 5.0)
    assert [row["step"] for row in stored(tmp_path)["log"]] == [3, 5]


@pytest.mark.usefixtures("clock")
def test_checkpoint_restores_weights_and_optimisers(tmp_path: Path) -> None:
    trained = pretrain(tmp_path, RECIPE, architecture=TINY, stop_after=3)
    network = CausalPFN(TINY)
    optimisers = pretraining.make_optimisers(network, RECIPE)
    assert load_checkpoint(tmp_path, network, optimisers).step == 3
    for name, tensor in trained.state_dict().items():
        assert torch.equal(network.state_dict()[name], tensor)
    assert optimisers[0].state
    for state in optimisers[0].state.values():
        assert state["momentum"].abs().sum() > 0
    assert all(float(state["step"]) == 3 for state in optimisers[1].state.values())


def test_every_parameter_has_one_optimiser() -> None:
    network = CausalPFN(TINY)
    groups = [group for o in pretraining.make_optimisers(network, RECIPE) for group in o.param_groups]
    optimised = [id(p) for group in groups for p in group["params"]]
    assert sorted(optimised) == sorted(id(p) for p in network.parameters())


def test_learning_rate_rises_and_falls_to_nothing() -> None:
    optimisers = pretraining.make_optimisers(CausalPFN(TINY), RECIPE)

    def rate(step: int, seconds: float) -> float:
        pretraining.schedule(optimisers, RECIPE, Progress(step=step, seconds=seconds))
        return float(optimisers[0].param_groups[0]["lr"])

    assert rate(0, 0.0) == pytest.approx(RECIPE.learning_rate / 5)
    assert rate(4, 0.0) == pytest.approx(RECIPE.learning_rate)
    assert rate(99, 40.0) == pytest.approx(RECIPE.learning_rate / 2)
    assert rate(99, 80.0) == 0.0


def test_loss_is_that_of_hand_computed_predictions() -> None:
    # Squared error 4 in units of signal 1, than which the mean is known no better; pinball of the median
    # 0.5 * |3 - 1| / 2, in units of scale 2; an error of 2 is well within 1.96 standard deviations of 2.
    loss = losses.loss_of(
        mean=torch.tensor([[2.0]]),
        quantiles=torch.tensor([[[1.0]]]),
        log_sd=torch.tensor([[math.log(2.0)]]),
        true_mean=torch.tensor([[0.0]]),
        targets=torch.tensor([[[3.0]]]),
        scale=torch.tensor([[2.0]]),
        signal=torch.tensor([[1.0]]),
    )
    within = 0.05 * math.log(1.96)
    assert float(loss) == pytest.approx(4.0 + 0.5 + losses.SPREAD_WEIGHT * within, rel=1e-4)


def loss(*, quantiles: torch.Tensor, log_sd: float = 0.0, means: torch.Tensor | None = None) -> float:
    """Of a predicted mean of 0, for true means that are 0 or as given, and standard normal targets."""
    generator = torch.Generator().manual_seed(0)
    true = torch.zeros(1, 1) if means is None else means
    zero, one = torch.zeros_like(true), torch.ones(1, 1)
    targets = torch.randn(4000, *true.shape, generator=generator)
    return float(losses.loss_of(zero, quantiles, zero + log_sd, true, targets, one, one))


def test_true_quantiles_have_the_least_loss() -> None:
    level = quantile_levels(99)
    assert level[0] == pytest.approx(0.01)
    assert level[49] == pytest.approx(0.5)
    true = torch.special.ndtri(level)[None, None]
    others = (1.2 * true, 0.8 * true, true + 0.2, true - 0.2)
    assert loss(quantiles=true) < min(loss(quantiles=other) for other in others)


def test_true_standard_deviation_of_the_mean_is_where_the_slope_changes_its_sign() -> None:
    # Not where the loss is least: how well a mean is known also says how much its error counts.
    means = 0.3 * torch.randn(1, 2000, generator=torch.Generator().manual_seed(1))

    def slope(sd: float) -> float:
        log_sd = torch.tensor(math.log(sd), requires_grad=True)
        zero, one = torch.zeros_like(means), torch.ones(1, 1)
        losses.loss_of(zero, zero[..., None], zero + log_sd, means, zero[None], one, one).backward()
        assert log_sd.grad is not None
        return float(log_sd.grad)

    assert slope(0.27) < 0 < slope(0.33)
    assert slope(0.2) < slope(0.27)


def test_intervals_with_long_tailed_errors_hold_nineteen_of_twenty() -> None:
    # Errors of two sizes, as if of two kinds of table that cannot be told apart.
    generator = torch.Generator().manual_seed(2)
    size = torch.where(torch.rand(1, 20_000, generator=generator) < 0.1, 1.0, 0.1)
    means = size * torch.randn(1, 20_000, generator=generator)
    log_sd = torch.tensor(0.0, requires_grad=True)
    zero, one = torch.zeros_like(means), torch.ones(1, 1)
    optimiser = torch.optim.Adam([log_sd], lr=0.05)
    for _ in range(200):
        optimiser.zero_grad()
        losses.loss_of(zero, zero[..., None], zero + log_sd, means, zero[None], one, one).backward()
        optimiser.step()
    within = (means.abs() <= 1.96 * log_sd.exp()).float().mean()
    assert float(within) == pytest.approx(0.95, abs=0.01)


@pytest.mark.parametrize("sd", [0.001, 0.05, 0.3, 2.0])
def test_pull_on_a_mean_grows_as_it_is_known_better(sd: float) -> None:
    """By hand, at an error of half an sd: error / (sd * signal), with sd from 0.02 to 1 signal."""
    mean = torch.zeros(1, 1, requires_grad=True)
    true, signal = torch.tensor([[0.5 * sd]]), torch.tensor([[0.8]])
    flat = torch.zeros(1, 1, 1)
    losses.loss_of(mean, flat, torch.log(torch.tensor([[sd]])), true, flat, signal, signal).backward()
    assert mean.grad is not None
    counted = min(max(sd, losses.SHARPEST * 0.8), 0.8)
    assert float(mean.grad) == pytest.approx(-2 * 0.5 * sd / (counted * 0.8), rel=1e-5)


@pytest.mark.parametrize("seed", range(4))
def test_minibatches_are_normalised_as_histories_are_in_use(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[int, int, int, bool]] = []
    of = Minibatch.of

    def noted(tables: Tables, *, asked_: int, known: int, together: bool) -> Minibatch:
        asked.append((tables.X.shape[1], asked_, known, together))
        return of(tables, asked=asked_, known=known, together=together)

    monkeypatch.setattr(
        Minibatch, "of", staticmethod(lambda t, *, asked, **rest: noted(t, asked_=asked, **rest))
    )
    for lengths in ((0,), (64,), (256,)):
        recipe = replace(RECIPE, lengths=lengths, length_weights=(1.0,))
        draw_minibatches(recipe, DeviceRng(seed))
    for rows, queries, known, together in asked:
        if together:
            assert known == rows - queries < 32
        else:
            assert rows / 2.5 - 1 <= known <= rows - queries


def test_held_out_scores_know_a_trained_network_from_a_fresh_one(small_network: CausalPFN) -> None:
    with as_file(files("pfnts.backbones.network") / "weights.safetensors") as shipped:
        good = training_scores(load_network(shipped, "cpu", ""), draws=2, sizes=(64,))
    bad = training_scores(small_network, draws=2, sizes=(64,))
    assert good["friedman1-5 R2"][0] > 0.6
    assert all(good[name][0] > bad[name][0] for name in good if name.endswith("R2"))
    assert 0.8 < good["friedman1-5 within 95 %"][0] <= 1


def test_every_table_is_used_as_often_as_the_recipe_says() -> None:
    recipe = replace(RECIPE, steps_per_draw=4, uses=3, shapes_at_once=1)
    seen = Counter(
        id(minibatch) for minibatch in islice(minibatches.minibatches(recipe, DeviceRng(0), Progress()), 12)
    )
    assert sorted(seen.values()) == [3, 3, 3, 3]


@pytest.mark.parametrize("together", [False, True])
def test_features_of_a_minibatch_are_those_of_its_own_tables(
    together: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = draw_tables(8, 20, 3, asked=5, rng=DeviceRng(1), groups=2)
    monkeypatch.setattr(minibatches, "MATRICES", 3 * 24**2)  # regressions of three tables at a time
    whole = Minibatch.of(tables, asked=4, known=8, together=together)
    for minibatch, names_arm in zip(whole.parts(4), tables.names_arm.chunk(4), strict=True):
        asked = 4 if together else 1
        expected = features_of(minibatch.X, minibatch.y, asked=asked, names_arm=names_arm)
        torch.testing.assert_close(minibatch.base_predictions, expected, atol=1e-4, rtol=1e-4)
        assert minibatch.again.shape[1] == len(minibatch.X) == 2


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


def test_every_minibatch_has_one_of_the_shapes_that_are_recorded() -> None:
    recipe = replace(
        RECIPE, lengths=(0, 64, 256), length_weights=(1.0,) * 3, widths=(3, 5), width_weights=(1.0,) * 2
    )
    shapes = set(recipe.shapes())
    seen = {minibatch.shape for seed in range(12) for minibatch in draw_minibatches(recipe, DeviceRng(seed))}
    assert len(seen) > 5
    assert seen <= shapes
    for shape in seen:
        assert Minibatch.noise(shape, rng=DeviceRng(0)).shape == shape


def test_long_tables_are_as_narrow_as_histories_in_use() -> None:
    recipe = Recipe()
    assert max(recipe.widths_of(8192)) == 40
    assert max(recipe.widths_of(256)) == 100
