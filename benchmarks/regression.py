"""PFNRegressor against forest, boosting, ridge and TabPFN v2 on tables that come with scikit-learn.

Five-fold cross-validated R2, everything as it comes; `python benchmarks/regression.py` prints the table of
docs/regression.md. TabPFN needs its weights: `pfnts weights tabpfn`.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn import datasets
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from pfnts import PFNRegressor

MODELS: dict[str, Callable[[], Any]] = {
    "PFNRegressor": PFNRegressor,
    "TabPFN v2": lambda: PFNRegressor(backbone="tabpfn"),
    "ridge": lambda: make_pipeline(StandardScaler(), RidgeCV(alphas=np.logspace(-3, 3, 13))),
    "forest": lambda: RandomForestRegressor(random_state=0),
    "boosting": lambda: HistGradientBoostingRegressor(random_state=0),
}


def column(bunch: Any, name: str) -> tuple[np.ndarray, np.ndarray]:
    """A table whose own target is a class: one of its columns is predicted from the others."""
    index = list(bunch.feature_names).index(name)
    return np.delete(bunch.data, index, axis=1), bunch.data[:, index]


def tables() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    return {
        "diabetes": datasets.load_diabetes(return_X_y=True),
        "iris, petal width": column(datasets.load_iris(), "petal width (cm)"),
        "wine, alcohol": column(datasets.load_wine(), "alcohol"),
        "breast cancer, worst smoothness": column(datasets.load_breast_cancer(), "worst smoothness"),
        "friedman1, 200 rows": datasets.make_friedman1(200, noise=1.0, random_state=0),
        "friedman2, 200 rows": datasets.make_friedman2(200, noise=125.0, random_state=0),
        "friedman3, 200 rows": datasets.make_friedman3(200, noise=0.1, random_state=0),
        "sparse uncorrelated, 200 rows": datasets.make_sparse_uncorrelated(200, random_state=0),
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument(
        "--model", action="append", choices=MODELS, help="only these; TabPFN v2 only if named"
    )
    names = parser.parse_args().model or [name for name in MODELS if name != "TabPFN v2"]
    folds = KFold(5, shuffle=True, random_state=0)
    seconds = dict.fromkeys(names, 0.0)
    print("| table | rows | columns | " + " | ".join(names) + " |")
    print("|---|---:|---:|" + "---:|" * len(names))
    for table, (X, y) in tables().items():
        scores = {}
        for name in names:
            began = time.process_time()
            scores[name] = cross_val_score(MODELS[name](), X, y, cv=folds).mean()
            seconds[name] += time.process_time() - began
        best = max(scores.values())
        cells = [f"**{s:.3f}**" if s == best else f"{s:.3f}" for s in scores.values()]
        print(f"| {table} | {X.shape[0]} | {X.shape[1]} | {' | '.join(cells)} |", flush=True)
    spent = " | ".join(f"{seconds[name]:.0f} s" for name in names)
    print(f"| processor time of it all | | | {spent} |")


if __name__ == "__main__":
    main()
