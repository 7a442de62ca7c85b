"""# Mobile health: a message in the evening, or none

With this example you can see what a policy would bring to an app that sends people a message every evening,
and how far it gets from the averages of a trial to a choice for each person.

Drink Less is an app for people who drink more than they would like. In a trial every person got no message
(probability 0.4), the standard message (0.3) or one of a new bank of messages (0.3), each evening for a
month; the reward is 1 if the app was opened in the hour after. The simulator draws people like those of the
trial: heavier drinkers take to the new messages, lighter ones to the standard message, habits differ, and
interest wears off. Nobody tells the policies.

The figure has ten evenings of 349 people: the trial's own design, PFN-TS, a policy without contexts, which
finds the best message for everybody, and somebody who knows what is best for each person. Most of the gain
over the trial comes from always sending something. What is left for contexts to add is small, and four of
five messages are not opened, so ten evenings teach little about who prefers which.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from pfnts import PFNTS, simulate
from pfnts.environments import make
from pfnts.environments.drinkless import ARMS, PROPENSITIES
from pfnts.policies import make as make_policy

SCORES = (13, 18, 23)
LABELS = ("below 13", "13 to 17", "18 to 22", "23 and more")


def main(out: Path, *, rounds: int = 3_490, backbone: str = "embedded") -> dict[str, float]:
    """Play some evenings of 349 people (ten of them unless told otherwise), and draw what came of them."""
    world = make("drinkless-sim", horizon=rounds, rng=1)
    policies = {
        "PFN-TS": PFNTS(arms=ARMS, backbone=backbone),
        "without contexts": make_policy("ts", arms=ARMS),
    }
    # What each evening was worth: the probability that the app is opened under the message that was sent.
    worth = {"trial": world.means @ np.array(PROPENSITIES)}
    sent = {}
    for name, policy in policies.items():
        played = simulate(policy, world, rng=np.random.default_rng(2))
        sent[name] = played.arms
        worth[name] = world.means[np.arange(rounds), played.arms]
    worth["best for each person"] = world.means.max(axis=1)

    figure = Figure(figsize=(9, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    evenings = np.arange(1, rounds + 1) / 349
    for name, values in worth.items():
        left.plot(evenings, np.cumsum(values - worth["trial"]), label=name)
    left.set(xlabel="evenings", ylabel="more openings than in the trial", title="Evenings of 349 people")
    left.legend(frameon=False)

    # Which message PFN-TS sent in the last half of the evenings, by how much people drink.
    late = np.arange(rounds) >= rounds // 2
    groups = np.digitize(18 + 6.4 * world.contexts[:, 0], SCORES)
    bottom = np.zeros(len(SCORES) + 1)
    for arm, name in enumerate(ARMS):
        shares = np.array([(sent["PFN-TS"][late & (groups == g)] == arm).mean() for g in range(len(bottom))])
        right.bar(LABELS, shares, bottom=bottom, label=name)
        bottom += shares
    best = world.means.argmax(axis=1)
    ideal = [(best[late & (groups == g)] == ARMS.index("new")).mean() for g in range(len(bottom))]
    right.plot(LABELS, 1 - np.array(ideal), "k_", markersize=40, label="best: new above, standard below")
    right.set(
        xlabel="AUDIT score (how much a person drinks)", ylabel="share of evenings", title="What was sent"
    )
    right.legend(
        loc="upper center",
        bbox_to_anchor=(0.5, -0.22),
        ncols=4,
        frameon=False,
        fontsize="small",
        markerscale=0.3,
    )
    figure.savefig(out / "mobile_health.png", dpi=110)

    openings = {name: float(values.sum()) for name, values in worth.items()}
    for name, expected in openings.items():
        print(f"{name:22s} {expected:7.1f} openings expected in {rounds:,} evenings")
    return openings


if __name__ == "__main__":
    main(Path(__file__).parent)
