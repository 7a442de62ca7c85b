"""Thompson sampling with the posterior of a prior-data fitted network."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from pfnts import backbones, layouts
from pfnts import posterior as estimators
from pfnts.backbones import Backbone
from pfnts.contexts import Schema
from pfnts.layouts import Change, Encoding
from pfnts.layouts.memory import MEMORY, Memory
from pfnts.layouts.schedule import FIRST_POSTERIOR
from pfnts.policies.arguments import Arms
from pfnts.policies.pfn_model import PFNModel
from pfnts.policies.policy import Policy
from pfnts.policies.rewards import REWARDS, Rewards
from pfnts.policies.rules import Thompson
from pfnts.policies.settings import check_kind
from pfnts.policies.traffic import TRAFFIC, Traffic
from pfnts.posterior import Estimator


class PFNTS(Policy):
    """Thompson sampling whose posterior is read off what a prediction model says about the history.

    Parameters
    ----------
    arms
        Number of arms, their labels, or a mapping of labels to features; None where every decision brings its
        own candidates.
    encoding
        "averaged" (layouts weighted by the evidence of their forecasts), "adaptive" (the paper's choice at
        switch times), "disjoint", "joint", "block", "threshold", "features"; a layout or a layout selector.
        The default is "features" where arms have features, otherwise "averaged".
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
    schema, seed
        See `Policy`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> policy = PFNTS(arms=["none", "standard"], backbone="linear")
    >>> for _ in range(30):
    ...     context = {"age": rng.uniform(20, 70), "weekend": bool(rng.integers(2))}
    ...     decision = policy.decide(context, rng=rng)
    ...     learned = policy.update(decision, reward=float(decision.arm == "standard") + 0.1 * rng.normal())
    >>> decision.arm, decision.propensities.round(3)
    ('standard', array([0., 1.]))
    """

    name = "pfn-ts"
    takes_features = True

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
        seed: int | None = None,
    ) -> None:
        check_kind("memory", memory, Memory)
        check_kind("traffic", traffic, Traffic)
        check_kind("rewards", rewards, Rewards)
        traffic = traffic.with_warmup(least=FIRST_POSTERIOR, why="the rewards a posterior needs")
        by_features = arms is None or isinstance(arms, Mapping)
        selector = layouts.selector(encoding or ("features" if by_features else "averaged"))
        network = backbones.load(backbone)
        self._estimator = chosen_estimator(estimator, network)
        self._exploration = chosen_exploration(exploration, self._estimator, network)
        model = PFNModel(
            selector,
            backbone=network,
            estimator=self._estimator,
            memory=memory,
            warmup=traffic.warmup,
            cost=rewards.cost,
        )
        features = model.by_features
        if features is not None and not by_features and not features.identity:
            raise ValueError(
                "arms must be a mapping of labels to features where these are all that tells arms apart, "
                f"got {arms!r}; or choose encoding=Features(identity=True)"
            )
        super().__init__(
            arms,
            model=model,
            rule=Thompson(self._exploration, mixture=selector.averages),
            traffic=traffic,
            rewards=rewards,
            schema=schema,
            arm_schema=None if features is None else features.schema,
            settings={
                "encoding": layouts.described(selector),
                "backbone": backbone if backbone in backbones.names() else None,
                "fingerprint": network.fingerprint,
                "estimator": estimators.described(self._estimator),
                "exploration": self._exploration,
                **asdict(memory),
                **rewards.to_dict(),
            },
            seed=seed,
        )

    @staticmethod
    def as_in_paper(arms: Arms, **options: Any) -> PaperPFNTS:
        """Return the paper's Algorithm 2 to the letter; options are those of `PFNTS`.

        SubCLT with base 2, posteriors refreshed at its grid, layouts compared at the switch times, draws from
        the posterior as it is, and no detector of changes.

        Examples
        --------
        >>> policy = PFNTS.as_in_paper(["none", "standard"], backbone="linear")
        >>> policy.estimator, policy.exploration
        (SubCLT(base=2.0, weights='equal'), 1.0)
        """
        return PaperPFNTS(arms, **options)

    @property
    def layout(self) -> str:
        """Name of the layout that answers now; "adaptive" and "threshold" change it."""
        with self._lock:
            model = self._learned()
            return model.first_layout(len(self.history.labels)) if model.is_blank else model.layout

    @property
    def changes(self) -> tuple[Change, ...]:
        """Changes that the detector noticed, in order; they follow from the log like everything else."""
        with self._lock:
            model = self._learned()
            return () if model.is_blank else model.changes

    @property
    def estimator(self) -> Estimator:
        """How the posterior is made."""
        return self._estimator

    @property
    def exploration(self) -> float:
        """Factor on the posterior's standard deviations when an arm is drawn."""
        return self._exploration

    def _learned(self) -> PFNModel:
        """Return the model, which has learned the whole log; a blank one before the first context."""
        history = self.history
        model = (
            self._current.blank if history.schema is None else self._current.at(history, history.schema.width)
        )
        assert isinstance(model, PFNModel)
        return model


_PAPER = Memory(refresh=2.0, detector=None)


class PaperPFNTS(PFNTS):
    """PFN-TS with the settings of the paper as defaults.

    Parameters
    ----------
    arms, encoding, backbone, estimator, exploration, memory, traffic, rewards, schema, seed
        See `PFNTS`.
    """

    name = "pfn-ts-paper"

    def __init__(
        self,
        arms: Arms,
        *,
        encoding: Encoding | None = "adaptive",
        backbone: str | Backbone = "embedded",
        estimator: str | Estimator | None = "subclt",
        exploration: float | None = 1.0,
        memory: Memory = _PAPER,
        traffic: Traffic = TRAFFIC,
        rewards: Rewards = REWARDS,
        schema: Schema | Mapping[str, Any] | None = None,
        seed: int | None = None,
    ) -> None:
        super().__init__(
            arms,
            encoding=encoding,
            backbone=backbone,
            estimator=estimator,
            exploration=exploration,
            memory=memory,
            traffic=traffic,
            rewards=rewards,
            schema=schema,
            seed=seed,
        )


def chosen_estimator(estimator: str | Estimator | None, backbone: Backbone) -> Estimator:
    """Return the estimator of that name, by default the learned posterior where the model has one."""
    if estimator is None:
        return default_estimator(backbone)
    found = estimators.load(estimator)
    if found.needs_mean_sd and not backbone.knows_mean_sd:
        raise ValueError(
            "estimator must not need the standard deviation of the mean, which the backbone "
            f'{backbone.name!r} does not know, got {estimator!r}; choose "shrunk" or "subclt"'
        )
    return found


def chosen_exploration(exploration: float | None, estimator: Estimator, backbone: Backbone) -> float:
    """Return the factor given, by default the one with the least regret."""
    found = default_exploration(estimator, backbone) if exploration is None else float(exploration)
    if not 0 <= found < np.inf:
        raise ValueError(f"exploration must be a finite number from 0 on, got {exploration}")
    return found


def default_estimator(backbone: Backbone) -> Estimator:
    """Return the learned posterior where the model has one, else SubCLT that never collapses."""
    return estimators.load("network" if backbone.knows_mean_sd else "shrunk")


def default_exploration(estimator: Estimator, backbone: Backbone) -> float:
    """Return the backbone's factor for its own posterior; posteriors of others are drawn from as they are."""
    return backbone.exploration if estimator.needs_mean_sd else 1.0
