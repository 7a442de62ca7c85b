"""Commands on the pages and in README.md run as they stand, but for their size."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from pfnts.cli import app
from pfnts.experiments import PolicySpec, plan, prepare, run_all
from pfnts.experiments.store import RunStore
from tests.docs.test_site import ROOT, shell_lines
from tests.installed import serve_and_ask

# Later options win, so a command as it stands and a few more is the same command in a smaller size.
SMALLER = {
    "demo": "--horizon 30 --backbone linear",
    "run": "--horizon 30 --replications 1 --workers 1",
    "ope": "--replicates 1 --people 30 --workers 1",
    "evaluate-backbone": "--sizes 8 --functions 1",
}
# Of these only the options are looked at (test_site.py), or they run elsewhere.
ELSEWHERE = {
    "pfnts reproduce": "takes hours; tests/test_cli_reproduce.py runs it in miniature",
    "pfnts pretrain": "needs a GPU; tests/test_cli_backbones.py trains a tiny network",
    "pfnts weights": "downloads; tests/test_cli_weights.py has a stand-in for the download",
    "pfnts serve": "test_requests_of_the_readme below, and tests/service",
    "pfnts keys": "tests/service/test_access.py",
    "pfnts export": "tests/service",
    "pfnts ope offers.csv": "what pfnts export writes: tests/service",
    "pfnts ope drinkless --data": "needs the trial's data",
    "pfnts run --backbone tabpfn --device cuda": "needs a GPU and weights",
    "pfnts evaluate-backbone tabicl": "needs weights",
    "pfnts evaluate-backbone embedded": "minutes; tests/test_cli_backbones.py scores another backbone",
    "pfnts run --scenario pricing.PRICING": "the reader's modules; docs/extending.md runs another name",
    "pfnts evaluate-backbone gp.GaussianProcess": "likewise",
    "pfnts demo --scenario steps": "tests/test_cli.py plays another",
}


def elsewhere(line: str) -> bool:
    return any(line.startswith(beginning) for beginning in ELSEWHERE)


LINES = [line for line in shell_lines() if not elsewhere(line)]


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The files that the pages speak of, in the folder where the commands run."""
    rng = np.random.default_rng(0)
    n = 90
    table = pd.DataFrame(
        {
            "day": np.arange(n) // 30, "t": range(n), "user": np.arange(n) % 30, "person": np.arange(n) % 30,
            "age": rng.integers(18, 80, n), "weekend": rng.integers(0, 2, n), "steps": rng.integers(0, 9, n),
            "phone": rng.choice(["android", "ios"], n), "plan": rng.choice(["free", "paid"], n),
            "offer": rng.choice(["none", "gift"], n), "message": rng.choice(["none", "standard", "new"], n),
            "arm": rng.choice(["none", "standard"], n), "probability": 0.5, "propensity": 0.5,
            "margin": rng.normal(size=n), "opened": rng.integers(0, 2, n), "reward": rng.normal(size=n),
        }
    )  # fmt: skip
    for name in ("visits.csv", "log.csv", "customers.csv"):
        table.to_csv(tmp_path / name, index=False)
    pets = [f"{i % 9},{'ab'[i % 2]},{('cat', 'dog')[i % 9 > 4]}" for i in range(60)]
    (tmp_path / "pets.csv").write_text("\n".join(["weight,coat,pet", *pets]))
    specs = plan(scenarios=["linear"], policies=[PolicySpec("ts")], horizon=30, replications=1, seed=42)
    list(run_all(prepare(specs), store=RunStore(tmp_path / "runs")))  # for `pfnts report runs`
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize("line", LINES)
def test_command_runs(line: str) -> None:
    words = shlex.split(line.replace("--policy pfn-ts", "--policy pfn-ts:backbone=linear"))[1:]
    smaller = shlex.split(SMALLER.get(words[0], ""))
    if words[0] == "ope" and "--policy" not in words:
        smaller += ["--policy", "ts"]
    result = CliRunner().invoke(app, [*words, *smaller])
    assert result.exit_code == 0, result.output


def test_every_command_that_is_not_run_here_is_on_a_page() -> None:
    assert len(LINES) > 10
    for beginning in ELSEWHERE:
        assert any(line.startswith(beginning) for line in shell_lines()), beginning


def test_requests_of_the_readme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "src"))
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    serve_and_ask([sys.executable, "-c", "from pfnts.cli import app; app()"], readme)


@pytest.mark.parametrize("page", ["README.md", *sorted((ROOT / "docs").rglob("*.md"))], ids=str)
def test_python_is_written_as_a_session_which_runs(page: str | Path) -> None:
    """A block without prompts would be shown and never run; those of service.md run in tests/service."""
    text = (ROOT / page).read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    if Path(page).name != "service.md":
        assert all(block.startswith(">>> ") for block in blocks)
