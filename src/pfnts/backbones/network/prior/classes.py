"""Classification as a bandit meets it: the reward is 1 if the class was named rightly."""

from __future__ import annotations

import torch
from torch import Tensor

from pfnts.backbones.network.prior.device_rng import DeviceRng
from pfnts.backbones.network.prior.functions import draw_function, draw_relevant, standardise
from pfnts.backbones.network.prior.inputs import draw_inputs
from pfnts.backbones.network.prior.logging_policy import CANDIDATES, from_population


def draw_classes(
    batch: int, rows: int, features: int, *, queries: int, rng: DeviceRng, trend: float
) -> tuple[Tensor, Tensor, int]:
    """Draw contexts (B, n, P), the chances of reward 1, (B, n), often 0 or 1, and the number of arms.

    The table holds either the rows on which one class was named, or all rows with the class that was named as
    columns. The policy is mostly right.
    """
    classes = rng.integer(2, 7)
    arms = classes if features >= classes + 2 and rng.chance(0.5) else 0
    candidates = rows if arms else CANDIDATES * rows
    shown, view = draw_inputs(batch, candidates, features - arms, rng=rng)
    label = (nearest_centre if rng.chance(0.5) else largest_score)(view, classes, rng, trend)  # (B, m)
    if rng.chance(0.4 + 0.5 * trend):
        shown = move_apart(shown, label, classes, rng=rng)
    wrong = 0.1 * rng.uniform(batch, 1) * (rng.uniform(batch, 1) < 0.5)
    if arms:
        named = name_classes(label, classes, queries=queries, rng=rng)
        shown = torch.cat([shown, torch.nn.functional.one_hot(named, classes).to(shown.dtype)], -1)
        right = named == label
    else:
        right = label == label.gather(1, rng.index(candidates, batch, 1))
        chosen = choose_where_right(right, rows, queries=queries, rng=rng)
        right = right.gather(1, chosen)
        shown = shown.gather(1, chosen[..., None].expand(-1, -1, features))
    return shown, torch.where(right, 1 - wrong, wrong / (classes - 1)), arms


def nearest_centre(view: Tensor, classes: int, rng: DeviceRng, trend: float) -> Tensor:
    """The class (B, m) of the nearest of some rows, with unequal shares."""
    batch, rows, features = view.shape
    most = classes if rng.chance(trend) else 30 * classes
    count = min(rows, round(rng.log_uniform(classes, most)))
    x = view * (draw_relevant(view, rng=rng) * torch.exp(0.5 * rng.normal(batch, features)))[:, None]
    at = rng.uniform(batch, rows).argsort(1)[:, :count]
    centre = x.gather(1, at[..., None].expand(-1, -1, features))
    share = torch.exp(rng.normal(batch, classes) * rng.log_uniform(0.1, 1.5))
    label = torch.multinomial(share, count, replacement=True, generator=rng.generator)
    label[:, :classes] = torch.arange(classes, device=view.device)[:count]
    near = ((centre**2).sum(-1)[:, None] - 2 * x @ centre.mT).argmin(-1)
    return label.gather(1, near)


def largest_score(view: Tensor, classes: int, rng: DeviceRng, trend: float) -> Tensor:
    """The class (B, m) whose score is largest, with unequal shares."""
    score = torch.stack([standardise(draw_function(view, rng=rng, trend=trend)) for _ in range(classes)], -1)
    return (score + rng.normal(len(view), 1, classes) * rng.log_uniform(0.05, 1.5)).argmax(-1)


def move_apart(shown: Tensor, label: Tensor, classes: int, *, rng: DeviceRng) -> Tensor:
    """Move the rows (B, m, P) of each class in some columns: real classes often lie apart."""
    batch, _, features = shown.shape
    far = torch.exp(rng.uniform(batch, 1, 1) * 3.0 - 1.6)
    offset = rng.normal(batch, classes, features) * far * draw_relevant(shown, rng=rng)[:, None]
    of_row = offset.gather(1, label[..., None].expand(-1, -1, features))
    return shown + shown.std(1, keepdim=True) * of_row


def name_classes(label: Tensor, classes: int, *, queries: int, rng: DeviceRng) -> Tensor:
    """Return the class that a policy names (B, m): the right one ever more often, any for the queries."""
    batch, rows = label.shape
    progress = (torch.arange(rows, device=label.device) / rows) ** 0.5
    skilled = rng.uniform(batch, rows) < rng.uniform(batch, 1) * progress
    skilled &= ~from_population(batch, rows, queries=queries, rng=rng)
    return torch.where(skilled, label, rng.index(classes, batch, rows))


def choose_where_right(right: Tensor, rows: int, *, queries: int, rng: DeviceRng) -> Tensor:
    """Choose ``rows`` of the candidates (B, m), preferably those whose class is right, in order.

    Queries from the population are the last ``queries`` candidates.
    """
    batch, candidates = right.shape
    leak = torch.exp(rng.uniform(batch, 1) * -4)
    weight = torch.where(right[:, : candidates - queries], 1.0, leak)
    race = -torch.log(rng.uniform(*weight.shape).clamp(min=1e-12)) / weight
    chosen = race.topk(rows, dim=1, largest=False).indices.sort(1).values
    place = torch.arange(rows, device=right.device)
    population = from_population(batch, rows, queries=queries, rng=rng)
    return torch.where(population, candidates - rows + place, chosen)
