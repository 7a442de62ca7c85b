"""Parts of the user's own, by the name under which Python imports them: ``package.module.Attribute``."""

from __future__ import annotations

import ast
import hashlib
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import import_module
from importlib.util import resolve_name
from pathlib import Path
from types import ModuleType
from typing import Any


def is_dotted(name: str) -> bool:
    """Whether a name has the form ``module.Attribute``.

    Examples
    --------
    >>> is_dotted("squarecb.SquareCB"), is_dotted("pfn-ts"), is_dotted("wheel-0.5")
    (True, False, False)
    """
    return "." in name and all(part.isidentifier() for part in name.split("."))


def find(name: str, *, kind: str) -> Any:
    """Import the module and return its attribute.

    Parameters
    ----------
    name
        A dotted name.
    kind
        What is looked for, "policy" for instance; errors begin with it.

    Examples
    --------
    >>> find("pfnts.policies.Uniform", kind="policy").__name__
    'Uniform'
    """
    module, attribute = _module(name, kind=kind), name.rpartition(".")[2]
    if not hasattr(module, attribute):
        raise ValueError(
            f"{kind} {name!r} must be an attribute of its module, {_place(module)} has no {attribute!r}"
        )
    return getattr(module, attribute)


def sources(names: Iterable[str]) -> str | None:
    """Hash the files behind those names that are dotted, with what they import beside them; None for none.

    A file is read once in a process, like the module itself: Python does not see a later change either.

    Examples
    --------
    >>> sources(["pfn-ts", "friedman"]) is None, len(sources(["pfnts.policies.Uniform"]))
    (True, 16)
    """
    dotted = sorted({name for name in names if is_dotted(name)})
    if not dotted:
        return None
    return hashlib.sha256("".join(map(_digest, dotted)).encode()).hexdigest()[:16]


def own_modules(descriptions: Iterable[Any]) -> list[Path]:
    """Files and folders, by importing which the dotted names in JSON values are found; no installed ones.

    Examples
    --------
    >>> own_modules([{"policy": {"name": "pfnts.policies.Uniform"}, "scenario": "friedman"}])
    []
    """
    found: dict[str, Path] = {}
    for name in filter(is_dotted, _texts(list(descriptions))):
        module = sys.modules.get(name.rpartition(".")[0])
        if module is not None and module.__name__.split(".")[0] != "pfnts":
            _follow(module, _home(module), found)
    tops = {name.split(".")[0] for name in found}
    places = [Path(file) for top in sorted(tops) if (file := sys.modules[top].__file__)]
    return [
        place.parent if place.name == "__init__.py" else place
        for place in places
        if not {"site-packages", "dist-packages"} & set(place.parts)
    ]


def _texts(value: Any) -> Iterator[str]:
    """All texts within JSON values."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _texts(part)


def _module(name: str, *, kind: str) -> ModuleType:
    module = name.rpartition(".")[0]
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        missing = error.name or ""
        if not f"{module}.".startswith(f"{missing}."):
            # The module is there, and one that it imports is not.
            raise ImportError(f"{kind} {name!r} cannot be imported: {error}") from error
        looked = ", ".join(entry or "." for entry in sys.path)
        raise ValueError(
            f"{kind} {name!r} must be in a module that can be imported, "
            f"there is no module {missing!r} in {looked}"
        ) from error


@cache
def _digest(name: str) -> str:
    find(name, kind="name")
    module = _module(name, kind="name")
    found: dict[str, Path] = {}
    _follow(module, _home(module), found)
    return hashlib.sha256(b"\0".join(found[key].read_bytes() for key in sorted(found))).hexdigest()


def _follow(module: ModuleType | None, home: Path, found: dict[str, Path]) -> None:
    """Collect the file of a module and of those that it imports from the same folder, by their names."""
    file = Path(getattr(module, "__file__", None) or "/")
    if module is None or module.__name__ in found or file.suffix != ".py" or not file.is_relative_to(home):
        return
    found[module.__name__] = file
    for node in ast.walk(ast.parse(file.read_bytes())):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            parent = resolve_name("." * node.level + (node.module or ""), module.__package__)
            names = [parent, *(f"{parent}.{alias.name}" for alias in node.names)]
        for name in names:
            _follow(sys.modules.get(name), home, found)


def _home(module: ModuleType) -> Path:
    """The folder beside which the user's own modules are; of an installed one its own alone."""
    top = sys.modules[module.__name__.split(".")[0]]
    file = Path(getattr(top, "__file__", None) or "/")
    inside = file.parent if file.name == "__init__.py" else file
    return inside if inside.parent.name in ("site-packages", "dist-packages", "src") else inside.parent


def _place(module: ModuleType) -> str:
    return getattr(module, "__file__", None) or module.__name__
