"""Attention on a CPU to many keys: in parts, joined by what all keys of a part weigh."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from pfnts.backbones.network.inference.cores import Cores
from pfnts.backbones.network.inference.products import by_onednn, filled_up, has_onednn

MANY = 512
"""As many keys that all queries see are attended to apart from the others, which a mask may hide."""
STRETCH = 256
"""By oneDNN in multiples of it, for which it is prepared: others would come once each, and the memory that
scores of ever other sizes leave behind is not used again."""
AT_ONCE = 2048
"""Keys at most whose scores are held: with half as many it is slower."""


def parted(keys: int, *, masked: bool) -> int:
    """How many of the keys that all queries see are better attended to apart; fused attention has the others.

    It takes a quarter longer with a mask, and its products are not by oneDNN.
    """
    if keys < MANY:
        return 0
    return keys - keys % STRETCH if has_onednn() else keys * masked


def attention_in_parts(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, first: int, cores: Cores
) -> Tensor:
    """Attention to the ``first`` keys without the mask and to the others with it.

    Shapes are those of `pfnts.backbones.network.inference.key_values.attention`.
    """
    heads, m, w = query.shape[1:]
    served = key.shape[1]
    query = query.reshape(served, -1, w)
    parts = _unmasked(query, key[0, :, :first], value[0, :, :first], cores)
    if first < key.shape[2]:
        among = (1, served, -1, w) if mask is None else (served, heads // served, m, w)
        key, value = (x[:, :, first:] for x in (key, value))
        if mask is not None:  # views: nothing is copied for every head
            key, value = (x.transpose(0, 1).expand(-1, among[1], -1, -1) for x in (key, value))
            mask = mask[:, first:]
        seen, size = _fused(query.view(among), key, value, mask)
        parts.append((seen.reshape(query.shape), size.reshape(query.shape[:2])))
    seen, size = parts[0]
    for more, other in parts[1:]:
        seen = torch.lerp(seen, more, torch.sigmoid(other - size)[..., None])
        size = torch.logaddexp(size, other)
    return seen.view(1, heads, m, w)


Part = tuple[Tensor, Tensor]
"""What queries see of some keys (h, q, w), and the logarithm of the keys' weights (h, q)."""


def _unmasked(query: Tensor, key: Tensor, value: Tensor, cores: Cores) -> list[Part]:
    """Attention from queries (h, q, w) to keys and values (h, n, w), stretch after stretch."""
    if not has_onednn():
        seen, size = _fused(query[None], key[None], value[None], None)
        return [(seen[0], size[0])]
    stretches = zip(key.split(AT_ONCE, 1), value.split(AT_ONCE, 1), strict=True)
    heads = [head for stretch in stretches for head in zip(query, *stretch, strict=True)]
    found = cores.each(lambda head: _by_products(*head), heads)
    each = [found[i : i + len(query)] for i in range(0, len(found), len(query))]
    return [(torch.stack([s for s, _ in part]), torch.stack([n for _, n in part])) for part in each]


def _fused(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Part:
    fused = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
    return fused(query, key, value, attn_mask=mask)


def _by_products(query: Tensor, key: Tensor, value: Tensor) -> Part:
    """The same of one head, each step as few passes over the scores as there can be."""
    q, w = query.shape
    # Powers of two take a quarter of the time that powers of e take.
    score = by_onednn(filled_up(query * (math.log2(math.e) / w**0.5)), key)
    largest = score.amax(1, keepdim=True)
    weight = score.sub_(largest).exp2_()
    total = weight.sum(1, keepdim=True)
    size = (largest + total.log2()) * math.log(2)
    return (by_onednn(weight, value.T) / total)[:q], size[:q, 0]
