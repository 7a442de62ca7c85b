"""Mean final regret as the PFN-TS paper prints it (its table for the synthetic benchmarks)."""

from __future__ import annotations

HORIZON = 10_000
"""Number of rounds behind every figure; each is a mean over five replications."""

_SCENARIOS = (
    "friedman",
    "friedman-heteroscedastic",
    "friedman-sparse",
    "friedman-sparse-disjoint",
    "friedman2",
    "friedman3",
    "linear",
    "synbart",
)

_ROWS: dict[str, tuple[float, ...]] = {
    "pfn-ts": (233.0, 243.2, 306.3, 568.6, 90.2, 136.4, 261.4, 51.2),
    "bf-ts": (680.3, 777.1, 835.5, 684.4, 367.1, 559.3, 570.4, 50.9),
    "lin-ts": (15690.6, 26214.7, 10427.3, 6529.8, 524.8, 5260.7, 66.9, 301.1),
    "lin-ucb": (26222.5, 26214.7, 23106.6, 7743.7, 682.1, 26304.4, 79.2, 274.0),
    "neural-ts": (5697.3, 20311.5, 9673.3, 1376.3, 148.2, 728.6, 520.7, 198.2),
    "rf-ts": (2504.5, 2562.1, 2688.8, 7579.2, 1058.4, 909.6, 781.7, 106.7),
    "xgboost-ts": (2354.4, 2432.1, 2694.1, 4962.3, 780.9, 1738.6, 704.9, 66.7),
}

REGRET: dict[str, dict[str, float]] = {
    policy: dict(zip(_SCENARIOS, values, strict=True)) for policy, values in _ROWS.items()
}
"""By policy, then by scenario."""
