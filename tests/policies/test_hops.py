"""How much code a decision passes: a reader should be able to follow it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.random import Generator

import pfnts
from pfnts import PFNTS
from pfnts.backbones import LinearBackbone

ROOT = Path(pfnts.__file__).parent


def passed(call: Callable[[], Any]) -> set[tuple[str, str]]:
    """File and name of every function of the package outside its backbones."""
    found = set()

    def follow(frame: Any, event: str, argument: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(str(ROOT)) and code.co_name[0] != "<":
            file = str(Path(code.co_filename).relative_to(ROOT))
            if not file.startswith("backbones"):
                found.add((file, code.co_qualname))

    before = sys.getprofile()
    sys.setprofile(follow)
    try:
        call()
    finally:
        sys.setprofile(before)
    return found


@pytest.mark.parametrize(("named", "functions", "files"), [(True, 110, 28), (False, 110, 28)])
def test_a_decision_and_a_reward_pass_few_functions(
    named: bool, functions: int, files: int, rng: Generator
) -> None:
    # benchmarks/hops.py lists them.
    policy = PFNTS(["none", "standard"], backbone=LinearBackbone())

    def context() -> Any:
        return {"age": rng.uniform(20, 70), "plan": str(rng.choice(["a", "b"]))} if named else rng.random(3)

    for _ in range(100):
        decision = policy.decide(context(), rng=rng)
        policy.update(decision.id, reward=decision.index + rng.normal())
    asked = context()
    deciding = passed(lambda: policy.decide(asked, rng=rng, id="last"))
    assert ("policies/pfn_model.py", "PFNModel.predict") in deciding
    assert len(deciding) <= functions, sorted(deciding)
    assert len({file for file, _ in deciding}) <= files
    updating = passed(lambda: policy.update("last", reward=np.float64(1.0)))
    assert len(updating) <= 12, sorted(updating)
