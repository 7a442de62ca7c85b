"""Why an arm: what a policy's model makes of one context, for people to read."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from pfnts.contexts import plain
from pfnts.events import Label
from pfnts.events.event import Context

_SHOWN = 60
"""Characters of a context in a line of text."""


@dataclass(frozen=True)
class SimilarRow:
    """A row of the history, one of an arm's nearest to the context."""

    context: Context
    """As it was given."""
    reward: float
    distance: float
    """Numbers are counted in standard deviations of the history; another category is 1.4 away."""
    speaks_for: bool
    """Whether it paid more than the posterior mean of the leader, or for the leader of the runner-up (both
    less what is deducted)."""


@dataclass(frozen=True)
class ArmReasons:
    """What is known of one arm at the context."""

    arm: Label
    mean: float
    """Of the posterior of its mean reward."""
    low: float
    high: float
    """Ends of the interval."""
    best: float
    """Probability that its mean reward, less what is deducted, is the largest."""
    seen: int
    """Rewards of this arm in the history."""
    rows: tuple[SimilarRow, ...]
    """The nearest of them, nearest first."""
    deducted: float = 0.0
    """Its cost, times what a unit of the budget is worth."""


@dataclass(frozen=True)
class ColumnEffect:
    """How the lead over the runner-up depends on one column, the others staying as they are."""

    column: str
    value: Any
    """As given."""
    effect: float
    """The lead, less its average with this column replaced by the values of rows of the history."""
    overturned: float
    """Share of these replacements with which the runner-up has the larger mean."""


@dataclass(frozen=True)
class Explanation:
    """The reasons of a decision at one context, by the model as it is now.

    ``print`` shows them as text, `to_frame` and `columns_frame` as pandas tables, `plot` as a figure, and
    `to_dict` gives plain JSON values.
    """

    context: Context
    """As given."""
    level: float
    """Probability that the intervals hold."""
    arms: tuple[ArmReasons, ...]
    """Arms by their probability of being best, the likeliest first."""
    columns: tuple[ColumnEffect, ...]
    """Columns by the size of their effect on the lead, the largest first; none with a single arm."""
    replacements: int
    """Rows of the history whose values were put in the place of each column's."""

    @property
    def leader(self) -> Label:
        """The arm that is likeliest to be best."""
        return self.arms[0].arm

    @property
    def lead(self) -> float | None:
        """Posterior mean of the leader less that of the runner-up, after what is deducted from each."""
        worth = [arm.mean - arm.deducted for arm in self.arms[:2]]
        return worth[0] - worth[1] if len(worth) > 1 else None

    def table(self) -> dict[str, list[Any]]:
        """One row for each arm, as columns by name."""
        names = ("arm", "mean", "low", "high", "best", "seen", "deducted")
        found: dict[str, list[Any]] = {name: [getattr(arm, name) for arm in self.arms] for name in names}
        for name, wanted in (("rows_for", True), ("rows_against", False)):
            found[name] = [sum(row.speaks_for is wanted for row in arm.rows) for arm in self.arms]
        return found

    def to_frame(self) -> Any:
        """`table` as a pandas frame."""
        return _pandas().DataFrame(self.table())

    def columns_frame(self) -> Any:
        """The effects of the columns as a pandas frame."""
        return _pandas().DataFrame([asdict(column) for column in self.columns])

    def to_dict(self) -> dict[str, Any]:
        """Write the explanation as plain JSON values."""
        found = asdict(self)
        found["context"] = plain(self.context)
        for arm in found["arms"]:
            for row in arm["rows"]:
                row["context"] = plain(row["context"])
        for column in found["columns"]:
            column["value"] = plain([column["value"]])[0]  # type: ignore[index]
        return found | {"leader": self.leader, "lead": self.lead}

    def plot(self) -> Any:
        """Draw intervals, similar rows and effects of columns; a matplotlib figure."""
        from pfnts.explain.explanation_plot import draw

        return draw(self)

    def __str__(self) -> str:
        lines = [f"At {_line(self.context)}:"]
        for arm in self.arms:
            lines.append(
                f"  {arm.arm}: {arm.mean:.4g} ({arm.low:.4g} to {arm.high:.4g}, {self.level:.0%}), "
                f"best with probability {arm.best:.3f}, {arm.seen} rewards"
                + (f", {arm.deducted:.4g} deducted" if arm.deducted else "")
            )
            for row in arm.rows:
                word = "for" if row.speaks_for else "against"
                lines.append(f"    {word} it: {row.reward:.4g} at {_line(row.context)}")
        if self.lead is not None:
            lines.append(
                f"{self.leader} leads {self.arms[1].arm} by {self.lead:.4g}. With one column replaced by the "
                f"values of {self.replacements} rows of the history, the lead changes by"
            )
        for column in self.columns:
            lines.append(
                f"  {-column.effect:+.4g} on average for {column.column} (now {column.value}), "
                f"overturned in {column.overturned:.0%}"
            )
        return "\n".join(lines)


def _line(context: Context) -> str:
    values = plain(context)
    shown = [f"{k}={v}" for k, v in values.items()] if isinstance(values, dict) else map(_short, values)
    text = ", ".join(shown)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _pandas() -> Any:
    try:
        import pandas
    except ImportError as error:
        raise ImportError("a frame needs pandas; install it, or use table() or to_dict()") from error
    return pandas
