"""Decisions: the model's prediction, the rule's choice, and the traffic that is not the rule's."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from pfnts.arrays import Mask, Matrix, Vector
from pfnts.events import ActionSet, History
from pfnts.policies.budget import BudgetPrice, arm_costs, within_budget
from pfnts.policies.decision import Choices, Reason
from pfnts.policies.model import Answer, Model, Shortlisted, Values, values_of
from pfnts.policies.rewards import Rewards
from pfnts.policies.rules import Rule
from pfnts.policies.shares import UNIFORMS, settle
from pfnts.policies.traffic import Traffic
from pfnts.policies.untried import bounded
from pfnts.posterior import AnyPosterior, MixturePosterior


@dataclass(frozen=True)
class Proposer:
    """Chooses arms by a model and a rule; nothing changes.

    Parameters
    ----------
    rule
        Chooses among warm arms.
    traffic
        Warm-up, and shares of the decisions that are not the rule's.
    rewards
        Range, costs and budget.
    price
        Price of a unit of the budget.
    """

    rule: Rule
    traffic: Traffic
    rewards: Rewards
    price: BudgetPrice

    def n_uniforms(self, arms: ActionSet) -> int:
        """Return how many uniform numbers a decision takes."""
        return UNIFORMS + self.rule.n_uniforms(len(arms.numbers))

    def propose(
        self, model: Model, history: History, X: Matrix, arms: ActionSet, eligible: Mask, uniforms: Matrix
    ) -> tuple[Choices, list[Reason]]:
        """Choose at each row of ``X`` (q, P), as if each was the next, with ``uniforms`` (q, n)."""
        if self.rewards.budget is not None:
            eligible = within_budget(self.rewards, history, arms, eligible)
        cold = self.cold(model, history, arms)
        warm = eligible if not cold.any() else eligible & ~cold
        # At a row without a warm arm the rule does not decide; any mask will do.
        masks = np.where(warm.any(axis=1, keepdims=True), warm, ~cold)

        def choose() -> Choices:
            answer = self.answer(model, history, X, arms, masks)
            costs = None if self.rewards.cost is None else self.costs(model, history, arms)
            return self.rule(answer, masks, uniforms[:, UNIFORMS:], costs)

        return settle(
            choose,
            eligible,
            uniforms,
            reason=self.rule.reason,
            cold=cold,
            ahead=history.waiting(arms.numbers) if cold.any() else np.zeros(len(cold), dtype=np.int64),
            traffic=self.traffic,
            arms=arms.labels if arms.candidates is None else [None] * len(arms),
        )

    def answer(
        self, model: Model, history: History, X: Matrix, arms: ActionSet, eligible: Mask | None
    ) -> Answer:
        """Predict at ``X`` (q, P); a posterior stays within the range of the rewards."""
        answer = model.predict(X, arms, eligible)
        if self.rewards.range is None or isinstance(answer, Values):
            return answer
        if isinstance(answer, Shortlisted):
            return replace(answer, posterior=bounded(answer.posterior, X, arms, history, self.rewards.range))
        if isinstance(answer, MixturePosterior):
            limits = self.rewards.range
            parts = [bounded(part, X, arms, history, limits) for part in answer.components]
            return MixturePosterior(parts, answer.weights)
        return bounded(answer, X, arms, history, self.rewards.range)

    def posterior(self, model: Model, history: History, X: Matrix, arms: ActionSet) -> AnyPosterior | None:
        """Return the posterior (q, K) of all arms; None where the model has none."""
        answer = self.answer(model, history, X, arms, None)
        return None if isinstance(answer, Values | Shortlisted) else answer

    def cold(self, model: Model, history: History, arms: ActionSet) -> Mask:
        """Return which arms the rule may not choose yet, (K,)."""
        return np.asarray(model.held(history, arms) < self.traffic.warmup)

    def costs(self, model: Model, history: History, arms: ActionSet) -> Vector | None:
        """Return what is deducted from each arm's mean reward (K,) before arms are compared."""
        if self.rewards.cost is None:
            return None
        costs = arm_costs(self.rewards, arms)
        if self.rewards.budget is None:
            return costs

        def means_at(X: Matrix) -> Matrix:
            answer = model.predict(X, arms, np.ones((len(X), len(arms)), dtype=np.bool_))
            if isinstance(answer, Shortlisted):
                raise ValueError(
                    f"budget must be for no more arms than a shortlist has, got {len(arms)} arms; choose a "
                    "longer one: encoding=Features(shortlist=...)"
                )
            return values_of(answer)

        rate = self.price.of(costs, history, version=model.version(history, arms), means_at=means_at)
        return np.asarray((1 + rate) * costs)
