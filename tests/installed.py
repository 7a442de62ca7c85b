"""Tries the installed package as a new user would; a script for an environment that has nothing else."""

from __future__ import annotations

import doctest
import os
import subprocess
import sys
import tempfile
from importlib.metadata import metadata
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

CHECKOUT = Path(__file__).parents[1]
IMPORT = """
import sys, time
began = time.perf_counter()
import pfnts
print(f"import pfnts: {time.perf_counter() - began:.2f} s")
heavy = {"torch", "scipy.special", "pandas", "sklearn", "matplotlib"} & set(sys.modules)
assert not heavy, f"imported although nobody asked: {heavy}"
"""


def main() -> None:
    package = Path(str(files("pfnts")))
    assert not package.is_relative_to(CHECKOUT / "src"), f"not an installation: {package}"
    assert (package / "py.typed").exists()
    subprocess.run([sys.executable, "-c", IMPORT], check=True)
    text = metadata("pfnts").get_payload()
    assert isinstance(text, str)
    if find_spec("sklearn") is None:  # an extra, which only one section needs
        text = "## ".join(part for part in text.split("## ") if "PFNRegressor()" not in part)
    blocks = doctest.DocTestParser().get_doctest(text, {}, "README.md", "README.md", 0)
    outcome = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(blocks)
    assert outcome.attempted > 10, "README.md has lost its examples"
    assert not outcome.failed
    print(f"README.md: {outcome.attempted} lines as they say")
    command = str(Path(sys.executable).with_name("pfnts"))
    for arguments in (["--version"], ["info"], ["scenarios"], ["demo", "--horizon", "300"]):
        print(f"$ pfnts {' '.join(arguments)}", flush=True)
        subprocess.run([command, *arguments], check=True)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        main()
