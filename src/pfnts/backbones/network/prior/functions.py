"""Random functions of a table's columns, of the kinds that rewards have: each maps (B, m, P) to (B, m).

``relevant`` (B, P) is one where a column may matter and zero elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Protocol

import torch
from torch import Tensor

from pfnts.backbones.network.prior.device_rng import DeviceRng

ROUGH = 0.3
"""Share of the families' groups that are rougher than rewards mostly are: what only long histories tell."""


def draw_function(X: Tensor, *, rng: DeviceRng, trend: float) -> Tensor:
    """Evaluate one random function per table, all of one family.

    With probability ``trend`` it bends a straight line, which counts for more; else it stands alone, or
    sometimes with a second one.
    """
    if rng.chance(0.5 * trend):
        return draw_dense(X, rng=rng, trend=trend)
    relevant = draw_relevant(X, rng=rng)
    value = standardise(_family(rng)(X, relevant, rng))
    if rng.chance(trend):
        value = standardise(linear(X, relevant, rng)) + 1.2 * rng.uniform(len(X), 1) * value
    elif rng.chance(0.25):
        second = standardise(_family(rng)(X, draw_relevant(X, rng=rng), rng))
        value = value + rng.uniform(len(X), 1) * second
    return value


class Function(Protocol):
    """Draws one random function per table and evaluates it."""

    def __call__(self, X: Tensor, *, rng: DeviceRng, trend: float) -> Tensor:
        """Map contexts (B, m, P) to worths (B, m)."""
        ...


def draw_dense(X: Tensor, *, rng: DeviceRng, trend: float) -> Tensor:  # noqa: ARG001
    """Evaluate a linear function of all columns, with coefficients of one size."""
    return standardise(linear(X, torch.ones_like(X[:, 0]), rng))


def standardise(x: Tensor) -> Tensor:
    """Scale to mean 0 and standard deviation 1 over the rows."""
    return (x - x.mean(1, keepdim=True)) / (x.std(1, keepdim=True) + 1e-6)


def draw_relevant(X: Tensor, *, rng: DeviceRng) -> Tensor:
    """Draw which columns matter: all of them, or a number that is small more often than large."""
    batch, _, features = X.shape
    count = torch.exp(rng.uniform(batch, 1) * math.log(features + 0.5)).clamp(1, features)
    some = rng.uniform(batch, features).argsort(1) < count
    return (some | (rng.uniform(batch, 1) < 0.25)).float()


def linear(X: Tensor, relevant: Tensor, rng: DeviceRng) -> Tensor:
    """A weighted sum."""
    weight = rng.normal(*relevant.shape) * relevant
    return (X * weight[:, None]).sum(-1)


def perceptron(X: Tensor, relevant: Tensor, rng: DeviceRng) -> Tensor:
    """A random multilayer perceptron."""
    h, width = X * relevant[:, None], rng.integer(8, 64)
    fan = relevant.sum(1).clamp(min=1)[:, None, None]
    layers, largest = rng.integer(1, 3), 3.3 if rng.chance(ROUGH) else 1.5
    for layer in range(layers):
        gain = rng.log_uniform(0.2 * largest, largest)
        weight = (
            rng.normal(len(X), h.shape[-1], width) * gain / (fan.sqrt() if layer == 0 else math.sqrt(width))
        )
        h = _ACTIVATIONS[rng.integer(0, len(_ACTIVATIONS) - 1)](
            h @ weight + rng.normal(len(X), 1, width) * 0.7
        )
        if layer < layers - 1:
            h = standardise(h)
    return (h @ rng.normal(len(X), width, 1))[..., 0]


def smooth(X: Tensor, relevant: Tensor, rng: DeviceRng) -> Tensor:
    """A draw from a Gaussian process with a length scale per column, by random waves."""
    batch, _, features = X.shape
    waves = 128
    largest = 8.0 if rng.chance(ROUGH) else 2.0
    roughness = largest * torch.exp(rng.uniform(batch, 1, 1) * -2.5)
    per_column = torch.exp(rng.normal(batch, features, 1) * 0.6) * relevant[..., None]
    weight = rng.normal(batch, features, waves) * per_column * roughness * 0.8
    weight = weight / relevant.sum(1).clamp(min=1).sqrt()[:, None, None]
    rough_tail = (
        rng.normal(batch, 1, waves).abs() + 0.2
    )  # some processes are rougher than any Gaussian kernel's
    weight = torch.where(rng.uniform(batch, 1, 1) < 0.3, weight / rough_tail, weight)
    wave = torch.cos(X @ weight + rng.uniform(batch, 1, waves) * 2 * math.pi)
    return (wave @ rng.normal(batch, waves, 1))[..., 0]


def oblivious_trees(X: Tensor, relevant: Tensor, rng: DeviceRng) -> Tensor:
    """A sum of trees that ask the same question at all nodes of a level."""
    batch, rows, _ = X.shape
    trees, depth = round(rng.log_uniform(1, 64)), min(rng.integer(1, 7), rng.integer(1, 7))
    above = _splits(X, relevant, trees * depth, rng).view(batch, rows, trees, depth)
    leaf = (above * 2 ** torch.arange(depth, device=X.device)).sum(-1)
    return _leaf_values(rng.normal(batch, trees, 2**depth), leaf).sum(-1)


