"""Vowpal Wabbit's contextual bandits."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pfnts.contexts import Schema
from pfnts.events import Decided, Label, Observed, Rewarded
from pfnts.policies.base import Policy
from pfnts.policies.decision import Choices, Mask, Matrix, Vector
from pfnts.policies.peers.base import imported
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
    traffic, schema
        See `Policy`.

    Examples
    --------
    >>> policy = VowpalWabbit(arms=["a", "b"], arguments="--epsilon 0.2")
    >>> outcomes = policy.update([[1.0]] * 5, arm=["a", "b", "b", "b", "a"], reward=[0, 9, 9, 9, 0])
    >>> policy.decide([1.0], rng=np.random.default_rng(0)).propensities.round(6)
    array([0.1, 0.9])
    """

    name = "vw"
    rule = "explore"

    def __init__(
        self,
        arms: int | Sequence[Label],
        *,
        arguments: str = "",
        traffic: Traffic = NO_WARMUP,
        schema: Schema | Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(arms, traffic=traffic, schema=schema)
        strange = [word for word in str(arguments).split() if word.startswith("-") and word not in _OPTIONS]
        if strange:
            raise ValueError(f"arguments must be among {' '.join(_OPTIONS)}, got {strange[0]!r}")
        self._arguments = str(arguments)
        self._module = imported("vowpalwabbit", policy=self.name)
        self._workspace()  # a mistake in the arguments shows here

    def _reset(self, width: int, n_arms: int) -> None:  # noqa: ARG002
        self._vw = self._workspace()
        self._read = 0
        self._likely: dict[str, float] = {}

    def _grow(self, n_arms: int) -> bool:  # noqa: ARG002
        return True  # an arm is a feature like any other

    def _observe(self, X: Matrix, arms: NDArray[np.int64], rewards: Vector) -> None:
        live = self._fold().live
        for x, arm, reward, share in zip(X, arms.tolist(), rewards.tolist(), self._shares(), strict=True):
            others = live if arm in live else (*live, arm)
            # It minimises costs.
            self._vw.learn(_example(x, others, label=(arm, f"0:{-reward!r}:{share!r} ")))

    def _shares(self) -> list[float]:
        """How likely the arm of each new row was when it was chosen."""
        shares = []
        for event in self._events[self._read :]:
            match event:
                case Decided():
                    self._likely[event.id] = event.propensities[event.arm]
                case Rewarded():
                    shares.append(self._likely.pop(event.id))
                case Observed():
                    shares.append(1.0)
        self._read = len(self._events)
        return shares

    def _choose(self, X: Matrix, arms: Sequence[int], eligible: Mask, uniforms: Matrix) -> Choices:
        shares = np.zeros(eligible.shape)
        for i, (x, mask) in enumerate(zip(X, eligible, strict=True)):
            shares[i, mask] = self._vw.predict(_example(x, np.array(arms)[mask].tolist()))
        shares /= shares.sum(axis=1, keepdims=True)
        below = shares.cumsum(axis=1) <= uniforms[:, :1]
        # Rounding may leave the sum a little below a number drawn: the last arm that may be taken, then.
        last = eligible.shape[1] - 1 - (shares[:, ::-1] > 0).argmax(axis=1)
        return Choices(np.minimum(below.sum(axis=1), last), shares)

    def _settings(self) -> dict[str, Any]:
        return {"arguments": self._arguments}

    def _workspace(self) -> Any:
        try:
            return self._module.Workspace(f"--quiet --cb_explore_adf -q ca {self._arguments}")
        except RuntimeError as error:
            raise ValueError(
                f"arguments must be options of Vowpal Wabbit, got {self._arguments!r}: {error}"
            ) from error


def _example(x: Vector, arms: Sequence[int], *, label: tuple[int | None, str] = (None, "")) -> list[str]:
    """A round in its text format: the context, then a line for each arm; missing values are left out."""
    features = " ".join(f"x{j}:{value!r}" for j, value in enumerate(x.tolist()) if not math.isnan(value))
    chosen, written = label
    return [f"shared |c {features}", *(f"{written if arm == chosen else ''}|a arm{arm}" for arm in arms)]
