"""Contexts of a table: as the reward function uses them, and as columns show them."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from pfnts.backbones.network.prior.device_rng import DeviceRng
from pfnts.backbones.network.prior.functions import standardise
from pfnts.backbones.network.prior.mixture import Mixture


def draw_inputs(
    batch: int, rows: int, features: int, *, rng: DeviceRng, mixture: Mixture | None = None
) -> tuple[Tensor, Tensor]:
    """Draw contexts as shown and as the reward function sees them, both (B, m, P).

    The two differ where a column is a categorical code: the number shown says nothing of its worth.
    """
    mixture = mixture or Mixture()
    if features >= 6 and rng.chance(0.2):
        return draw_categories(batch, rows, features, rng=rng, most=mixture.levels)
    if features >= 3 and rng.chance(0.45):
        return draw_manifold(batch, rows, features, rng=rng)
    normal = rng.normal(batch, rows, features)
    uniform = (rng.uniform(batch, rows, features) * 2 - 1) * math.sqrt(3)
    mixing = rng.normal(batch, features, features) / math.sqrt(features)
    share = rng.uniform(batch, 1, 1)
    correlated = normal * share + (1 - share) * (normal @ mixing)
    centre = rng.normal(batch, 6, features) * 1.5
    cluster = rng.index(6, batch, rows)
    clustered = 0.6 * normal + centre.gather(1, cluster[..., None].expand(-1, -1, features))
    kind = rng.uniform(batch, 1, 1)
    X = torch.where(kind < 0.45, uniform, torch.where(kind < 0.7, normal, correlated))
    X = torch.where(kind > 0.93, clustered, X)

    mixed = rng.uniform(batch, 1, 1) < 0.4  # tables with columns that are not continuous
    role = rng.uniform(batch, 1, features)
    binary = (rng.normal(batch, 1, features) * 0.8 < X).float()
    rounded = torch.round(X * torch.exp(rng.uniform(batch, 1, features) * 1.5))
    skewed = torch.exp(0.8 * X)
    X = torch.where(mixed & (role < 0.3), binary, X)
    X = torch.where(mixed & (role > 0.3) & (role < 0.45), rounded, X)
    X = torch.where(mixed & (role > 0.92), skewed, X)

    levels = round(rng.log_uniform(3, mixture.codes))
    code = ((torch.erf(X / math.sqrt(2)) + 1) / 2 * levels).long().clamp(0, levels - 1)
    worth = rng.normal(batch, features, levels)
    worth_of = worth[:, None].expand(-1, rows, -1, -1).gather(3, code[..., None])[..., 0]
    categorical = mixed & (role > 0.45) & (role < 0.6)
    view = torch.where(categorical, worth_of, X)
    return spoil(torch.where(categorical, code.float(), X), rng=rng), standardise(view)


def draw_manifold(batch: int, rows: int, features: int, *, rng: DeviceRng) -> tuple[Tensor, Tensor]:
    """Columns made of a few hidden causes, as real tables have them; the reward may follow either."""
    hidden = rng.integer(1, min(8, features - 1))
    Z = rng.normal(batch, rows, hidden)
    if rng.chance(0.3):
        Z = (rng.uniform(batch, rows, hidden) * 2 - 1) * math.sqrt(3)
    if rng.chance(0.3):  # lumps
        lumps = rng.integer(2, 40)
        centre = rng.normal(batch, lumps, hidden) * 1.2
        weight = torch.exp(rng.normal(batch, lumps))
        lump = torch.multinomial(weight, rows, replacement=True, generator=rng.generator)
        Z = rng.log_uniform(0.05, 0.6) * Z + centre.gather(1, lump[..., None].expand(-1, -1, hidden))
    h = causes = standardise(Z)
    for _ in range(rng.integer(0, 2)):
        width = rng.integer(8, 48)
        weight = rng.normal(batch, h.shape[-1], width) * rng.log_uniform(0.5, 2.0) / math.sqrt(h.shape[-1])
        bend = _BENDS[rng.integer(0, len(_BENDS) - 1)]
        h = standardise(bend(h @ weight + rng.normal(batch, 1, width) * 0.7))
    mixing = rng.normal(batch, h.shape[-1], features)
    if rng.chance(0.5):  # each column is made of few parts, not of all
        few = (rng.uniform(batch, h.shape[-1], features) < 2.0 / h.shape[-1]).float()
        mixing = mixing * few + 1e-3 * rng.normal(batch, h.shape[-1], features)
    X = standardise(h @ mixing)
    noise = torch.exp(rng.uniform(batch, 1, features) * 1.5) * rng.log_uniform(0.002, 0.4)
    X = standardise(X + noise * rng.normal(batch, rows, features))
    useless = (rng.uniform(batch, 1, features) < 0.3) & (rng.uniform(batch, 1, 1) < 0.3)
    X = torch.where(useless, rng.normal(batch, rows, features), X)
    view = causes if rng.chance(0.5) else X
    mixed, role = rng.uniform(batch, 1, 1) < 0.35, rng.uniform(batch, 1, features)
    binary = (rng.normal(batch, 1, features) * 0.8 < X).float()
    rounded = torch.round(X * torch.exp(rng.uniform(batch, 1, features) * 1.5))
    X = torch.where(mixed & (role < 0.2), binary, X)
    X = torch.where(mixed & (role > 0.2) & (role < 0.35), rounded, X)
    X = torch.where(mixed & (role > 0.8), torch.exp(0.8 * X), X)
    return spoil(X, rng=rng), standardise(view)


def draw_categories(
    batch: int, rows: int, features: int, *, rng: DeviceRng, most: int = 20
) -> tuple[Tensor, Tensor]:
    """Categorical variables as a schema shows them, a column of zeros and ones for every level, and numbers.

    All follow a few hidden causes, the more or the less. A variable has ``most`` levels at most.
    """
    hidden = rng.integer(1, 6)
    causes = rng.normal(batch, rows, hidden)
    if rng.chance(0.4):  # lumps
        centre = 1.5 * rng.normal(batch, rng.integer(2, 12), hidden)
        lump = rng.index(centre.shape[1], batch, rows, 1)
        causes = standardise(0.4 * causes + centre.gather(1, lump.expand(-1, -1, hidden)))
    tie, shares = rng.log_uniform(0.3, 4.0), rng.log_uniform(0.2, 1.5)
    numbers = rng.integer(0, features // 2) if rng.chance(0.5) else 0
    parts, width = [], features - numbers
    while width:
        levels = min(width, rng.integer(2, most if rng.chance(0.15) else 8))
        choices = max(2, levels)  # where one column is left, it says yes or no
        score = tie * causes @ rng.normal(batch, hidden, choices) / math.sqrt(hidden)
        score = score + shares * rng.normal(batch, 1, choices)
        luck = -torch.log(-torch.log(rng.uniform(*score.shape).clamp(1e-6, 1 - 1e-6)))
        code = (score + luck).argmax(-1)
        parts.append(torch.nn.functional.one_hot(code, choices)[..., :levels].float())
        width -= levels
    level = torch.cat(parts, -1)
    view = (level - 0.2) / 0.4  # what a level is worth does not depend on how rare it is
    if not numbers:
        return level, view
    mixed = causes @ rng.normal(batch, hidden, numbers)
    number = standardise(mixed + rng.log_uniform(0.1, 3.0) * rng.normal(batch, rows, numbers))
    return torch.cat([level, spoil(number, rng=rng)], -1), torch.cat([view, number], -1)


def spoil(X: Tensor, *, rng: DeviceRng) -> Tensor:
    """Move single cells of some tables far out."""
    batch = len(X)
    far = (rng.uniform(*X.shape) < 0.003) & (rng.uniform(batch, 1, 1) < 0.1)
    return torch.where(far, X * torch.exp(rng.uniform(*X.shape) * 6), X)


_BENDS: list[Callable[[Tensor], Tensor]] = [
    torch.tanh,
    torch.relu,
    torch.sin,
    torch.abs,
    lambda h: h * h.clamp(-3, 3) / 2,
    lambda h: torch.exp(-h * h),
]
