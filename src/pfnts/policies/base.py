"""What every policy shares: labels, contexts, validation, the round-robin warm-up, one decision or many."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, overload

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from pfnts.encodings.contexts import read
from pfnts.encodings.schema import Schema

if TYPE_CHECKING:
    from pfnts.posterior import GaussianPosterior, StudentPosterior

Label: TypeAlias = str | int
Matrix = NDArray[np.float64]
Vector = NDArray[np.float64]
Mask = NDArray[np.bool_]
AnyPosterior: TypeAlias = "GaussianPosterior | StudentPosterior"


@dataclass(frozen=True)
class Decision:
    """The arm chosen at one context, and how likely each arm was."""

    arm: Label
    """Label of the chosen arm."""
    index: int
    """Its position in `Policy.arms`."""
    propensities: Vector
    """(K,) probability of every arm, in the order of `Policy.arms`; exact unless its policy says not."""
    posterior: AnyPosterior | None = None
    """Posterior of the (K,) mean rewards at the context; None during warm-up and where a policy has none."""


@dataclass(frozen=True)
class Choice:
    """What a subclass answers for one context: a decision without its label."""

    index: int
    propensities: Vector
    posterior: AnyPosterior | None = None


class Policy(ABC):
    """Carries the behaviour that policies share; a subclass implements hooks on floats and indices.

    A subclass implements `_choose` and `_observe`, and `_start` if it needs the width of a context
    before the first of them. Every argument has been validated before a hook sees it, and nothing of the
    policy has changed yet, so a hook that raises before it changes anything leaves the policy as it was.

    Parameters
    ----------
    arms
        Number of arms, labelled 0, 1, ..., or their labels (strings or integers).
    warmup
        Rewards to see from each arm before the policy's own rule decides. Among the eligible arms still
        short of it, the one with the fewest decisions, rewarded or not, is pulled: a round robin.
    explore
        Share of the rounds in which any eligible arm is drawn, each alike, warm-up included: no propensity of
        an eligible arm is below ``explore`` over their number, as trials and later evaluations need it.
    schema
        What the columns of a context are; inferred from the first contexts when not given.

    Examples
    --------
    >>> from pfnts.policies import Uniform
    >>> policy = Uniform(arms=["none", "standard"])
    >>> decision = policy.decide([0.5, 1.0], rng=np.random.default_rng(0))
    >>> decision.arm, decision.propensities
    ('standard', array([0.5, 0.5]))
    >>> policy.update([0.5, 1.0], arm=decision.arm, reward=1.0)
    """

    def __init__(
        self,
        arms: int | Sequence[Label],
        *,
        warmup: int = 0,
        explore: float = 0.0,
        schema: Schema | Mapping[str, Any] | None = None,
    ) -> None:
        if warmup != int(warmup) or warmup < 0:
            raise ValueError(f"warmup must be a non-negative integer, got {warmup!r}")
        if not 0 <= explore <= 1:
            raise ValueError(f"explore must be between 0 and 1, a share of the rounds, got {explore}")
        self._arms = _labels(arms)
        self._warmup = int(warmup)
        self._explore = float(explore)
        self._schema = schema if isinstance(schema, Schema) or schema is None else Schema.of(schema)
        self._started = False
        self._warming = True
        self._reset_counts(np.zeros((2, len(self._arms)), dtype=np.int64))

    @property
    def arms(self) -> tuple[Label, ...]:
        """Labels of the arms, in the order of `Decision.propensities`."""
        return self._arms

    @property
    def n_arms(self) -> int:
        """Number of arms K."""
        return len(self._arms)

    @property
    def warmup(self) -> int:
        """Rewards to see from each arm before the policy's own rule decides."""
        return self._warmup

    @property
    def explore(self) -> float:
        """Share of the rounds in which any eligible arm is drawn, each alike."""
        return self._explore

    @property
    def schema(self) -> Schema | None:
        """What the columns of a context are, once known."""
        return self._schema

    @overload
    def decide(
        self, context: Mapping[str, Any], *, rng: Generator, eligible: ArrayLike | None = None
    ) -> Decision: ...

    @overload
    def decide(self, context: Any, *, rng: Generator, eligible: ArrayLike | None = None) -> Any: ...

    def decide(self, context: Any, *, rng: Generator, eligible: ArrayLike | None = None) -> Any:
        """Choose an arm for one context, or a list of decisions for a batch.

        Parameters
        ----------
        context
            A numpy row, mapping or pandas row; or a batch: a matrix, a frame, a list of mappings.
        rng
            Source of the draws.
        eligible
            Mask (K,) of the arms that may be chosen, or (n, K) for a batch; all of them when not given.
        """
        if not isinstance(rng, Generator):
            raise TypeError(
                f"rng must be a numpy.random.Generator, got {rng!r}; numpy.random.default_rng(0) is one"
            )
        X, schema, single = self._encode(context)
        masks = self._eligible(eligible, len(X))
        if not len(X):
            return []
        warming = masks & (self._observed < self._warmup) if self._warming else None
        cold = warming.any(axis=1) if warming is not None else None
        self._commit(schema)
        if self._explore:
            if not single:
                self.prefetch(context)
            decisions = self._exploring(X, masks, rng=rng)
        elif warming is None or cold is None or not cold.any():
            decisions = [self._decision(choice) for choice in self._choose(X, masks, rng=rng)]
        else:
            # The rule goes first: should it fail, the warm-up has not counted anything yet.
            rule = iter(self._choose(X[~cold], masks[~cold], rng=rng) if not cold.all() else [])
            planned = self._pending.copy()
            decisions = []
            for i in range(len(X)):
                choice = self._round_robin(warming[i], planned) if cold[i] else next(rule)
                planned[choice.index] += 1
                decisions.append(self._decision(choice))
        for decision in decisions:
            self._pending[decision.index] += 1
        return decisions[0] if single else decisions

    def update(self, context: Any, *, arm: Any, reward: Any) -> None:
        """Learn from the reward of an arm; late and in any order is fine.

        Parameters
        ----------
        context
            The context of the decision, or a batch of them.
        arm
            Label of the arm pulled, or a list of labels for a batch.
        reward
            What it paid: a finite number, or a list of them for a batch.
        """
        X, schema, single = self._encode(context)
        labels, values = ([arm], [reward]) if single else (_listed("arm", arm), _listed("reward", reward))
        if not len(labels) == len(values) == len(X):
            raise ValueError(
                f"context, arm and reward must have one length, got {len(X)}, {len(labels)} and {len(values)}"
            )
        indices = np.array([self._index(label) for label in labels], dtype=np.int64)
        rewards = np.array([_reward(value) for value in values], dtype=np.float64)
        self._commit(schema)
        if len(X):
            self._observe(X, indices, rewards)
        for index in indices:
            self._observed[index] += 1
            self._pending[index] = max(self._pending[index] - 1, 0)
        if self._warming:
            self._warming = bool((self._observed < self._warmup).any())

    def prefetch(self, contexts: Any) -> None:  # noqa: B027 (a hint that a policy is free to ignore)
        """Announce contexts to come, so that their posteriors may be computed in one batch."""

    @abstractmethod
    def _choose(self, X: Matrix, eligible: Mask, *, rng: Generator) -> Sequence[Choice]:
        """Choose an arm at each row of ``X`` (q, P) among ``eligible`` (q, K), drawing row by row.

        Warm-up is over for every eligible arm of every row.
        """

    @abstractmethod
    def _observe(self, X: Matrix, arms: NDArray[np.int64], rewards: Vector) -> None:
        """Learn from rows ``X`` (n, P), arm indices (n,) and rewards (n,), in this order."""

    def _start(self, width: int) -> None:  # noqa: B027 (most policies need no preparation)
        """Prepare for contexts of ``width`` floats; called once, before the first other hook."""

    def _encode(self, context: Any) -> tuple[Matrix, Schema, bool]:
        """Encode contexts without changing anything: the floats, the schema to keep, row or batch."""
        schema = self._schema
        if schema is not None and schema.plain and isinstance(context, np.ndarray):
            return schema.encode(context), schema, context.ndim == 1
        table = read(context)
        schema = Schema.infer(table) if schema is None else schema.extended(table)
        return schema.encode(table), schema, table.single

    def _commit(self, schema: Schema) -> None:
        self._schema = schema
        if not self._started:
            self._start(schema.width)
            self._started = True

    def _eligible(self, eligible: ArrayLike | None, n: int) -> Mask:
        """Validate the mask and spread it over the rows, as (n, K)."""
        if eligible is None:
            return np.ones((n, self.n_arms), dtype=np.bool_)
        mask = np.asarray(eligible)
        if mask.dtype != np.bool_ or mask.shape not in ((self.n_arms,), (n, self.n_arms)):
            raise ValueError(
                f"eligible must be a boolean mask over the {self.n_arms} arms {list(self._arms)}, "
                f"got {eligible!r}"
            )
        if not mask.any(axis=-1).all():
            raise ValueError(f"eligible must leave at least one arm to choose, got {eligible!r}")
        return np.broadcast_to(mask, (n, self.n_arms))

    def _index(self, arm: Any) -> int:
        label = arm.item() if isinstance(arm, np.generic) else arm
        index = self._positions.get(label) if isinstance(label, str | int) else None
        if index is None:
            raise ValueError(f"arm must be one of {list(self._arms)}, got {arm!r}{self._absent(arm)}")
        return index

    def _absent(self, arm: Any) -> str:  # noqa: ARG002 (for policies that remember arms they no longer have)
        """Say more about a label that is no arm."""
        return ""

    def _round_robin(self, warming: Mask, pending: NDArray[np.int64]) -> Choice:
        candidates = np.flatnonzero(warming)
        index = int(candidates[np.argmin((self._observed + pending)[candidates])])
        return Choice(index, np.eye(self.n_arms)[index])

    def _exploring(self, X: Matrix, masks: Mask, *, rng: Generator) -> list[Decision]:
        """Decide row by row, so that a batch draws what single decisions would have drawn."""
        planned = self._pending.copy()
        decisions = []
        for row, mask in zip(X, masks, strict=True):
            warming = mask & (self._observed < self._warmup)
            if warming.any():
                choice = self._round_robin(warming, planned)
            else:
                (choice,) = self._choose(row[None], mask[None], rng=rng)
            choice = mixed(choice, mask, self._explore, rng=rng)
            planned[choice.index] += 1
            decisions.append(self._decision(choice))
        return decisions

    def _decision(self, choice: Choice) -> Decision:
        return Decision(self._arms[choice.index], choice.index, choice.propensities, choice.posterior)

    def _reset_counts(self, counts: NDArray[np.int64]) -> None:
        """Take (2, K) observed and pending counts, for the arms as they are now."""
        self._positions = {label: k for k, label in enumerate(self._arms)}
        self._observed, self._pending = counts
        self._warming = bool((self._observed < self._warmup).any())


