"""How a context says whose it is."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, get_args

import numpy as np

from pfnts.ope.log import Log, Matrix, standardized

Identity = Literal["none", "one-hot", "code"]
CODE_LENGTH = 3


def with_identity(log: Log, identity: Identity) -> Log:
    """Append columns that tell people apart.

    "one-hot" gives each person a column, standardised, as the paper does; the number of columns is that of
    the people. "code" gives each person three fixed standard normal numbers: a random projection of the
    one-hot columns, in which no two people coincide and which costs a model that attends to columns three
    of them. "none" leaves the log as it is.

    Parameters
    ----------
    log
        A log with clusters, unless ``identity`` is "none".
    identity
        "none", "one-hot" or "code".

    Examples
    --------
    >>> log = Log(
    ...     contexts=np.zeros((2, 1)), features=("age",), arms=(0, 1), actions=np.array([0, 1]),
    ...     rewards=np.zeros(2), propensities=np.full(2, 0.5), clusters=np.array([0, 1]),
    ... )
    >>> with_identity(log, "one-hot").contexts
    array([[ 0.,  1., -1.],
           [ 0., -1.,  1.]])
    """
    if identity not in get_args(Identity):
        raise ValueError(f"identity must be one of {', '.join(get_args(Identity))}; got {identity!r}")
    if identity == "none":
        return log
    if log.clusters is None:
        raise ValueError(f'identity must be "none" for a log without clusters, got {identity!r}')
    codes: Matrix
    if identity == "one-hot":
        codes, name = standardized(np.eye(log.n_groups)[log.clusters]), "person"
    else:
        # One row of the generator after the other, so that a person's code does not depend on the others.
        drawn = np.random.default_rng(0).standard_normal((log.n_groups, CODE_LENGTH))
        codes, name = drawn[log.clusters], "code"
    features = (*log.features, *(f"{name} {j}" for j in range(codes.shape[1])))
    return replace(log, contexts=np.concatenate([log.contexts, codes], axis=1), features=features)
