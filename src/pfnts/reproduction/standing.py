"""Where PFN-TS with our backbone stands: beside the paper's, and beside public libraries."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pfnts.experiments import PolicySpec
from pfnts.experiments.report.sections import Section
from pfnts.experiments.report.tables import Cell, Table, number, spread
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
    def beats_paper(self) -> bool | None:
        """Whether ours is lower; None where the paper has none."""
        return None if self.paper is None else self.mean < self.paper

    @property
    def libraries(self) -> float | None:
        """The best of public libraries: as measured here or as found elsewhere, whichever is lower."""
        return min((theirs for _, theirs in self._pairs), default=None)

    @property
    def beats_libraries(self) -> bool | None:
        """Whether ours is lower than both, each on its own replications; None without any."""
        return all(ours < theirs for ours, theirs in self._pairs) if self._pairs else None

    @property
    def _pairs(self) -> list[tuple[float, float]]:
        elsewhere = [(self.mean, LIBRARIES[self.task])] if self.task in LIBRARIES else []
        return elsewhere if self.measured is None else [self.measured, *elsewhere]


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
    return Table(
        caption=f"PFN-TS as it comes: final regret, {HORIZON:,} rounds or as many as there are rows",
        header=("task", "ours", "replications", "paper", LIBRARY),
        rows=tuple(
            (
                Cell(each.task),
                Cell(spread(each.mean, each.error), each.mean),
                Cell(str(each.replications), each.replications),
                _reference(each.paper, each.beats_paper),
                _reference(each.libraries, each.beats_libraries),
            )
            for each in found
        ),
        notes=(
            "Mean ± standard error. Bold: lower than ours.",
            *library_notes(found),
        ),
    )


def library_notes(found: Sequence[Standing]) -> list[str]:
    """Say where the figures of public libraries come from."""
    sources: dict[str, Sequence[object]] = {
        f"of {len(PEERS)} settings of {len(LIBRARY_NAMES)} libraries on the same replications as ours": [
            each.measured for each in found
        ],
        "of thirteen settings (three seeds) that were not measured by this package": [
            LIBRARIES.get(each.task) for each in found
        ],
    }
    known = [text for text, figures in sources.items() if any(each is not None for each in figures)]
    return [f"Public libraries: the lowest {', and '.join(known)}, picked for each task."] if known else []


def verdicts(found: Sequence[Standing]) -> list[str]:
    """Say in a sentence for each reference on which tasks ours is lower, and on which not.

    Examples
    --------
    >>> verdicts([Standing("linear", 178.0, 19.0, 5), Standing("synbart", 96.0, 18.0, 5)])
    ["Ours is lower than the paper's PFN-TS on 1 of 2 tasks (linear), and not on synbart."]
    """
    references = {
        "the paper's PFN-TS": {each.task: each.beats_paper for each in found},
        "the best of the public libraries": {each.task: each.beats_libraries for each in found},
    }
    said = []
    for name, lower_on in references.items():
        below, above = ([t for t, lower in lower_on.items() if lower is so] for so in (True, False))
        if below or above:
            lower = f"Ours is lower than {name} on {len(below)} of {len(below) + len(above)} tasks"
            named = f" ({', '.join(below)})" if below and above else ""
            said.append(f"{lower}{named}{f', and not on {_and(above)}' if above and below else ''}.")
    return said


def _reference(theirs: float | None, beaten: bool | None) -> Cell:
    return Cell("") if theirs is None else Cell(number(theirs), theirs, bold=not beaten)


def _and(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
