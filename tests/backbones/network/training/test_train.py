from __future__ import annotations

import copy
import json
import math
from dataclasses import replace
from functools import partial
from importlib.resources import as_file, files
from pathlib import Path

import pytest
import torch

from pfnts.backbones.network.backbone import load_network
from pfnts.backbones.network.network import CausalPFN
from pfnts.backbones.network.prior.device_rng import DeviceRng
from pfnts.backbones.network.prior.tables import draw_tables
from pfnts.backbones.network.training.loss import training_loss
from pfnts.backbones.network.training.minibatches import minibatch_of
from pfnts.backbones.network.training.recipe import Recipe, read_recipe
from pfnts.backbones.network.training.step import Learner, compile_parts, make_optimisers
from pfnts.backbones.network.training.train import pretrain
from pfnts.experiments.training_scores import training_scores

RECIPE = replace(
    read_recipe("tiny"), steps=24, steps_per_draw=2, draws_per_round=2, uses=2, warmup=4, widths=(3,),
    width_weights=(1.0,),
)  # fmt: skip
TINY = RECIPE.architecture


def run(out: Path, recipe: Recipe = RECIPE, **options: object) -> list[dict[str, float]]:
    """Train; return the rows of the log, one a round."""
    rows: list[dict[str, float]] = []
    pretrain(out, recipe, report=rows.append, report_every=0, **options)  # type: ignore[arg-type]
    return rows


def weights(out: Path) -> dict[str, torch.Tensor]:
    from safetensors.torch import load_file

    return {name: x for path in sorted(out.glob("state-*")) for name, x in load_file(path).items()}


def test_training_lowers_the_loss(tmp_path: Path) -> None:
    tables = draw_tables(64, 64, 3, queries=16, rng=DeviceRng(77), groups=16)
    minibatch = minibatch_of(tables, queries=32, known=16, together=False)
    identity = DeviceRng(1).normal(64, 3, TINY.identity)
    torch.manual_seed(RECIPE.seed)
    fresh = CausalPFN(TINY)
    rows: list[dict[str, object]] = []
    trained = pretrain(
        tmp_path, replace(RECIPE, steps=80), score=partial(training_scores, draws=1, sizes=(16,)),
        report=rows.append, report_every=0,
    )  # fmt: skip
    with torch.no_grad():
        before, after = (float(training_loss(network, minibatch, identity)) for network in (fresh, trained))
    assert after < 0.9 * before
    assert [row["step"] for row in rows] == list(range(8, 81, 8))
    assert all(math.isfinite(row["loss"]) for row in rows)  # type: ignore[arg-type]
    assert {"rows", "seconds", "learning_rate", "mean CRPS", "linear-10 within 95 %"} <= set(rows[0])


def test_interrupted_run_equals_one_that_was_not(tmp_path: Path) -> None:
    whole = run(tmp_path / "whole")
    pieces = [row for _ in range(3) for row in run(tmp_path / "pieces", stop_after=0)]
    strip = [{key: x for key, x in row.items() if key != "seconds"} for row in whole]
    assert [{key: x for key, x in row.items() if key != "seconds"} for row in pieces] == strip
    one, other = weights(tmp_path / "whole"), weights(tmp_path / "pieces")
    assert one.keys() == other.keys()
    assert all(torch.equal(one[name], other[name]) for name in one)
    log = json.loads((tmp_path / "pieces" / "progress.json").read_text())["progress"]["log"]
    assert [row["step"] for row in log] == [8, 16, 24]
    assert [row["rows"] for row in log] == sorted(row["rows"] for row in log)


def test_runs_with_one_seed_agree_and_with_another_differ(tmp_path: Path) -> None:
    short = replace(RECIPE, steps=8)
    losses = [
        run(tmp_path / str(i), replace(short, seed=seed))[0]["loss"] for i, seed in enumerate((1, 1, 2))
    ]
    assert losses[0] == losses[1] != losses[2]


def test_state_is_split_into_files_that_are_easy_to_move(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pfnts.backbones.network.training.state.LARGEST", 100_000)
    run(tmp_path, stop_after=0)
    sizes = [path.stat().st_size for path in tmp_path.glob("state-*")]
    assert len(sizes) > 3
    assert max(sizes) < 120_000
    assert run(tmp_path, stop_after=0)[0]["step"] == 16


@pytest.mark.parametrize("text", ["{", "[]", '{"recipe": {}, "progress": {"colour": "red"}}'])
def test_damaged_state_is_explained(text: str, tmp_path: Path) -> None:
    (tmp_path / "progress.json").write_text(text)
    with pytest.raises(ValueError, match="must not hold a damaged state"):
        run(tmp_path)


def test_run_of_another_recipe_is_not_resumed(tmp_path: Path) -> None:
    run(tmp_path, stop_after=0)
    with pytest.raises(ValueError, match=r"a run of the same recipe, .* has uses 2, got 3"):
        run(tmp_path, replace(RECIPE, uses=3))


def test_every_parameter_has_one_optimiser() -> None:
    network = CausalPFN(TINY)
    optimisers, _ = make_optimisers(network, RECIPE)
    optimised = [id(p) for o in optimisers for group in o.param_groups for p in group["params"]]
    assert sorted(optimised) == sorted(id(p) for p in network.parameters())


def test_learning_rate_rises_and_falls_to_nothing() -> None:
    learner = Learner(CausalPFN(TINY), replace(RECIPE, steps=100, warmup=5))

    def rate(step: int) -> float:
        learner.schedule(step)
        return float(learner.rates[0]) / RECIPE.learning_rate

    assert rate(0) == pytest.approx(0.2)
    assert rate(5) == pytest.approx(0.95)
    assert rate(50) == pytest.approx(0.5)
    assert rate(100) == 0.0


def test_average_is_that_of_the_weights_after_the_last_steps() -> None:
    learner = Learner(CausalPFN(TINY), replace(RECIPE, steps=10, averaged=0.4))
    for p in learner.network.parameters():
        p.grad = torch.randn_like(p)
    after: list[torch.Tensor] = []
    for step in range(10):
        learner.schedule(step)
        learner.update()
        after.append(learner.network.head.out.weight.detach().clone())
        first = min(step, 6)  # the average begins with the weights after the step at which its share begins
        expected = torch.stack(after[first:]).mean(0)
        torch.testing.assert_close(learner.average.head.out.weight, expected)


@pytest.mark.parametrize("together", [False, True])
def test_compiled_parts_give_the_same_loss(together: bool) -> None:
    network = CausalPFN(TINY)
    compiled = copy.deepcopy(network)
    compile_parts(compiled, backend="eager")
    tables = draw_tables(8, 20, 3, queries=5, rng=DeviceRng(1), groups=2)
    minibatch = minibatch_of(tables, queries=4, known=8, together=together)
    identity = DeviceRng(2).normal(8, 3, TINY.identity)
    one, other = (training_loss(net, minibatch, identity) for net in (network, compiled))
    torch.testing.assert_close(one, other)


def test_held_out_scores_know_a_trained_network_from_a_fresh_one(small_network: CausalPFN) -> None:
    with as_file(files("pfnts.backbones.network") / "weights.safetensors") as shipped:
        good = training_scores(load_network(shipped, "cpu", ""), draws=2, sizes=(64,))
    bad = training_scores(small_network, draws=2, sizes=(64,))
    assert good["friedman1-5 R2"][0] > 0.6
    assert all(good[name][0] > bad[name][0] for name in good if name.endswith("R2"))
    assert all(good[name][0] < bad[name][0] for name in good if name.endswith("CRPS"))
    assert 0.8 < good["friedman1-5 within 95 %"][0] <= 1
