"""# What would another policy have earned?

With this example you can take a log of decisions, estimate from it what policies would have earned that
never ran, and see how far such estimates can be trusted.

A month of a newsletter was sent at random: three subjects, the probability of each is in the log, and so is
whether the mail was opened. Four questions to the log: what did we earn, what would the best single subject
have earned, what a rule that somebody in the team believes in, and what a policy that had learned from the
first half. In this example the truth is known, and is drawn beside the estimates. It was made so that readers
differ a lot; where they differ less, 1,500 rows are too few to beat a good rule of thumb.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from pfnts import PFNTS
from pfnts.ope import Roles, dr, ips, log_from_columns, snips, weight_diagnostics

SUBJECTS = ("question", "offer", "news")
SHARES = np.array([0.5, 0.3, 0.2])


def chances(age: np.ndarray, customer: np.ndarray) -> np.ndarray:
    """Probability (n, 3) that a mail is opened."""
    young = (70 - age) / 50
    question = 0.10 + 0.45 * young
    offer = 0.15 + 0.45 * customer * (1 - young)
    news = 0.15 + 0.40 * (1 - customer) * (1 - young)
    return np.column_stack([question, offer, news])


def main(out: Path, *, rounds: int = 3_000, backbone: str = "embedded") -> dict[str, float]:
    """Draw a log, ask it four questions with three estimators, and draw answers beside the truth."""
    rng = np.random.default_rng(5)
    age, customer = rng.uniform(20, 70, rounds), rng.integers(0, 2, rounds)
    opens = chances(age, customer)
    sent = rng.choice(3, size=rounds, p=SHARES)
    table = {
        "age": age,
        "customer": customer,
        "subject": np.array(SUBJECTS)[sent],
        "probability": SHARES[sent],
        "opened": (rng.random(rounds) < opens[np.arange(rounds), sent]).astype(float),
    }
    half = rounds // 2
    later = {name: values[half:] for name, values in table.items()}
    roles = Roles(action="subject", reward="opened", propensity="probability", context=("age", "customer"))
    log = log_from_columns(later, roles)
    order = [SUBJECTS.index(arm) for arm in log.arms]

    # The policy learns from the first half, and is judged on the second, which it has not seen.
    policy = PFNTS(arms=SUBJECTS, backbone=backbone, exploration=0)
    policy.learn({n: v[:half] for n, v in table.items()}, action="subject", reward="opened",
                 context=("age", "customer"))  # fmt: skip
    contexts = [{"age": a, "customer": c} for a, c in zip(later["age"], later["customer"], strict=True)]
    learned = np.array([d.propensities for d in policy.decide_batch(contexts, rng=rng)])
    rule = np.eye(3)[np.where(later["customer"] == 1, 1, 0)]
    candidates = {
        "as it was sent": np.tile(SHARES, (log.rounds, 1)),
        "news to all": np.tile([0.0, 0.0, 1.0], (log.rounds, 1)),
        "offer to customers": rule,
        "PFN-TS, learned": learned,
    }

    figure = Figure(figsize=(8, 3.8), layout="constrained")
    axes = figure.subplots()
    found = {}
    for row, (name, probabilities) in enumerate(candidates.items()):
        truth = float((probabilities * opens[half:]).sum(axis=1).mean())
        axes.plot([truth, truth], [row - 0.35, row + 0.35], color="0.2", lw=2, label="" if row else "truth")
        for k, (estimator, colour) in enumerate(((ips, "#E69F00"), (snips, "#0072B2"), (dr, "#009E73"))):
            estimate = estimator(log, probabilities[:, order])
            low, high = estimate.interval(0.95)
            axes.plot([low, high], [row + 0.2 * (k - 1)] * 2, color=colour)
            label = "" if row else estimator.__name__
            axes.plot(estimate.value, row + 0.2 * (k - 1), "o", color=colour, label=label)
        used = weight_diagnostics(log, probabilities[:, order]).effective_sample_size
        found[name] = estimate.value
        print(f"{name:20s} dr {estimate.value:.3f} [{low:.3f}, {high:.3f}], truth {truth:.3f}, "
              f"{used:,.0f} of {log.rounds:,} rounds count")  # fmt: skip
    axes.set(yticks=range(len(candidates)), yticklabels=list(candidates), xlabel="share of mails opened")
    axes.invert_yaxis()
    axes.legend(frameon=False, ncols=4, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    figure.savefig(out / "policy_on_a_log.png", dpi=110)
    return found


if __name__ == "__main__":
    main(Path(__file__).parent)
