"""Base predictions: what simple methods say of each row from the rows before it. The network combines them.

What a closed form knows exactly need not be learned by heart: with few rows and a nearly linear reward
nothing beats ridge regression, on a smooth one little beats kernel ridge regression, and where rows lie close
together little beats asking the nearest (`neighbours`). There are four kinds of regression, with three
penalties each: straight lines, waves of single columns, and two kernels (`kernels`), one that counts all
columns alike and one that counts them by how much their waves explain. Their average, weighed by how probable
each makes the rows so far (Bayesian model averaging), is the thirteenth. Then come two predictions of boosted
trees (`trees`), which know jumps, those of the neighbours, the average of all by their errors so far, and the
mean so far (`track_record`). Last come notes, which predict nothing but say how much can be known, and which
prediction to believe: distances, leverage, the probability of each regression, the error of each prediction
so far and the number of rows.
Coefficients are refitted at sizes that grow geometrically, so that n rows cost some log n fits.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import pairwise

import torch
from torch import Tensor

from pfnts.backbones.network.features import neighbours, track_record, trees
from pfnts.backbones.network.features.kernels import KERNEL_PENALTIES, KernelRegression, alike, with_constant
from pfnts.backbones.network.features.neighbours import Neighbours
from pfnts.backbones.network.features.rows import Rows, joined, stacked, twice
from pfnts.backbones.network.features.sums import FewRows, Sums, inverses, solve
from pfnts.backbones.network.features.track_record import Record
from pfnts.backbones.network.features.trees import Trees

PENALTIES = (0.1, 1.0, 10.0)
"""Over the number of columns: the supposed noise variance for a signal variance of one."""
REGRESSIONS = 2 * len(PENALTIES) + 2 * len(KERNEL_PENALTIES)
_FITTED_NOTES = neighbours.NOTES + 1 + REGRESSIONS
"""Distances, leverage, the probability of each regression."""
PREDICTIONS = REGRESSIONS + 1 + trees.PREDICTIONS + neighbours.PREDICTIONS + track_record.ADDED
"""Those of all regressions, their average by evidence, trees, neighbours, average by errors, mean so far."""
NOTES = _FITTED_NOTES + PREDICTIONS + 1
"""Those, the error of each prediction so far, number of rows."""
BASE_PREDICTIONS = PREDICTIONS + NOTES
"""What is told of a row."""
UNLIKELY = -10.0
"""Least logarithm of a probability that is told."""
SHARPNESS = 2.0
"""Sum of the columns' weights where they are told apart: fewer of them matter, so bells may be narrower."""
APART = 0.5
"""Least squared distance of two arms at one context. How much variance an arm's column explains says how
often the arm was tried, not how unlike the others it is."""
FEW = 16
"""Up to as many rows, or half as many as features, ridge regressions are solved by matrices of rows."""
AT_ONCE = 1024
"""Predictions that are cheaper to make, and not to use, than to ask for apart."""
LIMIT = 10.0
"""Predictions are cut off at this many standard deviations of the targets."""