def mixed(choice: Choice, eligible: Mask, share: float, *, rng: Generator) -> Choice:
    """Keep the choice with probability 1 - ``share``, else draw any arm of ``eligible`` (K,), each alike."""
    arms = np.flatnonzero(eligible)
    # Both numbers are drawn in every round: what is drawn later does not depend on how this one ended.
    whether, which = rng.random(2)
    index = int(arms[int(which * len(arms))]) if whether < share else choice.index
    propensities = (1 - share) * choice.propensities + share * eligible / len(arms)
    return Choice(index, propensities, choice.posterior)


def _labels(arms: int | Sequence[Label]) -> tuple[Label, ...]:
    if isinstance(arms, int | np.integer) and not isinstance(arms, bool):
        if arms < 1:
            raise ValueError(f"arms must be at least 1, got {arms}")
        return tuple(range(int(arms)))
    if isinstance(arms, str) or not isinstance(arms, Sequence | np.ndarray) or not len(arms):
        raise ValueError(f"arms must be a number of arms or a non-empty list of labels, got {arms!r}")
    return check_labels(tuple(label.item() if isinstance(label, np.generic) else label for label in arms))


def check_labels(labels: tuple[Label, ...]) -> tuple[Label, ...]:
    """Check that labels are distinct strings or integers, which survive a save file."""
    for label in labels:
        if not isinstance(label, str | int) or isinstance(label, bool):
            raise ValueError(f"arms must be labelled by strings or integers, got {label!r}")
    if len(set(labels)) != len(labels):
        raise ValueError(f"arms must have distinct labels, got {list(labels)}")
    return labels


def _listed(name: str, values: Any) -> list[Any]:
    if isinstance(values, str) or not hasattr(values, "__iter__"):
        raise ValueError(f"{name} must be a list for a batch of contexts, got {values!r}")
    return list(values)


def _reward(value: Any) -> float:
    try:
        reward = float(value)
    except (TypeError, ValueError):
        reward = float("nan")
    if not np.isfinite(reward):
        raise ValueError(f"reward must be a finite number, got {value!r}")
    return reward
