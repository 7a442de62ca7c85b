"""A log, what is folded from it (a history, a model that has learned its rows), and its file."""

from __future__ import annotations

import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from pfnts import backbones
from pfnts.contexts import Schema
from pfnts.events import Decided, Event, History, Label, Observed
from pfnts.events.event import Context
from pfnts.policies.archive import damaged, read_archive, write_archive
from pfnts.policies.decision import Matrix, Vector
from pfnts.policies.options import check_settings, gathered
from pfnts.policies.traffic import Traffic


class EventFold(ABC):
    """Keeps a log, and brings what follows from it up to date when it is asked for.

    The log is the truth: appending to it is one step, and everything else is made anew from it if anything
    fails half-way. One thread is served at a time.

    Parameters
    ----------
    arms, schema, features, arm_schema
        As for `History`.
    traffic
        How traffic is allocated before, or alongside, the policy's own rule.
    """

    name: ClassVar[str]

    def __new__(cls, *args: Any, **options: Any) -> Self:  # noqa: ARG004
        """Complain in time about options that belong into settings objects."""
        check_settings(cls, options)
        return super().__new__(cls)

    def __init__(
        self,
        arms: tuple[Label, ...],
        schema: Schema | None,
        *,
        traffic: Traffic,
        features: tuple[Context, ...] | None = None,
        arm_schema: Schema | None = None,
    ) -> None:
        self._first_arms = arms
        self._first_schema = schema
        self._first_features = features
        self._first_arm_schema = arm_schema
        self._traffic = traffic
        self._lock = threading.RLock()
        self._events: list[Event] = []
        self._history: History | None = None
        self._learned = -1  # rows that the model has seen; -1 where there is no model
        self._shape = (0, 0, 0)  # floats of a context, arms, and floats of an arm that it was made for
        self._fold()  # features that do not fit are an error now

    @property
    def events(self) -> tuple[Event, ...]:
        """The log."""
        with self._lock:
            return tuple(self._events)

    def append(self, events: Iterable[Event]) -> None:
        """Append events that fit the log, all or none: those of another process, say, in their order."""
        with self._lock:
            new = list(events)
            history = self._fold()
            try:
                for event in new:
                    history.check(event)
                    history.fold(event)
                self._events += new
            except BaseException:
                self._history = None
                raise

    def catch_up(self) -> None:
        """Do now what the first decision would otherwise wait for: learn the whole log."""
        with self._lock:
            schema = self._fold().schema
            if schema is not None:
                self._model(schema.width)

    def adopt(self, other: Self) -> None:
        """Take over what a copy of this policy with an equal log has learned, if that saves time."""
        with self._lock, other._lock:
            if len(other._events) != len(self._events):
                raise ValueError(
                    f"other must have the same log, of {len(self._events)} events, got {len(other._events)}"
                )
            if other._learned == self._fold().size and self._take_over(other):
                self._learned, self._shape = other._learned, other._shape

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the policy, settings and log, to one file of plain JSON; nothing is pickled."""
        with self._lock:
            settings = self._settings()
            if settings is None:
                raise ValueError(
                    f"policy must say its settings to be saved: {type(self).__name__} has no _settings"
                )
            # Inferred from a whole batch, columns may be others than its first row alone would make them.
            seen = (event.encoded for event in self._events if isinstance(event, Decided | Observed))
            encoded = next(seen, None)
            first = self._first_schema or (encoded.schema if encoded else None)
            brought = encoded.arm_schema if encoded and not self._first_features else None
            first_of_arms = self._first_arm_schema or brought
            header = {
                "policy": self.name,
                "arms": list(self._first_arms),
                "features": None if self._first_features is None else list(self._first_features),
                "schema": None if first is None else first.to_json(),
                "arm_schema": None if first_of_arms is None else first_of_arms.to_json(),
                "settings": {**asdict(self._traffic), **settings},
            }
            write_archive(path, header=header, events=self._events)

    @classmethod
    def load(cls, path: str | os.PathLike[str], **replaced: Any) -> Self:
        """Read a policy back; it goes on to the decisions that the saved one would have taken.

        Parameters
        ----------
        path
            A file that `save` wrote, of this version or an earlier one. It is data: nothing in it is run, and
            no module that it names is imported.
        replaced
            Settings to put in the place of saved ones: a backbone or an estimator of your own cannot be
            saved, and must be passed here.
        """
        archive = read_archive(path, policy=cls.name)
        policy = archive.made(
            lambda arms, schema, settings: cls._from_settings(
                arms, schema, gathered(cls, {**gathered(cls, _with_known_backbone(settings)), **replaced})
            )
        )
        try:
            policy._first_arm_schema, policy._history = archive.arm_schema, None
            policy.append(archive.events)
        except Exception as error:
            raise damaged(archive.path, error) from error
        return policy

    @classmethod
    def _from_settings(cls, arms: Any, schema: Schema | None, settings: dict[str, Any]) -> Self:
        """Make a policy as `_settings` says, flat options gathered in their settings objects."""
        return cls(arms, schema=schema, **settings)

    @abstractmethod
    def _reset(self, width: int, n_arms: int) -> None:
        """Make a model that has seen nothing: contexts have ``width`` floats, arms are below ``n_arms``."""

    @abstractmethod
    def _observe(self, X: Matrix, arms: NDArray[np.int64], rewards: Vector) -> None:
        """Learn rows; any cut of the same rows into calls must give the same model."""

    def _grow(self, n_arms: int) -> bool:  # noqa: ARG002
        """Make room for more arms, if that changes nothing else; otherwise the model is made anew."""
        return False

    def _take_over(self, other: Self) -> bool:  # noqa: ARG002
        """Copy the model of an equal policy; False where it is learned instead."""
        return False

    def _settings(self) -> dict[str, Any] | None:
        """Give the keyword arguments of the subclass's own as plain JSON values, if it can be saved."""
        return None

    def _fold(self) -> History:
        """Bring the history up to the log."""
        with self._lock:
            history = self._history or History(
                self._first_arms,
                self._first_schema,
                features=self._first_features,
                arm_schema=self._first_arm_schema,
            )
            try:
                for event in self._events[history.position :] if history.position < len(self._events) else ():
                    history.fold(event)
            except BaseException:
                self._history = None  # it may be half-way; the log is the truth
                raise
            self._history = history
            return history

    def _model(self, width: int, n_features: int | None = None) -> History:
        """Bring the model up to the history, for contexts of ``width`` floats and arms of ``n_features``."""
        history = self._fold()
        if n_features is None:
            n_features = history.arm_features.shape[1]
        shape = width, len(history.labels), n_features
        try:
            grown = shape == self._shape or (shape[::2] == self._shape[::2] and self._grow(shape[1]))
            self._shape = shape
            if self._learned < 0 or not grown:
                self._learned = -1
                self._reset(width, len(history.labels))
                self._learned = 0
            if history.size > self._learned:
                new = slice(self._learned, history.size)
                self._observe(history.contexts[new], history.arms[new], history.rewards[new])
                self._learned = history.size
        except BaseException:
            self._learned = -1  # it may be half-way; it is made anew
            raise
        return history


def _with_known_backbone(settings: dict[str, Any]) -> dict[str, Any]:
    """Complain about a backbone that is not the package's own: a file may be forged."""
    given, known = settings.get("backbone"), backbones.names()
    if given is not None and given not in known:
        raise ValueError(f"backbone must be one of {known} in a file, got {given!r}; pass it to load")
    return settings
