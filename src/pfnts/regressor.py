"""The prediction model by itself, as a scikit-learn regressor."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from pfnts import backbones
from pfnts.backbones import Backbone, Prediction
from pfnts.contexts import Schema
from pfnts.posterior.base import check_level

try:
    from sklearn.base import BaseEstimator, RegressorMixin
    from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data
except ImportError as error:
    raise ImportError('scikit-learn is missing, install the extra: pip install "pfnts[sklearn]"') from error

_AT_ONCE = 64


class PFNRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Regression by the network that comes in the package: nothing to tune, nothing to wait for.

    Columns may be numeric, boolean, categorical or dates, and values may be missing. Fitting keeps the rows;
    they are read when the first prediction is asked for.

    Parameters
    ----------
    backbone
        Name or object of the prediction model.
    schema
        What the columns of a frame are, by name: "numeric", "boolean", "date", "categorical" or the list of
        categories; inferred when not given. For codes that are numbers.

    Examples
    --------
    >>> X = np.linspace(0, 1, 60)[:, None]
    >>> model = PFNRegressor().fit(X, 3 * X[:, 0])
    >>> bool(abs(model.predict([[0.5]])[0] - 1.5) < 0.1)
    True
    """

    def __init__(
        self, backbone: str | Backbone = "embedded", *, schema: Schema | Mapping[str, Any] | None = None
    ) -> None:
        self.backbone = backbone
        self.schema = schema

    def fit(self, X: Any, y: ArrayLike) -> Self:
        """Keep the rows ``X`` (n, P) and targets ``y`` (n,)."""
        self.schema_ = None
        if hasattr(X, "columns"):
            check_rows(X)
            validate_data(self, X, skip_check_array=True)
            self.schema_ = (Schema.infer(X) if self.schema is None else Schema.of(self.schema)).fitted(X)
            X = self.schema_.encode(X)
            y = column_or_1d(y, dtype=np.float64, warn=True)
        elif self.schema is not None:
            raise ValueError(f"X must be a frame whose columns schema= can name, got {type(X).__name__}")
        else:
            X, y = validate_data(self, X, y, dtype=np.float64, ensure_all_finite="allow-nan", y_numeric=True)
        self.rows_ = X, np.asarray(y, dtype=np.float64)
        self.sequence_ = backbones.load(self.backbone).sequence(*self.rows_)
        return self

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Predict the mean target at ``X`` (q, P), as (q,)."""
        means: NDArray[np.float64] = self._predict(X).means[0]
        return means

    def predict_quantiles(self, X: Any, levels: ArrayLike = (0.05, 0.5, 0.95)) -> NDArray[np.float64]:
        """Predict quantiles of a new target, (q, len(levels))."""
        return self._predict(X, levels=np.atleast_1d(np.asarray(levels, dtype=np.float64))).quantiles.T

    def predict_mean_interval(
        self, X: Any, level: float = 0.95
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Ends (q,) of the central interval that holds the mean target with probability ``level``."""
        said = self._predict(X)
        if said.mean_sd is None:
            raise ValueError(
                "backbone must know the standard deviation of the mean for an interval of it, "
                f"{self.backbone!r} does not"
            )
        half = float(scipy.special.ndtri(0.5 + check_level(level) / 2)) * said.mean_sd
        return said.means[0] - half, said.means[0] + half

    def __getstate__(self) -> dict[str, Any]:
        # The rows say it all: neither the network nor what it has read need be in a pickle.
        return {name: value for name, value in super().__getstate__().items() if name != "sequence_"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if "rows_" in state:
            self.sequence_ = backbones.load(self.backbone).sequence(*self.rows_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def _predict(self, X: Any, levels: ArrayLike = ()) -> Prediction:
        check_is_fitted(self)
        if self.schema_ is not None:
            check_rows(X)
            validate_data(self, X, skip_check_array=True, reset=False)
            queries = self.schema_.encode(X)
        else:
            queries = validate_data(self, X, dtype=np.float64, ensure_all_finite="allow-nan", reset=False)
        # Without waiting rows and always as many at a time: no prediction depends on the queries beside it.
        backbones.load(self.backbone).prepare([self.sequence_])
        rows = -(-len(queries) // _AT_ONCE) * _AT_ONCE
        filled = np.concatenate([queries, np.repeat(queries[-1:], rows - len(queries), axis=0)])
        parts = [
            self.sequence_.predict(part, sizes=[self.sequence_.size], levels=levels)
            for part in np.split(filled, rows // _AT_ONCE)
        ]
        n = len(queries)
        sds = [part.mean_sd for part in parts if part.mean_sd is not None]
        return Prediction(
            np.concatenate([part.means for part in parts], axis=1)[:, :n],
            np.concatenate([part.quantiles for part in parts], axis=1)[:, :n],
            np.concatenate(sds)[:n] if sds else None,
        )


def check_rows(X: Any) -> None:
    """Complain about a frame without rows, as scikit-learn does about an array."""
    if not len(X):
        raise ValueError("X must have at least one row, got 0")
