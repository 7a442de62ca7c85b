"""Where the contexts of a table lie, and how they are shown."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from pfnts.backbones.embedded.dice import Dice
from pfnts.backbones.embedded.functions import standardise


def draw_inputs(batch: int, rows: int, features: int, *, dice: Dice) -> tuple[Tensor, Tensor]:
    """Draw contexts as shown and as the reward function sees them, both (B, m, P).

    The two differ where a column is a categorical code: the number shown says nothing of its worth.
    """
    if features >= 3 and dice.chance(0.45):
        return draw_manifold(batch, rows, features, dice=dice)
    normal = dice.normal(batch, rows, features)
    uniform = (dice.uniform(batch, rows, features) * 2 - 1) * math.sqrt(3)
    mixing = dice.normal(batch, features, features) / math.sqrt(features)
    share = dice.uniform(batch, 1, 1)
    correlated = normal * share + (1 - share) * (normal @ mixing)
    centre = dice.normal(batch, 6, features) * 1.5
    cluster = dice.index(6, batch, rows)
    clustered = 0.6 * normal + centre.gather(1, cluster[..., None].expand(-1, -1, features))
    kind = dice.uniform(batch, 1, 1)
    X = torch.where(kind < 0.45, uniform, torch.where(kind < 0.7, normal, correlated))
    X = torch.where(kind > 0.93, clustered, X)

    mixed = dice.uniform(batch, 1, 1) < 0.4  # tables with columns that are not continuous
    role = dice.uniform(batch, 1, features)
    binary = (dice.normal(batch, 1, features) * 0.8 < X).float()
    rounded = torch.round(X * torch.exp(dice.uniform(batch, 1, features) * 1.5))
    skewed = torch.exp(0.8 * X)
    X = torch.where(mixed & (role < 0.3), binary, X)
    X = torch.where(mixed & (role > 0.3) & (role < 0.45), rounded, X)
    X = torch.where(mixed & (role > 0.92), skewed, X)

    levels = dice.integer(3, 12)
    code = ((torch.erf(X / math.sqrt(2)) + 1) / 2 * levels).long().clamp(0, levels - 1)
    worth = dice.normal(batch, features, levels)
    worth_of = worth[:, None].expand(-1, rows, -1, -1).gather(3, code[..., None])[..., 0]
    categorical = mixed & (role > 0.45) & (role < 0.6)
    view = torch.where(categorical, worth_of, X)
    return spoil(torch.where(categorical, code.float(), X), dice=dice), standardise(view)


def draw_manifold(batch: int, rows: int, features: int, *, dice: Dice) -> tuple[Tensor, Tensor]:
    """Columns made of a few hidden causes, as real tables have them; the reward may follow either."""
    hidden = dice.integer(1, min(8, features - 1))
    Z = dice.normal(batch, rows, hidden)
    if dice.chance(0.3):
        Z = (dice.uniform(batch, rows, hidden) * 2 - 1) * math.sqrt(3)
    if dice.chance(0.3):  # lumps
        lumps = dice.integer(2, 40)
        centre = dice.normal(batch, lumps, hidden) * 1.2
        weight = torch.exp(dice.normal(batch, lumps))
        lump = torch.multinomial(weight, rows, replacement=True, generator=dice.generator)
        Z = dice.log_uniform(0.05, 0.6) * Z + centre.gather(1, lump[..., None].expand(-1, -1, hidden))
    h = causes = standardise(Z)
    for _ in range(dice.integer(0, 2)):
        width = dice.integer(8, 48)
        weight = dice.normal(batch, h.shape[-1], width) * dice.log_uniform(0.5, 2.0) / math.sqrt(h.shape[-1])
        bend = _BENDS[dice.integer(0, len(_BENDS) - 1)]
        h = standardise(bend(h @ weight + dice.normal(batch, 1, width) * 0.7))
    mixing = dice.normal(batch, h.shape[-1], features)
    if dice.chance(0.5):  # each column is made of few parts, not of all
        few = (dice.uniform(batch, h.shape[-1], features) < 2.0 / h.shape[-1]).float()
        mixing = mixing * few + 1e-3 * dice.normal(batch, h.shape[-1], features)
    X = standardise(h @ mixing)
    noise = torch.exp(dice.uniform(batch, 1, features) * 1.5) * dice.log_uniform(0.002, 0.4)
    X = standardise(X + noise * dice.normal(batch, rows, features))
    useless = (dice.uniform(batch, 1, features) < 0.3) & (dice.uniform(batch, 1, 1) < 0.3)
    X = torch.where(useless, dice.normal(batch, rows, features), X)
    view = causes if dice.chance(0.5) else X
    mixed, role = dice.uniform(batch, 1, 1) < 0.35, dice.uniform(batch, 1, features)
    binary = (dice.normal(batch, 1, features) * 0.8 < X).float()
    rounded = torch.round(X * torch.exp(dice.uniform(batch, 1, features) * 1.5))
    X = torch.where(mixed & (role < 0.2), binary, X)
    X = torch.where(mixed & (role > 0.2) & (role < 0.35), rounded, X)
    X = torch.where(mixed & (role > 0.8), torch.exp(0.8 * X), X)
    return spoil(X, dice=dice), standardise(view)


def spoil(X: Tensor, *, dice: Dice) -> Tensor:
    """Move single cells of some tables far out."""
    batch = len(X)
    far = (dice.uniform(*X.shape) < 0.003) & (dice.uniform(batch, 1, 1) < 0.1)
    return torch.where(far, X * torch.exp(dice.uniform(*X.shape) * 6), X)


_BENDS: list[Callable[[Tensor], Tensor]] = [
    torch.tanh,
    torch.relu,
    torch.sin,
    torch.abs,
    lambda h: h * h.clamp(-3, 3) / 2,
    lambda h: torch.exp(-h * h),
]
