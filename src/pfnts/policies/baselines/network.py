"""A network with one hidden layer whose input layer has a block of weights per arm: what NeuralTS trains.

The block input of arm k is the context in the k-th of K blocks, zeros elsewhere, so that only the k-th block
of the input weights is ever multiplied; biases and the output layer are shared by all arms.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.random import Generator
from torch import Tensor

from pfnts.arrays import Matrix, Vector


@dataclass(frozen=True)
class Weights:
    """Weights, or anything with one number per weight: gradients, precisions."""

    input: Tensor
    """(K, H, P + 1): the last column is the bias, the same for all arms."""
    output: Tensor
    """(H + 1,): the last entry is the bias."""

    @property
    def width(self) -> int:
        """Number of hidden units H."""
        return len(self.output) - 1


def start(*, n_arms: int, n_features: int, hidden: int, fan_in: int, rng: Generator) -> Weights:
    """Draw weights as torch does by default: uniform within one over the root of the fan-in.

    The blocks are drawn last, arm by arm: a network for more arms begins with the same numbers.
    """
    reach = 1 / np.sqrt(fan_in)
    bias = np.broadcast_to(rng.uniform(-reach, reach, size=(1, hidden, 1)), (n_arms, hidden, 1))
    output = rng.uniform(-1, 1, size=hidden + 1) / np.sqrt(hidden)
    blocks = rng.uniform(-reach, reach, size=(n_arms, hidden, n_features))
    both = np.concatenate([blocks, bias], axis=2)
    return Weights(torch.as_tensor(both, dtype=torch.float32), torch.as_tensor(output, dtype=torch.float32))


def widen(weights: Weights, begun: Weights) -> Weights:
    """Add the last arms' blocks of ``begun``, a network for more arms, to trained weights."""
    added = begun.input[len(weights.input) :].clone()
    added[:, :, -1] = weights.input[0, :, -1]
    return Weights(torch.cat([weights.input, added]), weights.output)


@torch.inference_mode()
@np.errstate(all="ignore")  # weights that grow beyond all bounds are the caller's business
def train(
    weights: Weights,
    anchor: Weights,
    tables: Sequence[tuple[Tensor, Tensor]],
    *,
    steps: int,
    learning_rate: float,
    penalty: float,
) -> tuple[Weights, float]:
    """Take full-batch gradient steps; return the new weights and the objective before the last step.

    The objective is, up to the factor n / 2, that of Zhang et al. (2021):
    mean squared error + (penalty / n) |weights - anchor|^2.

    Parameters
    ----------
    weights
        Where to start.
    anchor
        The initial weights, which the penalty pulls to.
    tables
        For each arm its rows (n_k, P + 1), the last column 1, and rewards (n_k,).
    steps, learning_rate, penalty
        Number and size of the steps; lambda of the objective.
    """
    counts = [len(rows) for rows, _ in tables]
    n, y = sum(counts), torch.cat([y for _, y in tables])
    columns = torch.cat([rows for rows, _ in tables]).T.contiguous()
    # Input weights (K, P + 1, H): so long tables are multiplied fastest, both ways.
    w, first = (part.input.transpose(1, 2).contiguous() for part in (weights, anchor))
    v, by_input, by_output = weights.output.clone(), torch.empty_like(w), torch.empty_like(weights.output)
    h, error, scaled = w.new_empty(n, weights.width), torch.empty_like(y), torch.empty_like(columns)
    tied = zip(w, by_input, h.split(counts), scaled.split(counts, dim=1), tables, strict=True)
    blocks = [(block, slope, hidden, part, rows) for block, slope, hidden, part, (rows, _) in tied]
    # Views of what the steps change, and the products whose sums are the slopes of all arms together.
    units, by_units, by_bias, products = v[:-1], by_output[:-1], by_input[:, -1], torch.empty_like(w)
    summed = products.view(-1, weights.width)
    objective, rate = float("nan"), 2 * learning_rate / n
    for step in range(steps):
        # Few and large operations, in place: there are hundreds of thousands of steps.
        for block, _, hidden, _, rows in blocks:
            torch.mm(rows, block, out=hidden)
        torch.mv(h.relu_(), units, out=error).add_(v[-1]).sub_(y)
        if step == steps - 1:
            away = Weights((w - first).transpose(1, 2), v - anchor.output)
            objective = float(error @ error) / n + penalty / n * _squared(away)
        torch.mul(columns, error, out=scaled)
        h.sign_()
        for _, slope, hidden, part, _ in blocks:
            torch.mm(part, hidden, out=slope)
        # What a unit puts out is w x where it is not 0, so that its slope by v is the sum of w times this.
        torch.mul(w, by_input, out=products)
        _add(summed, by_units)
        torch.sum(error, 0, out=by_output[-1])
        # One bias, stored with every arm: each copy moves by the sum over the arms.
        by_bias[:] = _add(by_bias, by_bias.new_empty(weights.width))
        by_input.mul_(units)
        for moved, slope, start in ((w, by_input, first), (v, by_output, anchor.output)):
            slope.add_(moved, alpha=penalty).sub_(start, alpha=penalty)
            moved.sub_(slope, alpha=rate)
    return Weights(w.transpose(1, 2).contiguous(), v), objective


