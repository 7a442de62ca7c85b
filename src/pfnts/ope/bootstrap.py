"""Uncertainty from people: resample them, let the policy learn again, look how far the value moves."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator, SeedSequence
from numpy.typing import NDArray
from scipy.stats import t as student

from pfnts.ope.log import Log


@dataclass(frozen=True)
class Bootstrap:
    """A number computed from a log, and from resampled logs.

    Examples
    --------
    >>> spread = Bootstrap(0.5, np.array([0.4, 0.5, 0.6]))
    >>> round(spread.standard_error, 3), [round(end, 2) for end in spread.interval(0.95)]
    (0.1, [0.07, 0.93])
    """

    value: float
    """From the log itself."""
    replicates: NDArray[np.float64]
    """(B,) from resampled logs."""

    @classmethod
    def of(cls, values: Iterable[float]) -> Bootstrap:
        """Take the value of the log itself, then those of resampled logs but for NaN: it is no replicate."""
        own, *others = values
        found = np.array(others, dtype=np.float64)
        return cls(float(own), found[~np.isnan(found)])

    @property
    def standard_error(self) -> float:
        """Standard deviation of the replicates; NaN below two of them."""
        return float(self.replicates.std(ddof=1)) if len(self.replicates) > 1 else float("nan")

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Value plus and minus Student's quantile times the standard error.

        Percentiles of thirty replicates would be their smallest and largest. Also, a policy that learns from
        a resampled log meets copies of people it knows, which moves the replicates up; their spread is what
        this interval takes from them, and not their centre.
        """
        if not 0 < level < 1:
            raise ValueError(f"level must be between 0 and 1, got {level}")
        reach = float(student.ppf((1 + level) / 2, max(len(self.replicates) - 1, 1))) * self.standard_error
        return self.value - reach, self.value + reach


def cluster_bootstrap(
    log: Log, statistic: Callable[[Log, Generator], float], *, replicates: int = 30, rng: Generator
) -> Bootstrap:
    """Compute a number from the log and from logs whose people were drawn with replacement.

    Parameters
    ----------
    log
        What was done.
    statistic
        Takes a log and a generator; to account for learning it makes a fresh policy, replays the log with it
        and estimates its value.
    replicates
        Number of resampled logs B.
    rng
        Where the people and the generators come from.

    Examples
    --------
    >>> log = Log(
    ...     contexts=np.zeros((40, 1)), features=("x",), arms=(0, 1), actions=np.arange(40) % 2,
    ...     rewards=np.arange(40) % 4 / 1.0, propensities=np.full(40, 0.5), clusters=np.arange(40) // 2,
    ... )
    >>> spread = cluster_bootstrap(log, lambda log, rng: log.rewards.mean(), rng=np.random.default_rng(0))
    >>> spread.value, 0.1 < spread.standard_error < 0.4
    (1.5, True)
    """
    if replicates < 2:
        raise ValueError(f"replicates must be at least 2, got {replicates}")
    own, *others = rng.spawn(replicates + 1)
    pairs = (child.spawn(2) for child in others)
    resampled = [statistic(log.resampled(rng=for_people), for_policy) for for_people, for_policy in pairs]
    return Bootstrap(float(statistic(log, own)), np.array(resampled, dtype=np.float64))


def replicate(log: Log, number: int, *, seed: int) -> Log:
    """The log itself, number 0, or a resampled one; the same for every policy."""
    if number == 0:
        return log
    return log.resampled(rng=np.random.default_rng(SeedSequence(seed, spawn_key=(0, number))))


def policy_rng(number: int, *, seed: int) -> Generator:
    """Generator of every policy on the log of that number."""
    return np.random.default_rng(SeedSequence(seed, spawn_key=(1, number)))
