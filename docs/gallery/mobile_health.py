"""# Mobile health: a message in the evening, or none

With this example you can see what a policy would bring to an app that sends people a message every evening,
and how far it gets from the averages of a trial to a choice for each person.

Drink Less is an app for people who drink more than they would like. In a trial every person got no message
(probability 0.4), the standard message (0.3) or one of a new bank of messages (0.3), each evening for a
month; the reward is 1 if the app was opened in the hour after. The simulator draws people like those of the
trial: heavier drinkers take to the new messages, lighter ones to the standard message, habits differ, and
interest wears off. Nobody tells the policies.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from pfnts import PFNTS, simulate
from pfnts.environments import make
from pfnts.environments.drinkless import ARMS, PROPENSITIES, mean_rewards
from pfnts.policies import make as make_policy

AUDIT = np.linspace(8, 35, 28)


def main(out: Path, *, rounds: int = 3_490, backbone: str = "embedded") -> dict[str, float]:
    """Play some evenings of 349 people (ten of them unless told otherwise), and draw what came of them."""
    world = make("drinkless-sim", horizon=rounds, rng=1)
    policies = {
        "PFN-TS": PFNTS(arms=ARMS, backbone=backbone),
        "without contexts": make_policy("ts", arms=ARMS),
    }
    # What each evening was worth: the probability that the app is opened under the message that was sent.
    worth = {"trial": world.means @ np.array(PROPENSITIES)}
    for name, policy in policies.items():
        played = simulate(policy, world, rng=np.random.default_rng(2))
        worth[name] = world.means[np.arange(rounds), played.arms]
    worth["best for each person"] = world.means.max(axis=1)

    figure = Figure(figsize=(9, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    evenings = np.arange(1, rounds + 1) / 349
    for name, values in worth.items():
        left.plot(evenings, np.cumsum(values - worth["trial"]), label=name)
    left.set(xlabel="evenings", ylabel="more openings than in the trial", title="Evenings of 349 people")
    left.legend(frameon=False)

    # Women of 43 in full employment on the tenth evening, by their AUDIT score; habits are averaged over.
    people = np.zeros((len(AUDIT), 6))
    people[:, 0], people[:, 2], people[:, 5] = (AUDIT - 18) / 6.4, 1.0, (10 - 15.5) / 8.66
    estimated = policies["PFN-TS"].posterior(people).mean
    habits = 1.25 * np.random.default_rng(0).normal(size=400)
    truth = np.mean([mean_rewards(people[:, :5], h, np.full(len(AUDIT), 10.0)) for h in habits], axis=0)
    for arm, name in enumerate(ARMS):
        (line,) = right.plot(AUDIT, estimated[:, arm], label=name)
        right.plot(AUDIT, truth[:, arm], color=line.get_color(), linestyle=":")
    right.set(
        xlabel="AUDIT score (how much a person drinks)", ylabel="probability of opening the app",
        title="What was learned (dotted: the truth)",
    )  # fmt: skip
    right.legend(frameon=False)
    figure.savefig(out / "mobile_health.png", dpi=110)

    openings = {name: float(values.sum()) for name, values in worth.items()}
    for name, expected in openings.items():
        print(f"{name:22s} {expected:7.1f} openings expected in {rounds:,} evenings")
    return openings


if __name__ == "__main__":
    main(Path(__file__).parent)
