"""One way to decide, for every policy: hooks on floats and arm numbers, and what surrounds them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from pfnts.contexts.schema import Rows
from pfnts.contexts.values import shown
from pfnts.events import ActionSet, Decided, Event, Label, Observed, Rewarded
from pfnts.events.event import Encoded, Shares
from pfnts.policies.arguments import check_id, check_reward
from pfnts.policies.budget import within_budget
from pfnts.policies.decision import Choices, Decision, Mask, Matrix, Reason, Vector
from pfnts.policies.fold import EventFold
from pfnts.policies.prefetch import PrefetchCache
from pfnts.policies.rewards import REWARDS, Rewards
from pfnts.policies.rules import thompson
from pfnts.policies.shares import UNIFORMS, settle
from pfnts.policies.traffic import Traffic
from pfnts.posterior import AnyPosterior
from pfnts.posterior.best_arm import check_eligible


class Decider(EventFold):
    """Takes decisions from what follows from its log; a subclass says which arm it would choose.

    `decide`, `decide_batch` and `play` append to the log; all else changes nothing but the generator.
    """

    name: ClassVar[str]
    rule: Reason = "thompson"
    """What the reason of a decision says when the policy's own rule took it."""
    judges_features: bool = False
    """Whether arms may have features, and decisions their own candidates."""

    _prefetched: PrefetchCache[Any] | None = None
    _rewards: Rewards = REWARDS
    _rule_alone: bool
    """Whether, past warm-up, all decisions are the policy's own rule's."""

    @property
    def arms(self) -> tuple[Label, ...]:
        """Labels of the arms, in the order of `Decision.propensities`."""
        return self._fold().actions.labels

    # Hooks. X are encoded contexts (q, P); arms are numbers among all arms there have ever been.

    def _posterior(self, X: Matrix, arms: ActionSet) -> AnyPosterior:  # noqa: ARG002
        """Posterior (q, K) of the mean rewards of ``arms``; the model is up to date."""
        raise TypeError(f"policy must have a posterior, {type(self).__name__} has none; PFNTS has one")

    def _choose(self, X: Matrix, arms: ActionSet, eligible: Mask, uniforms: Matrix) -> Choices:
        """Choose at each row among ``eligible`` (q, K), the columns standing for ``arms``; all are warm.

        By default Thompson sampling: the largest draw from the posterior wins.
        """
        return thompson(self._posterior(X, arms), eligible, uniforms)

    def _n_uniforms(self, arms: ActionSet) -> int:
        """Uniform numbers that a choice takes: one for ties, and one for each arm if it draws from all."""
        return len(arms) + 1 if self.rule == "thompson" else 1

    def _costs(self, arms: ActionSet) -> Vector | None:  # noqa: ARG002
        """What is deducted from each arm's mean reward (K,) before arms are compared; None for nothing."""
        return None

    def _held(self, arms: Sequence[int]) -> NDArray[np.int64]:
        """Rows of each arm that its model holds."""
        return self._fold().rows_of(arms)

    def _cold(self, arms: ActionSet) -> Mask:
        """Arms whose model knows too little for the policy's own rule to choose them, (K,)."""
        return self._held(arms) < self._traffic.warmup

    def _traffic_among(self, arms: ActionSet) -> Traffic:  # noqa: ARG002
        """What decisions among these arms keep to beside the policy's own rule."""
        return self._traffic

    def _lasts(self, most: int) -> int:
        """Rows, ``most`` or fewer, after which the model's answers may change whatever the rows are."""
        return most

    def _unchanged(self, arms: NDArray[np.int64]) -> int:  # noqa: ARG002
        """Count how many rows of these arms (m,), in this order, leave the model's answers as they are."""
        return 0

    def _ahead(
        self,
        X: Matrix,
        versions: Mapping[Any, Hashable],
        ask: Callable[[list[Any], Matrix], Sequence[Any]],
        take: Callable[[Any, NDArray[np.int64]], Any] = lambda values, rows: values.take(rows),
        *,
        ahead: int = 256,
    ) -> dict[Any, Any]:
        """What models say at ``X``, by key, computed together with what is announced; see `PrefetchCache`."""
        if self._prefetched is None:
            return dict(zip(versions, ask(list(versions), X), strict=True))
        return self._prefetched.find(X, versions, ask, take, ahead=ahead)

    # One way to decide.

    def decide(
        self,
        context: Any,
        *,
        rng: Generator,
        eligible: ArrayLike | None = None,
        id: str | None = None,
        candidates: Any = None,
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
        candidates
            Features of what may be chosen this time instead of the policy's arms: a list of mappings or rows,
            or a table. The answer is a position among them.
        """
        with self._lock, restored_on_error(rng):
            [decision], [event] = self._decide(
                context, rng=rng, single=True, eligible=eligible, id=id, candidates=candidates
            )
            self._events.append(event)
            return decision

    def propose(self, context: Any, *, rng: Generator, **options: Any) -> tuple[Decision, Decided]:
        """Choose an arm as `decide` does, without writing it down: the decision, and the event for the log.

        For those who must store the event before they act on it; `append` it then.
        """
        with self._lock, restored_on_error(rng):
            [decision], [event] = self._decide(context, rng=rng, single=True, **options)
            return decision, event

    def decide_batch(
        self, contexts: Any, *, rng: Generator, eligible: ArrayLike | None = None
    ) -> list[Decision]:
        """Choose an arm for each of many contexts, as one call of `decide` after the other would.

        Parameters
        ----------
        contexts
            A numpy matrix, a frame, a list of mappings or rows.
        rng
            Source of the draws.
        eligible
            Mask (K,) of the arms that may be chosen, or (n, K).
        """
        with self._lock, restored_on_error(rng):
            if self._rewards.budget is not None:
                return self._decide_in_turn(contexts, eligible, rng=rng)
            decisions, events = self._decide(contexts, rng=rng, single=False, eligible=eligible)
            self._events += events  # all or none: a list is extended in one step
            return decisions

    def _decide(
        self,
        contexts: Any,
        *,
        rng: Generator,
        single: bool,
        eligible: ArrayLike | None = None,
        id: str | None = None,
        candidates: Any = None,
    ) -> tuple[list[Decision], list[Decided]]:
        """Choose at one context or at each of a batch; nothing but the generator changes."""
        history = self._fold()
        rows = contexts if isinstance(contexts, Rows) else Rows.of(contexts, history.schema, single=single)
        arms = history.actions if candidates is None and history.live else self._actions(candidates)
        every = np.ones((len(rows.X), len(arms.numbers)), dtype=np.bool_)
        masks = every if eligible is None else check_eligible(eligible, (len(rows.X), len(arms)))
        if id is not None:
            check_id(id, history)
        if not len(rows.X):
            return [], []
        choices, reasons = self._propose(rows.X, arms, masks, rng=rng)
        events = self._written(rows, arms, masks, choices, reasons, id=id)
        posterior, shortlist = choices.posterior, choices.shortlist
        decisions = [
            Decision(
                id=event.id,
                arm=event.arm,
                index=int(choices.index[i]),
                propensities=choices.propensities[i],
                reason=reasons[i],
                posterior=None if posterior is None or reasons[i] == "warmup" else posterior[i],
                arms=arms.labels,
                shortlist=None if shortlist is None else shortlist[i],
            )
            for i, event in enumerate(events)
        ]
        return decisions, events

    def _propose(
        self, X: Matrix, arms: ActionSet, eligible: Mask, *, rng: Generator
    ) -> tuple[Choices, list[Reason]]:
        """Choose at each row of ``X``, as if each was the next; nothing but the generator changes."""
        history = self._model(X.shape[1], arms.features.shape[1])
        if self._rewards.budget is not None:
            eligible = within_budget(self._rewards, history, arms, eligible)
        uniforms = rng.random((len(X), UNIFORMS + self._n_uniforms(arms)))
        cold = self._cold(arms)
        if self._rule_alone and not cold.any():
            return self._choose(X, arms, eligible, uniforms[:, UNIFORMS:]), [self.rule] * len(X)
        warm = eligible & ~cold
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
            ahead=history.waiting(arms) if cold.any() else np.zeros(len(arms), dtype=np.int64),
            traffic=self._traffic_among(arms),
            arms=arms.labels if arms.candidates is None else [None] * len(arms),
        )

    def _written(
        self,
        rows: Rows,
        arms: ActionSet,
        masks: Mask,
        choices: Choices,
        reasons: list[Reason],
        *,
        id: str | None = None,
    ) -> list[Decided]:
        """Write choices down as events."""
        brought, labels = arms.candidates, arms.labels
        ids = [id] if id is not None else self._fold().new_ids(len(rows.X))
        return [
            Decided(
                id=ids[i],
                context=rows.contexts[i],
                arm=labels[k],
                propensities=Shares(labels, choices.propensities[i].copy()),
                reason=reasons[i],
                eligible=None if masks[i].all() else tuple(np.array(labels, dtype=object)[masks[i]]),
                candidates=brought,
                encoded=Encoded(
                    rows.X[i], rows.schema, None if brought is None else arms.features[k], arms.arm_schema
                ),
            )
            for i, k in enumerate(choices.index[: len(rows.X)].tolist())
        ]

    def _decide_in_turn(self, contexts: Any, eligible: ArrayLike | None, *, rng: Generator) -> list[Decision]:
        """Decide at each of many contexts as the log stands then; all or none."""
        rows = Rows.of(contexts, self._fold().schema, single=False)
        masks = check_eligible(eligible, (len(rows.X), len(self.arms)))
        before, decisions = len(self._events), []
        try:
            for i in range(len(rows.X)):
                one = slice(i, i + 1)
                [decision], [event] = self._decide(rows.part(one), rng=rng, single=False, eligible=masks[one])
                self._events.append(event)
                decisions.append(decision)
        except BaseException:
            del self._events[before:]
            self._history = None  # it may have folded some of them
            raise
        return decisions

    def _actions(self, candidates: Any) -> ActionSet:
        """What a decision is among: the policy's arms, or candidates of its own."""
        history = self._fold()
        if candidates is None and not history.live:
            raise ValueError(
                "candidates must be given: the policy was made with arms=None and has no arms of its own"
            )
        if candidates is None:
            return history.actions
        if not history.has_features or not self.judges_features:
            raise ValueError(
                "candidates must be given to a policy that judges arms by features alone, such as "
                f"PFNTS(arms=None), got some for {type(self).__name__} with arms {shown(list(self.arms))}"
            )
        return history.candidates(candidates)

    def _posterior_at(self, X: Matrix, candidates: Any = None) -> AnyPosterior:
        """Posterior (q, K) at encoded contexts (q, P), the model brought up to date first."""
        arms = self._actions(candidates)
        self._model(X.shape[1], arms.features.shape[1])
        return self._posterior(X, arms)

    def play(
        self,
        contexts: Any,
        rewards: Matrix,
        *,
        rng: Generator,
        eligible: ArrayLike | None = None,
        only: NDArray[np.int64] | None = None,
    ) -> tuple[NDArray[np.int64], Matrix]:
        """Decide at contexts (m, P) in turn, learning each reward at once, for as long as the model lasts.

        As many rounds are decided together as come before the model's answers change, at least one; it is the
        same as deciding and updating round by round.

        Parameters
        ----------
        contexts
            Rounds to come: a matrix (m, P), or another batch that `decide_batch` takes.
        rewards
            What each arm would pay, (m, K).
        rng
            Source of the draws.
        eligible
            Mask (K,) of the arms that may be chosen, or (m, K); all of them when not given.
        only
            Index (m,) of the arm whose reward is known, as in a log: rounds in which another one was chosen
            leave no trace.

        Returns
        -------
        Index (r,) of the arms chosen in these rounds, and the propensities (r, K).
        """
        with self._lock, restored_on_error(rng):
            rows = Rows.of(contexts, self._fold().schema)
            arms = self._actions(None)
            masks = check_eligible(eligible, (len(rows.X), len(arms)))
            self._model(rows.X.shape[1])
            every = type(self)._unchanged is Decider._unchanged  # learns something from every row
            if self._cold(arms).any() or (only is None and (every or self._rewards.budget is not None)):
                rows = rows.part(slice(1))  # who is drawn next depends on what came of this one
            elif only is None:
                rows = rows.part(slice(self._lasts(len(rows.X))))
            masks = masks[: len(rows.X)]
            before = rng.bit_generator.state
            choices, reasons = self._propose(rows.X, arms, masks, rng=rng)
            chosen = choices.index
            learns = np.arange(len(chosen)) if only is None else np.flatnonzero(chosen == only[: len(chosen)])
            unchanged = self._unchanged(np.array(arms.numbers)[chosen[learns]])
            kept = int(learns[unchanged]) + 1 if unchanged < len(learns) else len(chosen)
            if kept < len(chosen):
                rng.bit_generator.state = before
                rng.random((kept, UNIFORMS + self._n_uniforms(arms)))
            events: list[Event] = []
            values = [check_reward(rewards[i, chosen[i]], self._rewards) for i in learns[learns < kept]]
            if only is None:
                made = self._written(rows.part(slice(kept)), arms, masks, choices, reasons)
                for event, value in zip(made, values, strict=True):
                    events += [event, Rewarded(event.id, value)]
            else:
                for i, value in zip(learns.tolist(), values, strict=False):
                    known = Encoded(rows.X[i], rows.schema)
                    events.append(Observed(rows.contexts[i], arms.labels[chosen[i]], value, encoded=known))
            self._events += events
            return chosen[:kept], choices.propensities[:kept]


@contextmanager
def restored_on_error(rng: Any) -> Iterator[None]:
    """Put a generator back to where it was if anything fails; anything but a generator is an error."""
    if not isinstance(rng, Generator):
        raise TypeError(
            f"rng must be a numpy.random.Generator, got {rng!r}; numpy.random.default_rng(0) is one"
        )
    before = rng.bit_generator.state
    try:
        yield
    except BaseException:
        rng.bit_generator.state = before
        raise
