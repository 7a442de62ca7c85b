"""# Dose finding: how much for whom

With this example you can choose among doses for each patient, keep doses out that are not allowed, and read
from the posterior how sure the policy is.

Five doses of a drug. More of it helps more, and harms more, and both depend on the patient: the heavy need
more, and those with weak kidneys bear less. The reward of a treatment is its benefit less its side effects.
A rule of the protocol keeps the two highest doses from patients whose kidneys are weak, whatever has been
learned: `eligible`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from pfnts import PFNTS

DOSES = (10, 20, 40, 60, 80)


def utility(weight: np.ndarray | float, kidney: np.ndarray | float, dose: np.ndarray | float) -> np.ndarray:
    """Mean benefit less side effects: a saturating effect of dose per weight, a threshold of toxicity."""
    exposure = np.asarray(dose) / np.asarray(weight)
    benefit = 2.0 * exposure / (exposure + 0.4)
    toxicity = 1.6 / (1 + np.exp(-12 * (exposure - 0.35 - 0.5 * np.asarray(kidney))))
    return np.asarray(benefit - toxicity)


def main(out: Path, *, rounds: int = 600, backbone: str = "embedded") -> dict[str, float]:
    """Treat patients one after the other, and draw what was learned about two of them."""
    rng = np.random.default_rng(4)
    policy = PFNTS(arms=DOSES, backbone=backbone, encoding="joint")
    fixed = np.zeros(len(DOSES))
    earned, possible, forbidden = 0.0, 0.0, 0
    for _ in range(rounds):
        weight, kidney = rng.uniform(50, 110), rng.uniform(0.1, 1.0)
        allowed = [dose <= 40 or kidney >= 0.4 for dose in DOSES]
        patient = {"weight": weight, "kidney": kidney}
        decision = policy.decide(patient, rng=rng, eligible=allowed)
        means = utility(weight, kidney, np.array(DOSES))
        policy.update(decision, reward=float(means[decision.index] + 0.3 * rng.normal()))
        earned += means[decision.index]
        possible += means[allowed].max()
        forbidden += not allowed[decision.index]
        fixed += np.where(allowed, means, means[2])
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    people = {
        "80 kg, weak kidneys": {"weight": 80.0, "kidney": 0.2},
        "80 kg, sound kidneys": {"weight": 80.0, "kidney": 0.9},
    }
    for axes, (title, patient) in zip(panels, people.items(), strict=True):
        posterior = policy.posterior(patient)
        low, high = posterior.interval(0.95)
        grid = np.linspace(5, 85, 200)
        axes.plot(grid, utility(patient["weight"], patient["kidney"], grid), color="0.6", label="truth")
        bars = np.array([posterior.mean - low, high - posterior.mean])
        axes.errorbar(
            DOSES, posterior.mean, bars, fmt="o", capsize=3, color="#0072B2", label="posterior, 95 %"
        )
        if patient["kidney"] < 0.4:
            axes.axvspan(50, 88, color="#D55E00", alpha=0.12, label="not allowed")
        axes.set(xlabel="dose (mg)", title=title)
        axes.legend(frameon=False)
    panels[0].set_ylabel("benefit less side effects")
    figure.savefig(out / "dose_finding.png", dpi=110)
    summary = {
        "lost a patient": (possible - earned) / rounds,
        "lost by the best dose for all": (possible - fixed.max()) / rounds,
        "given although not allowed": float(forbidden),
    }
    for name, value in summary.items():
        print(f"{name:30s} {value:6.3f}")
    return summary


if __name__ == "__main__":
    main(Path(__file__).parent)
