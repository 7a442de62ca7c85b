from __future__ import annotations

from collections import Counter
from contextlib import nullcontext
from dataclasses import replace
from itertools import islice

import pytest
import torch

from pfnts.backbones.network.features.features import features_of
from pfnts.backbones.network.prior.device_rng import DeviceRng
from pfnts.backbones.network.prior.tables import Tables, draw_tables
from pfnts.backbones.network.training import minibatches as module
from pfnts.backbones.network.training.minibatches import (
    Minibatch,
    draw_minibatches,
    minibatch_of,
    rounds,
    seed_of,
)
from pfnts.backbones.network.training.recipe import Recipe, read_recipe

TINY = read_recipe("tiny")


def rounds_of(recipe: Recipe, first: int, count: int) -> list[list[Minibatch]]:
    return list(islice(rounds(recipe, first, device="cpu", lock=nullcontext()), count))


@pytest.mark.parametrize("seed", range(4))
def test_tables_are_normalised_as_histories_are_in_use(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[int, int, int, bool]] = []
    of = minibatch_of

    def noted(tables: Tables, *, queries: int, known: int, together: bool) -> Minibatch:
        seen.append((tables.X.shape[1], queries, known, together))
        return of(tables, queries=queries, known=known, together=together)

    monkeypatch.setattr(module, "minibatch_of", noted)
    for length in (0, 64, 256):
        draw_minibatches(replace(TINY, lengths=(length,), length_weights=(1.0,)), seed, device="cpu")
    for rows, queries, known, together in seen:
        if together:
            assert known == rows - queries < 32
        else:
            assert rows / 2.5 - 1 <= known <= rows - queries


def test_every_minibatch_is_used_as_often_as_the_recipe_says() -> None:
    recipe = replace(TINY, steps_per_draw=2, draws_per_round=3, uses=4)
    (steps,) = rounds_of(recipe, 0, 1)
    assert len(steps) == recipe.steps_per_round == 24
    assert Counter(Counter(map(id, steps)).values()) == {4: 6}


def test_a_round_does_not_depend_on_where_the_run_began() -> None:
    recipe = replace(TINY, steps_per_draw=2, uses=1)
    _, second, third = rounds_of(recipe, 0, 3)
    for whole, part in zip((second, third), rounds_of(recipe, 1, 2), strict=True):
        for one, other in zip(whole, part, strict=True):
            for x, y in zip(one.tensors(), other.tensors(), strict=True):
                torch.testing.assert_close(x, y, rtol=0, atol=0, equal_nan=True)
    assert not torch.equal(second[0].mean, third[0].mean)
    assert seed_of(0, 1) != seed_of(1, 0)


def test_late_lengths_come_in_the_last_part() -> None:
    recipe = replace(
        TINY,
        steps=100,
        late=0.5,
        lengths=(64, 128),
        length_weights=(1.0, 0.0),
        late_length_weights=(0.0, 1.0),
    )
    per_call = recipe.steps_per_draw * recipe.uses
    rows = [
        draw_minibatches(recipe, call, device="cpu")[0].X.shape[1]
        for call in (0, 49 // per_call, 100 // per_call)
    ]
    assert rows == [64, 64, 128]


@pytest.mark.parametrize("together", [False, True])
def test_base_predictions_are_those_of_the_tables_alone(
    together: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = draw_tables(8, 20, 3, queries=5, rng=DeviceRng(1), groups=2)
    monkeypatch.setattr(module, "MATRICES", 3 * 24**2)  # regressions of three tables at a time
    whole = minibatch_of(tables, queries=4, known=8, together=together)
    for minibatch, names_arm in zip(whole.parts(4), tables.names_arm.chunk(4), strict=True):
        asked = 4 if together else 1
        expected = features_of(minibatch.X, minibatch.y, asked=asked, names_arm=names_arm)
        torch.testing.assert_close(minibatch.base_predictions, expected, atol=1e-4, rtol=1e-4)
        assert minibatch.again.shape[1] == len(minibatch.X) == 2


def test_long_tables_are_as_narrow_as_histories_in_use() -> None:
    recipe = read_recipe("shipped")
    assert max(recipe.widths_of(8192)) == 40
    assert max(recipe.widths_of(256)) == 100
