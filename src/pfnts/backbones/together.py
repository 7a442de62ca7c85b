"""Questions of threads that work side by side, answered in one call."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from pfnts.backbones.base import Prediction, Question

Answer = Callable[[Any, Sequence[Question]], list[Prediction]]
"""Of a model, and of questions to it."""

_MEETING: ContextVar[Meeting | None] = ContextVar("meeting", default=None)


class MeetingClosedError(RuntimeError):
    """Those who waited for an answer get none, because the work was stopped."""


@dataclass
class _Asked:
    """What one thread wants to know, and what came of it."""

    answer: Answer
    model: Any
    questions: Sequence[Question]
    found: list[Prediction] | None = None
    error: Exception | None = None


class Meeting:
    """Where threads wait for each other with their questions.

    A thread is expected from its first question on, until it leaves. When all that are expected have asked,
    one of them gets the answers for all, with one call for each model.

    Examples
    --------
    >>> meeting = Meeting()
    >>> with meeting.attended():
    ...     ask("a model", lambda model, questions: [model for _ in questions], [1, 2])
    ['a model', 'a model']
    """

    def __init__(self) -> None:
        self._turn = threading.Condition()
        self._expected: set[int] = set()
        self._waiting: dict[int, _Asked] = {}
        self._closed = False
        self.calls = 0
        """Calls of models so far."""

    @contextmanager
    def attended(self) -> Iterator[None]:
        """Take part: what this thread asks a model that can share its calls is asked here."""
        token = _MEETING.set(self)
        try:
            yield
        finally:
            _MEETING.reset(token)
            with self._turn:
                self._expected.discard(threading.get_ident())
                self._turn.notify_all()  # the others may have waited for this one alone

    def close(self) -> None:
        """Send everybody home: whoever waits, or asks later, gets a `MeetingClosedError`."""
        with self._turn:
            self._closed = True
            self._turn.notify_all()

    def ask(self, asked: _Asked) -> list[Prediction]:
        """Wait until all have asked, and for the answer."""
        me = threading.get_ident()
        with self._turn:
            self._expected.add(me)
            self._waiting[me] = asked
            while asked.found is None and asked.error is None:
                if self._closed:
                    raise MeetingClosedError("the work was stopped before this question was answered")
                if len(self._waiting) == len(self._expected):
                    waiting, self._waiting = list(self._waiting.values()), {}
                    self._answer(waiting)
                    self._turn.notify_all()
                else:
                    self._turn.wait()
        if asked.error is not None:
            raise asked.error
        assert asked.found is not None
        return asked.found

    def _answer(self, waiting: Sequence[_Asked]) -> None:
        models: dict[int, list[_Asked]] = {}
        for asked in waiting:
            models.setdefault(id(asked.model), []).append(asked)
        for group in models.values():
            try:
                self._call(group)
            except Exception:
                # Whose question it was shows when each is asked alone; the others are none the worse for it.
                for asked in group:
                    try:
                        self._call([asked])
                    except Exception as error:
                        asked.error = error

    def _call(self, group: Sequence[_Asked]) -> None:
        self.calls += 1
        questions = [question for asked in group for question in asked.questions]
        answers = iter(group[0].answer(group[0].model, questions))
        for asked in group:
            asked.found = [next(answers) for _ in asked.questions]


def ask(model: Any, answer: Answer, questions: Sequence[Question]) -> list[Prediction]:
    """Ask at the meeting that this thread takes part in, or at once where there is none."""
    meeting = _MEETING.get()
    return answer(model, questions) if meeting is None else meeting.ask(_Asked(answer, model, questions))
