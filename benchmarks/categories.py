"""Compare encodings of columns with many categories, by the R2 of the network that ships.

    python benchmarks/categories.py [--categories 100,300] [--rows 300,1000,2000] [--seeds 2]

Tables have three numbers and one column of categories, which explains half of the variance of the mean.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from itertools import product

import numpy as np

from pfnts import backbones
from pfnts.contexts.codes import code

QUERIES = 500
EFFECTS = ("independent", "clustered", "slopes", "useless")


def table(rng, categories, rows, effect, *, zipf):
    """Numbers (n, 3), categories (n,) in order of appearance, targets and their means (n,)."""
    frequency = np.arange(1, categories + 1) ** (-0.8 if zipf else 0.0)
    drawn = rng.choice(categories, rows, p=frequency / frequency.sum())
    X = rng.normal(size=(rows, 3))
    mean = X @ rng.normal(size=3) / 3**0.5 + 0.5 * np.sin(2 * X[:, 0])
    mean /= mean.std()
    own = rng.normal(size=categories)
    if effect == "clustered":
        own = rng.normal(size=5)[rng.integers(5, size=categories)]
    if effect != "useless":
        part = own[drawn] * (X[:, 1] if effect == "slopes" else 1.0)
        mean = (mean + part / part.std()) / 2**0.5
    order: dict[int, int] = {}
    places = np.array([order.setdefault(c, len(order)) for c in drawn])
    return X, places, mean + 0.5 * rng.normal(size=rows), mean


def earlier_means(places, y, known, *, weight=2.0):
    """Mean of earlier targets of each row's category, shrunken towards the mean of all."""
    sums, counts, found = defaultdict(float), defaultdict(int), np.zeros(len(y))
    for i, place in enumerate(places):
        centre = y[: min(i, known)].mean() if i else 0.0
        found[i] = (sums[place] + weight * centre) / (counts[place] + weight)
        if i < known:
            sums[place] += y[i]
            counts[place] += 1
    return found[:, None]


def encodings(places, y, known):
    """Name and columns (n, ...) of each encoding."""
    number = places.max() + 1
    yield "left out", np.empty((len(y), 0))
    yield "one indicator each", np.eye(number)[places][:, : places[:known].max() + 1]
    yield "number", places[:, None]
    for width in (8, 16, 32):
        codes = np.array([code(f"c{j}", width) for j in range(number)])
        yield f"{width} codes", codes[places]
        codes[:width] = np.eye(width)[:number]
        yield f"{width} places, then codes", codes[places]
    yield "means of earlier targets", earlier_means(places, y, known)


def main() -> None:
    """Print the R2 of every encoding at every size, averaged over seeds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--categories", default="100,300")
    parser.add_argument("--rows", default="300,1000,2000")
    parser.add_argument("--seeds", type=int, default=2)
    given = parser.parse_args()
    network = backbones.load("embedded")
    sizes = (map(int, text.split(",")) for text in (given.categories, given.rows))
    for categories, rows, effect, zipf in product(*sizes, EFFECTS, (False, True)):
        scores = defaultdict(list)
        for seed in range(given.seeds):
            rng = np.random.default_rng([seed, categories, rows, EFFECTS.index(effect), zipf])
            X, places, y, mean = table(rng, categories, rows + QUERIES, effect, zipf=zipf)
            for name, block in encodings(places, y, rows):
                Z = np.concatenate([X, block], axis=1)
                predicted = network.sequence(Z[:rows], y[:rows]).predict(Z[rows:], sizes=[rows]).means[0]
                scores[name].append(1 - np.mean((predicted - mean[rows:]) ** 2) / mean[rows:].var())
        listed = ", ".join(f"{name} {np.mean(found):.3f}" for name, found in scores.items())
        frequencies = "Zipf" if zipf else "equal"
        print(f"{categories} categories, {rows} rows, {effect}, {frequencies}: {listed}", flush=True)


if __name__ == "__main__":
    main()
