"""Values of a context: missing, a number, a boolean, a date or a category."""

from __future__ import annotations

import math
import re
import reprlib
from collections.abc import Collection, Mapping, Set
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from numbers import Integral, Real
from typing import Any

import numpy as np

MISSING_TEXTS = frozenset({"", "?", "NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "<NA>", "NaT"})
"""Texts that stand for a missing value, unless the schema lists them as categories."""
READABLE = "a number, a boolean, a text or a date"
"""Values that a context may hold, for error messages."""

_TRUTHS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_BOOLEANS = (bool, np.bool_)
_JSON_NUMBERS = (float, int, bool)
_DATE = re.compile(r"(\d{4})([-/])(\d{2})\2(\d{2})(?=$|[T ])")
_WHOLE_FLOAT = re.compile(r"(?:0|-?[1-9]\d*)\.0")
_REMEDIES: tuple[tuple[tuple[type, ...], str], ...] = (
    ((bytes, bytearray), "decode it to a text"),
    ((complex, np.complexfloating), "give its real and its imaginary part as two columns"),
    ((time,), "give the hour, or the minutes since midnight, as a number"),
    ((timedelta, np.timedelta64), "give its length as a number, such as value.total_seconds()"),
    ((list, tuple, np.ndarray, Mapping, Set), "several contexts are a list of mappings, a matrix or a frame"),
    ((object,), "turn it into a number, a text or a date"),
)


def unwrapped(value: Any) -> Any:
    """Return the scalar in an array or tensor without dimensions, None for numpy's masked value."""
    if isinstance(value, np.ndarray):
        return value if value.ndim else None if np.ma.is_masked(value) else value[()]
    return value.item() if hasattr(value, "detach") and value.ndim == 0 else value


def is_missing(value: Any) -> bool:
    """Return whether a value is None, NaN, NaT, pandas' NA or one of `MISSING_TEXTS`."""
    if isinstance(value, str):
        return value.strip() in MISSING_TEXTS
    if isinstance(value, Decimal):
        return value.is_nan()
    if isinstance(value, float | np.floating | np.datetime64):
        return bool(value != value)
    # pandas' NA and NaT refuse to be compared, and pandas need not be installed.
    return value is None or type(value).__name__ in ("NAType", "NaTType")


def kind_of(value: Any, *, written: bool = False) -> str | None:
    """Return the kind of column that a value suggests, or "missing"; None for what no column can hold.

    Where texts are ``written``, as in a CSV file, they may stand for numbers and booleans.

    Examples
    --------
    >>> kind_of("1.5"), kind_of("1.5", written=True), kind_of("2026-03-01"), kind_of(b"1.5")
    ('categorical', 'numeric', 'date', None)
    """
    written = written and isinstance(value, str)
    if is_missing(value):
        return "missing"
    if _is_number(value) or (written and number(value) is not None):
        return "numeric"
    if isinstance(value, _BOOLEANS) or (written and value.strip() in _TRUTHS):
        return "boolean"
    if _moment(value) is not None:
        return "date"
    return "categorical" if isinstance(value, str) else None


def number(value: Any) -> float | None:
    """Read a number, a boolean or the text of a number; None for anything else.

    Examples
    --------
    >>> number(3), number(True), number(" 1.5"), number("old"), number(10**400)
    (3.0, 1.0, 1.5, None, inf)
    """
    if isinstance(value, str):
        read = numbers([value])
        return None if read is None else read[0]
    if type(value) not in _JSON_NUMBERS and not (_is_number(value) or isinstance(value, _BOOLEANS)):
        return None
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
    except ValueError:  # a decimal's signalling NaN
        return None


def numbers(texts: Collection[str]) -> list[float] | None:
    """Read texts that are all numbers; None where one is not."""
    try:
        read = list(map(float, texts))
    except ValueError:
        return None
    # Python also reads 1_000, and digits of other scripts.
    joined = "".join(texts)
    return read if joined.isascii() and "_" not in joined else None


def truth(value: Any) -> float | None:
    """Read a boolean, one of the words true and false, or 0 and 1; None for anything else."""
    word = _TRUTHS.get(value.strip()) if isinstance(value, str) else None
    read = number(value) if word is None else float(word)
    return read if read in (0.0, 1.0) else None


def days(value: Any) -> float | None:
    """Read a date, a datetime or its text as days since 1970; None for anything else.

    A moment without a time zone counts as UTC.

    Examples
    --------
    >>> days("1970-01-02T12:00"), days("1970/01/03"), days(date(1970, 1, 3)), days(19_000)
    (1.5, 2.0, 2.0, None)
    """
    moment = _moment(value)
    if moment is None:
        return None
    since = moment.replace(tzinfo=moment.tzinfo or UTC) - datetime(1970, 1, 1, tzinfo=UTC)
    return since / timedelta(days=1)


def has_zone(value: Any) -> bool:
    """Return whether a moment has a time zone."""
    moment = _moment(value)
    return moment is not None and moment.tzinfo is not None


def category(value: Any) -> str | None:
    """Write a category as text, equal values alike; None for what cannot be one.

    Examples
    --------
    >>> [category(value) for value in (1, 1.0, "1.0", " 1", 1.5, "007", True, "true")]
    ['1', '1', '1', '1', '1.5', '007', 'True', 'True']
    """
    if isinstance(value, str):
        text = value.strip()
        if text in _TRUTHS:
            return str(_TRUTHS[text])
        return text.removesuffix(".0") if _WHOLE_FLOAT.fullmatch(text) else text
    if isinstance(value, _BOOLEANS):
        return str(bool(value))
    if not _is_number(value):
        return _iso(value)
    try:
        exact = value if isinstance(value, Integral) else float(value)
        return str(int(exact)) if exact == int(exact) else repr(exact)
    except (ValueError, OverflowError):  # NaN, infinite, or more than the 4,300 digits that Python writes
        return None


def plain_value(value: Any) -> float | int | str | bool | None:
    """Write a value as a JSON value: None where it is missing, a date as ISO text."""
    if isinstance(value, str):
        return str(value)
    if is_missing(value) or isinstance(value, _BOOLEANS):
        return None if is_missing(value) else bool(value)
    read = number(value)
    if read is None:
        text = _iso(value)
        if text is None:
            raise ValueError(f"must be {READABLE}, got {shown(value)}; {remedy(value)}")
        return text
    if not math.isfinite(read):
        raise ValueError(f"must be finite or missing, got {shown(value)}; clip or drop the value")
    return int(value) if isinstance(value, Integral) else read


def remedy(value: Any) -> str:
    """Return the remedy for a value that no column can hold."""
    return next(words for types, words in _REMEDIES if isinstance(value, types))


def shown(value: Any) -> str:
    """Shorten a value for an error message, with its type where that is unusual."""
    try:
        text = reprlib.repr(value)
    except ValueError:  # as above
        text = "an integer of thousands of digits"
    known = value is None or type(value) in (str, bool, int, float, list, tuple, dict)
    return text if known else f"{text} ({type(value).__name__})"


def _is_number(value: Any) -> bool:
    # numpy's timedelta64 is an integer by inheritance only.
    return isinstance(value, Real | Decimal) and not isinstance(value, (*_BOOLEANS, np.timedelta64))


def _moment(value: Any) -> datetime | None:
    if isinstance(value, np.datetime64):
        try:
            value = value.astype("datetime64[us]").item()  # an integer where Python has no such year
        except OverflowError:  # numpy 2.5 and later
            return None
    if isinstance(value, str):
        text = value.strip()
        try:
            found = _DATE.match(text)
            return datetime.fromisoformat("-".join(found.group(1, 3, 4)) + text[10:]) if found else None
        except ValueError:
            return None
    if isinstance(value, datetime) and not is_missing(value):
        # Python's own datetime also where it is pandas' Timestamp, whose differences are rounded otherwise.
        return datetime.combine(value.date(), value.time(), value.tzinfo)
    return datetime(value.year, value.month, value.day) if type(value) is date else None


def _iso(value: Any) -> str | None:
    """Write a date as ISO text; a datetime at midnight without a zone is written as the date it equals."""
    moment = _moment(value)
    if moment is None:
        return None
    midnight = moment.tzinfo is None and moment.time() == time()
    return moment.date().isoformat() if midnight else moment.isoformat()
