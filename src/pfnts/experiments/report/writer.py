"""``write_report``: everything that finished runs show, as files and as one page."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from pfnts.experiments.figures import figure_of, save
from pfnts.experiments.files import folder_at, safe_name, safe_names
from pfnts.experiments.outcomes import condense, read_outcomes
from pfnts.experiments.report import contents, tables
from pfnts.experiments.report.contents import NONE, Companion, regret_chart, regret_table
from pfnts.experiments.report.coverage import coverage_chart, coverage_table, find_coverage, read_coverage
from pfnts.experiments.report.page import Block, Details, Part, Text, write_page
from pfnts.experiments.report.sections import Section, organize, section_of
from pfnts.experiments.store import Run, RunStore
from pfnts.files import tidy, write_file

_REGRET = (
    "section", "horizon", "scenario", "rounds", "policy", "replications", "mean", "standard_error",
    "needs_no_context",
)  # fmt: skip
_TIMES = ("section", "horizon", "scenario", "policy", "replications", "seconds")
_ABOUT = (
    "Regret is the mean reward lost against the best arm of each round (on tables: the number of wrong "
    "classes), summed over rounds. Tables show the mean and its standard error over replications; curves "
    "show the mean and a band of one standard deviation. All policies meet the same contexts and the same "
    "luck in a replication.",
    "Click on a column's name to sort by it. Point at a curve, or reach it by the Tab key and use the arrow "
    "keys, to read the values of all policies at a round; click on a policy in the legend to hide it.",
)


def write_report(
    root: str | os.PathLike[str],
    out: str | os.PathLike[str] | None = None,
    *,
    figures: bool = True,
    beside: Companion = NONE,
) -> Path:
    """Write tables, figures and ``index.html`` from a folder of finished runs; give back the page's path.

    Tables (``regret``, ``times``) are markdown, CSV and LaTeX; all but the times are the same, byte for byte,
    whenever the runs are. What has not been run yet is shown as missing, what is damaged is named.

    Parameters
    ----------
    root
        Folder of a `RunStore`; what ``pfnts calibrate`` has left in it, or in a folder ``coverage`` or
        ``calibration`` of it, is shown, too.
    out
        Where the report goes; ``report`` within ``root`` when left out.
    figures
        Whether to draw the figures, for which matplotlib is needed; the page has its own.
    beside
        Figures from elsewhere.

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
    coverage = find_coverage(store.root)
    if not outcomes and coverage is None and not beside.parts([]):
        raise nothing_finished(store.root, notes)
    notes += beside.missing({each.spec for each in outcomes}, coverage=coverage is not None)
    out = store.root / "report" if out is None else folder_at(out, name="the place of the report")
    for folder in (out, out / "figures"):
        tidy(folder)
    sections = organize(outcomes, titles=beside.titles, family=beside.family)
    if sections:
        write_tables(out, sections, beside)
    if figures:
        _write_figures(out / "figures", beside.compared(sections))
    machines = Counter(outcome.machine for outcome in outcomes if outcome.machine)
    parts = _parts(sections, beside, "; ".join(name for name, _ in machines.most_common()))
    if coverage is not None:
        title = "Coverage of intervals"
        parts.append(Part(title, (*_remark(beside, title), *_coverage(coverage)), "Coverage"))
    about = tuple(map(Text, (*_ABOUT, *notes)))
    parts.append(Part("How to read this page", about, "About"))
    page = out / "index.html"
    return write_page(page, title="Regret of bandit policies", lead=_lead(sections), parts=parts)


def regret_curves(runs: Iterable[Run], path: str | os.PathLike[str]) -> Path:
    """Draw mean cumulative regret of runs of as many rounds each, a panel for each scenario.

    Both axes are logarithmic: a policy that never learns is a straight line, one that has learned is flat.
    The band is one standard deviation over replications to either side. The suffix of ``path`` decides the
    format of the picture.
    """
    outcomes = [condense(run) for run in runs]
    if not outcomes:
        raise ValueError("runs must hold at least one run, got none")
    return save(figure_of(regret_chart(section_of("", outcomes)), size=4.0), path)


