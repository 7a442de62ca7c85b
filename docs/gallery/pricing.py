"""# Pricing: arms with features

With this example you can price by describing each price to the policy, so that what one price teaches helps
its neighbours, and a price that was never asked can be judged.

Twelve prices, and buyers whose urgency is known. A buyer accepts with a probability that falls with the
price; the reward is the margin if they do, and 0 if they do not. One shop treats prices as twelve labels that
have nothing in common, the other gives each arm its price as a feature. In the middle of the run both may ask
a thirteenth price.

The labels need some fifty buyers to try every price, and that is where most of the difference is lost. The
thirteenth price, 20, is judged by its neighbours from the moment it is added.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from pfnts import PFNTS

PRICES = np.array([6.0, 8.0, 10.0, 12.0, 14.0, 16.0, 18.0, 22.0, 24.0, 26.0, 28.0, 30.0])
NEW = 20.0
COST = 3.0


def margin(urgency: float, price: np.ndarray) -> np.ndarray:
    """Mean margin of a price: urgent buyers pay more."""
    accepts = 1 / (1 + np.exp((price - 9 - 14 * urgency) / 1.5))
    return np.asarray((price - COST) * accepts)


def play(policy: PFNTS, *, described: bool, rounds: int) -> np.ndarray:
    """What was lost so far against the best price for each buyer."""
    for_buyers, for_policy = np.random.default_rng(6).spawn(2)
    lost = []
    for number in range(rounds):
        if number == rounds // 2:
            policy.add_arm(f"{NEW:.0f}", *([{"price": NEW}] if described else []))
        urgency = float(for_buyers.uniform())
        decision = policy.decide({"urgency": urgency}, rng=for_policy)
        prices = np.array([float(arm) for arm in policy.arms])
        means = margin(urgency, prices)
        bought = for_buyers.uniform() * (prices[decision.index] - COST) < means[decision.index]
        policy.update(decision, reward=float(bought) * (prices[decision.index] - COST))
        lost.append(means.max() - means[decision.index])
    return np.cumsum(lost)


def main(out: Path, *, rounds: int = 300, backbone: str = "embedded") -> dict[str, float]:
    """Let the same buyers come to both shops, and draw what was lost and what was learned."""
    labels = [f"{price:.0f}" for price in PRICES]
    described = {label: {"price": price} for label, price in zip(labels, PRICES, strict=True)}
    shops = {
        "prices as features": PFNTS(arms=described, backbone=backbone),
        "prices as labels": PFNTS(arms=labels, backbone=backbone),
    }
    curves = {
        name: play(policy, described=name == "prices as features", rounds=rounds)
        for name, policy in shops.items()
    }
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    for name, curve in curves.items():
        left.plot(np.arange(1, rounds + 1), curve, label=name)
    left.axvline(rounds // 2, color="0.6", linestyle=":", label=f"price {NEW:.0f} is added")
    left.set(xlabel="buyers", ylabel="margin lost so far", title="Prices have neighbours")
    left.legend(frameon=False)
    grid = np.linspace(5, 31, 200)
    policy = shops["prices as features"]
    prices = np.array([float(arm) for arm in policy.arms])
    order = np.argsort(prices)
    for urgency, colour in ((0.2, "#D55E00"), (0.8, "#0072B2")):
        posterior = policy.posterior({"urgency": urgency})
        low, high = posterior.interval(0.95)
        right.plot(grid, margin(urgency, grid), color=colour, linestyle=":")
        right.plot(prices[order], posterior.mean[order], "o-", color=colour, label=f"urgency {urgency}")
        right.fill_between(prices[order], low[order], high[order], color=colour, alpha=0.15, linewidth=0)
    right.set(xlabel="price", ylabel="mean margin", title="What was learned (dotted: the truth)")
    right.legend(frameon=False)
    figure.savefig(out / "pricing.png", dpi=110)
    lost = {name: float(curve[-1]) for name, curve in curves.items()}
    for name, amount in lost.items():
        print(f"{name:20s} lost {amount:7.1f} of margin with {rounds:,} buyers")
    return lost


if __name__ == "__main__":
    main(Path(__file__).parent)