def _add(rows: Tensor, into: Tensor) -> Tensor:
    """Add rows one after the other, as numpy does: zeros of an arm that never moved change nothing."""
    np.add.reduce(rows.numpy(), axis=0, out=into.numpy())
    return into


def _squared(away: Weights) -> float:
    """Squared length, counting the bias once."""
    # arm by arm: one that never moved must not change the order of the sum
    blocks = sum(float((block[:, :-1] ** 2).sum()) for block in away.input)
    return blocks + float((away.input[0, :, -1] ** 2).sum() + (away.output**2).sum())


@dataclass(frozen=True)
class Gradients:
    """The network's value and squared gradient at a context, for K arms."""

    value: Vector
    """(K,)"""
    block: Matrix
    """(K, H, P): by the arm's block of the input weights."""
    bias: Matrix
    """(K, H): by the hidden biases."""
    output: Matrix
    """(K, H + 1): by the output layer, its bias last."""


def squared_gradients(w: Matrix, v: Vector, x: Vector) -> Gradients:
    """Value and squared gradient at ``x`` (P,), by weights (K, H, P + 1) and (H + 1,) in double precision."""
    h = np.maximum(w[:, :, :-1] @ x + w[:, :, -1], 0.0)
    bias = np.where(h > 0, v[:-1] ** 2, 0.0)
    return Gradients(
        value=(h * v[:-1]).sum(axis=1) + v[-1],
        block=bias[:, :, None] * x**2,
        bias=bias,
        output=np.concatenate([h**2, np.ones((len(h), 1))], axis=1),
    )


@dataclass(frozen=True)
class Precision:
    """The diagonal U: lambda plus the squared gradients of the pulls so far."""

    block: Matrix
    """(K, H, P)"""
    bias: Vector
    """(H,)"""
    output: Vector
    """(H + 1,)"""

    @classmethod
    def prior(cls, *, n_arms: int, n_features: int, hidden: int, penalty: float) -> Precision:
        """Return lambda everywhere."""
        return cls(
            np.full((n_arms, hidden, n_features), penalty),
            np.full(hidden, penalty),
            np.full(hidden + 1, penalty),
        )

    def add(self, gradients: Gradients, arm: int) -> None:
        """Add the squared gradient of a pull, of that arm alone, in place: U has a number per weight."""
        self.block[arm] += gradients.block[0]
        self.bias[:] += gradients.bias[0]
        self.output[:] += gradients.output[0]

    def widened(self, n_arms: int, *, penalty: float) -> Precision:
        """Return the diagonal for more arms, of which nothing is known yet."""
        added = np.full((n_arms - len(self.block), *self.block.shape[1:]), penalty)
        return Precision(np.concatenate([self.block, added]), self.bias, self.output)

    def spread(self, gradients: Gradients, arms: Sequence[int]) -> Vector:
        """Sum over the weights of g^2 / U, (K,), for the arms that the gradients are of."""
        spread: Vector = (
            (gradients.block / rows_of(self.block, arms)).sum(axis=(1, 2))
            + (gradients.bias / self.bias).sum(axis=1)
            + (gradients.output / self.output).sum(axis=1)
        )
        return spread


def rows_of(array: Matrix, arms: Sequence[int]) -> Matrix:
    """Rows of some arms, without a copy if they are all."""
    return array if list(arms) == list(range(len(array))) else array[list(arms)]
