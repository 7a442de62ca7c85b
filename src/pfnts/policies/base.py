"""What every policy shares: one way to decide, to learn, and to be saved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from pfnts.contexts import Schema, plain
from pfnts.contexts.schema import Rows
from pfnts.contexts.values import shown
from pfnts.events import ArmAdded, ArmRemoved, Label, Rewarded
from pfnts.policies.arguments import (
    Arms,
    check_arms,
    check_features,
    check_label,
    check_reward,
    listed,
)
from pfnts.policies.deciding import Decider
from pfnts.policies.decision import Decision
from pfnts.policies.explaining import explanation
from pfnts.policies.explanation import Explanation
from pfnts.policies.importing import Columns, imported_rows
from pfnts.policies.observing import observed
from pfnts.policies.prefetch import PrefetchCache
from pfnts.policies.traffic import NO_WARMUP, Traffic
from pfnts.posterior import AnyPosterior

Outcome = Literal["learned", "duplicate"]


class Policy(Decider):
    """Carries the behaviour that policies share; a subclass implements hooks on floats and arm numbers.

    A policy is its log (`EventFold`): `decide` and `update` append events and change nothing else, and an
    error leaves it as it was. It may be shared by threads; one call is served at a time.

    A subclass implements `_reset`, `_observe`, and `_posterior` or `_choose`; other hooks if it needs them.

    Parameters
    ----------
    arms
        Number of arms, labelled 0, 1, ..., or their labels (strings or integers). Where the policy judges
        arms by features: labels to features, or None if every decision brings its own candidates.
    traffic
        Warm-up, and shares of the rounds that are not left to the policy's own rule.
    schema
        What the columns of a context are; inferred from the first context when not given.
    arm_schema
        What the columns of the arms' features are; inferred from the first ones when not given.

    Examples
    --------
    >>> from pfnts.policies import Uniform
    >>> policy = Uniform(arms=["none", "standard"])
    >>> decision = policy.decide([0.5, 1.0], rng=np.random.default_rng(0))
    >>> decision.arm, decision.propensities
    ('none', array([0.5, 0.5]))
    >>> policy.update(decision, reward=1.0)
    'learned'
    """

    def __init__(
        self,
        arms: Arms,
        *,
        traffic: Traffic = NO_WARMUP,
        schema: Schema | Mapping[str, Any] | None = None,
        arm_schema: Schema | None = None,
    ) -> None:
        labels = check_arms(arms)
        super().__init__(
            labels,
            None if schema is None else Schema.of(schema),
            traffic=traffic.for_arms(labels),
            features=check_features(arms, taken=self.judges_features, policy=type(self).__name__),
            arm_schema=arm_schema,
        )
        self._rule_alone = not self._traffic.divided

    @property
    def n_arms(self) -> int:
        """Number of arms K."""
        return len(self._fold().live)

    @property
    def traffic(self) -> Traffic:
        """Warm-up, and shares of the rounds that are not left to the policy's own rule."""
        return self._traffic

    @property
    def schema(self) -> Schema | None:
        """What the columns of a context are, once known."""
        return self._fold().schema

    @property
    def arm_schema(self) -> Schema | None:
        """What the columns of the arms' features are, once known."""
        return self._fold().arm_schema

    def __repr__(self) -> str:
        history = self._fold()
        name, events = type(self).__name__, len(self._events)
        return f"{name}(arms={list(self.arms)}, {events} events, {history.size} rewards)"

    def update(
        self, context: Any, *, reward: Any, arm: Any = None, features: Any = None
    ) -> Outcome | list[Outcome]:
        """Learn a reward; late and in any order is fine.

        Parameters
        ----------
        context
            A decision, or its id; or, for a row without a decision, its context (or a batch of contexts).
        reward
            What it paid: a finite number, or a list of them for a batch.
        arm
            Label of the arm pulled, or a list of labels for a batch; only for rows without a decision.
        features
            Those of the candidate chosen, in the place of ``arm``; a list or table of them for a batch.

        Returns
        -------
        "learned", or "duplicate" for a decision that has its reward already: the first one counts. The id of
        a decision that this policy never took is a ValueError. A reward of a decision whose arm was removed
        since is learned: other arms may share its model.
        """
        with self._lock:
            if isinstance(context, Decision | str) and arm is None and features is None:
                return self._reward(context, reward)
            rows = Rows.of(context, self._fold().schema)
            if features is None:
                labels = [self._label(one) for one in ([arm] if rows.single else listed("arm", arm))]
                events = observed(rows, labels, reward, self._rewards)
            elif arm is None:
                chosen = self._actions([features] if rows.single else features)
                events = observed(rows, chosen, reward, self._rewards)
            else:
                raise ValueError(
                    f"arm and features must not both be given, got {arm!r} and {shown(features)}"
                )
            self._events += events
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
        """Learn the rounds of a log that somebody else has kept: all of them, or none if a row is wrong.

        It is the same as updating row by row; the events of the log say that they are imported.

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
            events = imported_rows(log, roles, self._fold(), label=self._label, rewards=self._rewards)
            self._events += events  # all or none: a list is extended in one step
            return len(events)

    def posterior(self, contexts: Any, *, candidates: Any = None) -> AnyPosterior:
        """Posterior of the mean rewards, arrays (K,) for one context and (n, K) for a batch.

        It is of all arms, or of all ``candidates`` where these are given. A TypeError where there is none.
        """
        with self._lock:
            rows = Rows.of(contexts, self._fold().schema)
            posterior = self._posterior_at(rows.X, candidates)
            return posterior[0] if rows.single else posterior

    def explain(self, context: Any, *, rows: int = 5, level: float = 0.9) -> Explanation:
        """Give the reasons of a decision at a context: posteriors, similar rows, the columns that matter.

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
            history = self._fold()
            given = Rows.of(context, history.schema, single=True)
            return explanation(
                given,
                self._posterior_at,
                history,
                self._events,
                costs=self._costs(self._actions(None)),
                rows=rows,
                level=level,
            )

    def prefetch(self, contexts: Any) -> None:
        """Announce contexts to come: what the model says about them is computed in batches.

        Decisions are the same with and without it. The announcement replaces the one before.
        """
        with self._lock:
            self._prefetched = PrefetchCache(Rows.of(contexts, self._fold().schema).X)

    def add_arm(self, arm: Label, features: Any = None) -> None:
        """Add an arm at the end; it begins with its warm-up, even if its label belonged to a removed arm.

        Parameters
        ----------
        arm
            Its label.
        features
            What is known of it, where arms have features; it is judged by them from the first round on.
        """
        with self._lock:
            self._rewards.costs([arm])  # where arms have costs, its own must be among them
            known = None if features is None else plain(features)
            self.append([ArmAdded(check_label(arm), known)])

    def remove_arm(self, arm: Label) -> None:
        """Take an arm out of the choice; what it taught a model shared by all arms stays there."""
        with self._lock:
            self.append([ArmRemoved(self._label(arm))])

    def _reward(self, decision: Decision | str, reward: Any) -> Outcome:
        value = check_reward(reward, self._rewards)
        id = decision.id if isinstance(decision, Decision) else decision
        status, chosen = self._fold().status(id), self._fold().chosen(id)
        if isinstance(decision, Decision) and chosen not in (None, decision.arm):
            raise ValueError(
                f"decision must be one that this policy took, its {id!r} chose {chosen!r}, not {decision.arm}"
            )
        if status == "unknown":
            raise ValueError(
                f"decision must be one that this policy took, it has none with the id {id!r}; "
                "for a row without a decision pass context, arm= and reward="
            )
        if status == "rewarded":
            return "duplicate"
        self._events.append(Rewarded(id, value))
        return "learned"

    def _label(self, arm: Any) -> Label:
        """Check that an arm is there now."""
        label: Label = arm.item() if isinstance(arm, np.generic) else arm
        history = self._fold()
        known = isinstance(label, str | int) and not isinstance(label, bool) and label in history.numbers
        if not known or history.numbers[label] not in history.live:
            removed = ", which was removed" if known else ""
            raise ValueError(f"arm must be one of {list(self.arms)}, got {arm!r}{removed}")
        return label
