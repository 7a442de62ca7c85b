"""Draws the figures of the concept pages from the package itself; each takes a few seconds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from pfnts import PFNTS
from pfnts.backbones import load
from pfnts.experiments.figures import save
from pfnts.layouts import Block, Disjoint, Joint
from pfnts.posterior import SubCLT, prefix_grid

BLUE, ORANGE, GREEN = "#0072B2", "#D55E00", "#009E73"


def truth(x: np.ndarray) -> np.ndarray:
    """Mean reward of the one-dimensional example."""
    return np.sin(4 * x) * (1.2 - x / 2)


def posterior_of_the_mean() -> Any:
    """Where rewards fall, and where their mean may lie, after few and many rewards."""
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 2, 512)
    y = truth(x) + 0.5 * rng.normal(size=512)
    grid = np.linspace(0, 2, 81)
    figure = Figure(figsize=(9, 3.1), layout="constrained")
    for axes, n in zip(figure.subplots(1, 3, sharey=True), (8, 64, 512), strict=True):
        said = (
            load("embedded")
            .sequence(x[:n, None], y[:n])
            .predict(grid[:, None], sizes=[n], levels=[0.025, 0.975])
        )
        mean, half = said.means[0], 1.96 * np.asarray(said.mean_sd)
        axes.fill_between(grid, *said.quantiles, color=ORANGE, alpha=0.18, lw=0, label="next reward, 95 %")
        axes.fill_between(
            grid, mean - half, mean + half, color=BLUE, alpha=0.35, lw=0, label="mean reward, 95 %"
        )
        axes.plot(grid, truth(grid), color="0.2", ls=":", label="true mean reward")
        axes.plot(x[:n], y[:n], ".", color="0.4", ms=3 if n < 100 else 1.5)
        axes.set(title=f"{n} rewards", xlabel="context", ylim=(-2.6, 2.6))
    figure.axes[0].set_ylabel("reward")
    figure.legend(
        *figure.axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False
    )
    return figure


def subclt() -> Any:
    """Predictive means after 2, 4, 8, ... rewards, and the posterior that their movements give."""
    rng = np.random.default_rng(3)
    x = rng.uniform(0, 2, 512)
    y = truth(x) + 0.5 * rng.normal(size=512)
    query = np.array([[0.5]])
    sizes = np.arange(2, 513)
    sequence = load("embedded").sequence(x[:, None], y)
    path = np.concatenate([sequence.means(query, sizes=part)[:, 0] for part in np.array_split(sizes, 32)])
    grid = prefix_grid(512, 2.0)
    figure = Figure(figsize=(7, 3.4), layout="constrained")
    axes = figure.subplots()
    axes.plot(sizes, path, color="0.7", lw=1, label="predictive mean m(t)")
    means = path[np.array(grid) - 2]
    axes.plot(grid, means, "o-", color=BLUE, label="on the grid 2, 4, 8, ...: block increments")
    for k in range(4, len(grid)):
        posterior = SubCLT().from_means(means[: k + 1, None], grid[: k + 1], grid[k])
        half = 1.96 * float(np.sqrt(posterior.variance[0]))
        axes.errorbar(
            grid[k] * 1.06, means[k], half, color=ORANGE, capsize=3, label="SubCLT, 95 %" if k == 4 else None
        )
    axes.axhline(float(truth(query)[0, 0]), color="0.2", ls=":", label="true mean reward")
    axes.set(xscale="log", xlabel="rewards seen, t", ylabel="predicted mean reward")
    axes.set_xticks(grid, [str(size) for size in grid])
    axes.minorticks_off()
    axes.legend(frameon=False, fontsize="small")
    return figure


def propensities() -> Any:
    """Probability of each arm at one context, while a policy learns."""
    rng = np.random.default_rng(1)
    policy = PFNTS(arms=["none", "standard", "tailored"], backbone="linear", exploration=1.0)
    watched, rows = {"age": 45.0}, []
    for _ in range(200):
        context = {"age": float(rng.uniform(20, 70))}
        decision = policy.decide(context, rng=rng)
        mean = {"none": 0.0, "standard": 0.5, "tailored": 1.4 - 0.016 * context["age"]}[decision.arm]
        policy.update(decision, reward=mean + 0.5 * rng.normal())
        rows.append(policy.propose(watched, rng=rng)[0].propensities)
    figure = Figure(figsize=(7, 3.0), layout="constrained")
    axes = figure.subplots()
    axes.stackplot(
        np.arange(1, 201), np.array(rows).T, labels=policy.arms, colors=["#BBBBBB", ORANGE, BLUE], alpha=0.85
    )
    axes.set(xlabel="decisions", ylabel="propensity at age 45", xlim=(1, 200), ylim=(0, 1))
    axes.legend(loc="center right")
    return figure


def layouts() -> Any:
    """What five rows of two arms look like in each layout."""
    X = np.random.default_rng(2).uniform(0.2, 1.0, size=(5, 3))
    arms = np.array([0, 1, 0, 0, 1])
    figure = Figure(figsize=(9, 2.4), layout="constrained")
    shown = [("disjoint, arm 1", Disjoint(), arms == 0), ("disjoint, arm 2", Disjoint(), arms == 1)]
    shown += [("joint", Joint(), arms >= 0), ("block", Block(), arms >= 0)]
    panels = figure.subplots(1, 4, gridspec_kw={"width_ratios": [3, 3, 5, 6]})
    for axes, (title, layout, rows) in zip(panels, shown, strict=True):
        features = layout.features(X[rows], arms[rows], n_arms=2)
        axes.imshow(features, cmap="Blues", vmin=0, vmax=1.2)
        for (i, j), value in np.ndenumerate(features):
            axes.text(
                j, i, f"{value:.1f}" if value % 1 else f"{value:.0f}", ha="center", va="center", fontsize=8
            )
        names = ["x1", "x2", "x3"] * (1 + isinstance(layout, Block))
        names += ["arm 1", "arm 2"] if isinstance(layout, Joint) else []
        axes.set_xticks(range(features.shape[1]), names, fontsize=7)
        axes.set_yticks([])
        axes.set_title(title, fontsize="medium")
    return figure


FIGURES = {
    "posterior": posterior_of_the_mean,
    "subclt": subclt,
    "propensities": propensities,
    "layouts": layouts,
}


def main(out: Path) -> None:
    """Draw them all."""
    for name, draw in FIGURES.items():
        save(draw(), out / f"{name}.png")


if __name__ == "__main__":
    main(Path(__file__).parent)
