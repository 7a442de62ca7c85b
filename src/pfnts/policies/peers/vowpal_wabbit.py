"""Vowpal Wabbit's contextual bandits."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from pfnts.arrays import Mask, Matrix, Vector
from pfnts.contexts import Schema
from pfnts.events import ActionSet, History, Label
from pfnts.policies.model import Model, Shape, Values
from pfnts.policies.peers.base import imported
from pfnts.policies.policy import Policy
from pfnts.policies.rules import AsPredicted
from pfnts.policies.traffic import NO_WARMUP, Traffic

_OPTIONS = (
    "--epsilon", "--first", "--bag", "--greedify", "--cover", "--psi", "--nounif", "--softmax", "--lambda",
    "--squarecb", "--gamma_scale", "--gamma_exponent", "--elim", "--regcb", "--regcbopt", "--mellowness",
    "--cb_min_cost", "--cb_max_cost", "--first_only", "--cb_type", "-q", "--quadratic", "--cubic",
    "--interactions", "-l", "--learning_rate", "--power_t", "--l1", "--l2", "--noconstant", "--coin",
)  # fmt: skip
"""Those that say how to explore and learn; others write files, and arguments may come from anybody's file."""


class VowpalWabbit(Policy):
    """Vowpal Wabbit with action-dependent features: one weight for every feature and arm.

    Vowpal Wabbit says how likely each arm shall be, and weighs a reward by how likely its decision was; a row
    without a decision counts once.

    Parameters
    ----------
    arms
        Number of arms, or their labels.
    arguments
        Options in its own words, behind ``--cb_explore_adf -q ca``, where ``c`` are the features of a context
        and ``a`` is the arm: ``--squarecb``, ``--bag 5``, ``--cubic cca`` for products of two features.
    traffic, schema, seed
        See `Policy`.

    Examples
    --------
    >>> policy = VowpalWabbit(arms=["a", "b"], arguments="--epsilon 0.2")
    >>> outcomes = policy.update([[1.0]] * 5, arm=["a", "b", "b", "b", "a"], reward=[0, 9, 9, 9, 0])
    >>> policy.decide([1.0]).propensities.round(6)
    array([0.1, 0.9])
    """

    name = "vw"

    def __init__(
        self,
        arms: int | Sequence[Label],
        *,
        arguments: str = "",
        traffic: Traffic = NO_WARMUP,
        schema: Schema | Mapping[str, Any] | None = None,
        seed: int | None = None,
    ) -> None:
        arguments = str(arguments)
        strange = [word for word in arguments.split() if word.startswith("-") and word not in _OPTIONS]
        if strange:
            raise ValueError(f"arguments must be among {' '.join(_OPTIONS)}, got {strange[0]!r}")
        model = VowpalWabbitModel(imported("vowpalwabbit", policy=self.name), arguments)
        model.fresh(Shape(1, 2, 2))  # a mistake in the arguments shows here
        super().__init__(
            arms,
            model=model,
            rule=AsPredicted(),
            traffic=traffic,
            schema=schema,
            settings={"arguments": arguments},
            seed=seed,
        )


class VowpalWabbitModel(Model):
    """A workspace of Vowpal Wabbit."""

    def __init__(self, module: Any, arguments: str, *, workspace: Any = None) -> None:
        self._module, self._arguments, self._workspace = module, arguments, workspace

    def fresh(self, shape: Shape) -> VowpalWabbitModel:  # noqa: ARG002
        """Return a model without rows."""
        try:
            made = self._module.Workspace(f"--quiet --cb_explore_adf -q ca {self._arguments}")
        except RuntimeError as error:
            raise ValueError(
                f"arguments must be options of Vowpal Wabbit, got {self._arguments!r}: {error}"
            ) from error
        return VowpalWabbitModel(self._module, self._arguments, workspace=made)

    def observe(self, history: History, start: int, end: int) -> None:
        """Learn rows, each with the propensity of its arm."""
        live, new = history.live, slice(start, end)
        columns = (column[new].tolist() for column in (history.arms, history.rewards, history.shares))
        for x, arm, reward, share in zip(history.contexts[new], *columns, strict=True):
            others = live if arm in live else (*live, arm)
            # It minimises costs.
            self._workspace.learn(_example(x, others, label=(arm, f"0:{-reward!r}:{share!r} ")))

    def predict(self, X: Matrix, arms: ActionSet, eligible: Mask | None) -> Values:
        """Return the probability of each eligible arm, (q, K)."""
        masks = np.ones((len(X), len(arms)), dtype=np.bool_) if eligible is None else eligible
        shares = np.zeros(masks.shape)
        for i, (x, mask) in enumerate(zip(X, masks, strict=True)):
            shares[i, mask] = self._workspace.predict(_example(x, np.array(arms.numbers)[mask].tolist()))
        return Values(shares, np.ones(len(arms)))

    def make_room(self, n_arms: int) -> bool:  # noqa: ARG002
        """Whether there is room: always, an arm is a feature like any other."""
        return True


def _example(x: Vector, arms: Sequence[int], *, label: tuple[int | None, str] = (None, "")) -> list[str]:
    """A round in its text format: the context, then a line for each arm; missing values are left out."""
    features = " ".join(f"x{j}:{value!r}" for j, value in enumerate(x.tolist()) if not math.isnan(value))
    chosen, written = label
    return [f"shared |c {features}", *(f"{written if arm == chosen else ''}|a arm{arm}" for arm in arms)]
