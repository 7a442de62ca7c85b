"""The reference page against the packages, and the packages against their rule."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

import pytest

import pfnts

REFERENCE = Path(__file__).parents[1] / "docs" / "reference.md"
PACKAGES = ["pfnts", *(f"pfnts.{module.name}" for module in iter_modules(pfnts.__path__) if module.ispkg)]
# The command line is reached from the shell.
DOCUMENTED = [name for name in PACKAGES if name != "pfnts.cli"]


def names_on_the_page() -> dict[str, list[str]]:
    sections = re.split(r"^## ", REFERENCE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    return {
        section.split("\n", 1)[0]: re.findall(r"^\| `(\w+)`", section, re.MULTILINE) for section in sections
    }


@pytest.mark.parametrize("package", DOCUMENTED)
def test_reference_lists_exactly_the_public_names(package: str) -> None:
    listed = names_on_the_page().get(package, [])
    assert listed == sorted(import_module(package).__all__), "run: python docs/make_reference.py"


def test_reference_has_no_other_sections() -> None:
    assert sorted(names_on_the_page()) == sorted(DOCUMENTED)


@pytest.mark.parametrize("package", PACKAGES)
def test_init_only_re_exports(package: str) -> None:
    tree = ast.parse(Path(import_module(package).__file__ or "").read_text(encoding="utf-8"))
    docstring, *rest = tree.body
    assert isinstance(docstring, ast.Expr)
    kinds: tuple[type, ...] = (ast.Import, ast.ImportFrom, ast.Assign)
    if package == "pfnts":
        # What needs an extra is imported when it is asked for; editors and type checkers see it all the same.
        kinds += (ast.If, ast.FunctionDef)
        assert [node.name for node in rest if isinstance(node, ast.FunctionDef)] == ["__getattr__"]
    assert all(isinstance(node, kinds) for node in rest)


@pytest.mark.parametrize("package", DOCUMENTED)
def test_every_public_name_has_a_docstring(package: str) -> None:
    module = import_module(package)
    for name in module.__all__:
        value = getattr(module, name)
        if isinstance(value, type) or callable(value):
            assert value.__doc__, f"{package}.{name}"


def test_importing_the_package_imports_nothing_heavy() -> None:
    heavy = ("torch", "scipy.special", "scipy.linalg", "scipy.stats", "pandas", "sklearn", "matplotlib")
    code = f"import sys, pfnts; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_policy_with_another_model_does_without_torch() -> None:
    code = """
import sys, numpy as np, pfnts
policy = pfnts.PFNTS(arms=2, backbone="linear")
for _ in range(20):
    policy.update(policy.decide([1.0], rng=np.random.default_rng()), reward=1.0)
print("torch" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_every_lazy_name_is_there() -> None:
    assert pfnts.__version__.startswith("0.")
    assert set(pfnts.__all__) == {name for name in pfnts.__all__ if getattr(pfnts, name) is not None}
    with pytest.raises(AttributeError, match="no attribute 'PFNClassifier'"):
        pfnts.PFNClassifier  # noqa: B018
