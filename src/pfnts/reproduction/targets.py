"""What has to be run to give back a table or figure of the paper."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pfnts.dotted import is_dotted
from pfnts.experiments import PolicySpec, RunSpec
from pfnts.reproduction.drinkless import CONTESTANTS as TRIAL
from pfnts.reproduction.peers import LIBRARY_NAMES, at_hand
from pfnts.reproduction.suites import CONTESTANTS, SLOW, SUITES, Suite

_ABLATIONS = tuple(name for name in SUITES if name.startswith("ablation-"))
TARGETS: dict[str, tuple[str, ...]] = {
    "table-synthetic": ("synthetic",),
    "table-openml": ("openml",),
    "table-context": ("context",),
    "figures": ("synthetic", "openml", "context"),
    "ablations": _ABLATIONS,
    "peers": ("peers",),
    "coverage": (),
    "drinkless": (),
    "all": tuple(SUITES),
    "report": (),
}
"""What can be asked for, and the suites it is made from; a report is written after any of them."""


@dataclass(frozen=True)
class Reproduction:
    """What to run, and what was left out of it."""

    specs: tuple[RunSpec, ...]
    """Runs, each once."""
    coverage: bool
    """Whether the coverage diagnostics belong to it."""
    trial: tuple[str, ...]
    """Policies that are evaluated on the Drink Less trial."""
    notes: tuple[str, ...]
    """Sentences about what was left out, and how to have it."""


def reproduction(
    target: str,
    *,
    quick: bool = False,
    policies: Sequence[str] = (),
    replications: int | None = None,
    slow: bool | None = None,
) -> Reproduction:
    """List what has to be run.

    Parameters
    ----------
    target
        One of `TARGETS`.
    quick
        Whether a first look is enough: 500 rounds, 2 replications, ablations on two scenarios.
    policies
        Names of the policies to run; all when empty. Those of your own, ``package.module.Class``, perhaps
        with options as `PolicySpec.parse` reads them, join the tables, not the ablations.
    replications
        Independent runs of each policy on each scenario; five, or two for a first look, when left out.
    slow
        Whether `SLOW` policies run, too; when left out, unless ``quick``. One named in ``policies`` runs
        anyway.

    Examples
    --------
    >>> wanted = reproduction("table-synthetic", quick=True)
    >>> len(wanted.specs), wanted.specs[0].horizon, wanted.coverage
    (112, 500, False)
    >>> wanted.notes[0]
    'bf-ts and neural-ts are left out, because they take too long for a first look; --slow adds them.'
    """
    if target not in TARGETS:
        raise ValueError(f"target must be one of {', '.join(TARGETS)}; got {target!r}")
    known = [policy.name for policy in CONTESTANTS]
    own = [PolicySpec.parse(text) for text in policies if is_dotted(text.partition(":")[0])]
    for name in policies:
        if name not in (*known, *LIBRARY_NAMES) and not is_dotted(name.partition(":")[0]):
            raise ValueError(
                f"policy must be one of {', '.join(known)} or package.module.Class; got {name!r}"
            )
    for policy in own:
        policy.build(arms=2)  # a mistake shows here, not after the first hour
    with_slow = not quick if slow is None else slow
    peers, missing = at_hand()
    names = policies or [name for name in known if with_slow or name not in SLOW]

    def narrowed(suite: Suite) -> Suite:
        kept = [policy for policy in suite.policies if policy.name in names]
        if suite.name == "peers":
            kept = kept if policies else peers
        elif suite.name not in _ABLATIONS:
            kept += own
        chosen = suite.quick() if quick else suite
        count = chosen.replications if replications is None else replications
        return replace(chosen, policies=tuple(kept), replications=count)

    suites = [SUITES[name] for name in TARGETS[target]]
    asked = list(map(narrowed, suites))
    specs = tuple(dict.fromkeys(spec for suite in asked for spec in suite.specs()))
    coverage = target in ("coverage", "all")
    trial = tuple(p.name for p in TRIAL if p.name in names and target in ("drinkless", "all"))
    if not specs and not coverage and not trial and target != "report":
        raise ValueError(f"policy must be one that {target} compares, got {', '.join(policies)}")
    notes = _notes(suites, asked, quick=quick, named=bool(policies))
    return Reproduction(specs, coverage, trial, (*notes, *(missing if "peers" in TARGETS[target] else ())))


def _notes(suites: Sequence[Suite], asked: Sequence[Suite], *, quick: bool, named: bool) -> list[str]:
    notes = []
    planned, kept = ({policy.name for suite in some for policy in suite.policies} for some in (suites, asked))
    slow = [name for name in SLOW if name in planned - kept]
    if slow and not named:
        reason = "because they take too long for a first look" if quick else "as you asked"
        notes.append(f"{' and '.join(slow)} are left out, {reason}; --slow adds them.")
    fewer = [new for old, new in zip(suites, asked, strict=True) if len(new.scenarios) < len(old.scenarios)]
    if fewer:
        notes.append(
            f"Ablations and libraries are on {' and '.join(fewer[0].scenarios)} only; without --quick on "
            "all tasks."
        )
    return notes
