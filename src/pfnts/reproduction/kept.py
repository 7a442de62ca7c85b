"""Runs in short, kept beside the code, so that results add up over machines and days."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import zipfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pfnts.experiments import PolicySpec, RunSpec
from pfnts.experiments.outcomes import Outcome, of_the_same_rounds, places_of
from pfnts.experiments.report.tables import csv_text
from pfnts.files import write_file

RUNS, CURVES, SETTINGS = "runs.csv", "curves.npz", "settings.json"
LIBRARIES = ("pfnts", "python", "numpy", "torch")
_NAMES = (
    "scenario", "policy", "options", "replication", "seed", "horizon", "rounds", "regret", "seconds", "fixed",
    "made_on", "finished", "software", "backbone", "code", "settings",
)  # fmt: skip


def keep(outcomes: Iterable[Outcome], folder: Path) -> None:
    """Write a row for every run, its curve at about a hundred rounds, and settings by their hash."""
    listed = sorted(outcomes, key=lambda each: _name(each.spec))
    drawn = [each for each in listed if each.has_curve]
    # But for the last one, which is in the row.
    curves = [each.curve[np.isin(each.places, _thinned(each.rounds))][:-1] for each in drawn]
    buffer = io.BytesIO()
    np.savez_compressed(
        buffer,
        runs=np.array([_name(each.spec) for each in drawn], dtype=np.str_),
        lengths=np.array([len(curve) for curve in curves], dtype=np.int64),
        curves=np.concatenate([*curves, np.empty(0)]).astype(np.float32),
    )
    settings = {_hash(each.settings): each.settings for each in listed if each.settings}
    write_file(folder / SETTINGS, json.dumps(dict(sorted(settings.items())), indent=1) + "\n")
    write_file(folder / CURVES, buffer.getvalue())
    write_file(folder / RUNS, csv_text(map(_row, listed), _NAMES))


def read_kept(folder: Path) -> list[Outcome]:
    """Read back what `keep` wrote; nothing where there is nothing."""
    if not (folder / RUNS).exists():
        return []
    try:
        curves = _read_curves(folder / CURVES)
        path = folder / SETTINGS
        settings = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        with (folder / RUNS).open(encoding="utf-8", newline="") as file:
            rows = csv.DictReader(file)
            if lacking := [name for name in _NAMES if name not in (rows.fieldnames or ())]:
                raise ValueError(f"no column {', '.join(lacking)}")
            return [_outcome(row, curves, settings) for row in rows]
    except (OSError, KeyError, ValueError, TypeError, AttributeError, csv.Error, zipfile.BadZipFile) as error:
        raise ValueError(
            f"results must be a new folder or one that holds {RUNS}, {CURVES} and {SETTINGS} as they were "
            f"written, got {error!r} in {folder}; restore them, or name another folder"
        ) from error


def accumulate(earlier: Sequence[Outcome], new: Sequence[Outcome]) -> tuple[list[Outcome], list[str]]:
    """Add new runs to earlier ones, and say in sentences what was taken over and what was left out.

    A new run replaces an earlier one of the same spec. Of one policy only runs with the weights of its newest
    run stay, so that no mean is over several networks.
    """
    fresh = {each.spec for each in new}

    def age(outcome: Outcome) -> tuple[bool, str]:
        return outcome.spec in fresh, str(outcome.about.get("finished", ""))

    found = {each.spec: each for each in (*earlier, *new)}
    rows: dict[tuple[PolicySpec, int], list[Outcome]] = {}
    for each in found.values():
        rows.setdefault((each.spec.policy, each.spec.horizon), []).append(each)
    newest = {row: _weights(max(members, key=age)) for row, members in rows.items()}
    same = [each for row, members in rows.items() for each in members if _weights(each) == newest[row]]
    kept = of_the_same_rounds(same)
    # By the name of a network, the weights of its newest run.
    latest = {_weights(each).partition(":")[0]: _weights(each) for each in sorted(kept, key=age)}
    old = [each for each in kept if _weights(each) != latest[_weights(each).partition(":")[0]]]
    notes = {
        "Taken over from earlier results": [each for each in kept if each.spec not in fresh],
        "Left out, because newer runs of the same policy have other weights": _without(found.values(), same),
        "Left out, because they met other rounds than the runs beside them": _without(same, kept),
        "Made with earlier weights than the newest runs, for want of newer ones": old,
        "Known by their final regret alone, without a curve": [each for each in kept if not each.has_curve],
    }
    return kept, [f"{text}: {_listed(some)}." for text, some in notes.items() if some]


def software(outcome: Outcome) -> str:
    """Versions of the libraries that matter most, as far as they are on record."""
    versions = outcome.about.get("versions", {})
    return ", ".join(f"{name} {versions[name]}" for name in LIBRARIES if name in versions)


def _row(outcome: Outcome) -> dict[str, object]:
    producer = outcome.about.get("producer", {})
    return {
        **vars(outcome.spec),
        "policy": outcome.spec.policy.label,
        "options": json.dumps(dict(outcome.spec.policy.options)),
        "rounds": outcome.rounds,
        "regret": outcome.regret,
        "seconds": outcome.seconds,
        "fixed": " ".join(map(repr, outcome.fixed.tolist())),  # to the last digit: rounds are told by them
        "made_on": outcome.machine,
        "finished": outcome.about.get("finished"),
        "software": software(outcome),
        "backbone": producer.get("backbone"),
        "code": producer.get("code"),
        "settings": _hash(outcome.settings) if outcome.settings else None,
    }


def _outcome(
    row: Mapping[str, str], curves: Mapping[str, NDArray[np.float64]], settings: Mapping[str, Any]
) -> Outcome:
    policy = PolicySpec.of(row["policy"].partition("(")[0], **json.loads(row["options"]))
    spec = RunSpec(row["scenario"], policy, *(int(row[name]) for name in ("horizon", "replication", "seed")))
    rounds, regret = int(row["rounds"]), float(row["regret"])
    places, curve = np.array([rounds]), np.array([regret])
    if (found := curves.get(_name(spec))) is not None:
        places, curve = _thinned(rounds), np.append(found, regret)
        if len(curve) != len(places):
            raise ValueError(f"a curve of {len(curve)} rounds, not {len(places)}, of {spec.title}")
    producer = {
        "code": row["code"],
        "backbone": row["backbone"],
        "settings": settings[row["settings"]] if row["settings"] else {},
    }
    about: dict[str, Any] = {
        "producer": {name: value for name, value in producer.items() if value},
        "versions": dict(part.split(" ", 1) for part in row["software"].split(", ") if part),
        "machine": _machine(row["made_on"]) if row["made_on"] else {},
        "finished": row["finished"],
    }
    fixed = np.array([float(value) for value in row["fixed"].split()])
    if not fixed.size:
        raise ValueError(f"no regret of fixed arms for {spec.title}")
    about = {name: value for name, value in about.items() if value}
    return Outcome(spec, places, curve, fixed, float(row["seconds"]), about)


def _read_curves(path: Path) -> dict[str, NDArray[np.float64]]:
    if not path.exists():
        return {}
    with np.load(path, allow_pickle=False) as file:
        parts = np.split(file["curves"].astype(np.float64), np.cumsum(file["lengths"])[:-1])
        return dict(zip(file["runs"].tolist(), parts, strict=True)) if len(file["runs"]) else {}


def _machine(text: str) -> dict[str, str]:
    """What `Outcome.machine` says, taken apart."""
    device, _, rest = text.rpartition("; ")
    cpu, _, cores = rest.rpartition(", ")
    return {"cpu": cpu, "cores": cores.removesuffix(" cores"), "device": device or "cpu"}


def _name(spec: RunSpec) -> str:
    return f"{spec.scenario}|{spec.policy.label}|{spec.horizon}|{spec.seed}|{spec.replication}"


def _thinned(rounds: int) -> NDArray[np.int64]:
    return places_of(rounds)[::-2][::-1]


def _hash(settings: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:12]


def _weights(outcome: Outcome) -> str:
    return str(outcome.about.get("producer", {}).get("backbone") or "")


def _without(outcomes: Iterable[Outcome], others: Iterable[Outcome]) -> list[Outcome]:
    specs = {each.spec for each in others}
    return [each for each in outcomes if each.spec not in specs]


def _listed(outcomes: Sequence[Outcome]) -> str:
    """Count runs by policy, and by weights where there are any."""
    counts = Counter(
        f"{each.spec.policy.label} with {by}" if (by := _weights(each)) else each.spec.policy.label
        for each in outcomes
    )
    runs = f"{len(outcomes)} run{'' if len(outcomes) == 1 else 's'}"
    return f"{runs}, of {', '.join(f'{name} ({count})' for name, count in sorted(counts.items()))}"
