"""Fixtures shared by all tests."""

from __future__ import annotations

import os
import zlib

import numpy as np
import pytest
from numpy.random import Generator


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> Generator:
    """A generator of the test's own, so that adding a test changes no other.

    PFNTS_TEST_SEED moves all of them together: a statistical test must pass for any value from 0 to 99.
    """
    return np.random.default_rng(
        [int(os.environ.get("PFNTS_TEST_SEED", "0")), zlib.crc32(request.node.nodeid.encode())]
    )
