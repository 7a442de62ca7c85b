"""Encodings by name, and their beginning."""

from __future__ import annotations

from typing import Any, TypeAlias

from pfnts.backbones.base import Backbone
from pfnts.encodings.adaptive import Adaptive
from pfnts.encodings.base import Encoding
from pfnts.encodings.layouts import Block, Disjoint, Joint
from pfnts.encodings.schedule import Schedule
from pfnts.encodings.sequences import Sequences
from pfnts.encodings.threshold import Threshold

EncodingSettings: TypeAlias = Disjoint | Joint | Block | Threshold | Adaptive

_SETTINGS: dict[str, type[EncodingSettings]] = {
    settings.name: settings for settings in (Disjoint, Joint, Block, Threshold, Adaptive)
}


def settings(encoding: str | EncodingSettings, **options: Any) -> EncodingSettings:
    """Look an encoding up by its name, with options where it has some; settings pass through.

    Examples
    --------
    >>> settings("adaptive")
    Adaptive(switch_times=(128, 256, 512, 1024, 2048), arm_threshold=10)
    """
    if isinstance(encoding, Disjoint | Joint | Block | Threshold | Adaptive):
        return encoding
    if encoding not in _SETTINGS:
        raise ValueError(f"encoding must be one of {list(_SETTINGS)} or its settings, got {encoding!r}")
    return _SETTINGS[encoding](**options)


def start(
    encoding: str | EncodingSettings, *, backbone: Backbone, schedule: Schedule, n_arms: int
) -> Encoding:
    """Begin an encoding without any history.

    Parameters
    ----------
    encoding
        A name, or settings such as ``Adaptive(arm_threshold=4)``.
    backbone
        Makes the sequences.
    schedule
        When posteriors are refreshed.
    n_arms
        Number of arms at the beginning.
    """
    chosen = settings(encoding)
    if isinstance(chosen, Threshold | Adaptive):
        return chosen.start(backbone=backbone, schedule=schedule, n_arms=n_arms)
    return Sequences(chosen, backbone=backbone, schedule=schedule)
