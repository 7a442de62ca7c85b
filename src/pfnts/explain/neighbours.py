"""Which rows of a history are like a context: distances between encoded contexts."""

from __future__ import annotations

import numpy as np

from pfnts.arrays import Matrix
from pfnts.contexts import Schema


def comparable(X: Matrix, contexts: Matrix, schema: Schema) -> Matrix:
    """Bring encoded contexts (q, P) to scales on which columns can be compared.

    Numbers and dates are counted in standard deviations of ``contexts`` (n, P), categories and booleans as 0
    and 1, all from the column's mean, where missing values lie.

    Examples
    --------
    >>> schema = Schema.of({"age": "numeric", "vip": "boolean"})
    >>> seen = np.array([[20.0, 0.0], [40.0, 1.0]])
    >>> comparable(np.array([[30.0, 1.0], [np.nan, 0.0]]), seen, schema)
    array([[ 0. ,  0.5],
           [ 0. , -0.5]])
    """
    present = ~np.isnan(contexts)
    count = np.maximum(present.sum(axis=0), 1)
    centre = np.where(present, contexts, 0.0).sum(axis=0) / count
    spread = np.sqrt((np.where(present, contexts - centre, 0.0) ** 2).sum(axis=0) / count)
    measured = np.array(
        [column.kind in ("numeric", "date") for column in schema.columns for _ in column.features]
    )
    scale = np.where(measured & (spread > 1e-12 * np.abs(centre)), spread, 1.0)
    return np.asarray(np.nan_to_num((X - centre) / scale), dtype=np.float64)


def squared_distances(x: Matrix, rows: Matrix) -> Matrix:
    """Squared distances (n,) of one point (P,) to others (n, P), both `comparable`."""
    return np.asarray(((rows - x) ** 2).sum(axis=1))
