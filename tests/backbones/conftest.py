"""A checkpoint in TabICL's own format, with a small network and random weights."""

from __future__ import annotations

from pathlib import Path

import pytest

# The sizes of a network; everything else as in the official v2 regressor.
SMALL = {
    "embed_dim": 16,
    "col_num_blocks": 1,
    "col_nhead": 2,
    "col_num_inds": 8,
    "row_num_blocks": 1,
    "row_nhead": 2,
    "row_num_cls": 2,
    "icl_num_blocks": 2,
    "icl_nhead": 2,
}


@pytest.fixture(scope="session")
def tabicl_checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tabicl = pytest.importorskip("tabicl._model.tabicl")
    import torch

    config = {"max_classes": 0, "row_rope_interleaved": False, "zero_init": False, **SMALL}
    with torch.random.fork_rng():
        torch.manual_seed(0)
        network = tabicl.TabICL(**config)
    path = tmp_path_factory.mktemp("tabicl") / "small.ckpt"
    torch.save({"config": config, "state_dict": network.state_dict()}, path)
    return path
