"""What encodings that change their layout share: one set of sequences answers at a time."""

from __future__ import annotations

from collections.abc import Sequence

from numpy.typing import ArrayLike

from pfnts.backbones.base import Backbone
from pfnts.encodings.base import AnyPosterior, Matrix, Stamp, VarianceEstimator
from pfnts.encodings.layouts import Disjoint, Joint, Layout
from pfnts.encodings.schedule import Schedule
from pfnts.encodings.sequences import Sequences

_LAYOUTS: dict[str, Layout] = {"disjoint": Disjoint(), "joint": Joint()}


class Switching:
    """Hands every question to the layout that is active now.

    Parameters
    ----------
    layout
        "disjoint" or "joint", active at first.
    backbone
        Makes the sequences.
    schedule
        When posteriors are refreshed.
    """

    def __init__(self, layout: str, *, backbone: Backbone, schedule: Schedule) -> None:
        self._backbone = backbone
        self._schedule = schedule
        self._active = self._sequences(layout)

    @property
    def layout(self) -> str:
        """Name of the layout that answers now."""
        return self._active.layout

    def stamps(self, arms: Sequence[int]) -> tuple[Stamp, ...]:
        """Stamps of the layout that answers now; they name it, so a switch changes every one."""
        return self._active.stamps(arms)

    def columns(self, X: Matrix, arms: Sequence[int], variance: VarianceEstimator) -> list[AnyPosterior]:
        """Posterior (q,) of each arm."""
        return self._active.columns(X, arms, variance)

    def join(self, columns: Sequence[AnyPosterior], *, coupled: bool, own: int = 0) -> AnyPosterior:
        """Join one column per arm into (q, K)."""
        return self._active.join(columns, coupled=coupled, own=own)

    def quantiles(self, X: Matrix, arms: Sequence[int], levels: ArrayLike) -> Matrix:
        """Predictive quantiles (len(levels), q, len(arms))."""
        return self._active.quantiles(X, arms, levels)

    def _sequences(self, layout: str) -> Sequences:
        return Sequences(_LAYOUTS[layout], backbone=self._backbone, schedule=self._schedule)