class Regressions:
    """Regressions of B histories of one shape, which grow together.

    Parameters
    ----------
    names_arm
        Which columns are those of arms in one-hot vectors, (B, P) or (1, P); none when left out.
    few_trees_on
        Where trees are grown on few rows; where the rows are when left out.

    Examples
    --------
    >>> X = torch.randn(1, 50, 3, dtype=torch.float64)
    >>> regressions = Regressions()
    >>> base_predictions = regressions.extend(X, X[..., 0])
    >>> base_predictions.shape, bool((base_predictions[0, 40:, 0] - X[0, 40:, 0]).abs().max() < 0.1)
    (torch.Size([1, 50, 62]), True)
    """

    def __init__(self, names_arm: Tensor | None = None, *, few_trees_on: str | None = None) -> None:
        self._names_arm = names_arm
        self._lines = RidgeRegression(with_constant, leverage=True)
        self._waves = RidgeRegression(_waves, refits=halvings)
        self._kernels = KernelRegression(self._shares)  # both as one batch: half as many operations
        self._trees = Trees(halvings, few_on=few_trees_on)
        self._neighbours = Neighbours()
        self._record = Record()
        self._X, self._y = Rows(), Rows()

    def fork(self) -> Regressions:
        """A copy that can be extended on its own; what was fitted is shared, not copied."""
        copy = Regressions(self._names_arm)
        copy._lines, copy._waves = self._lines.fork(), self._waves.fork()
        copy._kernels = self._kernels.fork(copy._shares)
        copy._trees, copy._neighbours = self._trees.fork(), self._neighbours.fork()
        copy._record = self._record.fork()
        copy._X, copy._y = self._X.fork(), self._y.fork()
        return copy

    @torch.no_grad()
    def extend(self, X: Tensor, y: Tensor) -> Tensor:
        """Add rows X (B, m, P), y (B, m); give the base predictions of each, (B, m, BASE_PREDICTIONS)."""
        X = torch.nan_to_num(X)
        before = self._X.length
        after = before + X.shape[1]
        for ridge in (self._lines, self._waves):
            ridge.extend(X, y)
        all_X, all_y = self._X.add(X).upto(after), self._y.add(y).upto(after)
        self._kernels.extend(twice(all_X), twice(all_y))
        # Rows between two refits share their coefficients.
        cuts = [before, *(s for s in refit_sizes(after) if before < s < after), after]
        said = []
        for group in together(cuts, len(X)):
            whole = self._fitted(X[:, group[0] - before : group[-1] - before], group[:-1])
            steps = pairwise([size - group[0] for size in group])
            said += [whole[:, i, begin:end] for i, (begin, end) in enumerate(steps)]
        first = _arranged(joined(said), self._trees.extend(all_X, all_y), self._neighbours.extend(X, y))
        return _cut(self._record.extend(first, y, notes=_FITTED_NOTES))

    @torch.no_grad()
    def base_predictions(self, X: Tensor, sizes: Sequence[int]) -> Tensor:
        """What is told of contexts X (B, q, P) after the first rows, (B, len(sizes) * q, K), sizes first."""
        X = torch.nan_to_num(X)
        first = _arranged(self._fitted(X, sizes), self._trees.say(X, sizes), self._neighbours.say(X, sizes))
        return _cut(self._record.complete(first, sizes, notes=_FITTED_NOTES)).flatten(1, 2)

    def _fitted(self, X: Tensor, sizes: Sequence[int]) -> Tensor:
        """What regressions say: each, the average by evidence, the leverage of a line, log probabilities."""
        lines, leverage = self._lines.say_with_leverage(X, sizes)
        said = torch.cat([lines, self._waves.say(X, sizes), *self._kernels.say(twice(X), sizes).chunk(2)], -1)
        said = said.nan_to_num(0.0).clamp(-LIMIT, LIMIT)  # (B, S, q, 12)
        # The probability of each regression, all alike beforehand.
        evidence = stacked([self._evidence(size) for size in sizes])[:, :, None]
        probability = torch.log_softmax(evidence.nan_to_num(-1e9), -1)
        average = (said * probability.exp()).sum(-1, keepdim=True)
        noted = (probability.clamp(min=UNLIKELY) / 4).expand_as(said)
        return torch.cat([said, average, leverage[..., None], noted], -1)

    def _evidence(self, size: int) -> Tensor:
        """Log evidence of each regression (B, 12), as of the last fit of all."""
        kernels = self._kernels.fit(size)
        ridges = [ridge.evidence(kernels.size) for ridge in (self._lines, self._waves)]
        return torch.cat([*ridges, *kernels.evidence.chunk(2)], -1)

    def _shares(self, X: Tensor) -> Tensor:
        """Weights of columns (2 B, P) for rows X (2 B, n, P), twice the same: first all columns alike."""
        X = X[: len(X) // 2]
        return torch.cat([alike(X), self._by_waves(X)])

    def _by_waves(self, X: Tensor) -> Tensor:
        """Weights (B, P) as the shares of columns in the variance of the waves fitted to rows X (B, n, P)."""
        wave = _waves(X)[..., 1:] * self._waves.coefficients(X.shape[1])[:, None, 1:, 1]
        by_column = wave.unflatten(-1, (5, -1)).sum(-2)  # (B, n, P)
        explained = by_column.var(1, correction=0).nan_to_num(0.0) + 1e-6
        weight = SHARPNESS * explained / explained.sum(-1, keepdim=True)
        if self._names_arm is None:
            return weight
        # Two arms differ in two columns; the column of an arm that was never tried has a span of none.
        span = (X.amax(1) - X.amin(1)).clamp(min=1.0)
        return torch.where(self._names_arm, weight.maximum(APART / 2 / span**2), weight)


def _arranged(fitted: Tensor, of_trees: Tensor, near: Tensor) -> Tensor:
    """Predictions first, then the notes so far."""
    split = REGRESSIONS + 1
    return torch.cat([fitted[..., :split], of_trees, near, fitted[..., split:]], -1)


def _cut(base_predictions: Tensor) -> Tensor:
    return base_predictions.nan_to_num(0.0).clamp(-LIMIT, LIMIT)


def base_predictions_of(X: Tensor, y: Tensor, *, asked: int = 1, names_arm: Tensor | None = None) -> Tensor:
    """What is told of every row of whole histories X (B, n, P), y (B, n), from the rows before it.

    Of the last ``asked`` rows, from the rows before the first of them; nothing is learned from these.
    """
    regressions, first = Regressions(names_arm), X.shape[1] - asked
    if not first:
        raise ValueError(f"asked must be less than the number of rows, {X.shape[1]}, got {asked}")
    before = regressions.extend(X[:, :first], y[:, :first])
    return torch.cat([before, regressions.base_predictions(X[:, first:], [first])], 1).float()


class RidgeRegression:
    """Ridge regression on a fixed basis, with running sums.

    Parameters
    ----------
    basis
        Maps contexts (B, m, P) to (B, m, F).
    leverage
        Whether `say_with_leverage` will be asked for.
    refits
        Sizes up to some number at which coefficients are fitted; `refit_sizes` when left out.
    """

    def __init__(
        self,
        basis: Callable[[Tensor], Tensor],
        *,
        leverage: bool = False,
        refits: Callable[[int], list[int]] | None = None,
    ) -> None:
        self._basis = basis
        self._refits = refits or refit_sizes
        self._leverage = leverage
        self._sums: Sums | None = None
        self._first_Z, self._first_y = Rows(), Rows()
        self._sizes: list[int] = []
        self._coefficients: list[Tensor] = []
        self._evidence: list[Tensor] = []
        self._inverses: list[Tensor] = []

    def fork(self) -> RidgeRegression:
        """A copy that grows on its own."""
        copy = RidgeRegression(self._basis, leverage=self._leverage, refits=self._refits)
        copy._sums, copy._sizes, copy._coefficients = self._sums, list(self._sizes), list(self._coefficients)
        copy._evidence, copy._inverses = list(self._evidence), list(self._inverses)
        copy._first_Z, copy._first_y = self._first_Z.fork(), self._first_y.fork()
        return copy

    def extend(self, X: Tensor, y: Tensor) -> None:
        """Add rows X (B, m, P), y (B, m)."""
        Z = self._basis(X)
        if self._sums is None:
            self._sums = Sums.none(len(Z), Z.shape[2], Z)
            self._sizes, nothing = [0], Z.new_zeros(len(Z), Z.shape[2], len(PENALTIES))
            self._coefficients, self._evidence = [nothing], [nothing[:, 0]]
            eye = torch.eye(Z.shape[2], dtype=Z.dtype, device=Z.device)
            self._inverses = [eye.expand(len(Z), -1, -1) / (PENALTIES[1] * X.shape[2])]
        before, after = self._sums.rows, self._sums.rows + X.shape[1]
        limit = max(FEW, Z.shape[2] // 2)
        if before < limit:
            self._first_Z.add(Z[:, : limit - before])
            self._first_y.add(y[:, : limit - before])
        new = [s for s in self._refits(after) if s > before]
        few, many = [s for s in new if s <= limit], [s for s in new if s > limit]
        *at_refits, self._sums = self._sums.through(Z, y, [*many, after])
        penalties = [penalty * X.shape[2] for penalty in PENALTIES]
        if few:
            known = FewRows(self._first_Z.upto(few[-1]), self._first_y.upto(few[-1]), few)
            found = known.solve(penalties=penalties)
            self._note(few, *found, known.inverses(penalty=penalties[1]) if self._leverage else None)
        if many:
            found = solve(at_refits, penalties=penalties)
            self._note(many, *found, inverses(at_refits, penalty=penalties[1]) if self._leverage else None)

    def _note(self, sizes: list[int], found: Tensor, evidence: Tensor, inverses: Tensor | None) -> None:
        """Keep fits to some sizes."""
        self._sizes += sizes
        self._coefficients += found.unbind(1)
        self._evidence += evidence.unbind(1)
        self._inverses += [] if inverses is None else inverses.unbind(1)

    def _last(self, size: int) -> int:
        """Which fit was the last to at most ``size`` rows."""
        return bisect_right(self._sizes, size) - 1

    def coefficients(self, size: int) -> Tensor:
        """Coefficients (B, F, 3) of the last fit to at most ``size`` rows; zero before the first."""
        return self._coefficients[self._last(size)]

    def evidence(self, size: int) -> Tensor:
        """Log evidence (B, 3) of the same fit."""
        return self._evidence[self._last(size)]

    def say(self, X: Tensor, sizes: Sequence[int]) -> Tensor:
        """Predict contexts X (B, q, P) from the first rows, (B, S, q, 3)."""
        return self._basis(X)[:, None] @ stacked([self.coefficients(size) for size in sizes])

    def say_with_leverage(self, X: Tensor, sizes: Sequence[int]) -> tuple[Tensor, Tensor]:
        """The same, and the logarithm of the variance of that mean over the noise's, (B, S, q)."""
        Z, said = self._basis(X)[:, None], stacked([self.coefficients(size) for size in sizes])
        inverse = stacked([self._inverses[self._last(size)] for size in sizes])
        return Z @ said, ((Z @ inverse) * Z).sum(-1).clamp(min=1e-6).log() / 2


def refit_sizes(n: int) -> list[int]:
    """Sizes up to n at which coefficients are refitted: each up to 16, then four to every doubling.

    Examples
    --------
    >>> refit_sizes(40)[-7:]
    [15, 16, 20, 24, 28, 32, 40]
    """
    sizes, size = [], 1
    while size <= n:
        sizes.append(size)
        size += 1 if size < 16 else 2 ** (size.bit_length() - 1) // 4
    return sizes


def together(cuts: Sequence[int], batch: int = 1) -> list[list[int]]:
    """Join the steps between cuts while all rows of a group at all its sizes are few: that takes fewer calls.

    Examples
    --------
    >>> together([0, 1, 2, 3, 4, 64, 80, 96])
    [[0, 1, 2, 3, 4, 64, 80, 96]]
    >>> together([2048, 2560, 3072])
    [[2048, 2560], [2560, 3072]]
    """
    groups: list[list[int]] = []
    for begin, end in pairwise(cuts):
        if groups and batch * len(groups[-1]) * (end - groups[-1][0]) <= AT_ONCE:
            groups[-1].append(end)
        else:
            groups.append([begin, end])
    return groups


def halvings(n: int) -> list[int]:
    """Sizes up to n at which costly regressions are refitted: two to every doubling, as for kernels.

    Examples
    --------
    >>> halvings(20)
    [1, 2, 3, 4, 6, 8, 12, 16]
    """
    doublings = [1 << k for k in range(n.bit_length())]
    return sorted(s for s in {*doublings, *(3 * d // 2 for d in doublings[1:])} if s <= n)


def _waves(x: Tensor) -> Tensor:
    """A constant, the columns and two waves of each, (B, m, 5 P + 1)."""
    return torch.cat([with_constant(x), torch.sin(x), torch.cos(x), torch.sin(2 * x), torch.cos(2 * x)], -1)
