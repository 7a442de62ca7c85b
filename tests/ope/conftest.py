"""Logs shared by the tests of off-policy evaluation."""

from __future__ import annotations

import numpy as np
import pytest

from pfnts.ope import Log


@pytest.fixture
def five_rows() -> Log:
    """Two actions, five rounds, weights that can be worked out by hand."""
    return Log(
        contexts=np.array([[0.0], [1.0], [0.0], [1.0], [1.0]]),
        features=("x",),
        arms=("a", "b"),
        actions=np.array([0, 1, 1, 0, 1]),
        rewards=np.array([1.0, 0.0, 2.0, 1.0, 4.0]),
        propensities=np.array([0.5, 0.5, 0.25, 0.75, 0.5]),
    )
