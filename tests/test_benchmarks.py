"""The benchmark that stands in for parts of the network knows what they look like."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[1] / "benchmarks" / "operations.py"


def test_operations_are_counted_where_they_would_be_computed():
    done = subprocess.run(
        [sys.executable, SCRIPT, "--rounds", "150"],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    _, total, on_cuda, on_cpu, *labels = done.stdout.splitlines()
    count = [int(line.split()[at].replace(",", "")) for line, at in ((total, 0), (on_cuda, 2), (on_cpu, 2))]
    assert count[0] == count[1] + count[2]
    assert min(count) > 0
    for kind in ("rows / base predictions", "queries / base predictions"):
        assert any(kind in label for label in labels), "work is told apart"
