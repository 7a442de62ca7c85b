"""Backbones by name."""

from __future__ import annotations

import pytest

from pfnts.backbones import LinearBackbone, load


def test_name_and_options_make_a_backbone() -> None:
    assert load("linear", precision=0.25) == LinearBackbone(precision=0.25)


def test_backbone_is_returned_as_it_is() -> None:
    backbone = LinearBackbone()
    assert load(backbone) is backbone
    with pytest.raises(ValueError, match=r"options must be empty .* got \['precision'\]"):
        load(backbone, precision=2.0)


def test_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"backbone must be one of \['embedded', 'linear'.*got 'lineal'"):
        load("lineal")


def test_other_objects_are_refused() -> None:
    with pytest.raises(ValueError, match=r"must be one of .* or a pfnts\.backbones\.Backbone, got 3"):
        load(3)  # type: ignore[arg-type]
