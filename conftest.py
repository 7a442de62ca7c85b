"""Tests and examples of an optional library are skipped where it is not installed."""

from __future__ import annotations

import doctest
import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent / "src"
EXTRA = re.compile(r'pip install "?pfnts\[')


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leave out modules that need an extra that is not installed, and with them their examples."""
    if collection_path.suffix != ".py" or SOURCE not in collection_path.parents:
        return None
    try:
        importlib.import_module(".".join(collection_path.relative_to(SOURCE).with_suffix("").parts))
    except ImportError as error:
        return True if EXTRA.search(str(error)) else None
    return None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Iterator[None]:
    """Skip a test that ends in the error about an extra that is not installed."""
    yield from _skipping()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup() -> Iterator[None]:
    """Skip a test whose fixtures end in that error."""
    yield from _skipping()


def _skipping() -> Iterator[None]:
    try:
        return (yield)
    except Exception as error:
        missing = _missing(error)
        if missing is not None:
            pytest.skip(f"needs an extra: {missing}")
        raise


def _missing(error: BaseException) -> ImportError | None:
    """Return the error about an extra that an error is, wraps or follows from."""
    wrapped = error.exc_info[1] if isinstance(error, doctest.UnexpectedException) else error.__cause__
    if isinstance(error, ImportError) and EXTRA.search(str(error)):
        return error
    return None if wrapped is None else _missing(wrapped)
