"""Thompson sampling with the posterior of a prior-data fitted network."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Literal, Self

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from pfnts import backbones, encodings
from pfnts.backbones import Backbone
from pfnts.encodings import EncodingSettings, History, Schema, VarianceEstimator
from pfnts.encodings.base import Encoding
from pfnts.encodings.schedule import FIRST_POSTERIOR, Schedule
from pfnts.policies import rules
from pfnts.policies.archive import read_archive, write_archive
from pfnts.policies.base import (
    AnyPosterior,
    Choice,
    Label,
    Mask,
    Matrix,
    Policy,
    Vector,
    check_labels,
)
from pfnts.policies.lookahead import Beliefs, Inquiry, Lookahead, believe
from pfnts.policies.variance import described, estimator, from_description

Rule = Literal["thompson", "greedy", "predictive"]
Coupling = Literal["marginal", "joint"]


class PFNTS(Policy):
    """Thompson sampling whose posterior is read off the predictive means along prefixes of the history.

    Parameters
    ----------
    arms
        Number of arms, or their labels.
    encoding
        "adaptive", "disjoint", "joint", "block", "threshold", or settings such as ``Threshold(limit=64)``.
    rule
        "thompson" draws mean rewards, "predictive" draws rewards (PFN-PS), "greedy" takes the largest mean.
    base
        Ratio of the prefix grid; smaller has more blocks and costs more.
    refresh
        How much an arm's history grows before its posterior is refreshed. The paper refreshes at the points
        of the grid, as does ``refresh=base``, which suits backbones that must read a history anew each time.
    warmup
        Rewards of each arm to see first, at least 3.
    explore
        Share of the rounds in which any eligible arm is drawn, each alike; warm-up included.
    coupling
        "marginal" draws arms independently; "joint" lets arms that share a sequence share their draws.
    variance
        "shrunk" (never collapses), "subclt" (the paper), or an estimator.
    backbone
        Name or object of the prediction model.
    device
        Where a backbone given by name runs.
    schema
        What the columns of a context are; inferred from the first contexts when not given.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> policy = PFNTS(arms=["none", "standard"], backbone="linear")
    >>> for _ in range(30):
    ...     context = {"age": rng.uniform(20, 70), "weekend": bool(rng.integers(2))}
    ...     decision = policy.decide(context, rng=rng)
    ...     reward = float(decision.arm == "standard") + 0.1 * rng.normal()
    ...     policy.update(context, arm=decision.arm, reward=reward)
    >>> decision.arm, decision.propensities.round(3)
    ('standard', array([0., 1.]))
    """

    name = "pfn-ts"

    def __init__(
        self,
        arms: int | Sequence[Label],
        *,
        encoding: str | EncodingSettings = "adaptive",
        rule: Rule = "thompson",
        base: float = 2.0,
        refresh: float = 1.5,
        warmup: int = 5,
        explore: float = 0.0,
        coupling: Coupling = "marginal",
        variance: str | VarianceEstimator = "shrunk",
        backbone: str | Backbone = "embedded",
        device: str = "cpu",
        schema: Schema | Mapping[str, Any] | None = None,
    ) -> None:
        if warmup < FIRST_POSTERIOR:
            raise ValueError(
                f"warmup must be at least {FIRST_POSTERIOR}, the rewards a posterior needs, got {warmup}"
            )
        if rule not in ("thompson", "greedy", "predictive"):
            raise ValueError(f'rule must be "thompson", "greedy" or "predictive", got {rule!r}')
        if coupling not in ("marginal", "joint"):
            raise ValueError(f'coupling must be "marginal" or "joint", got {coupling!r}')
        super().__init__(arms, warmup=warmup, explore=explore, schema=schema)
        self._rule: Rule = rule
        self._coupling: Coupling = coupling
        self._schedule = Schedule(base=base, refresh=refresh)
        self._variance = estimator(variance, base=base)
        self._settings = encodings.settings(encoding)
        # Of one of the user's own a file keeps no name: loading a policy imports no code of others.
        self._named = isinstance(backbone, str) and backbone in backbones.names()
        self._backbone = _loaded(backbone, device)
        self._numbers = list(range(self.n_arms))
        self._n_ever = self.n_arms
        self._removed: list[Label] = []
        self._history: History | None = None
        self._lookahead: Lookahead | None = None
        self._encoding: Encoding = encodings.start(
            self._settings, backbone=self._backbone, schedule=self._schedule, n_arms=self.n_arms
        )
        self._forget()

    @property
    def layout(self) -> str:
        """Name of the layout that answers now; "adaptive" and "threshold" change it."""
        return self._encoding.layout

    def posterior(self, contexts: Any) -> AnyPosterior:
        """Posterior of the mean rewards, arrays (K,) for one context and (n, K) for a batch.

        It is the one that decisions are drawn from, as of the last refresh points; nothing changes.
        """
        if self._history is None or self._schema is None or self._history.size < FIRST_POSTERIOR:
            raise ValueError(f"posterior needs at least {FIRST_POSTERIOR} rewards, update the policy first")
        X, _, single = self._encode(contexts)
        posterior = believe(self._encoding, self._inquiry, X).posterior
        return posterior[0] if single else posterior

    def prefetch(self, contexts: Any) -> None:
        """Announce contexts to come: what is believed about them is computed in one batch per refresh.

        Decisions are the same with and without it. The announcement replaces the one before.
        """
        self._lookahead = Lookahead(self._encode(contexts)[0])

    def add_arm(self, arm: Label) -> None:
        """Add an arm at the end; it begins with its warm-up, even if its label belonged to a removed arm.

        Where arms share a sequence, its first rewards count from that sequence's next refresh point on.
        """
        self._arms = check_labels((*self._arms, arm))
        self._numbers.append(self._n_ever)
        self._n_ever += 1
        self._reset_counts(np.pad(np.stack([self._observed, self._pending]), ((0, 0), (0, 1))))
        self._forget()
        if self._history is not None:
            self._history.n_arms = self._n_ever
            self._encoding.rebuild(self._history)

    def remove_arm(self, arm: Label) -> None:
        """Take an arm out of the choice; what it taught a sequence shared by all arms stays there."""
        index = self._index(arm)
        if self.n_arms == 1:
            raise ValueError(f"arm must not be the only one left, got {arm!r}; add another first")
        self._removed.append(self._arms[index])
        self._arms = self._arms[:index] + self._arms[index + 1 :]
        del self._numbers[index]
        self._reset_counts(np.delete(np.stack([self._observed, self._pending]), index, axis=1))
        self._forget()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the policy to one file: arrays and JSON, nothing pickled."""
        history = self._history if self._history is not None else History(width=0, n_arms=self._n_ever)
        header = {
            "arms": list(self._arms),
            "numbers": self._numbers,
            "ever": self._n_ever,
            "removed": self._removed,
            "encoding": {"name": self._settings.name, "settings": asdict(self._settings)},
            "rule": self._rule,
            "base": self._schedule.base,
            "refresh": self._schedule.refresh,
            "warmup": self._warmup,
            "explore": self._explore,
            "coupling": self._coupling,
            "variance": described(self._variance),
            "backbone": {
                "name": self._backbone.name,
                "named": self._named,
                "fingerprint": getattr(self._backbone, "fingerprint", None),
            },
            "schema": None if self._schema is None else self._schema.to_json(),
            "state": self._encoding.state(),
        }
        arrays = {
            "contexts": history.contexts,
            "pulled": history.arms,
            "rewards": history.rewards,
            "counts": np.stack([self._observed, self._pending]),
        }
        write_archive(path, policy=self.name, header=header, arrays=arrays)

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        *,
        backbone: Backbone | str | None = None,
        variance: VarianceEstimator | None = None,
        device: str = "cpu",
    ) -> Self:
        """Read a policy back; it goes on to the decisions that the saved one would have taken.

        Parameters
        ----------
        path
            A file that `save` wrote.
        backbone
            Needed where the policy was made with a backbone of the user's own, object or dotted name.
        variance
            Needed where the policy was made with a variance estimator of the user's own.
        device
            Where a backbone known by name runs.
        """
        header, arrays = read_archive(path, policy=cls.name)
        if backbone is None and not header["backbone"]["named"]:
            raise ValueError(
                "backbone must be passed: the policy was saved with one of your own, "
                f"{header['backbone']['name']!r}"
            )
        try:
            policy = cls(
                header["arms"],
                encoding=encodings.settings(header["encoding"]["name"], **header["encoding"]["settings"]),
                rule=header["rule"],
                base=header["base"],
                refresh=header.get("refresh", header["base"]),
                warmup=header["warmup"],
                explore=header.get("explore", 0.0),
                coupling=header["coupling"],
                variance=from_description(header["variance"]) if variance is None else variance,
                backbone=header["backbone"]["name"] if backbone is None else backbone,
                device=device,
                schema=None if header["schema"] is None else Schema.from_json(header["schema"]),
            )
            policy._compare(header["backbone"].get("fingerprint"))
            policy._resume(header, arrays)
        except (KeyError, TypeError, IndexError, AttributeError) as error:
            raise ValueError(
                f"path must be an undamaged saved policy, {str(path)!r} is not: {error!r}"
            ) from error
        return policy

    def _compare(self, fingerprint: str | None) -> None:
        """Warn if the weights are not those with which the policy was saved."""
        here = getattr(self._backbone, "fingerprint", None)
        if here != fingerprint:
            warnings.warn(
                f"the backbone {self._backbone.name!r} has other weights ({here}) than when the policy was "
                f"saved ({fingerprint}): from the same history it will believe something else",
                stacklevel=3,
            )

    def _resume(self, header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
        """Take up the saved counts, history and state of the encoding."""
        contexts, pulled, rewards = arrays["contexts"], arrays["pulled"], arrays["rewards"]
        ever = int(header["ever"])
        if (
            not len(contexts) == len(pulled) == len(rewards)
            or arrays["counts"].shape != (2, self.n_arms)
            or len(header["numbers"]) != self.n_arms
            or not np.isfinite(rewards).all()
            or not np.isin(pulled, np.arange(ever)).all()
        ):
            raise ValueError("path must be an undamaged saved policy, its arrays do not fit together")
        self._numbers, self._n_ever = [int(number) for number in header["numbers"]], ever
        self._removed = list(header["removed"])
        self._forget()
        self._reset_counts(arrays["counts"].astype(np.int64))
        if self._schema is not None:
            self._commit(self._schema)
        if self._history is not None and len(rewards):
            self._history.append(contexts, pulled, rewards)
            self._encoding.restore(header["state"], self._history)

    def _start(self, width: int) -> None:
        self._started_history(width)

    def _started_history(self, width: int) -> History:
        self._history = History(width=width, n_arms=self._n_ever)
        return self._history

    def _forget(self) -> None:
        """Drop what was announced, and ask about the arms as they are now."""
        self._lookahead = None
        self._inquiry = Inquiry(
            arms=tuple(self._numbers),
            variance=self._variance,
            coupled=self._coupling == "joint",
            levels=rules.PREDICTIVE_LEVELS if self._rule == "predictive" else None,
        )

    def _observe(self, X: Matrix, arms: NDArray[np.int64], rewards: Vector) -> None:
        history = self._history if self._history is not None else self._started_history(X.shape[1])
        history.append(X, np.asarray(self._numbers)[arms], rewards)
        self._encoding.advance(history)

    def _choose(self, X: Matrix, eligible: Mask, *, rng: Generator) -> Sequence[Choice]:
        if len(X) > 1:
            beliefs = believe(self._encoding, self._inquiry, X)
            return [self._choice(beliefs, i, eligible[i], rng=rng) for i in range(len(X))]
        found = None
        if self._lookahead is not None:
            found = self._lookahead.find(X[0], self._encoding, self._inquiry)
        if found is None:
            found = believe(self._encoding, self._inquiry, X), 0
        return [self._choice(*found, eligible[0], rng=rng)]

    def _choice(self, beliefs: Beliefs, row: int, eligible: Mask, *, rng: Generator) -> Choice:
        posterior = beliefs.posterior[row]
        if self._rule == "greedy":
            index = rules.greedy(posterior.mean, eligible, rng=rng)
            return Choice(index, rules.greedy_propensities(posterior.mean, eligible), posterior)
        if beliefs.quantiles is not None:
            quantiles = beliefs.quantiles[:, row]
            index = rules.predictive(quantiles, eligible, rng=rng)
            return Choice(index, rules.predictive_propensities(quantiles, eligible), posterior)
        index = rules.thompson(posterior, eligible, rng=rng)
        if eligible.all():
            return Choice(index, beliefs.best_arm_probabilities(row), posterior)
        return Choice(index, posterior.best_arm_probabilities(eligible), posterior)

    def _absent(self, arm: Any) -> str:
        return ", which was removed" if arm in self._removed else ""


def _loaded(backbone: str | Backbone, device: str) -> Backbone:
    """Load a backbone; the default device is every backbone's own default, and some know no other."""
    if not isinstance(backbone, str) or device == "cpu":
        return backbones.load(backbone)
    try:
        return backbones.load(backbone, device=device)
    except TypeError as error:
        raise ValueError(f'device must be "cpu" for the backbone {backbone!r}, got {device!r}') from error
