"""What one value of a context is: missing, a number, a boolean, a date or a category."""

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
"""What a value may be, in words."""

_TRUTHS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_ISO_DATE = re.compile(r"\d{4}-\d{2}-\d{2}(?:$|[T ])")
_WHOLE_FLOAT = re.compile(r"(?:0|-?[1-9]\d*)\.0")
_REMEDIES: tuple[tuple[tuple[type, ...], str], ...] = (
    ((bytes, bytearray), "decode it to a text"),
    ((complex, np.complexfloating), "give its real and its imaginary part as two columns"),
    ((time,), "give the hour, or the minutes since midnight, as a number"),
    ((timedelta, np.timedelta64), "give its length as a number, such as value.total_seconds()"),
    ((list, tuple, np.ndarray, Mapping, Set), "several contexts are a list of mappings, a matrix or a frame"),
)


def is_missing(value: Any) -> bool:
    """Whether a value stands for a missing one: None, NaN, NaT, pandas' NA, or one of `MISSING_TEXTS`.

    Examples
    --------
    >>> [is_missing(value) for value in (None, float("nan"), " ", "NA", 0, False)]
    [True, True, True, True, False, False]
    """
    if isinstance(value, str):
        return value.strip() in MISSING_TEXTS
    if isinstance(value, Decimal):
        return value.is_nan()
    if isinstance(value, float | np.floating | np.datetime64):
        return bool(value != value)
    # pandas' NA and NaT refuse to be compared, and pandas need not be installed.
    return value is None or type(value).__name__ in ("NAType", "NaTType")


def is_boolean(value: Any) -> bool:
    """Whether a value is True or False itself, not a word or a number for it."""
    return isinstance(value, bool | np.bool_)


def is_number(value: Any) -> bool:
    """Whether a value is a real number itself, not a text or a boolean."""
    # numpy's timedelta64 is an integer by inheritance only.
    return isinstance(value, Real | Decimal) and not isinstance(value, bool | np.bool_ | np.timedelta64)


def number(value: Any) -> float | None:
    """Read a number, a boolean or the text of a number; None for anything else.

    Examples
    --------
    >>> number(3), number(True), number(" 1.5"), number("old"), number(10**400)
    (3.0, 1.0, 1.5, None, inf)
    """
    if isinstance(value, str):
        # Python's own literals are wider than what people mean by a number: 1_000, digits of other scripts.
        if "_" in value or not value.isascii():
            return None
    elif not (is_number(value) or is_boolean(value)):
        return None
    try:
        return float(value)
    except ValueError:
        return None
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def numbers(texts: Collection[str]) -> list[float] | None:
    """Read many texts as `number` does; None where one is no number.

    Examples
    --------
    >>> numbers(["1", " 2.5"]), numbers(["1", "one"])
    ([1.0, 2.5], None)
    """
    try:
        read = list(map(float, texts))
    except ValueError:
        return None
    together = "".join(texts)
    return read if together.isascii() and "_" not in together else None


def truth(value: Any) -> float | None:
    """Read a boolean, one of the words true and false, or 0 and 1; None for anything else.

    Examples
    --------
    >>> truth(False), truth("TRUE"), truth(1.0), truth("yes")
    (0.0, 1.0, 1.0, None)
    """
    if isinstance(value, str) and (word := _TRUTHS.get(value.strip())) is not None:
        return float(word)
    read = number(value)
    return read if read in (0.0, 1.0) else None


