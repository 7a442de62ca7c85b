"""The network: a transformer over tables that is causal in the rows.

Two streams of tokens run through it side by side. The *data* stream holds a learned start row and then
the observed rows, each knowing its own target. The *query* stream holds rows whose target is asked for.
Both look only at the data stream, and position ``i`` sees the start row and the first ``i`` observed rows:
a data token includes itself, a query token does not. So one pass over a table predicts every row from the
rows before it, and at inference the keys and values of the data stream, computed once, serve every prefix.
Every row also comes with what simple regressions on the rows before it say (`regressions`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pfnts.backbones.embedded.regressions import OPINIONS


@dataclass(frozen=True)
class Architecture:
    """The sizes of a network."""

    cell: int = 64
    """Width of a cell's token."""
    cell_heads: int = 4
    cell_layers: int = 2
    """Pairs of a column block and a row block."""
    readouts: int = 4
    """Summary tokens per row; together they make the row's token, of width ``readouts * cell``."""
    heads: int = 8
    layers: int = 8
    """Blocks of the in-context stage."""
    expansion: int = 2
    """Hidden width of a feed-forward layer over its outer width."""
    identity: int = 24
    """Length of the random vector that tells a column from its neighbours."""
    quantiles: int = 99

    @property
    def row(self) -> int:
        """Width of a row's token."""
        return self.readouts * self.cell


