"""Thompson sampling with the posterior of a prior-data fitted network."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from pfnts import arms as arm_models
from pfnts import backbones
from pfnts import posterior as estimators
from pfnts.arms import ArmModels, Change, Encoding
from pfnts.arms.memory import MEMORY, Memory
from pfnts.arms.models import Version
from pfnts.arms.schedule import FIRST_POSTERIOR
from pfnts.backbones import Backbone
from pfnts.contexts import Schema
from pfnts.events import ActionSet
from pfnts.policies.arguments import Arms
from pfnts.policies.base import Policy
from pfnts.policies.budget import BudgetPrice, arm_costs
from pfnts.policies.decision import Choices, Mask, Matrix, Reason, Vector
from pfnts.policies.prefetch import PrefetchCache
from pfnts.policies.rewards import REWARDS, Rewards
from pfnts.policies.rules import thompson
from pfnts.policies.traffic import TRAFFIC, Traffic
from pfnts.policies.unexplored import bounded
from pfnts.posterior import AnyPosterior, Estimator
from pfnts.posterior.estimator import join


class PFNTS(Policy):
    """Thompson sampling whose posterior is read off what a prediction model says about the history.

    Parameters
    ----------
    arms
        Number of arms, their labels, or a mapping of labels to features; None where every decision brings its
        own candidates.
    encoding
        "adaptive", "disjoint", "joint", "block", "threshold", "features"; a layout or a layout selector. The
        default is "features" where arms have features, otherwise "adaptive".
    backbone
        Name or object of the prediction model.
    estimator
        How the posterior is made: "network" (learned by the model; the default where it knows it), "shrunk"
        (SubCLT that never collapses), "subclt" (the paper), "predictive" (draws rewards: PFN-PS), with
        options as in "subclt(base=1.5)", or an estimator.
    exploration
        Factor on the posterior's standard deviations when an arm is drawn; 1 is Thompson sampling proper, 0
        takes the largest mean. The posterior that is reported is not scaled.
    memory
        How much an arm's history grows before its posterior is recomputed.
    traffic
        Warm-up, at least 3, and shares of the rounds that are not left to the policy's own rule.
    rewards
        What is known of rewards beforehand: their range, what arms cost, a budget.
    schema
        What the columns of a context are; inferred from the first context when not given.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> policy = PFNTS(arms=["none", "standard"], backbone="linear")
    >>> for _ in range(30):
    ...     context = {"age": rng.uniform(20, 70), "weekend": bool(rng.integers(2))}
    ...     decision = policy.decide(context, rng=rng)
    ...     learned = policy.update(decision, reward=float(decision.arm == "standard") + 0.1 * rng.normal())
    >>> decision.arm, decision.propensities.round(3)
    ('standard', array([0.001, 0.999]))
    """

    name = "pfn-ts"
    judges_features = True

    def __init__(
        self,
        arms: Arms,
        *,
        encoding: Encoding | None = None,
        backbone: str | Backbone = "embedded",
        estimator: str | Estimator | None = None,
        exploration: float | None = None,
        memory: Memory = MEMORY,
        traffic: Traffic = TRAFFIC,
        rewards: Rewards = REWARDS,
        schema: Schema | Mapping[str, Any] | None = None,
    ) -> None:
        traffic = traffic.with_warmup(least=FIRST_POSTERIOR, why="the rewards a posterior needs")
        by_features = arms is None or isinstance(arms, Mapping)
        if encoding is None:
            encoding = "features" if by_features else "adaptive"
        self._selector = arm_models.selector(encoding)
        first, *others = self._selector.candidates(0)
        self._features = None if others else first.by_features
        if self._features is not None and not by_features and not self._features.identity:
            raise ValueError(
                "arms must be a mapping of labels to features where these are all that tells arms apart, "
                f"got {arms!r}; or choose encoding=Features(identity=True)"
            )
        super().__init__(
            arms,
            traffic=traffic,
            schema=schema,
            arm_schema=None if self._features is None else self._features.schema,
        )
        self.judges_features = self._features is not None
        self._rule_alone = self._rule_alone and self._features is None  # a shortlist has its share of chance
        self._most_asked = np.inf if self._features is None else self._features.shortlist
        self._rewards, self._price = rewards, BudgetPrice(rewards)
        rewards.costs(self._first_arms)
        self._backbone = backbones.load(backbone)
        self._named = backbone if backbone in backbones.names() else None
        self._estimator = (
            default_estimator(self._backbone) if estimator is None else estimators.load(estimator)
        )
        if self._estimator.needs_mean_sd and not self._backbone.knows_mean_sd:
            raise ValueError(
                f"estimator must not need the standard deviation of the mean, which the backbone "
                f'{self._backbone.name!r} does not know, got {estimator!r}; choose "shrunk" or "subclt"'
            )
        self._exploration = (
            default_exploration(self._estimator, self._backbone)
            if exploration is None
            else float(exploration)
        )
        if not 0 <= self._exploration < np.inf:
            raise ValueError(f"exploration must be a finite number from 0 on, got {exploration}")
        self.rule: Reason = "thompson" if self._exploration else "greedy"
        self._memory = memory
        self._warm: list[Version] | None = None  # of which questions need not wait

    # The algorithm. Append: rewards join the sequences of their arms, which refresh as they grow.

    def _observe(self, X: Matrix, arms: NDArray[np.int64], rewards: Vector) -> None:  # noqa: ARG002
        self._models.advance(self._fold())

    # Ask, estimate, draw: one prediction, a posterior of each arm's mean reward, the largest draw wins.

    def _choose(self, X: Matrix, arms: ActionSet, eligible: Mask, uniforms: Matrix) -> Choices:
        costs = None if self._rewards.cost is None else self._costs(arms)
        shortlist = None
        if len(arms.numbers) > self._most_asked:
            scores = self._models.ridge_scores()
            shortlist = scores.shortlist(X, arms, eligible, size=int(self._most_asked), costs=costs)
        posterior = self._posterior(X, arms, shortlist)
        return thompson(
            posterior, eligible, uniforms, exploration=self._exploration, costs=costs, shortlist=shortlist
        )

    def _posterior(
        self,
        X: Matrix,
        arms: ActionSet,
        shortlist: NDArray[np.int64] | None = None,
        *,
        within_range: bool = True,
    ) -> AnyPosterior:
        """Posterior (q, K) of all arms, or (q, S) of those at the positions of a shortlist (q, S).

        One prediction, and what the estimator reads off it for each arm; where a range of the rewards is
        known, what it leaves open joins in.
        """
        if self._prefetched is None or shortlist is not None or arms.candidates is not None:
            columns = self._models.posteriors(X, arms, self._estimator, shortlist=shortlist)
        else:
            columns = announced_posteriors(self._prefetched, self._models, X, arms, self._estimator)
        posterior = join(columns)
        if self._rewards.range is None or not within_range:
            return posterior
        return bounded(posterior, X, arms, self._fold(), self._rewards.range)

    # What the base class wants to know.

    def _reset(self, width: int, n_arms: int) -> None:
        self._warm = None
        self._models = ArmModels(
            self._selector,
            backbone=self._backbone,
            memory=self._memory,
            warmup=self._traffic.warmup,
            n_arms=room_for(n_arms, len(self._first_arms)),
            width=width + self._shape[2],
        )

    def _grow(self, n_arms: int) -> bool:
        return room_for(n_arms, len(self._first_arms)) == self._models.n_arms

    def _take_over(self, other: Self) -> bool:
        models = other._models.fork(self._fold())
        if models is None:
            return False
        self._models, self._warm = models, other._warm
        return True

    def _traffic_among(self, arms: ActionSet) -> Traffic:
        if self._features is None or len(arms) <= self._most_asked:
            return self._traffic
        return replace(self._traffic, explore=max(self._traffic.explore, self._features.explore))

    def _n_uniforms(self, arms: ActionSet) -> int:
        return int(min(len(arms.numbers), self._most_asked)) + 1

    def _costs(self, arms: ActionSet) -> Vector | None:
        if self._rewards.cost is None:
            return None
        costs = arm_costs(self._rewards, arms)
        if self._rewards.budget is None:
            return costs
        if len(arms) > self._most_asked:
            raise ValueError(
                f"budget must be for no more arms than a shortlist has, got {len(arms)} arms; choose a "
                "longer one: encoding=Features(shortlist=...)"
            )
        rate = self._price.of(
            costs,
            self._fold(),
            version=tuple((arm, self._models.version(arm)) for arm in arms),
            means_at=lambda X: self._posterior(X, arms, within_range=False).mean,
        )
        return (1 + rate) * costs

    def _cold(self, arms: ActionSet) -> Mask:
        models, warmup = self._models, self._traffic.warmup
        if models.pooled_warmup is None:
            return np.array([models.warm_rows(arm) < warmup for arm in arms.numbers])
        return np.full(len(arms), models.answering[0].version < models.pooled_warmup)

    def _lasts(self, most: int) -> int:
        return self._models.lasting().rows(most)

    def _unchanged(self, arms: NDArray[np.int64]) -> int:
        # With a range, every row counts at once.
        return self._models.lasting().unchanged(arms) if self._rewards.range is None else 0

    # What can be asked of it.

    @property
    def layout(self) -> str:
        """Name of the layout that answers now; "adaptive" and "threshold" change it."""
        with self._lock:
            models = self._caught_up()
            if models is None:
                return self._selector.candidates(len(self._fold().labels))[0].name
            return models.layout.name

    @property
    def changes(self) -> tuple[Change, ...]:
        """What the detector has noticed, in order; it follows from the log like everything else."""
        with self._lock:
            models = self._caught_up()
            return () if models is None else tuple(models.changes)

    @property
    def estimator(self) -> Estimator:
        """How the posterior is made."""
        return self._estimator

    @property
    def exploration(self) -> float:
        """Factor on the posterior's standard deviations when an arm is drawn."""
        return self._exploration

    def catch_up(self) -> None:
        """Do now what the first decision would otherwise wait for: learn the log and fill the caches."""
        with self._lock:
            history = self._fold()
            models = self._caught_up()
            if models is None or history.size < FIRST_POSTERIOR or not history.live:
                return
            versions = [models.version(arm) for arm in history.live]
            if versions != self._warm:  # otherwise it was asked before
                self._posterior(history.contexts[-1:], history.actions)
            models.prepare()
            self._warm = versions

    def _caught_up(self) -> ArmModels | None:
        """The models, which have learned the whole log; None before the first context."""
        schema = self._fold().schema
        if schema is None:
            return None
        self._model(schema.width)
        return self._models

    # Its file.

    def _settings(self) -> dict[str, Any]:
        return {
            "encoding": arm_models.described(self._selector),
            "backbone": self._named,
            "fingerprint": self._backbone.fingerprint,
            "estimator": estimators.described(self._estimator),
            "exploration": self._exploration,
            **asdict(self._memory),
            **self._rewards.to_settings(),
        }

    @classmethod
    def _from_settings(cls, arms: Any, schema: Schema | None, settings: dict[str, Any]) -> Self:
        for name in ("encoding", "backbone", "estimator"):
            if settings[name] is None:
                raise ValueError(f"{name} must be passed to load: the policy was saved with one of your own")
        saved = settings.pop("fingerprint")
        if isinstance(settings["encoding"], dict):
            settings["encoding"] = arm_models.from_description(settings["encoding"])
        policy = cls(arms, schema=schema, **settings)
        if policy._backbone.fingerprint != saved:
            warnings.warn(
                f"the backbone {policy._backbone.name!r} has other weights ({policy._backbone.fingerprint}) "
                f"than when the policy was saved ({saved}): the same history will lead to other posteriors",
                stacklevel=3,
            )
        return policy


