"""Which layout answers: always the same, or the one that suits the history."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar, Protocol, runtime_checkable

from pfnts.layouts.average import lower_total
from pfnts.layouts.layout import Disjoint, Joint, Layout


@runtime_checkable
class LayoutSelector(Protocol):
    """Chooses among candidate layouts as rewards come in."""

    @property
    def name(self) -> str:
        """Name by which ``encoding`` finds it."""
        ...

    @property
    def switch_times(self) -> tuple[int, ...]:
        """Numbers of rewards at which the choice is made anew, increasing; after the last it stays."""
        ...

    @property
    def compares(self) -> bool:
        """Whether all candidates grow side by side and are scored by how they predict rewards."""
        ...

    @property
    def averages(self) -> bool:
        """Whether all candidates answer, each with the weight that its forecasts have earned."""
        ...

    def candidates(self, n_arms: int) -> tuple[Layout, ...]:
        """Layouts to choose from; the first answers at the beginning."""
        ...

    def choose(self, active: int, totals: Sequence[float]) -> int:
        """Place of the candidate that answers from a switch time on, given the scores so far: low is good."""
        ...


@dataclass(frozen=True)
class Fixed:
    """One layout for ever.

    Examples
    --------
    >>> Fixed(Joint()).name
    'joint'
    """

    layout: Layout
    switch_times: ClassVar[tuple[int, ...]] = ()
    compares: ClassVar[bool] = False
    averages: ClassVar[bool] = False

    @property
    def name(self) -> str:
        """That of the layout."""
        return self.layout.name

    def candidates(self, n_arms: int) -> tuple[Layout, ...]:  # noqa: ARG002
        """The one layout."""
        return (self.layout,)

    def choose(self, active: int, totals: Sequence[float]) -> int:  # noqa: ARG002
        """Stay."""
        return active


@dataclass(frozen=True)
class Threshold:
    """Disjoint while the history is short, joint afterwards: the paper's rule of thumb.

    Parameters
    ----------
    limit
        Rewards up to which the disjoint layout answers; beyond it the joint one does.

    Examples
    --------
    >>> Threshold(limit=64).switch_times
    (65,)
    """

    limit: int = 128
    name: ClassVar[str] = "threshold"
    compares: ClassVar[bool] = False
    averages: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.limit < 0:
            raise ValueError(f"limit must not be negative, got {self.limit}")

    @property
    def switch_times(self) -> tuple[int, ...]:
        """One more than the limit."""
        return (self.limit + 1,)

    def candidates(self, n_arms: int) -> tuple[Layout, ...]:  # noqa: ARG002
        """Disjoint, then joint."""
        return (Disjoint(), Joint())

    def choose(self, active: int, totals: Sequence[float]) -> int:  # noqa: ARG002
        """The joint layout."""
        return 1


@dataclass(frozen=True)
class Adaptive:
    """The paper's adaptive encoding: the layout that predicts rewards better answers.

    Disjoint and joint sequences grow side by side. Every reward is scored under both by the CRPS of the
    newest posterior's prediction that had not seen it (rewards too early for one in either are left out). At
    each switch time the layout with the lower total takes over, and after the last the other is dropped.

    Parameters
    ----------
    switch_times
        Numbers of rewards at which the totals are compared, increasing.
    arm_threshold
        With fewer arms than this the disjoint layout answers first, otherwise the joint one.

    Examples
    --------
    >>> Adaptive().switch_times
    (128, 256, 512, 1024, 2048)
    """

    switch_times: tuple[int, ...] = (128, 256, 512, 1024, 2048)
    arm_threshold: int = 10
    name: ClassVar[str] = "adaptive"
    compares: ClassVar[bool] = True
    averages: ClassVar[bool] = False

    def __post_init__(self) -> None:
        times = tuple(self.switch_times)
        object.__setattr__(self, "switch_times", times)
        if not times or times[0] < 1 or any(b <= a for a, b in pairwise(times)):
            raise ValueError(f"switch_times must be positive and increasing, got {times}")
        if not self.arm_threshold >= 0:
            raise ValueError(f"arm_threshold must not be negative, got {self.arm_threshold}")

    def candidates(self, n_arms: int) -> tuple[Layout, ...]:
        """Both, in the order that suits the number of arms."""
        both = (Disjoint(), Joint())
        return both if n_arms < self.arm_threshold else both[::-1]

    def choose(self, active: int, totals: Sequence[float]) -> int:
        """The lower total; where they are equal, no change."""
        return lower_total(active, totals)


@dataclass(frozen=True)
class Averaged:
    """Disjoint and joint both answer, each with the weight that its forecasts of the rewards have earned.

    See `Scores.weights`. A layout without a chance is dropped with its sequences.

    Examples
    --------
    >>> [layout.name for layout in Averaged().candidates(3)]
    ['disjoint', 'joint']
    """

    name: ClassVar[str] = "averaged"
    switch_times: ClassVar[tuple[int, ...]] = ()
    compares: ClassVar[bool] = True
    averages: ClassVar[bool] = True

    def candidates(self, n_arms: int) -> tuple[Layout, ...]:  # noqa: ARG002
        """Both."""
        return (Disjoint(), Joint())

    def choose(self, active: int, totals: Sequence[float]) -> int:
        """The lower total; where they are equal, no change."""
        return lower_total(active, totals)
