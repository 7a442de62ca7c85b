"""The policy: a log, the model that learns it, and the rule that chooses by what the model predicts."""

from __future__ import annotations

import logging
import os
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from functools import partial
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from pfnts.arrays import Counts, Matrix
from pfnts.contexts import Schema, plain
from pfnts.contexts.schema import Rows
from pfnts.contexts.values import shown
from pfnts.events import (
    ActionSet,
    ArmAdded,
    ArmRemoved,
    Corrected,
    Decided,
    Event,
    History,
    Label,
    Log,
    Observed,
    Rewarded,
)
from pfnts.explain.explanation import Explanation
from pfnts.explain.reasons import explanation
from pfnts.imports.rows import Columns, imported_rows
from pfnts.policies import file, play
from pfnts.policies.arguments import (
    Arms,
    check_arms,
    check_features,
    check_label,
    check_reward,
    listed,
    unboxed,
)
from pfnts.policies.budget import BudgetPrice
from pfnts.policies.current import CurrentModel
from pfnts.policies.decision import Decision, Reason
from pfnts.policies.entries import decided, decisions, observed
from pfnts.policies.model import Model
from pfnts.policies.proposal import Proposer
from pfnts.policies.rewards import REWARDS, Rewards
from pfnts.policies.rules import Rule
from pfnts.policies.settings import check_kind, restored_settings, warn_of_other_weights
from pfnts.policies.traffic import NO_WARMUP, Traffic
from pfnts.posterior import AnyPosterior
from pfnts.posterior.best_arm import check_eligible

Outcome = Literal["learned", "duplicate", "corrected"]
_LOGGER = logging.getLogger("pfnts")
_SLOW = 1.0
"""Seconds after which a decision is logged as slow."""
_AT_ONCE = 1024
"""Rows learned between two calls of `catch_up`'s ``progress``."""


