"""Every backbone; a new one joins by its name."""

from __future__ import annotations

import pytest

from pfnts.backbones import Backbone, load
from pfnts.backbones.tabpfn_weights import weights_path

BACKBONES = ["embedded", "linear", "tabicl", "tabpfn"]


@pytest.fixture(params=BACKBONES)
def name(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def options(name: str, request: pytest.FixtureRequest) -> dict[str, object]:
    """TabICL gets a small network with random weights: the official ones are too large to be in a test."""
    if name == "tabpfn":
        pytest.importorskip("tabpfn")
        if not weights_path().is_file():
            pytest.skip("the TabPFN weights are not in the user cache; `make test-weights` fetches them")
    return {"weights": request.getfixturevalue("tabicl_checkpoint")} if name == "tabicl" else {}


@pytest.fixture
def backbone(name: str, options: dict[str, object]) -> Backbone:
    return load(name, **options)


@pytest.fixture
def trained(name: str, backbone: Backbone) -> Backbone:
    if name == "tabicl":
        pytest.skip("random weights have learned nothing")
    return backbone