def days(value: Any) -> float | None:
    """Read a date, a datetime or its ISO text as days since 1970; None for anything else.

    A moment without a time zone counts as UTC.

    Examples
    --------
    >>> days("1970-01-02T12:00"), days(date(1970, 1, 3)), days(19_000)
    (1.5, 2.0, None)
    """
    moment = _moment(value)
    if moment is None:
        return None
    return ((moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - _EPOCH) / timedelta(days=1)


def has_zone(value: Any) -> bool:
    """Whether a moment says in which time zone it is."""
    moment = _moment(value)
    return moment is not None and moment.tzinfo is not None


def category(value: Any) -> str | None:
    """Write a category as text, equal values alike; None for what cannot be one.

    1, 1.0 and "1.0" are the category "1"; True and "true" are "True", which is not "1".

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
    if is_boolean(value):
        return str(bool(value))
    if is_number(value):
        exact = int(value) if isinstance(value, Integral) else number(value)
        if exact is None or (isinstance(exact, float) and not math.isfinite(exact)):
            return None
        try:
            return str(int(exact)) if exact == int(exact) else repr(exact)
        except ValueError:  # Python writes no integer of more than 4,300 digits
            return None
    return _iso(value)


def plain_value(value: Any) -> float | int | str | bool | None:
    """Write a value as one that JSON knows, None where it is missing, dates as ISO text.

    Examples
    --------
    >>> [plain_value(value) for value in (np.float32(0.5), np.True_, "NA", float("nan"), date(2026, 3, 1))]
    [0.5, True, 'NA', None, '2026-03-01']
    """
    if isinstance(value, str):
        return str(value)
    if is_missing(value):
        return None
    if is_boolean(value):
        return bool(value)
    if is_number(value):
        if isinstance(value, Integral):
            return int(value)
        read = number(value)
        if read is not None and math.isfinite(read):
            return read
        raise ValueError(f"must be finite or missing, got {shown(value)}; clip or drop the value")
    text = _iso(value)
    if text is None:
        raise ValueError(f"must be {READABLE}, got {shown(value)}; {remedy(value)}")
    return text


def remedy(value: Any) -> str:
    """Say what to do about a value that no column can hold."""
    for types, words in _REMEDIES:
        if isinstance(value, types):
            return words
    return "turn it into a number, a text or a date"


def kind_of(value: Any, *, written: bool = False) -> str | None:
    """Say which kind of column a value speaks for, or "missing"; None for what no column can hold.

    Parameters
    ----------
    value
        Any value.
    written
        Whether a text may stand for a number or a boolean, as in a CSV file.

    Examples
    --------
    >>> kind_of("1.5"), kind_of("1.5", written=True), kind_of("2026-03-01"), kind_of(b"1.5")
    ('categorical', 'numeric', 'date', None)
    """
    if is_missing(value):
        return "missing"
    if is_number(value) or (written and isinstance(value, str) and number(value) is not None):
        return "numeric"
    if is_boolean(value) or (written and isinstance(value, str) and value.strip() in _TRUTHS):
        return "boolean"
    if _moment(value) is not None:
        return "date"
    return "categorical" if isinstance(value, str) else None


def shown(value: Any) -> str:
    """Show a value in an error message, with its type where it is an unusual one, and never at length."""
    try:
        text = reprlib.repr(value)
    except ValueError:  # an integer of more than 4,300 digits
        text = "an integer of thousands of digits"
    known = value is None or type(value) in (str, bool, int, float, list, tuple, dict)
    return text if known else f"{text} ({type(value).__name__})"


def _moment(value: Any) -> datetime | None:
    if isinstance(value, np.datetime64):
        value = value.astype("datetime64[us]").item()  # an integer where Python has no such year
    if isinstance(value, str):
        text = value.strip()
        if not _ISO_DATE.match(text):
            return None
        try:
            return datetime.fromisoformat(text)
        except ValueError:
            return None
    if isinstance(value, datetime) and not is_missing(value):
        # Python's own datetime also where it is pandas' Timestamp: its differences are rounded otherwise.
        return datetime.combine(value.date(), value.time(), value.tzinfo)
    return datetime(value.year, value.month, value.day) if type(value) is date else None


def _iso(value: Any) -> str | None:
    """ISO text of a date; a datetime at midnight without a zone is written as the date it equals."""
    moment = None if isinstance(value, str) else _moment(value)
    if moment is None:
        return None
    midnight = moment.tzinfo is None and moment.time() == time()
    return moment.date().isoformat() if midnight else moment.isoformat()
