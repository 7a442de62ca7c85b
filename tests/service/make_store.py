"""Write a store of this version and what it answered, for test_upgrade.py: once for every release.

python -m tests.service.make_store tests/service/stores/format-2
"""

from __future__ import annotations

import json
import sqlite3
import sys
from pathlib import Path

import numpy as np

from tests.service.asking import SetClock, asking, context

POLICIES = {
    "pfn-adaptive": {"backbone": "linear", "refresh": 2.0, "warmup": 4},
    "pfn-joint": {"backbone": "linear", "encoding": "joint", "estimator": "shrunk", "exploration": 0.5},
    "pfn-subclt": {"backbone": "linear", "encoding": "disjoint", "estimator": "subclt(base=1.5)"},
    "pfn-features": {"backbone": "linear"},
    "lin-ts": {"nu": 0.5, "penalty": 2.0, "intercept": True, "warmup": 2},
    "lin-ucb": {"alpha": 0.5, "penalty": 1.0, "intercept": False, "warmup": 1},
    "ts": {"warmup": 1},
    "uniform": {},
}


def live_through(ask, name, settings, world):
    """All that a log may hold: arms that come and go, modes, late and missing rewards, imports, erasure."""
    policy = "pfn-ts" if name.startswith("pfn") else name

    def arm(id):
        return {"id": id, "features": {"price": ord(id) % 5}} if name == "pfn-features" else {"id": id}

    body = {"name": name, "arms": [arm(id) for id in "abc"], "explore": 0.1, "holdout": 0.1}
    body |= {"policy": {"name": policy, "settings": settings}, "reward": {"wait": 50, "default": 0.0}}
    assert ask.post("", body).status_code == 201
    rng = np.random.default_rng(0)
    rows = [{"context": context(i / 9), "arm": "abc"[i % 3], "value": i % 2} for i in range(18)]
    assert ask.post(f"/{name}/imports", {"import_id": "old", "rows": rows}).status_code == 200
    for i in range(60):
        if i == 20:
            assert ask.post(f"/{name}/arms", arm("d")).status_code == 201
        if i == 30:
            ask("PATCH", f"/v1/experiments/{name}", {"mode": "shadow"})
        if i == 40:
            ask("PATCH", f"/v1/experiments/{name}", {"mode": "online", "baseline_arm": "b", "holdout": 0.2})
            assert ask("DELETE", f"/v1/experiments/{name}/arms/c").status_code == 200
        eligible = {"eligible": ["a", "b"]} if i % 7 == 0 else {}
        asked = {
            "decision_id": f"d{i}",
            "unit": f"u{i % 9}",
            "context": context(round(float(rng.normal()), 3)),
        }
        answer = ask.post(f"/{name}/decisions", asked | eligible).json()
        world.pass_(1)
        if i % 5:
            value = float(answer["arm"] == "b") + round(float(rng.normal()), 3)
            ask.post(f"/{name}/decisions/d{i}/rewards", {"value": value})
    ask("DELETE", f"/v1/experiments/{name}/units/u4")
    world.pass_(60)
    assert ask.post(f"/{name}/decisions/d0/rewards", {"value": 1}).json()["status"] == "late"
    while ask.engine.experiment(name).state.counts["settled"] < 60:
        pass


def told(ask, name):
    """What the store says about itself, to be said again by every later version."""
    live = ask.settle(name)
    while sum(event.kind == "decided" for event in live.version.policy.events) != 60 - 7:
        pass  # until what was erased is forgotten
    found = {"fingerprint": live.state.fingerprint, "context": context(0.25, "paid")}
    posterior = ask.get(f"/{name}/posterior?context={json.dumps(found['context'])}").json()
    found["reason"] = posterior["reason"]
    if posterior["posterior"]:
        mean = live.version.policy.posterior(found["context"]).mean
        found["mean"] = np.asarray(mean).tolist()
    found["decisions"] = []
    for i in (8, 23, 45):
        record = ask.engine.store.find(name, "decided", f"d{i}")
        body = {"decision_id": record.id, "unit": record.unit, "context": record.context}
        body |= {"eligible": ["a", "b"]} if i % 7 == 0 else {}
        found["decisions"].append([body, ask.post(f"/{name}/decisions", body).json()])
    return found


def main(folder: Path) -> None:
    world = SetClock()
    answers = {}
    with asking({"data": str(folder), "database": None}, clock=world.clock()) as ask:
        for name, settings in POLICIES.items():
            live_through(ask, name, settings, world)
            answers[name] = told(ask, name)
    with sqlite3.connect(folder / "pfnts.sqlite") as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
        connection.execute("VACUUM")
    (folder / "pfnts.lock").unlink()
    (folder / "told.json").write_text(json.dumps(answers, indent=1) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
