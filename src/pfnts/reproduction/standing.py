"""Where PFN-TS with our backbone stands: beside the paper's, and beside public libraries."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pfnts.experiments import PolicySpec
from pfnts.experiments.report.sections import Section
from pfnts.experiments.report.tables import Cell, Row, Table, number, spread
from pfnts.reproduction.peers import LIBRARY_NAMES, PEERS, measured
from pfnts.reproduction.published import HORIZON, LIBRARIES, LIBRARY, REGRET

OURS = PolicySpec("pfn-ts")


@dataclass(frozen=True)
class Standing:
    """Final regret of PFN-TS, as it comes, on one task."""

    task: str
    """The scenario's name."""
    mean: float
    """Mean over replications."""
    error: float
    """Its standard error; NaN for a single replication."""
    replications: int
    """How many runs the mean is over."""
    measured: tuple[float, float] | None = None
    """Our mean and the lowest of public libraries, over the replications that all of them have."""

    @property
    def paper(self) -> float | None:
        """What the paper reports for its PFN-TS."""
        return REGRET[OURS.name].get(self.task)

    @property
    def libraries(self) -> float | None:
        """The best of public libraries: as measured here or as found elsewhere, whichever is lower."""
        return min((theirs for _, theirs in self.pairs[1]), default=None)

    @property
    def pairs(self) -> tuple[list[tuple[float, float]], list[tuple[float, float]]]:
        """Ours and theirs, each on the same replications: of the paper, and of public libraries."""
        paper, elsewhere = self.paper, LIBRARIES.get(self.task)
        measured = [] if self.measured is None else [self.measured]
        return (
            [] if paper is None else [(self.mean, paper)],
            measured if elsewhere is None else [*measured, (self.mean, elsewhere)],
        )


def standings(sections: Iterable[Section]) -> list[Standing]:
    """List the tasks on which PFN-TS was run for as many rounds as in the paper."""
    sections = list(sections)
    peers = {
        scenario: (cells[OURS].mean, min(row.mean for policy, row in cells.items() if policy != OURS))
        for scenario, cells in measured(sections, HORIZON).items()
        if OURS in cells
    }
    return [
        Standing(scenario, row.mean, row.standard_error, row.replications, peers.get(scenario))
        for section in sections
        if not section.axis and section.horizon == HORIZON
        for scenario in section.scenarios
        if (row := section.cells.get((scenario, OURS))) is not None
    ]


def standing_table(found: Sequence[Standing]) -> Table:
    """Ours, the paper's and the libraries' side by side.

    Examples
    --------
    >>> table = standing_table([Standing("openml-mushroom", 30.0, 2.0, 5)])
    >>> [cell.text for cell in table.rows[0]]
    ['openml-mushroom', '30.0 ± 2.0', '5', '37.0', '22.7']
    """
    rows: list[Row] = [
        (each.task, spread(each.mean, each.error), str(each.replications), *map(_reference, each.pairs))
        for each in found
    ]
    caption = f"PFN-TS as it comes: final regret, {HORIZON:,} rounds or as many as there are rows"
    notes = ("Mean ± standard error. Bold: lower than ours.", *library_notes(found))
    return Table.of(caption, ("task", "ours", "replications", "paper", LIBRARY), rows, notes=notes)


def library_notes(found: Sequence[Standing]) -> list[str]:
    """Say where the figures of public libraries come from."""
    known = []
    if any(each.measured is not None for each in found):
        what = f"{len(PEERS)} settings of {len(LIBRARY_NAMES)} libraries"
        known.append(f"of {what} on the same replications as ours")
    if any(each.task in LIBRARIES for each in found):
        known.append("of thirteen settings (three seeds) that were not measured by this package")
    return [f"Public libraries: the lowest {', and '.join(known)}, picked for each task."] if known else []


def verdicts(found: Sequence[Standing]) -> list[str]:
    """Say in a sentence for each reference on which tasks ours is lower, and on which not.

    Examples
    --------
    >>> verdicts([Standing("linear", 178.0, 19.0, 5), Standing("synbart", 96.0, 18.0, 5)])
    ["Ours is lower than the paper's PFN-TS on 1 of 2 tasks (linear), and not on synbart."]
    """
    said = []
    for place, name in enumerate(("the paper's PFN-TS", "the best of the public libraries")):
        lower = {each.task: _is_lower(each.pairs[place]) for each in found if each.pairs[place]}
        below, above = ([task for task, so in lower.items() if so is wanted] for wanted in (True, False))
        if lower:
            text = f"Ours is lower than {name} on {len(below)} of {len(lower)} tasks"
            both = f" ({', '.join(below)}), and not on {_and(above)}" if below and above else ""
            said.append(f"{text}{both}.")
    return said


def _is_lower(pairs: Sequence[tuple[float, float]]) -> bool:
    return all(ours < theirs for ours, theirs in pairs)


def _reference(pairs: Sequence[tuple[float, float]]) -> Cell:
    if not pairs:
        return Cell("")
    lowest = min(theirs for _, theirs in pairs)
    return Cell(number(lowest), lowest, bold=not _is_lower(pairs))


def _and(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