def bart_trees(X: Tensor, relevant: Tensor, rng: DeviceRng) -> Tensor:
    """A tree, or a sum of shallow ones, with a question of its own at every node and few columns in use."""
    batch, rows, _ = X.shape
    trees = round(rng.log_uniform(1, 100))
    sparse = relevant * torch.exp(rng.normal(*relevant.shape) * 1.5)
    above = _splits(X, sparse, trees * 7, rng).view(batch, rows, trees, 7)
    first = above[..., 0]
    second = torch.where(first == 1, above[..., 2], above[..., 1])
    node = 2 * first + second
    third = above[..., 3:].gather(-1, node[..., None])[..., 0]
    value = [rng.normal(batch, trees, 2**level) for level in (1, 2, 3)]
    often = (0.95, 0.9) if rng.chance(0.35) else (0.5, 0.3)
    split = [rng.uniform(batch, trees, 2**level) < p for level, p in zip((1, 2), often, strict=True)]
    leaves = torch.where(split[1].repeat_interleave(2, -1), value[2], value[1].repeat_interleave(2, -1))
    leaves = torch.where(split[0].repeat_interleave(4, -1), leaves, value[0].repeat_interleave(4, -1))
    return _leaf_values(leaves, 2 * node + third).sum(-1)


def additive(X: Tensor, relevant: Tensor, rng: DeviceRng) -> Tensor:
    """Curves of single columns, and interactions of pairs."""
    batch, rows, features = X.shape
    largest = 4.5 if rng.chance(ROUGH) else 2.0
    frequency = largest * torch.exp(rng.uniform(batch, 1, features) * -1.8)
    shift = rng.normal(batch, 1, features)
    kind = rng.index(6, batch, 1, features)
    centred = X - 0.5 * shift
    curves = [X, torch.sin(frequency * X + shift), centred**2, (centred > 0).float(), centred.abs()]
    curve = torch.exp(-frequency * centred**2)
    for k, c in enumerate(curves):
        curve = torch.where(kind == k, c, curve)
    weight = rng.normal(batch, features) * torch.exp(rng.normal(batch, features) * 0.5) * relevant
    single = (standardise(curve) * weight[:, None]).sum(-1)

    pairs = max(1, features // 2)
    one, other = (_pick(relevant, pairs, rng)[:, None].expand(-1, rows, -1) for _ in range(2))
    left = X.gather(2, one) + rng.normal(batch, 1, pairs)
    right = X.gather(2, other) + rng.normal(batch, 1, pairs)
    pair_kind = rng.uniform(batch, 1, pairs)
    wave = torch.sin(torch.exp(rng.uniform(batch, 1, pairs) * 1.5 - 0.9) * left * right)
    both = ((left > 0) & (right > 0)).float()
    pair = torch.where(pair_kind < 0.45, wave, torch.where(pair_kind < 0.85, left * right, both))
    strength = rng.normal(batch, 1, pairs) * (rng.uniform(batch, 1, 1) < 0.7)
    return single + (standardise(pair) * strength).sum(-1)


def prototypes(X: Tensor, relevant: Tensor, rng: DeviceRng) -> Tensor:
    """The value of the nearest of some rows: flat near each, with sharp borders between."""
    batch, rows, features = X.shape
    count = min(rows, round(rng.log_uniform(3, 300)))
    x = X * (relevant * torch.exp(0.5 * rng.normal(*relevant.shape)))[:, None]
    at = rng.uniform(batch, rows).argsort(1)[:, :count]
    centre = x.gather(1, at[..., None].expand(-1, -1, features))
    value = rng.normal(batch, count)
    if rng.chance(0.4):  # neighbours alike: values follow a smooth function, borders stay
        value = value + 2 * standardise(torch.sin(centre @ rng.normal(batch, features, 1))[..., 0])
    between = (centre**2).sum(-1)[:, None] - 2 * x @ centre.mT
    if rng.chance(0.4):  # soft borders
        between = between + (x**2).sum(-1, keepdim=True)
        width = rng.log_uniform(0.01, 0.3) * between.mean((1, 2), keepdim=True) + 1e-6
        return (torch.softmax(-between / width, -1) @ value[..., None])[..., 0]
    return value.gather(1, between.argmin(-1))


def _splits(X: Tensor, weight: Tensor, count: int, rng: DeviceRng) -> Tensor:
    """Answers (B, m, count), 0 or 1, of questions "is this column above the value it has in some row?"."""
    batch, rows, _ = X.shape
    column = _pick(weight, count, rng)[:, None].expand(-1, rows, -1)
    x = X.gather(2, column)
    threshold = x.gather(1, rng.index(rows, batch, 1, count))
    return (x > threshold).long()


def _leaf_values(leaves: Tensor, leaf: Tensor) -> Tensor:
    """Look up (B, trees, L) leaf values at (B, m, trees) leaf indices."""
    rows = leaf.shape[1]
    return leaves[:, None].expand(-1, rows, -1, -1).gather(3, leaf[..., None])[..., 0]


def _pick(weight: Tensor, count: int, rng: DeviceRng) -> Tensor:
    return torch.multinomial(weight + 1e-9, count, replacement=True, generator=rng.generator)


_Function = Callable[[Tensor, Tensor, DeviceRng], Tensor]
_FAMILIES: list[tuple[_Function, float]] = [
    (linear, 0.12),
    (perceptron, 0.15),
    (smooth, 0.16),
    (oblivious_trees, 0.11),
    (bart_trees, 0.15),
    (additive, 0.22),
    (prototypes, 0.09),
]
_ACTIVATIONS: list[Callable[[Tensor], Tensor]] = [
    torch.tanh,
    torch.relu,
    torch.sin,
    torch.abs,
    lambda h: h * h.clamp(-3, 3) / 2,
    lambda h: (h > 0).float(),
    lambda h: torch.exp(-h * h),
]


def _family(rng: DeviceRng) -> _Function:
    return _FAMILIES[rng.choice([weight for _, weight in _FAMILIES])][0]
