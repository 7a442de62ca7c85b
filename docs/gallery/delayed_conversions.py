"""# A shop whose orders come later

With this example you can handle rewards that arrive days after the decision, or never, and see what goes
wrong if only the good ones are reported.

A shop shows every visitor one of three offers. Whoever orders does so within a few days, and whoever does
not order sends no message about it. Three ways to deal with that:

- **window**: an order is reported when it comes, and a 0 when the window of three days is over without
  one.
- **orders only**: nothing is reported for those who never order. Then every reward the policy sees is an
  order, and every offer seems to work.
- **at once**: the outcome is known immediately, which is what a simulation would assume.
"""

from __future__ import annotations

import heapq
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from pfnts import PFNTS

OFFERS = ("none", "discount", "gift")
WINDOW = 3 * 40
"""Visitors that come while the shop waits for an order: forty a day."""


def visitors(count: int, rng: np.random.Generator) -> list[dict[str, float | bool | str]]:
    """Who comes to the shop."""
    return [
        {
            "returning": bool(rng.random() < 0.5),
            "basket": float(rng.uniform(10, 90)),
            "source": str(rng.choice(["search", "ad", "mail"])),
        }
        for _ in range(count)
    ]


def chance(visitor: dict[str, float | bool | str], offer: str) -> float:
    """Probability of an order: discounts win newcomers, gifts please regulars with full baskets."""
    full = (float(visitor["basket"]) - 10) / 80
    if visitor["returning"]:
        return {"none": 0.30, "discount": 0.25, "gift": 0.25 + 0.45 * full}[offer]
    return {"none": 0.10, "discount": 0.50 - 0.30 * full, "gift": 0.15}[offer]


def play(way: str, people: list[dict[str, float | bool | str]], *, backbone: str) -> np.ndarray:
    """What was lost so far against the best offer for each visitor, in expected orders."""
    for_policy, for_orders, for_delays = np.random.default_rng(7).spawn(3)
    policy = PFNTS(arms=OFFERS, backbone=backbone)
    coming: list[tuple[int, str, float]] = []
    lost = []
    for now, visitor in enumerate(people):
        decision = policy.decide(visitor, rng=for_policy)
        chances = [chance(visitor, offer) for offer in OFFERS]
        lost.append(max(chances) - chances[decision.index])
        ordered = bool(for_orders.random() < chances[decision.index])
        delay = int(for_delays.uniform(1, WINDOW))
        if way == "at once":
            policy.update(decision, reward=float(ordered))
        elif ordered:
            heapq.heappush(coming, (now + delay, decision.id, 1.0))
        elif way == "window":
            heapq.heappush(coming, (now + WINDOW, decision.id, 0.0))
        while coming and coming[0][0] <= now:
            _, decided, reward = heapq.heappop(coming)
            policy.update(decided, reward=reward)
    return np.cumsum(lost)


def main(out: Path, *, rounds: int = 900, backbone: str = "embedded") -> dict[str, float]:
    """Let the same visitors come to three shops, and draw what each lost."""
    people = visitors(rounds, np.random.default_rng(3))
    curves = {way: play(way, people, backbone=backbone) for way in ("at once", "window", "orders only")}
    figure = Figure(figsize=(6.4, 3.8), layout="constrained")
    axes = figure.subplots()
    for way, curve in curves.items():
        axes.plot(np.arange(1, rounds + 1), curve, label=way)
    axes.axvspan(0, WINDOW, color="0.92", label="no window is over yet")
    axes.set(
        xlabel="visitors", ylabel="orders lost so far", title="What is handed in decides what is learned"
    )
    axes.legend(frameon=False)
    figure.savefig(out / "delayed_conversions.png", dpi=110)
    lost = {way: float(curve[-1]) for way, curve in curves.items()}
    for way, orders in lost.items():
        print(f"{way:12s} lost {orders:6.1f} orders of {rounds:,} visitors")
    return lost


if __name__ == "__main__":
    main(Path(__file__).parent)
