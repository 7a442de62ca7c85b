"""Bias and coverage of the estimators on drinkless-sim: 200 trials of 349 people and 30 days, B = 30.

SNIPS and DR of a fixed stochastic policy against its true value, known exactly; `--trials` for fewer.
"""

from __future__ import annotations

import argparse

import numpy as np

from pfnts.environments.drinkless import expected_value
from pfnts.ope import Bootstrap, dr, ips, simulated_drinkless, snips


def policy(contexts: np.ndarray) -> np.ndarray:
    """New messages for heavier drinkers, standard ones for lighter, fewer of either late."""
    new = 1 / (1 + np.exp(-contexts[:, 0]))
    none = 0.1 + 0.1 * (contexts[:, -1] > 0)
    return np.column_stack([none, (1 - none) * (1 - new), (1 - none) * new])


ESTIMATORS = {"ips": ips, "snips": snips, "dr": dr}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--replicates", type=int, default=30)
    parser.add_argument("--seed", type=int, default=42)
    options = parser.parse_args()
    truth = expected_value(policy)
    found: dict[str, list[tuple[float, bool, bool]]] = {name: [] for name in ESTIMATORS}
    for child in np.random.default_rng(options.seed).spawn(options.trials):
        for_log, *for_replicates = child.spawn(1 + options.replicates)
        log = simulated_drinkless(rng=for_log)
        # The resampled logs are the same for all estimators.
        resampled = [log.resampled(rng=rng) for rng in for_replicates]
        for name, estimator in ESTIMATORS.items():
            own = estimator(log, policy(log.contexts))
            spread = Bootstrap(
                own.value, np.array([estimator(one, policy(one.contexts)).value for one in resampled])
            )
            covered = [low <= truth <= high for low, high in (spread.interval(), own.interval())]
            found[name].append((own.value, *covered))
    print(f"true value {truth:.6f}, {options.trials} trials, B = {options.replicates}")
    print("| estimator | mean | bias in standard errors | bootstrap covers | sandwich covers |")
    print("|---|---|---|---|---|")
    for name, rows in found.items():
        value, bootstrap, sandwich = np.array(rows, dtype=float).T
        error = value.std(ddof=1) / np.sqrt(len(value))
        print(
            f"| {name} | {value.mean():.6f} | {(value.mean() - truth) / error:+.2f} | {bootstrap.mean():.3f} "
            f"| {sandwich.mean():.3f} |"
        )


if __name__ == "__main__":
    main()
