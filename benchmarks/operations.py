"""Operations that a run of PFN-TS begins, by what they are for: on a card each of them is a launch or more.

    python benchmarks/operations.py --scenario friedman --rounds 2000
    python benchmarks/operations.py --scenario magic --rounds 10000 --data tables

Nothing is computed on a card: what it would be given is computed on the CPU, in the pieces in which it would
be given. So this says how many operations there are, not how long they take. Views are not counted.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from pfnts.backbones.network.features import features, kernels, neighbours, ridge, trees
from pfnts.backbones.network.features import track_record as record
from pfnts.backbones.network.inference import asking, cache, growth, key_values, recorded
from pfnts.backbones.network.inference.cores import Cores
from pfnts.backbones.network.inference.segments import Pass
from pfnts.experiments import PolicySpec, plan, run
from pfnts.layouts import models

T = TypeVar("T")
_VIEWS = ("view", "slice", "select", "expand", "transpose", "squeeze", "split", "alias", "detach", "unbind")


class Counted(TorchDispatchMode):
    """Counts operations by the labels under which they are begun."""

    def __init__(self) -> None:
        super().__init__()
        self.operations: Counter[tuple[str, ...]] = Counter()
        self.calls: Counter[tuple[str, ...]] = Counter()
        self.seconds: Counter[tuple[str, ...]] = Counter()
        self._labels: list[str] = []
        self.on = "cpu"
        self._since = time.perf_counter()

    def lap(self) -> None:
        """Count the time since the last lap under the present labels."""
        now = time.perf_counter()
        self.seconds[self.on, *self._labels] += now - self._since
        self._since = now

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        if "recorded" not in self._labels and not any(view in str(operation) for view in _VIEWS):
            self.operations[self.on, *self._labels] += 1
        return operation(*args, **(kwargs or {}))

    def done_again(self, work: Callable[[], T]) -> tuple[Callable[[], None], T]:
        """Stand in for a recorder: what is recorded is one operation."""
        out = work()

        def replay() -> None:
            before, self._labels = self._labels, [*self._labels, "recorded"]
            new, places = _tensors(work()), _tensors(out)
            for place, tensor in zip(places, new, strict=True):
                place.copy_(tensor)
            self._labels = before
            self.operations[self.on, *self._labels] += 1

        return replay, out

    def label(self, owner: Any, name: str, label: str, on: Callable[..., str] | None = None) -> None:
        """Count what a method begins under a label; ``on`` tells from its arguments where it computes."""
        setattr(owner, name, self.counting(getattr(owner, name), label, on))

    def counting(
        self, method: Callable[..., Any], label: str, on: Callable[..., str] | None
    ) -> Callable[..., Any]:
        """The method, what it begins being counted."""

        def counted(*args: Any, **kwargs: Any) -> Any:
            before = self.on
            self.lap()
            self._labels.append(label)
            self.on = before if on is None else on(*args)
            self.calls[self.on, *self._labels] += 1
            try:
                return method(*args, **kwargs)
            finally:
                self.lap()
                self._labels.pop()
                self.on = before

        return counted


def _tensors(out: Any) -> list[Tensor]:
    return [out] if isinstance(out, Tensor) else [out.h, *out.told, *out.asked]


def pretend_card(counted: Counted) -> None:
    """Cut work up as for a card, and label it."""
    init = cache.Cache.__init__
    for limits in (cache.PIECE, cache.SIDE_BY_SIDE, neighbours.ENTRIES):
        limits["cpu"] = limits["cuda"]

    def cache_init(self: Any, *args: Any, **kwargs: Any) -> None:
        init(self, *args, **kwargs)
        self.kind, self._start = "cuda", [replace(piece, kind="cuda") for piece in self._start]

    plain = key_values.attention

    def attention(
        query: Tensor,
        key: Tensor,
        value: Tensor,
        mask: Tensor | None = None,
        seen_by_all: int = 0,
        *,
        cores: Cores,
    ) -> Tensor:
        if (
            counted.on == "cuda"
            and mask is None
            and query.shape[1] * query.shape[2] <= key_values.FEW_ON_A_CARD
        ):
            query = query * query.shape[-1] ** -0.5
            share = query.shape[1] // key.shape[1]
            score = query.reshape(1, key.shape[1], share * query.shape[2], -1) @ key.mT
            return (torch.softmax(score, -1) @ value).reshape(query.shape)
        return plain(query, key, value, mask, 0 if counted.on == "cuda" else seen_by_all, cores=cores)

    histograms = trees.by_histograms

    def grow(*args: Any) -> trees.Grown:
        return (trees.by_products if counted.on == "cuda" else histograms)(*args)

    found: dict[int, recorded.Recordings] = {}

    def passing(network: Any, tokens: Any) -> Any:
        if counted.on != "cuda":
            return Pass(network, tokens)
        made = found.setdefault(id(network), recorded.Recordings(network, counted.done_again))
        return made.passing(tokens)

    asking.passing = growth.passing = passing  # type: ignore[attr-defined]
    cache.Cache.__init__ = cache_init  # type: ignore[method-assign]
    asking.attention = cache.attention = attention  # type: ignore[attr-defined]
    trees.by_histograms = grow


def label_phases(counted: Counted) -> None:
    """Tell rows, queries and regressions apart, and what they are for."""

    def regress_on(self: Any, *_: Any) -> str:
        return "cpu" if self.basis < cache.SHORT else "cuda"

    def grow_on(X: Tensor, *_: Any) -> str:
        return "cpu" if X.numel() <= trees.FEW_CELLS else counted.on

    counted.label(models, "scored", "scoring")
    counted.label(models.ArmModels, "posteriors", "posteriors")
    counted.label(cache.Cache, "__init__", "new cache", lambda *_: "cpu")
    counted.label(cache.Cache, "_known", "rows", lambda self, *_: self.kind)
    counted.label(cache.Cache, "_tell", "base predictions", regress_on)
    base_predictions = cache.Cache.base_predictions

    def counted_predictions(self: Any, size: int) -> Callable[[Tensor], Tensor]:
        return counted.counting(base_predictions(self, size), "base predictions", lambda _: regress_on(self))

    cache.Cache.base_predictions = counted_predictions  # type: ignore[method-assign]
    counted.label(growth, "_pass", "rows", lambda _, stacks, *__: stacks[0][0].kind)
    counted.label(asking, "_pass", "queries", lambda _, slices, *__: slices[0].prefix.cache.kind)
    counted.label(ridge.Ridge, "extend", "ridge fits")
    counted.label(features, "regressions", "fitted")
    counted.label(kernels.Kernels, "extend", "kernel fits")
    counted.label(neighbours.Neighbours, "extend", "neighbours")
    counted.label(neighbours.Neighbours, "at", "neighbours")
    counted.label(trees, "_grown", "trees", grow_on)
    counted.label(trees.Trees, "at", "trees")
    counted.label(record.TrackRecord, "extend", "record")
    counted.label(record.TrackRecord, "at", "record")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--scenario", default="friedman")
    parser.add_argument("--rounds", type=int, default=2000)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--seconds", action="store_true", help="of this process, instead of operations")
    options = parser.parse_args()
    counted = Counted()
    pretend_card(counted)
    label_phases(counted)
    [spec] = plan(
        scenarios=[options.scenario],
        policies=[PolicySpec("pfn-ts")],
        horizon=options.rounds,
        replications=1,
        seed=42,
    )
    begun = time.perf_counter()
    with nullcontext() if options.seconds else counted:
        result = run(spec, data=options.data)
    counted.lap()
    print(f"{options.scenario}, {options.rounds} rounds: regret {result.total_regret:.2f}")
    found = counted.seconds if options.seconds else counted.operations
    print(f"{sum(found.values()):,.10g} in all; {time.perf_counter() - begun:.1f} s")
    for on in ("cuda", "cpu"):
        print(f"on {on}: {sum(n for at, n in found.items() if at[0] == on):,.10g}")
    for at, number in found.most_common():
        print(f"{number:12,.10g} in {counted.calls[at]:6,} calls  {' / '.join(at)}")


if __name__ == "__main__":
    main()
