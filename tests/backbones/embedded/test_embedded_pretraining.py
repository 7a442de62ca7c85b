from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from functools import partial
from importlib.resources import as_file, files
from itertools import count, islice
from pathlib import Path

import pytest
import torch

from pfnts.backbones.embedded import pretraining
from pfnts.backbones.embedded.backbone import load_network
from pfnts.backbones.embedded.dice import Dice
from pfnts.backbones.embedded.model import Architecture, CausalPFN
from pfnts.backbones.embedded.pretraining import Progress, Recipe, pretrain
from pfnts.backbones.embedded.regressions import opinions_on
from pfnts.experiments.training_scores import training_scores

TINY = Architecture(cell=16, cell_heads=2, cell_layers=1, readouts=2, heads=2, layers=1)
RECIPE = Recipe(
    seconds=80,
    warmup_steps=5,
    rows_per_step=512,
    lengths=(64,),
    length_weights=(1.0,),
    widths=(3,),
    width_weights=(1.0,),
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
    tables = pretraining.draw_tables(64, 64, 3, dice=Dice(77), groups=16)
    lesson = pretraining.Lesson.of(tables, known=16)
    torch.manual_seed(RECIPE.seed)
    fresh = CausalPFN(TINY)
    rows: list[dict[str, object]] = []
    score = partial(training_scores, draws=1, sizes=(16,))
    trained = pretrain(tmp_path, RECIPE, architecture=TINY, score=score, report=rows.append, report_every=30)
    with torch.no_grad():
        before, after = (
            float(pretraining.training_loss(network, lesson, Dice(1))) for network in (fresh, trained)
        )
    assert after < 0.9 * before
    assert [row["step"] for row in rows] == [20, 50, 80]
    assert rows[-1]["loss"] < rows[0]["loss"]
    assert set(rows[0]) > {"step", "seconds", "loss", "learning_rate", "friedman1-5", "linear-10"}


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
    assert pretraining.load_checkpoint(tmp_path, network, optimisers).step == 3
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
    # Squared error 4 in units of signal 1; pinball of the median 0.5 * |3 - 1| / 2, in units of scale 2.
    loss = pretraining.loss_of(
        mean=torch.tensor([[2.0]]),
        quantiles=torch.tensor([[[1.0]]]),
        true_mean=torch.tensor([[0.0]]),
        targets=torch.tensor([[[3.0]]]),
        scale=torch.tensor([[2.0]]),
        signal=torch.tensor([[1.0]]),
    )
    assert float(loss) == pytest.approx(4.0 + 0.5)


def test_true_quantiles_have_the_least_loss() -> None:
    level = pretraining.quantile_levels(99)
    assert level[0] == pytest.approx(0.01)
    assert level[49] == pytest.approx(0.5)
    true = torch.special.ndtri(level)[None, None]
    targets = torch.randn(4000, 1, 1, generator=torch.Generator().manual_seed(0))

    def loss(quantiles: torch.Tensor) -> float:
        zero = torch.zeros(1, 1)
        return float(pretraining.loss_of(zero, quantiles, zero, targets, torch.ones(1, 1), torch.ones(1, 1)))

    assert loss(true) < min(loss(1.2 * true), loss(0.8 * true), loss(true + 0.2), loss(true - 0.2))


@pytest.mark.parametrize("rows", [16, 35, 64, 256])
def test_stretches_are_all_of_the_first_rows_and_two_parts_of_the_later(rows: int) -> None:
    first, *later = pretraining.draw_stretches(rows, Dice(0))
    assert first == range(min(rows, 32))
    assert len(later) == (2 if rows > 32 else 0)
    for stretch in later:
        assert 32 <= stretch.start < stretch.stop <= rows


def test_held_out_scores_know_a_trained_network_from_a_fresh_one(small_network: CausalPFN) -> None:
    with as_file(files("pfnts.backbones.embedded") / "weights.safetensors") as shipped:
        good = training_scores(load_network(shipped, "cpu", ""), draws=2, sizes=(64,))
    bad = training_scores(small_network, draws=2, sizes=(64,))
    assert good["friedman1-5"][0] > 0.6
    assert all(good[name][0] > bad[name][0] for name in good)


def test_every_table_is_used_as_often_as_the_recipe_says() -> None:
    recipe = replace(RECIPE, steps_per_draw=4, uses=3, shapes_at_once=1)
    seen = Counter(id(lesson) for lesson in islice(pretraining.lessons(recipe, Dice(0)), 12))
    assert sorted(seen.values()) == [3, 3, 3, 3]


def test_opinions_of_a_lesson_are_those_of_its_own_tables() -> None:
    tables = pretraining.draw_tables(8, 20, 3, dice=Dice(1), groups=2)
    whole = pretraining.Lesson.of(tables, known=8)
    for lesson in whole.parts(4):
        torch.testing.assert_close(lesson.opinions, opinions_on(lesson.X, lesson.y))
        assert lesson.again.shape[1] == len(lesson.X) == 2
