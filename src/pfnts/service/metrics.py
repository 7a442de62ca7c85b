"""Counters and latencies, and the text in which Prometheus reads them."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Iterable, Mapping

_BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)
_RECENT = 2000

Labels = tuple[tuple[str, str], ...]


class Metrics:
    """Counts what happens in this process.

    Examples
    --------
    >>> metrics = Metrics()
    >>> metrics.count("pfnts_rewards_total", experiment="shop", status="late")
    >>> print(metrics.text([]).splitlines()[1])
    pfnts_rewards_total{experiment="shop",status="late"} 1
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counters: Counter[tuple[str, Labels]] = Counter()
        self._buckets: dict[str, list[int]] = {}
        self._sums: dict[str, float] = {}
        self._latencies: dict[str, deque[float]] = {}

    def count(self, name: str, **labels: str) -> None:
        """Count one."""
        with self._lock:
            self._counters[name, tuple(labels.items())] += 1

    def by(self, name: str, label: str) -> dict[str, int]:
        """Counts of one name by the values of a label."""
        with self._lock:
            found = [(dict(labels), n) for (counted, labels), n in self._counters.items() if counted == name]
        return {labels[label]: n for labels, n in found}

    def observe(self, experiment: str, seconds: float) -> None:
        """Take note of how long a decision took."""
        with self._lock:
            self._buckets.setdefault(experiment, [0] * (len(_BOUNDS) + 1))[bisect_left(_BOUNDS, seconds)] += 1
            self._sums[experiment] = self._sums.get(experiment, 0.0) + seconds
            self._latencies.setdefault(experiment, deque(maxlen=_RECENT)).append(seconds)

    def latency(self, experiment: str) -> dict[str, float] | None:
        """Percentiles of the latest decisions of this process, in seconds."""
        with self._lock:
            recent = sorted(self._latencies.get(experiment, ()))
        if not recent:
            return None
        return {f"p{p}": recent[min(len(recent) * p // 100, len(recent) - 1)] for p in (50, 95, 99)}

    def text(self, gauges: Iterable[tuple[str, Mapping[str, str], float]]) -> str:
        """Everything in the text format of Prometheus."""
        with self._lock:
            counters = sorted(self._counters.items())
            buckets = {name: list(counts) for name, counts in self._buckets.items()}
            sums = dict(self._sums)
        lines: list[str] = []
        typed: set[str] = set()

        def add(name: str, kind: str, labels: Mapping[str, str] | Labels, value: float) -> None:
            if name not in typed:
                typed.add(name)
                lines.append(f"# TYPE {name} {kind}")
            lines.append(_line(name, labels, value))

        for (name, labels), number in counters:
            add(name, "counter", labels, number)
        base = "pfnts_decision_seconds"
        for experiment, counts in sorted(buckets.items()):
            if base not in typed:
                typed.add(base)
                lines.append(f"# TYPE {base} histogram")
            running = 0
            for bound, number in zip((*map(str, _BOUNDS), "+Inf"), counts, strict=True):
                running += number
                lines.append(_line(f"{base}_bucket", {"experiment": experiment, "le": bound}, running))
            lines.append(_line(f"{base}_sum", {"experiment": experiment}, sums[experiment]))
            lines.append(_line(f"{base}_count", {"experiment": experiment}, running))
        for name, marks, value in sorted(gauges, key=lambda gauge: gauge[0]):
            add(name, "gauge", marks, value)
        return "\n".join(lines) + "\n"


def _line(name: str, labels: Mapping[str, str] | Labels, value: float) -> str:
    inner = ",".join(f'{key}="{_escaped(text)}"' for key, text in dict(labels).items())
    number = str(value) if isinstance(value, int) else repr(float(value))
    return f"{name}{{{inner}}} {number}" if inner else f"{name} {number}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
