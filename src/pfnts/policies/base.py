"""What every policy shares: a log, what follows from it, warm-up, and one way to decide."""

from __future__ import annotations

import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from pfnts.contexts import Schema
from pfnts.events import ArmAdded, ArmRemoved, Decided, Event, History, Label, Observed, Rewarded
from pfnts.policies.archive import read_archive, write_archive
from pfnts.policies.arguments import (
    check_arms,
    check_id,
    check_label,
    check_reward,
    check_rng,
    check_schema,
    listed,
)
from pfnts.policies.decision import Choices, Decision, Mask, Matrix, Reason, Vector
from pfnts.policies.prefetch import PrefetchCache
from pfnts.policies.rows import Rows
from pfnts.policies.warmup import UNIFORMS, settle

Outcome = Literal["learned", "duplicate"]


class Policy(ABC):
    """Carries the behaviour that policies share; a subclass implements hooks on floats and arm numbers.

    A policy is its log: everything else is folded from the events, and made anew from them if anything
    fails half-way. `decide` and `update` append events and change nothing else. A policy may be shared by
    threads: one call is served at a time.

    A subclass implements `_reset`, `_observe` and `_choose`, and whichever of the other hooks it needs.

    Parameters
    ----------
    arms
        Number of arms, labelled 0, 1, ..., or their labels (strings or integers).
    warmup
        Rows of an arm that its model must hold before the policy's own rule may choose it. Until then it is
        drawn at random among the arms in warm-up, and is never more than so many decisions ahead of its
        rewards.
    explore
        Share of the rounds in which any eligible arm is drawn, each alike, warm-up included: no propensity of
        an eligible arm is below ``explore`` over their number, as trials and later evaluations need it.
    schema
        What the columns of a context are; inferred from the first context when not given.

    Examples
    --------
    >>> from pfnts.policies import Uniform
    >>> policy = Uniform(arms=["none", "standard"])
    >>> decision = policy.decide([0.5, 1.0], rng=np.random.default_rng(0))
    >>> decision.arm, decision.propensities
    ('standard', array([0.5, 0.5]))
    >>> policy.update(decision, reward=1.0)
    'learned'
    """

    name: ClassVar[str]
    rule: ClassVar[Reason] = "thompson"
    """What the reason of a decision says when the policy's own rule took it."""

    def __init__(
        self,
        arms: int | Sequence[Label],
        *,
        warmup: int = 0,
        explore: float = 0.0,
        schema: Schema | Mapping[str, Any] | None = None,
    ) -> None:
        if isinstance(warmup, bool) or warmup != int(warmup) or warmup < 0:
            raise ValueError(f"warmup must be a non-negative integer, got {warmup!r}")
        if not 0 <= explore <= 1:
            raise ValueError(f"explore must be between 0 and 1, a share of the rounds, got {explore}")
        self._first_arms = check_arms(arms)
        self._first_schema = check_schema(schema)
        self._warmup, self._explore = int(warmup), float(explore)
        self._lock = threading.RLock()
        self._events: list[Event] = []
        self._history: History | None = None
        self._folded = 0
        self._learned = -1  # rows that the model has seen; -1 where there is no model
        self._shape = (0, 0)  # width of a context and number of arms that the model was made for
        self._prefetched: PrefetchCache[Any] | None = None

    @property
    def arms(self) -> tuple[Label, ...]:
        """Labels of the arms, in the order of `Decision.propensities`."""
        history = self._fold()
        return tuple(history.labels[number] for number in history.live)

    @property
    def n_arms(self) -> int:
        """Number of arms K."""
        return len(self._fold().live)

    @property
    def warmup(self) -> int:
        """Rows of an arm that its model must hold before the policy's own rule may choose it."""
        return self._warmup

    @property
    def explore(self) -> float:
        """Share of the rounds in which any eligible arm is drawn, each alike."""
        return self._explore

    @property
    def schema(self) -> Schema | None:
        """What the columns of a context are, once known."""
        return self._fold().schema

    @property
    def events(self) -> tuple[Event, ...]:
        """The log."""
        return tuple(self._events)

    def __repr__(self) -> str:
        history = self._fold()
        name, events = type(self).__name__, len(self._events)
        return f"{name}(arms={list(self.arms)}, {events} events, {history.size} rewards)"

    def decide(
        self, context: Any, *, rng: Generator, eligible: ArrayLike | None = None, id: str | None = None
    ) -> Decision:
        """Choose an arm for one context.

        Parameters
        ----------
        context
            A numpy row, a mapping, a list of values, a pandas or polars row.
        rng
            Source of the draws.
        eligible
            Mask (K,) of the arms that may be chosen; all of them when not given.
        id
            Names the decision, for its reward; its number in the log when not given.
        """
        with self._lock:
            rows = self._encode(context).expect(single=True)
            [decision] = self._decide(rows, eligible, rng=rng, id=check_id(id, self._fold()))
            return decision

    def decide_batch(
        self, contexts: Any, *, rng: Generator, eligible: ArrayLike | None = None
    ) -> list[Decision]:
        """Choose an arm for each of many contexts, as so many calls of `decide` would.

        Parameters
        ----------
        contexts
            A numpy matrix, a frame, a list of mappings or rows.
        rng
            Source of the draws.
        eligible
            Mask (K,) of the arms that may be chosen, or (n, K).
        """
        with self._lock:
            return self._decide(self._encode(contexts).expect(single=False), eligible, rng=rng)

    def update(self, context: Any, *, reward: Any, arm: Any = None) -> Outcome | list[Outcome]:
        """Learn a reward; late and in any order is fine.

        Parameters
        ----------
        context
            A decision, or its id; or, for a row without a decision, its context (or a batch of contexts).
        reward
            What it paid: a finite number, or a list of them for a batch.
        arm
            Label of the arm pulled, or a list of labels for a batch; only for rows without a decision.

        Returns
        -------
        "learned", or "duplicate" for a decision that has its reward already: the first one counts. The id of
        a decision that this policy never took is a ValueError. A reward of a decision whose arm was removed
        since is learned: other arms may share its model.
        """
        with self._lock:
            if isinstance(context, Decision | str) and arm is None:
                return self._reward(context.id if isinstance(context, Decision) else context, reward)
            return self._observe_rows(context, arm, reward)

    def prefetch(self, contexts: Any) -> None:
        """Announce contexts to come: what the model says about them is computed in batches.

        Decisions are the same with and without it. The announcement replaces the one before.
        """
        with self._lock:
            self._prefetched = PrefetchCache(self._encode(contexts).X)

    def add_arm(self, arm: Label) -> None:
        """Add an arm at the end; it begins with its warm-up, even if its label belonged to a removed arm."""
        with self._lock:
            if check_label(arm) in self.arms:
                raise ValueError(f"arm must be new, {arm!r} is one of {list(self.arms)}")
            self._events.append(ArmAdded(arm))

    def remove_arm(self, arm: Label) -> None:
        """Take an arm out of the choice; what it taught a model shared by all arms stays there."""
        with self._lock:
            self._label(arm)
            if self.n_arms == 1:
                raise ValueError(f"arm must not be the only one left, got {arm!r}; add another first")
            self._events.append(ArmRemoved(arm))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the policy, settings and log, to one file of plain JSON; nothing is pickled."""
        with self._lock:
            settings = self._settings()
            if settings is None:
                raise ValueError(
                    f"policy must say its settings to be saved: {type(self).__name__} has no _settings"
                )
            common = {"warmup": self._warmup, "explore": self._explore}
            first = self._first_schema
            header = {
                "policy": self.name,
                "arms": list(self._first_arms),
                "schema": None if first is None else first.to_json(),
                "settings": {**common, **settings},
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
            lambda arms, schema, settings: cls._from_settings(arms, schema, {**settings, **replaced})
        )
        policy._events = archive.events
        policy._fold()
        return policy

    @classmethod
    def _from_settings(cls, arms: list[Label], schema: Schema | None, settings: dict[str, Any]) -> Self:
        """Make a policy as `_settings` says."""
        return cls(arms, schema=schema, **settings)

    # Hooks. X are encoded contexts (q, P); arms are numbers among all arms there have ever been.

    @abstractmethod
    def _reset(self, width: int, n_arms: int) -> None:
        """Make a model that has seen nothing: contexts have ``width`` floats, arms are below ``n_arms``."""

    @abstractmethod
    def _observe(self, X: Matrix, arms: NDArray[np.int64], rewards: Vector) -> None:
        """Learn rows; any cut of the same rows into calls must give the same model."""

    @abstractmethod
    def _choose(self, X: Matrix, arms: Sequence[int], eligible: Mask, uniforms: Matrix) -> Choices:
        """Choose at each row among ``eligible`` (q, K), the columns standing for ``arms``; all are warm."""

    def _n_uniforms(self, arms: Sequence[int]) -> int:
        """Say how many uniform numbers (at least one, for ties) a choice takes."""
        return len(arms) + 1

    def _held(self, arms: Sequence[int]) -> NDArray[np.int64]:
        """Rows of each arm that its model holds."""
        return self._fold().rewarded[list(arms)]

    def _grow(self, n_arms: int) -> bool:  # noqa: ARG002
        """Make room for more arms, if that changes nothing else; otherwise the model is made anew."""
        return False

    def _unchanged(self, arms: NDArray[np.int64]) -> int:  # noqa: ARG002
        """Count how many rows of these arms (m,), in this order, leave the model's answers as they are."""
        return 0

    def _settings(self) -> dict[str, Any] | None:
        """Give the keyword arguments of the subclass's own as plain JSON values, if it can be saved."""
        return None

    # From the log to the model.

    def _fold(self) -> History:
        """Bring the history up to the log."""
        with self._lock:
            history = self._history
            if history is None:
                history, self._folded = History(self._first_arms, self._first_schema), 0
                self._history = history
            try:
                for event in self._events[self._folded :] if self._folded < len(self._events) else ():
                    history.fold(event)
                    self._folded += 1
            except BaseException:
                self._history = None  # it may be half-way; the log is the truth
                raise
            return history

    def _model(self, width: int) -> History:
        """Bring the model, for contexts of ``width`` floats, up to the history."""
        history = self._fold()
        shape = width, len(history.labels)
        try:
            grown = shape == self._shape or (shape[0] == self._shape[0] and self._grow(shape[1]))
            if self._learned < 0 or not grown:
                self._learned = -1
                self._reset(*shape)
                self._learned = 0
            self._shape = shape
            if history.size > self._learned:
                new = slice(self._learned, history.size)
                self._observe(history.contexts[new], history.arms[new], history.rewards[new])
                self._learned = history.size
        except BaseException:
            self._learned = -1  # it may be half-way; it is made anew
            raise
        return history

    def _encode(self, contexts: Any) -> Rows:
        """Encode one context or many; nothing changes."""
        return Rows.of(contexts, self._fold().schema)

    def _ahead(
        self,
        X: Matrix,
        versions: Mapping[Any, Hashable],
        ask: Callable[[list[Any], Matrix], Sequence[Any]],
        take: Callable[[Any, NDArray[np.int64]], Any] = lambda values, rows: values.take(rows),
    ) -> dict[Any, Any]:
        """What models say at ``X``, by key, computed together with what is announced; see `PrefetchCache`."""
        if self._prefetched is None:
            return dict(zip(versions, ask(list(versions), X), strict=True))
        return self._prefetched.find(X, versions, ask, take)

    # One way to decide.

    def _decide(
        self, rows: Rows, eligible: ArrayLike | None, *, rng: Generator, id: str | None = None
    ) -> list[Decision]:
        check_rng(rng)
        masks = self._eligible(eligible, len(rows.X))
        if not len(rows.X):
            return []
        before = rng.bit_generator.state
        try:
            choices, reasons = self._propose(rows.X, masks, rng=rng)
        except BaseException:
            rng.bit_generator.state = before
            raise
        events = self._decided(rows, choices, reasons, masks, id=id)
        labels, posterior = self.arms, choices.posterior
        decisions = [
            Decision(
                id=event.id,
                arm=event.arm,
                index=int(choices.index[i]),
                propensities=choices.propensities[i],
                reason=reasons[i],
                posterior=None if reasons[i] == "warmup" or posterior is None else posterior[i],
                arms=labels,
            )
            for i, event in enumerate(events)
        ]
        self._events += events  # all or none: a list is extended in one step
        return decisions

    def _decided(
        self, rows: Rows, choices: Choices, reasons: list[Reason], masks: Mask, *, id: str | None = None
    ) -> list[Decided]:
        """Write choices down as events."""
        labels = self.arms
        ids = [id] if id is not None else self._fold().new_ids(len(rows.X))
        shares = choices.propensities.tolist()
        return [
            Decided(
                id=ids[i],
                context=rows.plain(i),
                arm=labels[choices.index[i]],
                propensities=dict(zip(labels, shares[i], strict=True)),
                reason=reasons[i],
                eligible=None if masks[i].all() else tuple(np.array(labels, dtype=object)[masks[i]]),
                encoded=rows.encoded(i),
            )
            for i in range(len(rows.X))
        ]

    def _propose(self, X: Matrix, eligible: Mask, *, rng: Generator) -> tuple[Choices, list[Reason]]:
        """Choose at each row of ``X``, as if each was the next; nothing but the generator changes."""
        history = self._model(X.shape[1])
        arms = history.live
        numbers = list(arms)
        cold = self._held(arms) < self._warmup
        warm = eligible & ~cold
        uniforms = rng.random((len(X), UNIFORMS + self._n_uniforms(arms)))
        choices = Choices(np.zeros(len(X), dtype=np.int64), np.zeros(eligible.shape))
        if warm.any():
            # Where a row has no warm arm, what the rule says is not asked for; any mask will do.
            masks = np.where(warm.any(axis=1, keepdims=True), warm, ~cold)
            choices = self._choose(X, arms, masks, uniforms[:, UNIFORMS:])
        return settle(
            choices,
            eligible,
            uniforms,
            reason=self.rule,
            cold=cold,
            ahead=np.maximum(history.decided[numbers] - history.rewarded[numbers], 0),
            warmup=self._warmup,
            explore=self._explore,
        )

    def play(self, contexts: Matrix, rewards: Matrix, *, rng: Generator) -> tuple[NDArray[np.int64], Matrix]:
        """Decide at contexts (m, P) in turn, learning each reward at once, for as long as the model lasts.

        ``rewards`` (m, K) are what each arm would pay. As many rounds are decided together as come before the
        model's answers change, at least one; it is the same as deciding and updating round by round.

        Returns
        -------
        Index (r,) of the arms chosen in these rounds, and the propensities (r, K).
        """
        with self._lock:
            check_rng(rng)
            rows = self._encode(contexts)
            before = rng.bit_generator.state
            numbers = np.array(self._fold().live)
            masks = np.ones((len(rows.X), len(numbers)), dtype=np.bool_)
            try:
                if (self._held(self._model(rows.X.shape[1]).live) < self._warmup).any():
                    rows, masks = (
                        rows.first(1),
                        masks[:1],
                    )  # who is drawn next depends on what came of this one
                choices, reasons = self._propose(rows.X, masks, rng=rng)
                kept = min(len(rows.X), self._unchanged(numbers[choices.index]) + 1)
            except BaseException:
                rng.bit_generator.state = before
                raise
            if kept < len(rows.X):
                rng.bit_generator.state = before
                rng.random((kept, UNIFORMS + self._n_uniforms(tuple(numbers))))
            events: list[Event] = []
            for i, event in enumerate(self._decided(rows.first(kept), choices, reasons, masks)):
                events += [event, Rewarded(event.id, check_reward(rewards[i, choices.index[i]]))]
            self._events += events
            return choices.index[:kept], choices.propensities[:kept]

    def _reward(self, id: str, reward: Any) -> Outcome:
        value = check_reward(reward)
        status = self._fold().status(id)
        if status == "unknown":
            raise ValueError(
                f"decision must be one that this policy took, it has none with the id {id!r}; "
                "for a row without a decision pass context, arm= and reward="
            )
        if status == "rewarded":
            return "duplicate"
        self._events.append(Rewarded(id, value))
        return "learned"

    def _observe_rows(self, contexts: Any, arm: Any, reward: Any) -> Outcome | list[Outcome]:
        rows = self._encode(contexts)
        labels, values = ([arm], [reward]) if rows.single else (listed("arm", arm), listed("reward", reward))
        if not len(labels) == len(values) == len(rows.X):
            raise ValueError(
                "context, arm and reward must have one length, got "
                f"{len(rows.X)}, {len(labels)} and {len(values)}"
            )
        checked = [
            (self._label(label), check_reward(value)) for label, value in zip(labels, values, strict=True)
        ]
        self._events += [
            Observed(context=rows.plain(i), arm=label, value=value, encoded=rows.encoded(i))
            for i, (label, value) in enumerate(checked)
        ]
        return "learned" if rows.single else ["learned"] * len(checked)

    def _label(self, arm: Any) -> Label:
        """Check that an arm is there now."""
        label: Label = arm.item() if isinstance(arm, np.generic) else arm
        history = self._fold()
        known = isinstance(label, str | int) and not isinstance(label, bool) and label in history.numbers
        if not known or history.numbers[label] not in history.live:
            removed = ", which was removed" if known else ""
            raise ValueError(f"arm must be one of {list(self.arms)}, got {arm!r}{removed}")
        return label

    def _eligible(self, eligible: ArrayLike | None, n: int) -> Mask:
        """Check the mask and spread it over the rows, as (n, K)."""
        arms = self.arms
        if eligible is None:
            return np.ones((n, len(arms)), dtype=np.bool_)
        mask = np.asarray(eligible)
        if mask.dtype != np.bool_ or mask.shape not in ((len(arms),), (n, len(arms))):
            raise ValueError(
                f"eligible must be a boolean mask over the {len(arms)} arms {list(arms)}, got {eligible!r}"
            )
        if not mask.any(axis=-1).all():
            raise ValueError(f"eligible must leave at least one arm to choose, got {eligible!r}")
        return np.broadcast_to(mask, (n, len(arms)))
