"""Compiling is most of the time of a small BART fit, so that tests compile without optimising."""

from __future__ import annotations

import os

os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0")
