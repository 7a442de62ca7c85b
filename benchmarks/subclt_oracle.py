"""SubCLT against an exact posterior.

Data are linear in five features, uniform on [-1, 1] (or normal), with coefficients and intercept N(0, 1).
The model is conjugate linear regression with known noise, whose exact posterior of f(x) is the measure. For
each way of averaging the blocks the table has the ratio of the estimated to the exact posterior variance, and
the share of true f(x) inside nominal 95 % intervals, Gaussian and then Student.

    python benchmarks/subclt_oracle.py --replications 60
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from scipy import stats

from pfnts.backbones import LinearBackbone, LinearSequence, PredictiveSequence
from pfnts.posterior import GaussianPosterior, SubCLT
from pfnts.scores import coverage

Array = NDArray[np.float64]

SETTINGS = [(1.0, 1.0), (1.0, 0.3), (0.01, 1.0), (0.01, 0.3)]
EARLIER = {
    (1.0, 1.0): "0.96, 0.91, 0.94 | 1.03, 0.90, 0.95",
    (1.0, 0.3): "2.16, 0.96, 0.98 | 1.30, 0.93, 0.97",
    (0.01, 1.0): "1.95, 0.95, 0.97 | 1.22, 0.92, 0.97",
    (0.01, 0.3): "3.35, 0.98, 0.99 | 1.41, 0.94, 0.98",
}


def estimate(method: SubCLT, sequence: PredictiveSequence, queries: np.ndarray) -> GaussianPosterior:
    """The posterior of the mean at the queries, after the whole history."""
    asked = method.asks(sequence.size)
    answer = sequence.predict(queries, sizes=asked.sizes, levels=asked.levels)
    return method.posterior(answer, size=sequence.size, own=sequence.size, reward_variance=1.0)


def replication(
    rng: Generator, *, n: int, queries: int, precision: float, noise: float, features: str
) -> tuple[LinearSequence, Array, Array]:
    """A history of ``n`` rows, query points and the true function there."""
    coefficients, intercept = rng.standard_normal(5), rng.standard_normal()
    X, Q = (
        rng.standard_normal((rows, 5)) if features == "normal" else rng.uniform(-1, 1, (rows, 5))
        for rows in (n, queries)
    )
    y = X @ coefficients + intercept + noise * rng.standard_normal(n)
    backbone = LinearBackbone(precision=precision, noise=noise, standardize=False)
    return backbone.sequence(X, y), Q, Q @ coefficients + intercept


def measure(posterior: GaussianPosterior, exact: Array, truth: Array, dof: float) -> list[float]:
    """Mean ratio of variances, Gaussian coverage, Student coverage."""
    half = stats.t(dof).ppf(0.975) * np.sqrt(posterior.variance)
    return [
        float((posterior.variance / exact).mean()),
        coverage(*posterior.interval(0.95), truth),
        coverage(posterior.mean - half, posterior.mean + half, truth),
    ]


def row(options: argparse.Namespace, precision: float, noise: float, tick: Callable[[], None]) -> Array:
    """Replications by measures: three for equal weights, three for root weights."""
    rows = []
    for seed in np.random.SeedSequence(options.seed).spawn(options.replications):
        sequence, queries, truth = replication(
            np.random.default_rng(seed),
            n=options.size,
            queries=options.queries,
            precision=precision,
            noise=noise,
            features=options.features,
        )
        exact = sequence.exact_posterior(queries, sequence.size).variance
        methods = [SubCLT(base=options.base, weights=weights) for weights in ("equal", "root")]
        rows.append(
            [
                number
                for method in methods
                for number in measure(
                    estimate(method, sequence, queries), exact, truth, method.dof(sequence.size)
                )
            ]
        )
        tick()
    return np.array(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--replications", type=int, default=60)
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--size", type=int, default=4096, help="rows of a history")
    parser.add_argument("--base", type=float, default=2.0, help="growth factor of the prefix grid")
    parser.add_argument("--features", choices=["uniform", "normal"], default="uniform")
    parser.add_argument("--seed", type=int, default=42)
    options = parser.parse_args()

    console = Console(width=150)
    table = Table(
        title=f"SubCLT against the exact posterior, n = {options.size}, {options.replications} replications, "
        f"{options.features} features\n"
        "(ratio of variances +- standard error, coverage Gaussian, coverage Student)"
    )
    for title in ("prior precision, noise sd", "a_j equal (the paper)", "a_j proportional to sqrt(t_j)"):
        table.add_column(title)
    table.add_column("an earlier run (n = 4096)")
    with Progress(console=Console(stderr=True)) as progress:
        task = progress.add_task("replications", total=len(SETTINGS) * options.replications)

        def tick() -> None:
            progress.advance(task)

        for precision, noise in SETTINGS:
            numbers = row(options, precision, noise, tick)
            mean, error = numbers.mean(axis=0), numbers.std(axis=0) / np.sqrt(len(numbers))
            cells = [f"{mean[i]:.2f} +- {error[i]:.2f}, {mean[i + 1]:.2f}, {mean[i + 2]:.2f}" for i in (0, 3)]
            table.add_row(f"{precision:g}, {noise:g}", *cells, EARLIER[precision, noise])
    console.print(table)


if __name__ == "__main__":
    main()
