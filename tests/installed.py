"""Tries the installed package as a new user would; a script for an environment that has nothing else.

What needs an extra is tried where the extra is installed: `PFNRegressor`, and the service.
"""

from __future__ import annotations

import doctest
import os
import re
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
    drinkless = "ope drinkless-sim --policy ts --policy lin-ts --people 100 --replicates 1"
    assert drinkless[:-1] in text
    for arguments in ("--version", "info", "scenarios", "demo --horizon 300", drinkless):
        print(f"$ pfnts {arguments}", flush=True)
        subprocess.run([command, *arguments.split()], check=True)
    if find_spec("fastapi"):
        serve_and_ask([command], text)


def serve_and_ask(command: list[str], readme: str) -> None:
    """Start a service and send it the three requests of README.md by curl."""
    requests = re.findall(r"^ +(curl .*)$", readme, re.MULTILINE)
    assert len(requests) == 3, "README.md has other requests than those tried here"
    service = subprocess.Popen(
        [*command, "serve", "--data", "pfnts-data", "--port", "0"], stdout=subprocess.PIPE, text=True
    )
    try:
        assert service.stdout is not None
        address = re.search(r"http://(\S+)\. ", service.stdout.readline())
        assert address is not None, f"the service did not start, status {service.wait()}"
        answers = []
        for request in requests:
            line = request.replace("localhost:8000", address[1]).replace(
                "curl", "curl -sS --fail-with-body", 1
            )
            print(f"$ {line}", flush=True)
            answers.append(
                subprocess.run(line, shell=True, check=True, capture_output=True, text=True).stdout
            )
            print(answers[-1])
        assert '"arm":' in answers[1]
        assert '"propensities":' in answers[1]
        assert '"reason":"warmup"' in answers[1]
        assert '"learned"' in answers[2]
    finally:
        service.terminate()
        service.wait(timeout=30)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        main()
