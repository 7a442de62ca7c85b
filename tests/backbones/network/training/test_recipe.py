from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import pytest

from pfnts.backbones.network.training.recipe import read_recipe, recipe_from_dict


def test_recipes_of_the_package_are_consistent() -> None:
    for name in ("shipped", "tiny"):
        recipe = read_recipe(name)
        assert len(recipe.lengths) == len(recipe.length_weights) == len(recipe.late_length_weights)
        assert len(recipe.widths) == len(recipe.width_weights)
        assert recipe.steps > recipe.steps_per_round * 2
        assert recipe_from_dict(asdict(recipe)) == recipe


def test_recipe_is_read_from_a_file(tmp_path: Path) -> None:
    text = "\n".join(
        f"{key} = {list(value) if isinstance(value, tuple) else value}"
        for key, value in asdict(read_recipe("tiny")).items()
        if not isinstance(value, dict)
    )
    (tmp_path / "mine.toml").write_text(text + "\n[architecture]\nlayers = 3\n[prior]\ndense = 0.25\n")
    recipe = read_recipe(str(tmp_path / "mine.toml"))
    assert (recipe.architecture.layers, recipe.prior.dense) == (3, 0.25)
    assert recipe.lengths == read_recipe("tiny").lengths


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("steps = ", "recipe must be one of shipped, tiny or the path of a TOML file"),
        ("stepps = 3", "recipe must have settings among steps, .*, got 'stepps'"),
        ("[architecture]\ndepth = 3", "architecture must have settings among cell, .*, got 'depth'"),
        ("[prior]\ndensity = 3", "prior must have settings among functions, .*, got 'density'"),
        ("steps = 3", "recipe must have all settings of a training run"),
    ],
)
def test_mistakes_in_a_recipe_are_explained(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(text)
    with pytest.raises(ValueError, match=message):
        read_recipe(str(tmp_path / "mine.toml"))


def test_unknown_recipe_is_explained() -> None:
    with pytest.raises(ValueError, match="recipe must be one of shipped, tiny or the path"):
        read_recipe("shiped")
