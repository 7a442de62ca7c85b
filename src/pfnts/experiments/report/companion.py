"""Figures from elsewhere beside those of the runs."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import ClassVar

from pfnts.experiments.report import sections as default
from pfnts.experiments.report.page import Part
from pfnts.experiments.report.sections import Section
from pfnts.experiments.report.tables import Table
from pfnts.experiments.simulations import RunSpec
from pfnts.experiments.spec import PolicySpec


class Companion:
    """What a report shows beside the runs; this one has nothing to add."""

    name = ""
    """Whose figures they are, in a word."""
    titles: Sequence[str] = (default.SYNTHETIC, default.OPENML, default.OTHER)
    """Headings under which scenarios are listed."""
    remarks: ClassVar[Mapping[str, str]] = {}
    """What is to be said of other parts of the page, by their headings."""

    def family(self, scenario: str) -> str:
        """Which of the headings a scenario stands under."""
        return default.family(scenario)

    def figure(self, policy: PolicySpec, scenario: str, horizon: int) -> float | None:  # noqa: ARG002
        """Regret to be shown below ours."""
        return None

    def compared(self, sections: Sequence[Section]) -> list[Section]:
        """Sections that get a table and curves; the others are among the parts and tables below."""
        return list(sections)

    def footer(self, section: Section) -> tuple[str, Mapping[str, float], str] | None:  # noqa: ARG002
        """A row to be shown below the policies: its name, its figures by scenario, where they come from."""
        return None

    def missing(self, made: Collection[RunSpec], *, coverage: bool) -> list[str]:  # noqa: ARG002
        """Sentences on what is still to be run, with or without coverage diagnostics at hand."""
        return []

    def parts(self, sections: Sequence[Section]) -> list[Part]:  # noqa: ARG002
        """Parts of the page after the comparisons."""
        return []

    def tables(self, sections: Sequence[Section]) -> dict[str, tuple[list[Table], str]]:  # noqa: ARG002
        """Tables to be written, with their numbers as CSV, by the name of the file."""
        return {}


NONE = Companion()
