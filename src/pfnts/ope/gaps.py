"""How far policies are ahead of the best of the others."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from pfnts.ope.bootstrap import Bootstrap
from pfnts.ope.log import Vector

Measure = Literal["final", "area"]


@dataclass(frozen=True)
class Gap:
    """The lead of a policy over the best of the others, negative where it is behind."""

    policy: str
    """Whose lead."""
    measure: Measure
    """ "final": values at the end. "area": mean heights of the value curves over the horizon."""
    baseline: str
    """Over whom: the best of the others by that measure on the log itself."""
    difference: Bootstrap
    """The lead, with its replicates."""


def gaps(curves: Mapping[str, Sequence[Vector]]) -> list[Gap]:
    """Compare value curves, replicate by replicate.

    The baseline is chosen once for each measure, on the log itself, because the best of several in each
    replicate would be ahead by luck alone. Both policies of a pair saw the same resampled people, so their
    difference varies less than either value.

    Parameters
    ----------
    curves
        For each policy its value curves: from the log itself, then from resampled logs 1, 2, ...; where
        one policy has fewer, the surplus of the other is left out.

    Examples
    --------
    >>> up, flat = np.array([0.0, 1.0]), np.array([0.4, 0.4])
    >>> for gap in gaps({"pfn-ts": [up, up, up], "lin-ts": [flat, flat, flat]})[:2]:
    ...     print(gap.policy, gap.measure, gap.baseline, round(gap.difference.value, 6))
    pfn-ts final lin-ts 0.6
    pfn-ts area lin-ts 0.1
    """
    made = []
    for policy in curves if len(curves) > 1 else ():
        for measure, height in MEASURES.items():
            best = max((name for name in curves if name != policy), key=lambda name: height(curves[name][0]))
            pairs = zip(map(height, curves[policy]), map(height, curves[best]), strict=False)
            # Sums of the same rewards may differ in their last digits, which is no lead.
            leads = (0.0 if math.isclose(ours, theirs) else ours - theirs for ours, theirs in pairs)
            made.append(Gap(policy, measure, best, Bootstrap.of(leads)))
    return made


def mean_height(curve: Vector) -> float:
    """Mean of a value curve (T,) from where it is known; NaN where it never is."""
    known = curve[~np.isnan(curve)]
    return float(known.mean()) if len(known) else math.nan


MEASURES: dict[Measure, Callable[[Vector], float]] = {"final": lambda c: float(c[-1]), "area": mean_height}
