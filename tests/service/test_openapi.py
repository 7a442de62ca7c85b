"""The OpenAPI document against the service: all checks of schemathesis, stateful ones included."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pfnts.service.keys import new_key
from pfnts.service.store import open_store
from tests.service.processes import Service

EXAMPLES = os.environ.get("PFNTS_EXAMPLES", "2")


def test_the_service_does_what_its_document_says(tmp_path):
    pytest.importorskip("schemathesis", reason="needs schemathesis")
    store = open_store(tmp_path / "data")
    text, key = new_key("test", "admin", time=0.0)
    store.add_key(key)
    store.close()
    service = Service(tmp_path / "data", timeout=5.0)
    try:
        service.wait_ready()
        done = subprocess.run(
            [
                str(Path(sys.executable).with_name("st")),
                *("--config-file", str(Path(__file__).with_name("schemathesis.toml"))),
                *("run", f"{service.url}/v1/openapi.json", "--checks", "all"),
                *("-H", f"Authorization: Bearer {text}", "--max-examples", EXAMPLES, "--seed", "1"),
                # A stream has no end.
                *("--exclude-path-regex", "/events$", "--workers", "1", "--no-color"),
                # The first policy with a network waits until its weights are read.
                *("--request-timeout", "60", "--max-response-time", "60"),
            ],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=500,
            env=os.environ | {"HYPOTHESIS_STORAGE_DIRECTORY": str(tmp_path)},
        )
        assert done.returncode == 0, done.stdout[-6000:]
        assert "Stateful" in done.stdout
        answer = service.http.get("/v1/experiments", headers={"Authorization": f"Bearer {text}"})
        assert answer.status_code == 200, "it is still there"
    finally:
        assert service.stop() == 0
