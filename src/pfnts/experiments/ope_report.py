"""An evaluation on a log as one page: a verdict first, then what it rests on."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from pfnts.experiments.charts import Chart, Line, Panel, styles_of
from pfnts.experiments.replays import ESTIMATORS, PolicyValue
from pfnts.experiments.report.page import Bars, Block, Part, Text, write_page
from pfnts.experiments.report.tables import Cell, Table
from pfnts.ope import Bootstrap, Estimate, Gap, Log, gaps

_POINTS = 200
_BINS = 40
_TITLES = {"snips": "SNIPS", "dr": "doubly robust"}
_HOW_TO_READ = (
    "A value is what a policy would have earned a round, on average. It is estimated: the policy was shown "
    "the contexts of the log in turn, learned only from rounds in which it would have done what was done, "
    "and the rewards were weighted by how much more, or less, likely it was to do so than whoever wrote the "
    "log.",
    "An interval holds the true value in about 95 of 100 cases. It comes from logs in which people, or "
    "rounds where there are none, were drawn anew, with the policy learning anew on each. Where intervals "
    "overlap, the log does not say who is better; the leads are a sharper comparison, since both policies of "
    "a pair saw the same people.",
    "SNIPS and the doubly robust estimate (DR) are two ways to the same number. Where they differ by more "
    "than their intervals, trust neither. Few effective rounds, or a largest weight near its bound for many "
    "rounds, say that the policy seldom does what was done: then the log has little to say about it.",
    "What was done and the fixed arms need no learning, so their intervals are those of a weighted mean.",
)


class Valued(NamedTuple):
    """Who decides, and what a round is worth then, with a 95 % interval."""

    name: str
    value: float
    low: float
    high: float

    @property
    def words(self) -> str:
        """The numbers, as they are read."""
        return readable(self.value, self.low, self.high)


def baselines(log: Log) -> list[Valued]:
    """What the logging policy earned, and what each arm that was ever taken would have earned."""
    estimates = {"what was done": Estimate("mean", log.rewards, np.ones(log.rounds), log.groups)}
    for k in np.unique(log.actions):
        weights = (log.actions == k) / log.propensities
        estimates[f"always {log.arms[k]}"] = Estimate("snips", weights * log.rewards, weights, log.groups)
    return [Valued(name, each.value, *each.interval(0.95)) for name, each in estimates.items()]


def at_the_end(found: Sequence[PolicyValue]) -> list[Valued]:
    """What the policies would have earned, by SNIPS at the end of the log."""
    ends = ((value.policy.label, value.final("snips")) for value in found)
    return [Valued(label, end.value, *end.interval()) for label, end in ends]


def verdict(log: Log, found: Sequence[PolicyValue]) -> list[str]:
    """Say what can, and what cannot, be concluded: nobody is best while intervals overlap."""
    logged, *fixed = baselines(log)
    said = [f"What was done earned {logged.words} a round."]
    if saved := [value.policy.label for value in found if value.policy.path is not None]:
        said.append(
            f"{_or(saved)} began with what was learned before: if any of that was learned from this log, "
            "the estimate is too high."
        )
    ends = at_the_end(found)
    if silent := [each.name for each in ends if math.isnan(each.value)]:
        said.append(f"Of {_or(silent)} the log says nothing: what was done, it would never have done.")
    known = sorted((each for each in ends if not math.isnan(each.value)), key=lambda each: -each.value)
    if not known:
        return said
    first, *others = known
    # Sums of the same rewards may differ in their last digits, which is no difference.
    digits = 1e-9 * float(np.abs(log.rewards).max())
    if math.isnan(first.low):
        return [
            *said,
            f"By its estimate {first.name} comes first with {first.words}, but without resampled logs "
            "there are no intervals, so nothing can be concluded; ask for --replicates 30.",
        ]
    if first.low > logged.high + digits:
        said.append(f"{first.name} would have earned more: {first.words}.")
    elif first.high < logged.low - digits:
        said.append(f"Every policy would have earned less; {first.name} {first.words}.")
    else:
        said.append(
            f"{first.name} has the highest estimate of the policies, {first.words}, but its "
            "interval overlaps that of what was done: the log does not show that it would have earned more."
        )
    rivals = [*others, *fixed]
    if level := [each.name for each in rivals if not each.high < first.low - digits]:
        said.append(f"Whether it is better than {_or(level)} cannot be concluded: the intervals overlap.")
    elif rivals:
        said.append("Its interval lies above those of all other policies and of every fixed arm.")
    best = max(fixed, key=lambda each: each.value)
    if best.value >= first.value:
        said.append(f"A fixed arm is estimated at no less: {best.name}, {best.words}.")
    return said


def value_chart(log: Log, found: Sequence[PolicyValue]) -> Chart:
    """Describe the estimated values over the horizon, with 95 % bands, a panel for each estimator."""
    rounds = np.unique(np.linspace(1, log.rounds, _POINTS).astype(int))
    panels = []
    for estimator in ESTIMATORS:
        lines = []
        for place, value in enumerate(found):
            # Resampled logs have other numbers of rounds, where people have: what counts is the share.
            at = [value.at(estimator, share) for share in rounds / log.rounds]
            heights, tops = ([each.value for each in at], [each.interval()[1] for each in at])
            lines.append(Line(place, heights, np.subtract(tops, heights)))
        panels.append(Panel(_TITLES[estimator], rounds, tuple(lines), fixed=log.rewards.mean()))
    series = tuple(zip((value.policy.label for value in found), _styles(found), strict=True))
    done = "what was done"
    heading, ylabel = "Estimated value, with 95 % bands", "estimated value"
    return Chart(heading, series, tuple(panels), ylabel=ylabel, grows=False, fixed_label=done)


def all_gaps(found: Sequence[PolicyValue], estimator: str) -> list[Gap]:
    """Leads over the best of the others, of every policy of which there is such an estimate."""
    known = (value for value in found if not math.isnan(value.final(estimator).value))
    return gaps({value.policy.label: value.curves[estimator] for value in known})


def write_report(log: Log, found: Sequence[PolicyValue], path: str | os.PathLike[str], *, title: str) -> Path:
    """Write one HTML page that needs no other file: verdict, values, leads and weights."""
    if not found:
        raise ValueError("found must hold at least one policy, got none")
    people = f", {log.n_groups:,} people" if log.clusters is not None else ""
    replicates = max(len(value.curves["snips"]) - 1 for value in found)
    drawn = f"Intervals: 95 %, from up to {replicates} resampled logs, each replayed anew."
    lead = f"{log.rounds:,} rounds{people}, {log.n_arms} actions. {drawn}"
    return write_page(Path(path), title=title, lead=lead, parts=report_parts(log, found))


def report_parts(log: Log, found: Sequence[PolicyValue]) -> list[Part]:
    """What the page says."""
    parts = [
        Part("Verdict", (*(Text(said, "verdict") for said in verdict(log, found)), _comparison(log, found))),
        Part("What each policy would have earned", (value_table(found), value_chart(log, found)), "Values"),
        Part("What was done", (action_table(log),), "Actions"),
    ]
    if len(found) > 1:
        parts.append(Part("Leads over the best other policy", (lead_table(found),), "Leads"))
    note = Text("Rounds by weight, on a logarithmic scale, up to the largest weight there can be.", "note")
    weights: tuple[Block, ...] = (weight_table(found), *map(_weights, found, _styles(found)), note)
    about = Part("How to read this page", tuple(map(Text, _HOW_TO_READ)), "About")
    return [*parts, Part("Importance weights", weights, "Weights"), about]


def value_table(found: Sequence[PolicyValue]) -> Table:
    """Estimated values with their intervals."""
    rows = [
        (v.policy.label, *map(in_words, (v.final("snips"), v.average("snips"), v.final("dr")))) for v in found
    ]
    header = ("policy", "SNIPS", "SNIPS on average", "DR")
    return Table.of("Estimated value of a round, 95 % interval", header, rows)


def weight_table(found: Sequence[PolicyValue]) -> Table:
    """What the estimates rest on."""
    rows = [
        (v.policy.label, v.identity, f"{v.matches:,}", f"{v.diagnostics.effective_sample_size:,.0f}",
         f"{v.diagnostics.maximum:.2f}", f"{v.seconds:,.1f}")
        for v in found
    ]  # fmt: skip
    header = ("policy", "person as", "matches", "effective rounds", "max weight", "seconds")
    return Table.of("What the estimates rest on", header, rows, words=2)


def action_table(log: Log) -> Table:
    """Rounds, logging probability and mean reward of each action."""
    rows = []
    for k, always in zip(np.unique(log.actions), baselines(log)[1:], strict=True):
        logged = log.propensities[log.actions == k]
        chance = " to ".join(dict.fromkeys(f"{end:g}" for end in (logged.min(), logged.max())))
        rows.append((str(log.arms[k]), f"{len(logged):,}", chance, always.words))
    groups = "" if log.clusters is None else f" of {log.n_groups:,} people"
    caption = f"{log.rounds:,} rounds{groups}, mean reward {readable(float(log.rewards.mean()))}"
    return Table.of(caption, ("action", "rounds", "logged with probability", "mean reward"), rows)


def in_words(spread: Bootstrap, *, signed: bool = False) -> str:
    """Value and, where there is one, its interval."""
    return readable(spread.value, *spread.interval(), signed=signed)


def readable(value: float, low: float = math.nan, high: float = math.nan, *, signed: bool = False) -> str:
    """Write a number with the digits that its interval leaves it, or with four; large ones with commas.

    Examples
    --------
    >>> readable(0.123456, 0.1, 0.15), readable(1234.5, 1100.0, 1400.0), readable(math.nan)
    ('0.123 [0.100, 0.150]', '1,234 [1,100, 1,400]', '—')
    """
    if not math.isfinite(value):
        return "—"
    sign = "+" if signed else ""
    width = high - low
    if not 0 < width < math.inf:
        digits = 3 - math.floor(math.log10(abs(value))) if value else 1
        return f"{value:{sign},.{min(max(digits, 0), 9)}f}"
    digits = min(max(1 - math.floor(math.log10(width / 2)), 0), 9)
    return f"{value:{sign},.{digits}f} [{low:{sign},.{digits}f}, {high:{sign},.{digits}f}]"


def _comparison(log: Log, found: Sequence[PolicyValue]) -> Table:
    """Everybody on one scale."""
    colours = dict(zip(at_the_end(found), _styles(found), strict=True))
    listed = [*baselines(log), *colours]
    numbers = [x for _, *row in listed for x in row if math.isfinite(x)]
    least, scale = min(numbers), 100 / (max(numbers) - min(numbers) or 1.0)
    rows = []
    for each in sorted(listed, key=lambda each: (math.isnan(each.value), -each.value)):
        ends = (each.value, each.value) if math.isnan(each.low) else (each.low, each.high)
        low, high, mean, like = ((x - least) * scale for x in (*ends, each.value, float(log.rewards.mean())))
        bar = Cell(each.words, each.value, span=(low, high, mean, like) if math.isfinite(mean) else None)
        rows.append((Cell(each.name, colour=colours.get(each)), bar))
    notes = ("SNIPS at the end of the log. Red line: what was done.",)
    header = ("who decides", "value of a round, 95 % interval")
    return Table("Values on one scale", header, tuple(rows), notes=notes, heading="")


def lead_table(found: Sequence[PolicyValue]) -> Table:
    """Every policy's lead over the best of the others."""
    rows = []
    for estimator in ESTIMATORS:
        for gap in all_gaps(found, estimator):
            when, lead = {"final": "at the end", "area": "on average"}[gap.measure], gap.difference
            low, high = lead.interval()
            settled = "ahead" if low > 0 else "behind" if high < 0 else "open"
            over = in_words(lead, signed=True)
            rows.append((gap.policy, when, _TITLES[estimator], gap.baseline, over, settled))
    header = ("policy", "when", "estimator", "over", "lead", "so it is")
    return Table.of("Leads", header, rows, words=4)


def _weights(value: PolicyValue, style: int) -> Bars:
    bound = value.diagnostics.bound
    counts, edges = np.histogram(value.weights, bins=_BINS, range=(0, bound))
    heights = 100 * np.log1p(counts) / max(np.log1p(counts.max()), 1e-9)
    bars = tuple(
        (float(height), f"{count:,} rounds with a weight from {low:.2f} to {high:.2f}")
        for height, count, low, high in zip(heights, counts, edges[:-1], edges[1:], strict=True)
    )
    return Bars(value.policy.label, style, bars, ("0", f"{bound:.2f}"))


def _styles(found: Sequence[PolicyValue]) -> list[int]:
    return styles_of([value.policy.name for value in found])


def _or(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"
