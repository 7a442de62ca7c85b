"""Policies, backbones and scenarios of the user's own, by dotted name, from files in a folder."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from pfnts import PFNTS, backbones, dotted, environments, policies
from pfnts.cli import app
from pfnts.experiments import PolicySpec, RunSpec, RunStore, job, plan, run_all
from pfnts.experiments.engines import LocalEngine
from pfnts.experiments.report import write_report
from pfnts.reproduction import reproduction

POLICY = """
import numpy as np
from pfnts.policies import Choices
from pfnts import Policy
from pfnts.policies.uniform import Indifferent

class Favour:
    reason = "greedy"
    def __init__(self, favourite):
        self.favourite = favourite
    def n_uniforms(self, n_arms):
        return 0
    def __call__(self, answer, eligible, uniforms, costs):
        index = np.full(len(eligible), self.favourite)
        return Choices(index, np.eye(eligible.shape[1])[index])

class Sticky(Policy):
    def __init__(self, arms, *, favourite=0, backbone=None):
        super().__init__(arms, model=Indifferent(), rule=Favour(favourite))

NUMBER = 3
"""
SCENARIO = """
from dataclasses import dataclass
from pfnts.environments import Environment

@dataclass(frozen=True)
class Coins:
    name: str = "coins"
    description: str = "two coins"
    n_features: int = 1
    n_arms: int = 2
    needs_context: bool | None = False
    def environment(self, *, horizon, rng):
        means = rng.uniform(size=(horizon, 2))
        return Environment(name="coins", contexts=means[:, :1], means=means, rewards=means)

COINS = Coins()
"""
BACKBONE = """
from pfnts.backbones import LinearBackbone

class Mine(LinearBackbone):
    @property
    def name(self):
        return "mine"
