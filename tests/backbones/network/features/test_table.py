from __future__ import annotations

import importlib
from pathlib import Path

import pytest
import torch

from pfnts.backbones.network.features.features import Features
from pfnts.backbones.network.features.table import (
    BASE_PREDICTIONS,
    FEATURES,
    NOTES,
    PREDICTIONS,
    arranged,
    as_markdown,
    places,
)


def test_predictions_come_first_and_widths_add_up() -> None:
    kinds = [feature.kind for feature in FEATURES]
    assert kinds == sorted(kinds, reverse=True)
    assert (PREDICTIONS, NOTES, BASE_PREDICTIONS) == (23, 39, 62)  # as the weights that ship expect
    X = torch.randn(1, 9, 2)
    assert Features.none(X).extend(X, X[..., 0])[1].shape[-1] == BASE_PREDICTIONS


def test_every_feature_stands_at_its_places_and_names_an_existing_module() -> None:
    found = {f.name: torch.full((3, f.width), float(i)) for i, f in enumerate(FEATURES)}
    everything = arranged(found)
    for i, feature in enumerate(FEATURES):
        assert (everything[:, places(feature.name)] == i).all()
        importlib.import_module(f"pfnts.backbones.network.features.{feature.module}")


def test_an_unknown_name_raises() -> None:
    with pytest.raises(ValueError, match=r"name must be one of lines, .*, got .forests."):
        places("forests")


def test_the_errors_are_as_many_as_the_predictions() -> None:
    assert places("errors").stop - places("errors").start == PREDICTIONS


def test_the_documentation_has_the_table() -> None:
    page = Path(__file__).parents[4] / "docs" / "features.md"
    assert as_markdown() in page.read_text()
