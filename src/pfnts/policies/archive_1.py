"""Files that version 0.1 wrote: arrays instead of a log."""

from __future__ import annotations

import io
import json
import math
import zipfile
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pfnts.contexts import Schema
from pfnts.events import ArmRemoved, Event, Label, Observed
from pfnts.events.event import LARGEST_REWARD, Encoded

MEMBERS = tuple(
    f"{name}.npy" for name in ("header", "contexts", "pulled", "rewards", "counts", "precision", "moment")
)
"""What is read of such a file; other members are not unpacked."""
_MOST_ARMS = 100_000
_RULES = {"thompson": 1.0, "greedy": 0.0, "predictive": 1.0}


def read(archive: zipfile.ZipFile) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Header and arrays."""
    there = [member for member in MEMBERS if member in archive.namelist()]
    arrays = {member.removesuffix(".npy"): _array(archive.read(member)) for member in there}
    header = json.loads(arrays.pop("header").tobytes().decode())
    if not isinstance(header, dict):
        raise TypeError("the header is no mapping")
    return header, arrays


def _array(content: bytes) -> NDArray[Any]:
    file = io.BytesIO(content)
    major, _ = np.lib.format.read_magic(file)
    reader = np.lib.format.read_array_header_1_0 if major == 1 else np.lib.format.read_array_header_2_0
    shape, _, kind = reader(file)
    # Before room is made for an array that is not there.
    if min(shape, default=0) < 0 or math.prod(shape) * kind.itemsize != len(content) - file.tell():
        raise TypeError(f"an array of shape {shape} has {len(content)} bytes")
    array: NDArray[Any] = np.load(io.BytesIO(content), allow_pickle=False)
    return array


def convert(
    header: dict[str, Any], arrays: dict[str, NDArray[Any]]
) -> tuple[list[Label], dict[str, Any], list[Event]]:
    """Arms, settings and events of a policy of today that knows what the saved one knew."""
    settings: dict[str, Any] = {"warmup": header["warmup"], "explore": header.get("explore", 0.0)}
    if header["policy"] != "pfn-ts":
        settings |= {"penalty": header["penalty"], "intercept": header["intercept"], **header["settings"]}
        settings["summary"] = {name: arrays[name].tolist() for name in ("precision", "moment")}
        settings["summary"]["counts"] = arrays["counts"][0].tolist()
        return header["arms"], settings, []
    encoding = {"name": header["encoding"]["name"], **header["encoding"]["settings"]}
    settings |= {
        "encoding": encoding,
        "backbone": header["backbone"]["name"] if header["backbone"]["named"] else None,
        "fingerprint": header["backbone"].get("fingerprint"),
        "estimator": _estimator(header),
        "exploration": _RULES[header["rule"]],
        "refresh": header.get("refresh", header["base"]),
    }
    labels, gone = _arms(header)
    events: list[Event] = list(_rows(header, arrays, labels))
    return labels, settings, [*events, *(ArmRemoved(labels[number]) for number in gone)]


def _estimator(header: dict[str, Any]) -> str | None:
    if header["rule"] == "predictive":
        return "predictive"
    variance, base = header["variance"], float(header["base"])
    if variance["settings"] is None:
        return None
    options = {"base": base}
    if variance["name"] == "shrunk":
        own = variance["settings"]
        options |= {"prior_dof": float(own["nu0"]), "floor": float(own["floor"])}
    return f"{variance['name']}({','.join(f'{key}={value}' for key, value in options.items())})"


def _arms(header: dict[str, Any]) -> tuple[list[Label], list[int]]:
    """Labels of all arms there have ever been, and the numbers of those that were removed."""
    ever, numbers = int(header["ever"]), [int(number) for number in header["numbers"]]
    if not (0 < len(numbers) <= ever <= _MOST_ARMS) or len(numbers) != len(header["arms"]):
        raise TypeError("its arms do not fit together")
    if sorted(set(numbers)) != numbers or numbers[0] < 0 or numbers[-1] >= ever:
        raise TypeError("its arms have no numbers of their own")
    gone = sorted(set(range(ever)) - set(numbers))
    removed = list(header["removed"])
    if len(removed) != len(gone):
        raise TypeError("its removed arms do not fit together")
    labels: dict[int, Label] = dict(zip(numbers, header["arms"], strict=True))
    taken = set(header["arms"])
    for number, label in zip(gone, removed, strict=True):
        labels[number] = f"{label} (removed, {number})" if label in taken else label
        taken.add(labels[number])
    return [labels[number] for number in range(ever)], gone


def _rows(header: dict[str, Any], arrays: dict[str, NDArray[Any]], labels: list[Label]) -> list[Event]:
    contexts, pulled, rewards = arrays["contexts"], arrays["pulled"], arrays["rewards"]
    if not len(contexts) == len(pulled) == len(rewards) or contexts.ndim != 2:
        raise TypeError("its arrays do not fit together")
    if len(rewards) == 0:
        return []
    schema = Schema.from_json(header["schema"])
    inside = (pulled.dtype.kind == "i") & (pulled >= 0) & (pulled < len(labels))
    known = not np.isinf(contexts).any() and contexts.shape[1] == schema.width
    if not (inside.all() and known and (np.abs(rewards) <= LARGEST_REWARD).all()):
        raise TypeError("its arrays do not fit together")
    return [
        Observed(context, labels[int(arm)], float(reward), encoded=Encoded(row, schema))
        for row, context, arm, reward in zip(
            contexts.astype(np.float64), decoded(schema, contexts), pulled, rewards, strict=True
        )
    ]


def decoded(schema: Schema, X: NDArray[np.float64]) -> list[dict[str, Any] | list[Any]]:
    """Contexts that a schema encodes as the rows X (n, width)."""
    columns: dict[str, list[Any]] = {}
    begin = 0
    for column in schema.columns:
        block = X[:, begin : begin + len(column.features)]
        begin += len(column.features)
        if column.kind == "categorical":
            columns[column.name] = [_category(column.categories, values) for values in block]
        else:
            kind = bool if column.kind == "boolean" else float
            columns[column.name] = [None if np.isnan(value) else kind(value) for value in block[:, 0]]
    rows: list[dict[str, Any] | list[Any]] = [
        dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)
    ]
    return [list(row.values()) for row in rows] if schema.positional else rows  # type: ignore[union-attr]


def _category(categories: tuple[str, ...], values: NDArray[np.float64]) -> str | None:
    if np.isnan(values).any():
        return None
    place = int(values.argmax())
    # All zeros: a category for which there was no place any more.
    return categories[place] if values[place] and place < len(categories) else "(no place)"
