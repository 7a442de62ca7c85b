"""``write_report``: everything that finished runs show, as files and as one page."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from pfnts.experiments.figures import save
from pfnts.experiments.outcomes import Outcome, condense
from pfnts.experiments.report import tables
from pfnts.experiments.report.contents import (
    paper_csv,
    paper_ranks,
    paper_tables,
    regret_csv,
    regret_table,
    times_csv,
    times_table,
)
from pfnts.experiments.report.drawings import page_figure, scenario_figure
from pfnts.experiments.report.sections import Section, organize
from pfnts.experiments.report.web import write_index
from pfnts.experiments.spec import RunSpec
from pfnts.experiments.store import Run, RunStore

COVERAGE = "coverage.csv"


def write_report(
    root: str | os.PathLike[str], out: str | os.PathLike[str] | None = None, *, figures: bool = True
) -> Path:
    """Write tables, figures and ``index.html`` from a folder of finished runs.

    Tables (``regret``, ``paper`` where the paper has the scenario, ``times``) are markdown, CSV and LaTeX;
    all but the times are the same, byte for byte, whenever the runs are. What has not been run yet is shown
    as missing.

    Parameters
    ----------
    root
        Folder of a `RunStore`; what ``pfnts calibrate`` has left in it, or in a folder ``coverage`` or
        ``calibration`` of it, is shown, too.
    out
        Where the report goes; ``report`` within ``root`` when left out.
    figures
        Whether to draw the figures, for which matplotlib is needed; the page has its own.

    Returns
    -------
    The path of ``index.html``.

    Examples
    --------
    >>> import tempfile
    >>> from pfnts.experiments import PolicySpec, plan, run_all
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     specs = plan(scenarios=["linear"], policies=[PolicySpec("ts"), PolicySpec("uniform")],
    ...                  horizon=50, replications=2, seed=42)
    ...     done = list(run_all(specs, store=RunStore(folder)))
    ...     page = write_report(folder, figures=False)
    ...     sorted(path.name for path in page.parent.iterdir())
    ['index.html', 'regret.csv', 'regret.md', 'regret.tex', 'times.csv', 'times.md', 'times.tex']
    """
    store = RunStore(root)
    outcomes, notes = read_outcomes(store)
    coverage = _coverage(store.root)
    if not outcomes and coverage is None:
        raise nothing_finished(store)
    out = store.root / "report" if out is None else Path(out)
    out.mkdir(parents=True, exist_ok=True)
    sections = organize(outcomes)
    if sections:
        write_tables(out, sections)
    if figures:
        _write_figures(out / "figures", sections)
    return write_index(
        out / "index.html",
        sections,
        notes=notes,
        machines=_machines(store),
        coverage=coverage,
    )


def nothing_finished(store: RunStore) -> ValueError:
    """The error of a report on an empty folder."""
    return ValueError(
        f"root must hold at least one finished run, got {store.root}, which holds none; "
        f"make some with: pfnts run --out {store.root}"
    )


def read_outcomes(store: RunStore) -> tuple[list[Outcome], list[str]]:
    """Read every run in short, each once; say in a sentence what was set aside."""
    found: dict[RunSpec, Outcome] = {}
    again: dict[RunSpec, None] = {}
    for run in store:
        if run.spec in found:
            again[run.spec] = None
        found[run.spec] = condense(run)
    for spec in again:
        # Another version of the package, or other weights, made the others; this version's own counts.
        if spec in store:
            found[spec] = condense(Run(spec, store.load(spec)))
    notes = []
    if again:
        notes.append(
            f"Made by several versions of the package or of the weights, and shown once: {_count(again)}."
        )
    other = [spec for spec in found if _is_of_another_time(spec, store)]
    if other:
        notes.append(
            "Made with another version, other weights or other default settings than those at hand: "
            f"{_count(other)}."
        )
    return list(found.values()), notes


def _is_of_another_time(spec: RunSpec, store: RunStore) -> bool:
    """Whether the run would be made anew here; not known of a policy that cannot be built here."""
    try:
        return spec not in store
    except (ImportError, ValueError):
        return False


def _count(runs: Collection[RunSpec]) -> str:
    return "1 run" if len(runs) == 1 else f"{len(runs)} runs"


def write_tables(out: Path, sections: Sequence[Section]) -> None:
    """Write all tables, as markdown, CSV and LaTeX."""
    _write(out, "regret", [regret_table(section) for section in sections], regret_csv(sections))
    _write(out, "times", [times_table(section) for section in sections], times_csv(sections))
    beside = list(paper_tables(sections).values())
    if beside:
        ranks = paper_ranks(sections)
        _write(out, "paper", beside if ranks is None else [ranks, *beside], paper_csv(sections))


def _write(out: Path, name: str, found: Sequence[tables.Table], numbers: str) -> None:
    writers: dict[str, Callable[[tables.Table], str]] = {"md": tables.markdown, "tex": tables.latex}
    for suffix, written in writers.items():
        (out / f"{name}.{suffix}").write_text("\n".join(map(written, found)), encoding="utf-8")
    (out / f"{name}.csv").write_text(numbers, encoding="utf-8")


def _write_figures(out: Path, sections: Sequence[Section]) -> None:
    titles = Counter(section.title for section in sections)
    for section in sections:
        name = file_name(section.title)
        folder = out if titles[section.title] == 1 else out / str(section.horizon)
        page = page_figure(section)
        for suffix in ("svg", "pdf", "png"):
            save(page, folder / f"{name}.{suffix}")
        if section.axis:
            continue
        for scenario in section.scenarios:
            figure = scenario_figure(section, scenario)
            for suffix in ("svg", "pdf"):
                save(figure, folder / f"{file_name(scenario)}.{suffix}")


def file_name(title: str) -> str:
    """Turn a title into words with hyphens between them.

    Examples
    --------
    >>> file_name("pfn-ts by base")
    'pfn-ts-by-base'
    """
    return "-".join("".join(c if c.isalnum() else " " for c in title.lower()).split())


def _coverage(root: Path) -> Path | None:
    found = (folder / COVERAGE for folder in (root, root / "coverage", root / "calibration"))
    return next((path for path in found if path.is_file()), None)


def _machines(store: RunStore) -> str:
    found: Counter[str] = Counter()
    for path in sorted(store.root.glob("[!.]*_*_*_*/run.json")):
        machine = json.loads(path.read_text(encoding="utf-8")).get("machine", {})
        if machine:
            name = f"{machine.get('cpu', 'an unnamed processor')}, {machine.get('cores', '?')} cores"
            device = machine.get("device", "cpu")
            found[name if device.startswith("cpu") else f"{name}, {device}"] += 1
    return "; ".join(name for name, _ in found.most_common())