def default_estimator(backbone: Backbone) -> Estimator:
    """The learned posterior where the model has one, else SubCLT that never collapses."""
    return estimators.load("network" if backbone.knows_mean_sd else "shrunk")


def default_exploration(estimator: Estimator, backbone: Backbone) -> float:
    """What loses least: a backbone says it of its own posterior; all others are drawn from as they are."""
    return backbone.exploration if estimator.needs_mean_sd else 1.0


def announced_posteriors(
    cache: PrefetchCache[AnyPosterior], models: ArmModels, X: Matrix, arms: ActionSet, estimator: Estimator
) -> list[AnyPosterior]:
    """Posterior of each arm's mean reward at ``X`` (q, P), (q,), some computed ahead."""
    versions = {arm: models.version(arm) for arm in arms}
    places = {arm: place for place, arm in enumerate(arms)}

    def ask(stale: list[int], X: Matrix) -> list[AnyPosterior]:
        return models.posteriors(X, arms.take([places[arm] for arm in stale]), estimator)

    ahead = models.lasting().likely_rounds()
    found = cache.find(X, versions, ask, lambda column, rows: column.take(rows), ahead=ahead)
    return list(found.values())


def room_for(n_arms: int, first: int) -> int:
    """Arms that the sequences are made for: those there are, or after the first new one a power of two.

    Where the arm is among the columns, a new arm then seldom changes what rows look like.

    Examples
    --------
    >>> room_for(3, 3), room_for(4, 3), room_for(9, 3)
    (3, 8, 16)
    """
    return n_arms if n_arms == first else max(8, 1 << (n_arms - 1).bit_length())
