"""The examples of docs/service.md, run as they stand."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.service.processes import Service
from tests.service.test_page import CHROMIUM, browser  # noqa: F401 (a fixture)

GUIDE = (Path(__file__).parents[2] / "docs" / "service.md").read_text()


def examples(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", GUIDE, re.DOTALL | re.MULTILINE)


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    running = Service(tmp_path_factory.mktemp("data"), timeout=20.0)
    running.wait_ready()
    running.printed = ""
    for example in examples("bash"):
        if shutil.which("curl") is None:
            pytest.skip("needs curl")
        script = example.replace("localhost:8000", running.url.removeprefix("http://"))
        done = subprocess.run(["bash", "-ec", script], capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        running.printed += done.stdout
    yield running
    running.stop()


def test_curl(service):
    assert '"status":"learned"' in service.printed
    assert '"name":"offers"' in service.printed
    assert '"propensities":{"a-17":0.5,"a-18":0.5}' in service.printed


def test_python(service):
    for example in examples("python"):
        names: dict[str, object] = {}
        exec(example.replace("http://localhost:8000", service.url), names)
        assert names["status"] == "learned"
        assert names["decision"].arm in {"none", "discount", "gift"}


def test_javascript(service, browser):  # noqa: F811
    page = browser.new_page()
    page.goto(service.url)
    for example in examples("javascript"):
        body = example.replace("http://localhost:8000", service.url)
        found = page.evaluate(f"async () => {{ {body}; return decision; }}")
        assert found["reason"] == "warmup"
    page.close()


def test_every_metric_of_the_guide_is_there(service):
    text = service.http.get("/metrics").text
    for name in re.findall(r"`(pfnts_[a-z_]+)", GUIDE):
        assert name in text, name