class CausalPFN(nn.Module):
    """Predicts each row's target from the rows before it.

    Parameters
    ----------
    architecture
        The sizes.

    Examples
    --------
    >>> from pfnts.backbones.embedded.regressions import opinions_on
    >>> network = CausalPFN(Architecture(layers=1))
    >>> X, y, identity = torch.randn(1, 6, 3), torch.randn(1, 6), torch.randn(1, 3, 24)
    >>> mean, quantiles = network(X, y, identity, [range(6)], opinions_on(X, y))
    >>> mean.shape, quantiles.shape
    (torch.Size([1, 6]), torch.Size([1, 6, 99]))
    """

    def __init__(self, architecture: Architecture | None = None) -> None:
        super().__init__()
        a = architecture or Architecture()
        self.architecture = a
        self.cells = CellEmbedding(a)
        self.columns: Sequence[CausalBlock] = nn.ModuleList(  # type: ignore[assignment]
            CausalBlock(a.cell, a.cell_heads, a.expansion) for _ in range(a.cell_layers)
        )
        self.across = nn.ModuleList(RowBlock(a.cell, a.cell_heads, a.expansion) for _ in range(a.cell_layers))
        self.readout = Readout(a)
        self.target = TargetEmbedding(a.row)
        self.opinion = nn.Linear(OPINIONS, a.row, bias=False)
        self.in_context: Sequence[CausalBlock] = nn.ModuleList(  # type: ignore[assignment]
            CausalBlock(a.row, a.heads, a.expansion) for _ in range(a.layers)
        )
        self.head = Head(a)

    def forward(
        self, X: Tensor, y: Tensor, identity: Tensor, asked: Sequence[range], opinions: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Predict rows from the rows before them.

        Parameters
        ----------
        X
            (B, n, P), normalised; NaN where missing.
        y
            (B, n), normalised.
        identity
            (B, P, identity), the columns' random vectors.
        asked
            Stretches of rows to predict, q rows in all.
        opinions
            (B, n, 13), what regressions say of each row (`opinions_on`).

        Returns
        -------
        Means (B, q) and quantiles (B, q, Q).
        """
        n = X.shape[1]
        identity = identity.to(self.cells.missing.dtype)
        sight = Sight.of(n, asked, device=X.device)
        cells = self.cells(X, identity)  # (B, n, P, c)
        known = cells + self.cells.target(y)[:, :, None]
        query = cells[:, sight.asked] + self.cells.target.unknown
        h = torch.cat([self.cells.start_row(identity), known[:, :-1], query], 1)  # (B, n + q, P, c)
        for column, across in zip(self.columns, self.across, strict=True):
            h = across(column(h, sight))
        h = self.readout(h)  # (B, n + q, d)
        told = self.target(y) + self.opinion(opinions.to(h.dtype))
        asked_of = self.target.unknown + self.opinion(opinions[:, sight.asked].to(h.dtype))
        h = h + torch.cat([F.pad(told[:, :-1], (0, 0, 1, 0)), asked_of], 1)
        h = h[:, :, None]  # (B, n + q, 1, d): a table of one column
        for block in self.in_context:
            h = block(h, sight)
        return self.head(h[:, n:, 0], opinions[:, sight.asked])


@dataclass(frozen=True)
class Sight:
    """Which data tokens each token sees; tokens are ``data`` rows (the start row first), then queries."""

    data: int
    stretches: Sequence[range]
    """The rows asked for: each sees the start row and the rows before it."""
    asked: Tensor
    """(q,), the same in one."""
    position: Tensor
    """(data + q,), how many rows lie before a token, itself included if it is data and not the start."""

    @staticmethod
    def of(data: int, stretches: Sequence[range], *, device: torch.device) -> Sight:
        """The start row and the rows before the one asked for are seen."""
        asked = rows_of(stretches, device=device)
        return Sight(data, stretches, asked, torch.cat([torch.arange(data, device=device), asked]))


def rows_of(stretches: Sequence[range], *, device: torch.device | str) -> Tensor:
    """All rows of some stretches, one after the other."""
    return torch.cat([torch.arange(s.start, s.stop, device=device) for s in stretches])


WAVES = 8


class CellEmbedding(nn.Module):
    """A number and the column it stands in, as a token."""

    def __init__(self, a: Architecture) -> None:
        super().__init__()
        self.value = nn.Sequential(nn.Linear(1 + 2 * WAVES, a.cell), nn.GELU(), nn.Linear(a.cell, a.cell))
        self.missing = nn.Parameter(torch.zeros(a.cell))
        self.start = nn.Parameter(torch.randn(a.cell) * 0.02)
        self.identity = nn.Linear(a.identity, a.cell)
        self.target = TargetEmbedding(a.cell)

    def forward(self, X: Tensor, identity: Tensor) -> Tensor:
        """Embed (B, n, P) values as (B, n, P, c)."""
        absent = torch.isnan(X)[..., None]
        x = torch.nan_to_num(X)[..., None]
        angle = x * torch.exp(torch.linspace(-1.5, 2.0, WAVES, device=X.device))
        features = torch.cat([x, torch.sin(angle), torch.cos(angle)], -1).to(self.missing.dtype)
        return torch.where(absent, self.missing, self.value(features)) + self.identity(identity)[:, None]

    def start_row(self, identity: Tensor) -> Tensor:
        """Embed the row before the first, (B, 1, P, c)."""
        return (self.start + self.identity(identity))[:, None]


class TargetEmbedding(nn.Module):
    """A target, or the fact that it is not known, as something to add to a token."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.value = nn.Sequential(nn.Linear(1, width), nn.GELU(), nn.Linear(width, width))
        self.unknown = nn.Parameter(torch.zeros(width))

    def forward(self, y: Tensor) -> Tensor:
        """Embed (B, n) targets as (B, n, width)."""
        return self.value(y[..., None].to(self.unknown.dtype))


class CausalBlock(nn.Module):
    """Attention down the rows of each column, from both streams to the data stream."""

    def __init__(self, width: int, heads: int, expansion: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm = nn.LayerNorm(width)
        self.query = nn.Linear(width, width, bias=False)
        self.key = nn.Linear(width, width, bias=False)
        self.value = nn.Linear(width, width, bias=False)
        self.out = nn.Linear(width, width)
        self.sharpness = nn.Parameter(torch.zeros(heads))
        self.feed_forward = FeedForward(width, expansion)

    def forward(self, h: Tensor, sight: Sight) -> Tensor:
        """Map tokens (B, m, P, w), data first, each seeing the data before it."""
        from torch.nn.attention.bias import causal_lower_right  # slow to import, and for training alone

        normed, n = self.norm(h), sight.data
        key, value = self.keys_values(normed[:, :n])
        query = self.queries(normed, sight.position)
        of_data = F.scaled_dot_product_attention(query[:, :, :n], key, value, is_causal=True)
        # Each stretch ends where its keys end: a causal mask at the lower right, which fast kernels know.
        of_queries = [
            F.scaled_dot_product_attention(
                part, key[:, :, : s.stop], value[:, :, : s.stop], attn_mask=causal_lower_right(len(s), s.stop)
            )
            for s, part in zip(
                sight.stretches, query[:, :, n:].split([len(s) for s in sight.stretches], 2), strict=True
            )
        ]
        return self.finish(h, torch.cat([of_data, *of_queries], 2))

    def keys_values(self, normed: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values of data tokens (B, n, P, w), each as (B, P * heads, n, w / heads)."""
        return self._split(self.key(normed)), self._split(self.value(normed))

    def queries(self, normed: Tensor, position: Tensor) -> Tensor:
        """Queries of tokens (B, m, P, w), sharper if they see more rows, as (B, P * heads, m, w / heads)."""
        scale = (
            1 + self.sharpness * (torch.log1p(position) / math.log(1024)).to(normed.dtype)[:, None]
        )  # (m, heads)
        query = self.query(normed).unflatten(-1, (self.heads, -1)) * scale[:, None, :, None]
        return query.flatten(-3, -2).transpose(-3, -2)

    def finish(self, h: Tensor, seen: Tensor) -> Tensor:
        """Add what was seen (B, P * heads, m, w / heads) to the tokens (B, m, P, w), and transform each."""
        h = h + self.out(seen.transpose(-3, -2).reshape(h.shape))
        return self.feed_forward(h)

    def _split(self, tokens: Tensor) -> Tensor:
        return tokens.unflatten(-1, (self.heads, -1)).flatten(-3, -2).transpose(-3, -2)


class RowBlock(nn.Module):
    """Tells every cell a summary of its row."""

    def __init__(self, width: int, heads: int, expansion: int) -> None:
        super().__init__()
        self.pool = Pool(width, heads, width)
        self.out = nn.Linear(width, width)
        self.feed_forward = FeedForward(width, expansion)

    def forward(self, h: Tensor) -> Tensor:
        """Map cells (..., P, w); rows do not see each other."""
        return self.feed_forward(h + self.out(self.pool(h))[..., None, :])


class Readout(nn.Module):
    """A row's token: several summaries of its cells."""

    def __init__(self, a: Architecture) -> None:
        super().__init__()
        self.pool = Pool(a.cell, a.readouts * a.cell_heads, a.row)
        self.feed_forward = FeedForward(a.row, 1)
        self.last = nn.LayerNorm(a.row)

    def forward(self, h: Tensor) -> Tensor:
        """Map cells (..., P, c) to row tokens (..., d)."""
        return self.last(self.feed_forward(self.pool(h)))


class Pool(nn.Module):
    """Attention with learned questions: each head weighs the cells of a row and averages them."""

    def __init__(self, width: int, heads: int, out: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.score = nn.Linear(width, heads)
        self.value = nn.Linear(heads * width, out, bias=False)

    def forward(self, h: Tensor) -> Tensor:
        """Map cells (..., P, w) to summaries (..., out)."""
        normed = self.norm(h)
        weight = torch.softmax(self.score(normed), -2)  # (..., P, heads)
        return self.value((weight.mT @ normed).flatten(-2))


class FeedForward(nn.Module):
    """Two layers on each token, added to it."""

    def __init__(self, width: int, expansion: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.widen = nn.Linear(width, expansion * width)
        self.narrow = nn.Linear(expansion * width, width)

    def forward(self, h: Tensor) -> Tensor:
        """Map tokens (..., w)."""
        return h + self.narrow(F.gelu(self.widen(self.norm(h))))


class Head(nn.Module):
    """From a query's token to the mean and the quantiles of its target."""

    def __init__(self, a: Architecture) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(a.row)
        self.widen = nn.Linear(a.row, 2 * a.row)
        self.out = nn.Linear(2 * a.row, 1 + a.quantiles)
        self.trust = nn.Linear(2 * a.row, OPINIONS)

    def forward(self, h: Tensor, opinions: Tensor) -> tuple[Tensor, Tensor]:
        """Map tokens (..., d) and opinions (..., 13) to means (...) and quantiles (..., Q), in float32.

        As far as an opinion is trusted, the network only says what is to be added to it.
        """
        h = F.gelu(self.widen(self.norm(h)))
        out, trust = self.out(h).float(), self.trust(h).float()
        out = out + (trust * opinions).sum(-1, keepdim=True)
        return out[..., 0], out[..., 1:]