class Policy:
    """Decides by a model and a rule, and keeps a log from which everything it knows follows.

    `decide` and `update` append events to the log and change nothing else; an error leaves the policy as it
    was. It may be shared by threads; one call is served at a time.

    Parameters
    ----------
    arms
        Number of arms, labelled 0, 1, ..., or their labels (strings or integers). Where the model takes
        features of arms: labels to features, or None if every decision brings its own candidates.
    model
        Predicts rewards; one that has seen no row.
    rule
        Chooses an arm by these predictions.
    traffic
        Warm-up, and shares of the decisions that are not the rule's.
    rewards
        Range, costs and budget, where these are known.
    schema
        What the columns of a context are; inferred from the first context when not given.
    arm_schema
        What the columns of the arms' features are; inferred from the first ones when not given.
    settings
        The other arguments of a subclass's constructor as plain JSON values, for its file; None where it
        cannot be saved.
    seed
        Of the policy's own random numbers, for calls without ``rng``.

    Examples
    --------
    >>> from pfnts.policies import Uniform
    >>> policy = Uniform(arms=["none", "standard"], seed=0)
    >>> decision = policy.decide([0.5, 1.0])
    >>> decision.arm, decision.propensities
    ('none', array([0.5, 0.5]))
    >>> policy.update(decision, reward=1.0)
    'learned'
    """

    name: ClassVar[str] = ""
    """Name in the registry and in files."""
    takes_features: ClassVar[bool] = False
    """Whether arms may have features."""

    def __init__(
        self,
        arms: Arms,
        *,
        model: Model,
        rule: Rule,
        traffic: Traffic = NO_WARMUP,
        rewards: Rewards = REWARDS,
        schema: Schema | Mapping[str, Any] | None = None,
        arm_schema: Schema | None = None,
        settings: Mapping[str, Any] | None = None,
        seed: int | None = None,
    ) -> None:
        check_kind("traffic", traffic, Traffic)
        check_kind("rewards", rewards, Rewards)
        labels = check_arms(arms)
        features = check_features(
            arms, taken=model.takes_features or self.takes_features, policy=type(self).__name__
        )
        rewards.costs(labels)
        self._first: dict[str, Any] = {
            "arms": labels,
            "schema": None if schema is None else Schema.of(schema),
            "features": features,
            "arm_schema": arm_schema,
        }
        self._settings = None if settings is None else dict(settings)
        self._log = Log(partial(History, **self._first))
        self._current = CurrentModel(model, len(labels))
        self._proposer = Proposer(rule, traffic.for_arms(labels), rewards, BudgetPrice(rewards))
        self._rng = np.random.default_rng(seed)
        self._lock = threading.RLock()
        _POLICIES.add(self)

    @property
    def arms(self) -> tuple[Label, ...]:
        """Labels of the arms, in the order of `Decision.propensities`."""
        return self.history.actions.labels

    @property
    def n_arms(self) -> int:
        """Number of arms K."""
        return len(self.history.live)

    @property
    def traffic(self) -> Traffic:
        """Warm-up, and shares of the decisions that are not the rule's."""
        return self._proposer.traffic

    @property
    def rule(self) -> Reason:
        """Reason of the decisions that are the rule's."""
        return self._proposer.rule.reason

    @property
    def schema(self) -> Schema | None:
        """What the columns of a context are, once known."""
        return self.history.schema

    @property
    def arm_schema(self) -> Schema | None:
        """What the columns of the arms' features are, once known."""
        return self.history.arm_schema

    @property
    def events(self) -> tuple[Event, ...]:
        """The log."""
        with self._lock:
            return tuple(self._log)

    @property
    def history(self) -> History:
        """The rows, arms and schemas that follow from the log; to be read, not changed."""
        return self._log.history

    @property
    def settings(self) -> dict[str, Any] | None:
        """Arguments of the constructor as plain JSON values; None where it cannot be saved."""
        return None if self._settings is None else dict(self._settings)

    def __repr__(self) -> str:
        labels, history = list(self.arms), self.history
        some = f"{labels}" if len(labels) <= 8 else f"[{', '.join(map(repr, labels[:6]))}, ... {len(labels)}]"
        return f"{type(self).__name__}(arms={some}, {len(self._log)} events, {history.size} rewards)"

    # Decisions

    def decide(
        self,
        context: Any,
        *,
        rng: Generator | None = None,
        eligible: ArrayLike | None = None,
        id: str | None = None,
        candidates: Any = None,
    ) -> Decision:
        """Choose an arm for one context.

        Parameters
        ----------
        context
            A numpy row, a mapping, a list of values, a pandas or polars row, a frame of one row.
        rng
            Source of the draws; the policy's own when not given.
        eligible
            Mask (K,) of the arms that may be chosen; all of them when not given.
        id
            Identifies the decision, for its reward; its number in the log when not given.
        candidates
            Features of the actions to choose from this time instead of the policy's arms: a list of mappings
            or rows, or a table. The arm chosen is a position among them.
        """
        with self._lock, self._drawing(rng) as drawing:
            options = {"eligible": eligible, "ids": None if id is None else [id], "candidates": candidates}
            [decision], events = self._decide(self._one(context), drawing, **options)
            self._log.append(events)
            return decision

    def propose(
        self, context: Any, *, rng: Generator | None = None, id: str | None = None, **options: Any
    ) -> tuple[Decision, Decided]:
        """Choose an arm as `decide` does, without appending to the log: the decision and its event.

        For those who must store the event before they act on it; `append` it then.
        """
        with self._lock, self._drawing(rng) as drawing:
            ids = None if id is None else [id]
            [decision], [event] = self._decide(self._one(context), drawing, ids=ids, **options)
            self.history.check(event)
            return decision, event

    def decide_batch(
        self,
        contexts: Any,
        *,
        rng: Generator | None = None,
        eligible: ArrayLike | None = None,
        ids: Sequence[str] | None = None,
    ) -> list[Decision]:
        """Choose an arm for each of many contexts, as one call of `decide` after the other would.

        Parameters
        ----------
        contexts
            A numpy matrix, a frame, a list of mappings or rows.
        rng
            Source of the draws; the policy's own when not given.
        eligible
            Mask (K,) of the arms that may be chosen, or (n, K).
        ids
            Identify the decisions, (n,); numbers in the log when not given.
        """
        with self._lock, self._drawing(rng) as drawing:
            rows = Rows.of(contexts, self.history.schema, single=False)
            if ids is not None and len(ids) != len(rows.X):
                raise ValueError(f"ids must be one for each of the {len(rows.X)} contexts, got {len(ids)}")
            if self._proposer.rewards.budget is None:
                found, events = self._decide(rows, drawing, eligible=eligible, ids=ids)
                self._log.append(events)
                return found
            # The budget allows other arms after each decision.
            masks, before = check_eligible(eligible, (len(rows.X), self.n_arms)), len(self._log)
            found = []
            try:
                for i in range(len(rows.X)):
                    one, own = slice(i, i + 1), None if ids is None else [ids[i]]
                    decision, event = self._decide(rows.part(one), drawing, eligible=masks[one], ids=own)
                    self._log.append(event)
                    found += decision
            except BaseException:
                self._log.cut(before)
                raise
            return found

    def _decide(
        self,
        rows: Rows,
        rng: Generator,
        *,
        eligible: ArrayLike | None = None,
        ids: Sequence[str] | None = None,
        candidates: Any = None,
    ) -> tuple[list[Decision], list[Decided]]:
        """Choose at each row; nothing but the generator changes."""
        begun, history = time.perf_counter(), self.history
        arms = history.actions if candidates is None and history.live else self._actions(candidates)
        masks = check_eligible(eligible, (len(rows.X), len(arms.numbers)))
        model = self._current.at(history, rows.X.shape[1], arms.features.shape[1])
        uniforms = rng.random((len(rows.X), self._proposer.n_uniforms(arms)))
        if not len(rows.X):
            return [], []
        choices, reasons = self._proposer.propose(model, history, rows.X, arms, masks, uniforms)
        ids = history.new_ids(len(rows.X)) if ids is None else ids
        events = decided(rows, arms, masks, choices, reasons, ids=ids)
        if (took := time.perf_counter() - begun) > _SLOW:
            _LOGGER.info("%s: a decision took %.1f s after %d rows", self.name, took, history.size)
        return decisions(events, arms, choices), events

    def play(
        self,
        contexts: Any,
        rewards: Matrix,
        *,
        rng: Generator | None = None,
        eligible: ArrayLike | None = None,
        only: Counts | None = None,
    ) -> tuple[Counts, Matrix]:
        """Decide at contexts (m, P) in turn and learn each reward at once, while predictions stay the same.

        At least one round is played; it is the same as deciding and updating round by round.

        Parameters
        ----------
        contexts
            Rounds to come: a matrix (m, P), or another batch that `decide_batch` takes.
        rewards
            Reward of each arm, (m, K).
        rng
            Source of the draws; the policy's own when not given.
        eligible
            Mask (K,) of the arms that may be chosen, or (m, K); all of them when not given.
        only
            Index (m,) of the arm whose reward is known, as in a log: rounds in which another one was chosen
            leave no trace.

        Returns
        -------
        Index (r,) of the arms chosen in these rounds, and the propensities (r, K).
        """
        with self._lock, self._drawing(rng) as drawing:
            history, arms = self.history, self._actions(None)
            rows = Rows.of(contexts, history.schema)
            masks = check_eligible(eligible, (len(rows.X), len(arms.numbers)))
            model = self._current.at(history, rows.X.shape[1])
            done = play.rounds(
                self._proposer, model, history, rows, arms, masks, rewards, rng=drawing, only=only
            )
            self._log.append(done.events)
            return done.index, done.propensities

    # Rewards and arms

    def update(
        self, context: Any, *, reward: Any, arm: Any = None, features: Any = None, replace: bool = False
    ) -> Outcome | list[Outcome]:
        """Learn a reward; late and in any order is fine.

        Parameters
        ----------
        context
            A decision, or its id; or, for a row without a decision, its context (or a batch of contexts).
        reward
            The reward: a finite number, or a list of them for a batch.
        arm
            Label of the arm pulled, or a list of labels for a batch; only for rows without a decision.
        features
            Those of the candidate chosen, in the place of ``arm``; a list or table of them for a batch.
        replace
            Whether it replaces the reward that a decision has already. The model learns it when its history
            has grown by a thirtieth.

        Returns
        -------
        "learned"; "duplicate" for a decision that has its reward already: the first one counts; "corrected"
        where it was replaced. The id of a decision that this policy never took is a ValueError. A reward of
        a decision whose arm was removed since is learned: other arms may share its model.
        """
        with self._lock:
            if isinstance(context, Decision | str) and arm is None and features is None:
                return self._reward(context, reward, replace=replace)
            if replace:
                raise ValueError("replace must be given with a decision or its id, a row has neither")
            rows = Rows.of(context, self.history.schema)
            events: Sequence[Event]
            if features is None:
                labels = [unboxed(arm)] if rows.single else list(map(unboxed, listed("arm", arm)))
                for label in labels:
                    self.history.number_of(label)
                events = observed(rows, labels, reward, self._proposer.rewards)
            elif arm is None:
                chosen = self._actions([features] if rows.single else features)
                events = observed(rows, chosen, reward, self._proposer.rewards)
            else:
                raise ValueError(
                    f"arm and features must not both be given, got {arm!r} and {shown(features)}"
                )
            self._log.append(events)
            return "learned" if rows.single else ["learned"] * len(events)

    def learn(
        self,
        log: Any,
        *,
        action: str | None = None,
        reward: str | None = None,
        propensity: str | Mapping[str, float | str] | None = None,
        cluster: str | None = None,
        time: str | None = None,
        context: Sequence[str] | None = None,
    ) -> int:
        """Learn the rounds of another system's log: all of them, or none if a row is wrong.

        It is the same as updating row by row; the events say that they are imported.

        Parameters
        ----------
        log
            A `pfnts.ope.Log`; a pandas, polars or Arrow table, or columns by name; or the path of a CSV or
            Parquet file. The names of columns that follow are for tables and files alone.
        action, reward
            Columns of the arm's label and of its reward.
        propensity, cluster
            Columns that are no contexts: the probability of the action (or for each action its column), the
            person. Learning needs neither.
        time
            Column by which rows are put in order: numbers, or ISO dates or datetimes; their own order when
            left out.
        context
            Columns that describe a row: those of the schema where there is one, otherwise all that have no
            other role, except ids and dates.

        Returns
        -------
        The number of rows learned.
        """
        roles = Columns(action, reward, propensity, cluster, time, context)
        with self._lock:
            checked = partial(check_reward, rewards=self._proposer.rewards)
            events = imported_rows(log, roles, self.history, label=unboxed, reward=checked)
            self._log.append(events)
            return len(events)

    def append(self, events: Iterable[Event]) -> None:
        """Append events that fit the log, all or none: those of another process, say, in their order."""
        with self._lock:
            self._log.append(events)

    def add_arm(self, arm: Label, features: Any = None) -> None:
        """Add an arm at the end; it begins with its warm-up, even if its label belonged to a removed arm.

        Parameters
        ----------
        arm
            Its label.
        features
            Its features, where arms have features; its rewards are predicted from them at once.
        """
        with self._lock:
            self._proposer.rewards.costs([arm])  # where arms have costs, its own must be among them
            known = None if features is None else plain(features)
            self._log.append([ArmAdded(check_label(arm), known)])

    def remove_arm(self, arm: Label) -> None:
        """Remove an arm; what a model shared by all arms learned from it stays."""
        with self._lock:
            self._log.append([ArmRemoved(unboxed(arm))])

    # Questions

    def posterior(self, contexts: Any, *, candidates: Any = None) -> AnyPosterior:
        """Return the posterior of the mean rewards, arrays (K,) for one context and (n, K) for a batch.

        It is of all arms, or of all ``candidates`` where these are given. A TypeError where there is none.
        """
        with self._lock:
            rows = Rows.of(contexts, self.history.schema)
            posterior = self._posterior_at(rows.X, candidates)
            return posterior[0] if rows.single else posterior

    def explain(self, context: Any, *, rows: int = 5, level: float = 0.9) -> Explanation:
        """Explain a decision at a context: posteriors, similar rows, the columns that matter.

        Nothing changes. A TypeError where the policy has no posterior.

        Parameters
        ----------
        context
            One context, as for `decide`.
        rows
            How many of the nearest rows of each arm are shown.
        level
            Probability that the intervals hold.

        Examples
        --------
        >>> from pfnts.policies import LinTS
        >>> policy = LinTS(arms=["none", "new"])
        >>> ages = [20, 30, 40, 50, 60, 70] * 2
        >>> outcomes = policy.update(
        ...     [{"age": age} for age in ages], arm=["none"] * 6 + ["new"] * 6, reward=[0.0] * 6 + ages[:6]
        ... )
        >>> reasons = policy.explain({"age": 62}, rows=1)
        >>> reasons.leader, reasons.arms[0].rows[0]
        ('new', SimilarRow(context={'age': 60}, reward=60.0, distance=0.12, speaks_for=True))
        """
        with self._lock:
            history, arms = self.history, self._actions(None)
            given = self._one(context)
            model = self._current.at(history, given.X.shape[1])
            costs = self._proposer.costs(model, history, arms)
            return explanation(
                given, self._posterior_at, history, list(self._log), costs=costs, rows=rows, level=level
            )

    def prefetch(self, contexts: Any) -> None:
        """Announce contexts to come: predictions for them are computed in batches.

        Decisions are the same with and without it. The announcement replaces the one before.
        """
        with self._lock:
            self._current.announce(Rows.of(contexts, self.history.schema).X)

    def _posterior_at(self, X: Matrix, candidates: Any = None) -> AnyPosterior:
        """Return the posterior (q, K) at encoded contexts (q, P)."""
        history, arms = self.history, self._actions(candidates)
        model = self._current.at(history, X.shape[1], arms.features.shape[1])
        posterior = self._proposer.posterior(model, history, X, arms)
        if posterior is None:
            raise TypeError(f"policy must have a posterior, {type(self).__name__} has none; PFNTS has one")
        return posterior

    # Copies and files

    def catch_up(self, progress: Callable[[int, int], None] | None = None) -> None:
        """Do now what the first decision would otherwise wait for: learn the whole log.

        ``progress`` is called with the number of rows learned and the number there are.
        """
        with self._lock:
            history = self.history
            width = None if history.schema is None else history.schema.width
            if width is None:
                return
            model = self._current.at(history, width, progress=progress, at_once=_AT_ONCE)
            model.prepare()

    def adopt(self, other: Self) -> None:
        """Copy what a policy of the same settings with an equal log has learned, if it has learned all."""
        with self._lock, other._lock:
            if len(other._log) != len(self._log):
                raise ValueError(
                    f"other must have the same log, of {len(self._log)} events, got {len(other._log)}"
                )
            self._current.adopt(other._current, self.history)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the policy, settings and log, to one file of plain JSON; nothing is pickled."""
        with self._lock:
            if self._settings is None:
                raise ValueError(
                    f"policy must have settings to be saved, {type(self).__name__} was made without settings="
                )
            file.write(path, header=self._header(), events=self._log)

    @classmethod
    def load(cls, path: str | os.PathLike[str], **replaced: Any) -> Self:
        """Read a policy back; it continues with the decisions that the saved one would have taken.

        Parameters
        ----------
        path
            A file that `save` wrote, of this version or of 0.2. It is data: nothing in it is run, and no
            module that it names is imported.
        replaced
            Settings to put in the place of saved ones: a backbone or an estimator of your own cannot be
            saved, and must be passed here.
        """
        saved = file.read(path, policy=cls.name)
        try:
            settings, weights = restored_settings(cls, saved.settings, replaced)
            policy = cls(saved.arms, schema=saved.schema, **settings)
        except (KeyError, TypeError, IndexError, AttributeError, OverflowError, RecursionError) as error:
            raise file.damaged(saved.path, error) from error
        try:
            policy._first["arm_schema"] = saved.arm_schema
            policy._log = Log(partial(History, **policy._first))
            policy._log.append(saved.events)
            if saved.generator is not None:
                policy._rng.bit_generator.state = saved.generator
        except Exception as error:
            raise file.damaged(saved.path, error) from error
        warn_of_other_weights((policy.settings or {}).get("fingerprint"), weights)
        return policy

    def _header(self) -> dict[str, Any]:
        """Return what a file says beside the events."""
        # Inferred from a whole batch, columns may be others than its first row alone would make them.
        seen = (event.encoded for event in self._log if isinstance(event, Decided | Observed))
        encoded, first = next(seen, None), self._first
        schema = first["schema"] or (encoded.schema if encoded else None)
        arm_schema = first["arm_schema"] or (
            encoded.arm_schema if encoded and not first["features"] else None
        )
        return {
            "policy": self.name,
            "arms": list(first["arms"]),
            "features": None if first["features"] is None else list(first["features"]),
            "schema": None if schema is None else schema.to_json(),
            "arm_schema": None if arm_schema is None else arm_schema.to_json(),
            "settings": {**asdict(self.traffic), **(self._settings or {})},
            "generator": self._rng.bit_generator.state,
        }

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        del state["_lock"]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = threading.RLock()
        _POLICIES.add(self)

    # What all of these need

    def _one(self, context: Any) -> Rows:
        """Encode one context; a frame may have one row."""
        rows = Rows.of(context, self.history.schema)
        if len(rows.X) != 1 or not (rows.single or hasattr(context, "columns")):
            return Rows.of(context, self.history.schema, single=True)
        return rows

    def _actions(self, candidates: Any) -> ActionSet:
        """Return the actions to choose from: the policy's arms, or the candidates given."""
        history = self.history
        if candidates is None and not history.live:
            raise ValueError(
                "candidates must be given: the policy was made with arms=None and has no arms of its own"
            )
        if candidates is None:
            return history.actions
        if not history.has_features or not self._current.blank.takes_features:
            raise ValueError(
                "candidates must be given to a policy that judges arms by features alone, such as "
                f"PFNTS(arms=None), got some for {type(self).__name__} with arms {shown(list(self.arms))}"
            )
        return history.candidates(candidates)

    def _reward(self, decision: Decision | str, reward: Any, *, replace: bool) -> Outcome:
        value, history = check_reward(reward, self._proposer.rewards), self.history
        id = decision.id if isinstance(decision, Decision) else decision
        chosen = history.chosen(id)
        if isinstance(decision, Decision) and chosen not in (None, decision.arm):
            raise ValueError(
                f"decision must be one that this policy took, its {id!r} chose {chosen!r}, not {decision.arm}"
            )
        if history.status(id) == "rewarded":
            if not replace:
                return "duplicate"
            self._log.append([Corrected(id, value)])
            return "corrected"
        self._log.append([Rewarded(id, value)])
        return "learned"

    @contextmanager
    def _drawing(self, rng: Any) -> Iterator[Generator]:
        """Yield the generator to draw from; put it back to where it was if anything fails."""
        rng = self._rng if rng is None else rng
        if not isinstance(rng, Generator):
            raise TypeError(
                f"rng must be a numpy.random.Generator, got {rng!r}; numpy.random.default_rng(0) is one"
            )
        before = rng.bit_generator.state
        try:
            yield rng
        except BaseException:
            rng.bit_generator.state = before
            raise


_POLICIES: weakref.WeakSet[Policy] = weakref.WeakSet()


def _after_fork() -> None:
    """Make policies usable in a child process: the thread that held a lock is not there."""
    for policy in list(_POLICIES):
        policy._lock = threading.RLock()
        policy._log.reset()
        policy._current.reset()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