def nothing_finished(root: Path, notes: Sequence[str] = ()) -> ValueError:
    """The error of a report on a folder without runs."""
    remedy = f"got {root}, which holds none; make some with: pfnts run --out {root}"
    return ValueError(" ".join([f"root must hold at least one finished run, {remedy}", *notes]))


def write_tables(out: Path, sections: Sequence[Section], beside: Companion = NONE) -> None:
    """Write all tables, as markdown, CSV and LaTeX."""
    shown = beside.compared(sections)
    rows = contents.tidy_frame(sections, beside=beside)
    regret = tables.csv_text(rows, [*_REGRET, *filter(None, [beside.name])])
    times = tables.csv_text([row for row in rows if "seconds" in row], _TIMES)
    written = {
        "regret": ([regret_table(section, beside=beside) for section in shown], regret),
        "times": (list(map(contents.times_table, shown)), times),
        **beside.tables(sections),
    }
    for name, (found, numbers) in written.items():
        write_file(out / f"{name}.md", "\n".join(map(tables.markdown, found)))
        write_file(out / f"{name}.tex", "\n".join(map(tables.latex, found)))
        write_file(out / f"{name}.csv", numbers)


def figure_name(section: Section) -> str:
    """Turn a title into words with hyphens between them."""
    return safe_name(section.title.lower(), most=100)


def _parts(sections: Sequence[Section], beside: Companion, machines: str) -> list[Part]:
    several = len({section.horizon for section in sections}) > 1
    shown = beside.compared(sections)
    parts = []
    for section in (section for section in shown if not section.axis):
        title = f"{section.title}, {section.horizon:,} rounds" if several else section.title
        blocks = (regret_table(section, beside=beside), regret_chart(section))
        parts.append(Part(title, blocks, title.split(" of ")[0]))
    parts += beside.parts(sections)
    varied: list[Block] = []
    for section in (section for section in shown if section.axis):
        curves = Details(f"Curves of {section.title}", (regret_chart(section),))
        varied += [regret_table(section, beside=beside), curves]
    if varied:
        about = Text("One policy as it comes and with other options.")
        parts.append(Part("Variants", (about, *_remark(beside, "Variants"), *varied)))
    if sections:
        where = Text(f"Measured on {machines}; other work may have run beside it.", "note")
        parts.append(Part("Time", (*map(contents.times_table, shown), *([where] if machines else []))))
    return parts


def _remark(beside: Companion, title: str) -> list[Block]:
    return [Text(beside.remarks[title])] if title in beside.remarks else []


def _coverage(path: Path) -> tuple[Block, ...]:
    try:
        rows = read_coverage(path)
    except ValueError as error:
        return (Text(str(error), "note"),)
    measures = ("coverage", "length")
    return tuple(make(rows, measure) for measure in measures for make in (coverage_chart, coverage_table))


def _write_figures(out: Path, sections: Sequence[Section]) -> None:
    titles = Counter(section.title for section in sections)
    for section in sections:
        folder = out if titles[section.title] == 1 else out / str(section.horizon)
        chart = regret_chart(section)
        page = figure_of(chart)
        for suffix in ("svg", "pdf", "png"):
            save(page, folder / f"{figure_name(section)}.{suffix}")
        if section.axis:
            continue
        names = safe_names([panel.title for panel in chart.panels])
        for name, panel in zip(names, chart.panels, strict=True):
            alone = figure_of(replace(chart, panels=(panel,)), size=4.0)
            for suffix in ("svg", "pdf"):
                save(alone, folder / f"{name}.{suffix}")


def _lead(sections: Sequence[Section]) -> str:
    if not sections:
        return "Intervals only; no policy has been run yet."
    main = [section for section in sections if not section.axis]
    counts: dict[tuple[str, str], Collection[object]] = {
        ("policy", "policies"): {policy for section in main for policy in section.policies},
        ("scenario", "scenarios"): {name for section in main for name in section.scenarios},
        ("run", "runs"): {run.spec for each in sections for some in each.outcomes.values() for run in some},
    }
    text = ", ".join(f"{len(which):,} {noun[len(which) != 1]}" for noun, which in counts.items())
    return f"{text}. Lower regret is better."
