"""How far policies are ahead of the best of the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
    measures: dict[Measure, dict[str, list[float]]] = {
        "final": {name: [curve[-1] for curve in listed] for name, listed in curves.items()},
        "area": {name: [float(np.nanmean(curve)) for curve in listed] for name, listed in curves.items()},
    }
    made = []
    for policy in curves if len(curves) > 1 else ():
        for measure, values in measures.items():
            best = max((name for name in curves if name != policy), key=lambda name: values[name][0])
            lead, *others = (a - b for a, b in zip(values[policy], values[best], strict=False))
            made.append(Gap(policy, measure, best, Bootstrap(float(lead), np.array(others, dtype=float))))
    return made