"""
FILES = {"own_policy.py": POLICY, "own_scenario.py": SCENARIO, "own_backbone.py": BACKBONE}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "own_broken.py").write_text("import no_such_library\n")
    (tmp_path / "own_package").mkdir()
    (tmp_path / "own_package" / "__init__.py").write_text("from own_package.inner import Sticky\n")
    (tmp_path / "own_package" / "inner.py").write_text("from . import helper\n" + POLICY)
    (tmp_path / "own_package" / "helper.py").write_text("import own_beside\n")
    (tmp_path / "own_beside.py").write_text("RATE = 1.0\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield tmp_path
    forget()


@pytest.fixture
def found(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(folder)
    return folder


def forget() -> None:
    """What a new process would not know."""
    from pfnts.experiments import spec

    for name in [name for name in sys.modules if name.split(".")[0].startswith("own_")]:
        del sys.modules[name]
    for cached in (dotted._digest, spec.loaded):
        cached.cache_clear()


def invoke(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, arguments)
    return result.exit_code, re.sub(r"\s+", " ", result.output)


@pytest.mark.usefixtures("found")
def test_dotted_names_are_made_where_names_are() -> None:
    policy = policies.make("own_policy.Sticky", arms=["a", "b"], favourite=1)
    assert policy.decide([0.0], rng=np.random.default_rng(0)).arm == "b"
    assert backbones.load("own_backbone.Mine", precision=2.0).name == "mine"
    assert PFNTS(arms=2, backbone="own_backbone.Mine").traffic.warmup == 5
    assert environments.describe("own_scenario.COINS").n_arms == 2
    made = environments.make("own_scenario.COINS", horizon=7, rng=np.random.default_rng(0))
    assert made.means.shape == (7, 2)


@pytest.mark.usefixtures("found")
@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: policies.make("nowhere.Sticky", arms=2), "policy 'nowhere.Sticky' must be .*'nowhere' in /"),
        (
            lambda: policies.make("own_policy.deep.Sticky", arms=2),
            "there is no module 'own_policy.deep' in /",
        ),
        (lambda: policies.make("own_policy.Slippery", arms=2), r"own_policy.py has no 'Slippery'"),
        (lambda: policies.make("own_policy.NUMBER", arms=2), "must be a subclass of pfnts.Policy, got 3"),
        (lambda: policies.make("own_backbone.Mine", arms=2), "subclass of pfnts.Policy, got <class"),
        (lambda: backbones.load("own_policy.Sticky"), "must be a subclass of pfnts.backbones.Backbone"),
        (lambda: backbones.load("own_policy.NUMBER"), "subclass of pfnts.backbones.Backbone, got 3"),
        (lambda: environments.describe("own_scenario.Coins"), "must be an object with `name`.*got <class"),
        (lambda: environments.describe("own_policy.NUMBER"), "must be an object with `name`.*got 3"),
        (lambda: policies.make("pfn.t-s", arms=2), r"or package.module.Class, got 'pfn.t-s'"),
        (lambda: environments.describe("wheel-0.7"), r"or package.module.OBJECT; got 'wheel-0.7'"),
        (lambda: PolicySpec("../Sticky"), r"package.module.Class or file:path; got '../Sticky'"),
    ],
)  # fmt: skip
def test_mistakes_are_named(make: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()  # type: ignore[operator]


@pytest.mark.usefixtures("found")
def test_module_that_lacks_a_library_says_which() -> None:
    with pytest.raises(ImportError, match=r"policy 'own_broken.Any' cannot be imported: .*no_such_library"):
        policies.make("own_broken.Any", arms=2)


def spec(name: str = "own_policy.Sticky", scenario: str = "own_scenario.COINS") -> RunSpec:
    return RunSpec(scenario, PolicySpec(name), horizon=20, replication=0, seed=1)


@pytest.mark.parametrize(
    ("edited", "which"),
    [
        ("own_policy.py", spec()),
        ("own_scenario.py", spec()),
        ("own_package/inner.py", spec("own_package.Sticky", "linear")),
        ("own_package/helper.py", spec("own_package.Sticky", "linear")),
        ("own_beside.py", spec("own_package.Sticky", "linear")),
        (
            "own_backbone.py",
            RunSpec("linear", PolicySpec.of("pfn-ts", backbone="own_backbone.Mine"), 20, 0, 1),
        ),
    ],
)
def test_edited_file_makes_another_run(edited: str, which: RunSpec, found: Path) -> None:
    before, decided = job(which).key, which.policy.decided_by()
    assert job(which).key == before
    forget()
    assert job(which).key == before, "a new process finds the run"
    (found / edited).write_text((found / edited).read_text() + "\n# edited\n")
    assert job(which).key == before, "the module at hand is the old one"
    forget()
    assert job(which).key != before
    assert (which.policy.decided_by() != decided) == (edited != "own_scenario.py")


def test_named_parts_have_no_sources() -> None:
    assert not {"sources", "data"} & set(job(RunSpec("wheel-0.5", PolicySpec("uniform"), 20, 0, 1)).producer)


def test_processes_find_the_modules_and_the_store_keeps_the_runs(found: Path) -> None:
    own = [PolicySpec.of("own_policy.Sticky", favourite=1), PolicySpec("uniform")]
    specs = plan(scenarios=["own_scenario.COINS"], policies=own, horizon=20, replications=1, seed=1)
    store = RunStore(found / "runs")
    here = {run.spec: run.result.total_regret for run in run_all(specs)}
    there = {
        run.spec: run.result.total_regret
        for run in run_all(specs, store=store, engine=LocalEngine(workers=2))
    }
    assert there == here
    assert len(here) == 2
    names = {path.name.rpartition("_")[0] for path in store.root.iterdir()}
    assert names == {
        "own_scenario.COINS-own_policy.Sticky-favourite-1-replication-0",
        "own_scenario.COINS-uniform-replication-0",
    }


def test_report_needs_no_modules(found: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = RunStore(found / "runs")
    own = [PolicySpec("own_policy.Sticky"), PolicySpec("lin-ts")]
    scenarios = ["own_scenario.COINS", "friedman"]
    specs = plan(scenarios=scenarios, policies=own, horizon=30, replications=1, seed=1)
    assert len(list(run_all(specs, store=store))) == 4
    forget()
    for name in FILES:
        (found / name).unlink()
    page = write_report(store.root, figures=False).read_text()
    assert "own_policy.Sticky" in page
    assert "own_scenario.COINS" in page


def test_command_line_finds_modules_in_the_current_folder(folder: Path) -> None:
    assert str(folder) not in sys.path
    status, output = invoke(
        "run", "--scenario", "own_scenario.COINS", "--policy", "own_policy.Sticky:favourite=1",
        "--policy", "pfn-ts", "--backbone", "own_backbone.Mine", "--horizon", "30", "--replications", "1",
        "--workers", "1",
    )  # fmt: skip
    assert status == 0, output
    assert "own_policy" in output
    assert len(list((folder / "runs").iterdir())) == 2


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("run", "--scenario", "own_scenario.COIN"), "own_scenario.py has no 'COIN'"),
        (("run", "--policy", "nowhere.Sticky"), "there is no module 'nowhere' in"),
        (("run", "--policy", "own_policy.Sticky:hue=1"), "does not fit: "),
        (("run", "--backbone", "own_policy.Sticky"), "must be a subclass of pfnts.backbones.Backbone"),
        (("ope", "drinkless-sim", "--policy", "own_policy.NUMBER"), "must be a subclass of pfnts.Policy"),
        (("evaluate-backbone", "nowhere.Mine"), "there is no module 'nowhere' in"),
        (("calibrate", "--backbone", "own_backbone.Yours"), "own_backbone.py has no 'Yours'"),
        (("reproduce", "all", "--policy", "own_policy.Slippery"), "own_policy.py has no 'Slippery'"),
    ],
)
def test_command_line_explains_mistakes(arguments: tuple[str, ...], message: str) -> None:
    status, output = invoke(*arguments)
    assert status == 2
    assert message in output


@pytest.mark.usefixtures("found")
def test_own_policy_joins_the_paper_s_tables_and_no_ablation() -> None:
    wanted = reproduction("all", quick=True, policies=["own_policy.Sticky:favourite=1"])
    assert {each.policy.label for each in wanted.specs} == {"own_policy.Sticky(favourite=1)"}
    assert len({each.scenario for each in wanted.specs}) == 23


@pytest.mark.usefixtures("found")
def test_policy_file_names_no_module_to_import(tmp_path: Path) -> None:
    policy = PFNTS(arms=2, backbone="own_backbone.Mine")
    policy.update([0.5], arm=0, reward=1.0)
    policy.save(tmp_path / "policy")
    with pytest.raises(ValueError, match=r"backbone must be passed to load: .* one of your own"):
        PFNTS.load(tmp_path / "policy")
    assert PFNTS.load(tmp_path / "policy", backbone="own_backbone.Mine").arms == (0, 1)
