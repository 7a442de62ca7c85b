"""Types of arrays; shapes are stated where the arrays are used."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Matrix: TypeAlias = NDArray[np.float64]
Vector: TypeAlias = NDArray[np.float64]
Counts: TypeAlias = NDArray[np.int64]
Mask: TypeAlias = NDArray[np.bool_]
