"""The network: a transformer over tables that is causal in the rows.

Tokens are of two kinds. A *data* token is an observed row with its target; the first is a learned start
token. A *query* token is a row whose target is to be predicted. Both attend to data tokens only: a data token
to the rows before it and itself, a query token to the rows that it may use. So one forward pass over a table
predicts every row from the rows before it, and keys and values of the data tokens, once computed, serve
every later prediction, as in a language model.

A row passes two stages. In the first each cell is a token: `CausalBlock` attends down the rows of a column,
`RowBlock` mixes the cells of a row. Then `Readout` turns the cells into one token per row, and a stack of
`CausalBlock` attends to the rows in context. Every row comes with *base predictions*: what simple models
predict for it from the rows before it (`features`). The head adds to a weighted sum of these.

What a token attends to is up to the caller of `CausalPFN.forward`: the data tokens of the same table in
training (`WithinTables`), a key-value cache when serving (`inference`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pfnts.backbones.network.attention import WithinTables
from pfnts.backbones.network.features.table import BASE_PREDICTIONS, NOTES


@dataclass(frozen=True)
class Architecture:
    """The sizes of a network."""

    cell: int = 64
    """Width of a cell's token."""
    cell_heads: int = 4
    cell_keys: int = 1
    """Number of heads with keys and values of their own; the others share them."""
    cell_layers: int = 2
    """Number of pairs of a column block and a row block."""
    column_rows: int = 2048
    """Number of rows, the first ones, that are visible down a column."""
    readouts: int = 4
    """Summaries of a row's cells; together they are the row's token, of width ``readouts * cell``."""
    heads: int = 8
    keys: int = 2
    """As ``cell_keys``, for rows in context."""
    layers: int = 8
    """Number of blocks for rows in context."""
    expansion: int = 2
    """Hidden width of a feed-forward layer over its outer width."""
    identity: int = 24
    """Length of the random vector that identifies a column."""
    quantiles: int = 99

    @property
    def row(self) -> int:
        """Width of a row's token."""
        return self.readouts * self.cell


class Attend(Protocol):
    """Attention of the tokens of a pass to data tokens: those of the pass, and of a cache if there is one."""

    def __call__(self, block: int, visible: int | None, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        """Return the attended values (B, P * heads, m, w) at a block, numbered from the first.

        Queries (B, P * heads, m, w) are of all tokens, or of the query tokens alone; keys and values
        (B, P * keys, d, w) are of the data tokens of the pass. No more than the first ``visible`` data tokens
        may be attended to; all if it is None.
        """
        ...


class CausalPFN(nn.Module):
    """Predicts each row's target from the rows before it.

    Parameters
    ----------
    architecture
        The sizes.

    Examples
    --------
    >>> from pfnts.backbones.network.features.features import features_of
    >>> network = CausalPFN(Architecture(layers=1))
    >>> X, y, identity = torch.randn(1, 6, 3), torch.randn(1, 6), torch.randn(1, 3, 24)
    >>> base_predictions = features_of(X, y)
    >>> mean, quantiles, log_sd = network.predict_tables(X, y, identity, base_predictions, asked=6)
    >>> mean.shape, quantiles.shape, log_sd.shape
    (torch.Size([1, 6]), torch.Size([1, 6, 99]), torch.Size([1, 6]))
    """

    def __init__(self, architecture: Architecture | None = None) -> None:
        super().__init__()
        a = architecture or Architecture()
        self.architecture = a
        self.cells = CellEmbedding(a)
        self.columns: Sequence[CausalBlock] = nn.ModuleList(  # type: ignore[assignment]
            CausalBlock(a.cell, a.cell_heads, a.cell_keys, a.expansion) for _ in range(a.cell_layers)
        )
        self.across = nn.ModuleList(RowBlock(a.cell, a.cell_heads, a.expansion) for _ in range(a.cell_layers))
        self.readout = Readout(a)
        self.target = TargetEmbedding(a.row)
        self.base_prediction = nn.Linear(BASE_PREDICTIONS, a.row, bias=False)
        self.in_context: Sequence[CausalBlock] = nn.ModuleList(  # type: ignore[assignment]
            CausalBlock(a.row, a.heads, a.keys, a.expansion) for _ in range(a.layers)
        )
        self.head = Head(a)

    def forward(
        self,
        X: Tensor,
        y: Tensor,
        identity: Tensor,
        base_predictions: Tensor,
        rows: Tensor,
        attend: Attend,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Predict the query tokens; the data tokens leave their keys and values with ``attend``.

        Parameters
        ----------
        X
            (B, d + q, P), normalised contexts of d data tokens, then q query tokens; NaN where missing.
        y
            (B, d), normalised targets of the data tokens.
        identity
            (B, P, identity), the columns' random vectors.
        base_predictions
            (B, d + q, BASE_PREDICTIONS), of each row from the rows before it; zero for a start token.
        rows
            (d + q,), number of rows that each token sees; a data token counts itself, a start token has 0.
        attend
            Attention to the data tokens.

        Returns
        -------
        Means (B, q), quantiles (B, q, Q), and the logarithm of the mean's standard deviation (B, q).
        """
        data, columns = y.shape[1], len(self.columns)
        identity = identity.to(self.cells.missing.dtype)
        start = (rows[:data] == 0)[:, None]
        cells = self.cells(X, identity)  # (B, d + q, P, c)
        known = cells[:, :data] + self.cells.target(y)[:, :, None]
        known = torch.where(start[..., None], self.cells.start_row(identity), known)
        h = torch.cat([known, cells[:, data:] + self.cells.target.unknown], 1)
        most = self.architecture.column_rows
        position = log_position(rows.clamp(max=most))
        for number, (column, across) in enumerate(zip(self.columns, self.across, strict=True)):
            h = across(column(h, position, data, partial(attend, number, most + 1)))

        h = self.readout(h)  # (B, d + q, w)
        targets = self.target(y).masked_fill(start, 0.0)
        unknown = self.target.unknown.expand(len(h), h.shape[1] - data, -1)
        h = h + torch.cat([targets, unknown], 1) + self.base_prediction(base_predictions.to(h.dtype))
        h = h[:, :, None]  # (B, d + q, 1, w): a table of one column
        position, last = log_position(rows), len(self.in_context) - 1
        for number, block in enumerate(self.in_context):
            # Of the last block's data tokens only keys and values are needed.
            h = block(
                h, position, data, partial(attend, columns + number, None), skip=data if number == last else 0
            )
        return self.head(h[:, :, 0], base_predictions[:, data:])

    def predict_tables(
        self,
        X: Tensor,
        y: Tensor,
        identity: Tensor,
        base_predictions: Tensor,
        *,
        asked: int,
        together: bool = False,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Predict the last rows of whole tables, without a cache.

        Parameters
        ----------
        X
            (B, n, P), normalised; NaN where missing.
        y
            (B, n), normalised.
        identity
            (B, P, identity), the columns' random vectors.
        base_predictions
            (B, n, BASE_PREDICTIONS), of each row (`features_of`).
        asked
            Number of rows at the end to predict.
        together
            Whether each is predicted from the rows before the first of them, not from the rows before it.

        Returns
        -------
        As `forward`.
        """
        n, device = X.shape[1], X.device
        data = 1 + (n - asked if together else n - 1)  # the start token, and the rows that are seen
        begin = torch.arange(n - asked, n, device=device)
        rows = torch.cat(
            [torch.arange(data, device=device), begin.clamp(max=n - asked) if together else begin]
        )

        def tokens(table: Tensor) -> Tensor:
            return torch.cat([F.pad(table[:, : data - 1], (0, 0, 1, 0)), table[:, n - asked :]], 1)

        attend = WithinTables(data, asked, together=together)
        targets = F.pad(y[:, : data - 1], (1, 0))
        return self(tokens(X), targets, identity, tokens(base_predictions), rows, attend)


def log_position(rows: Tensor) -> Tensor:
    """Return numbers of rows (m,) on a logarithmic scale on which 1023 is one."""
    return torch.log1p(rows) / math.log(1024)


WAVES = 12
LOG_SD = (-8.0, 3.0)
"""Least and largest logarithm of the standard deviation of a mean, over the scale of the targets."""


class CellEmbedding(nn.Module):
    """Embedding of a number and of its column."""

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
        angle = x * torch.exp(torch.linspace(-1.5, 4.0, WAVES, device=X.device))
        features = torch.cat([x, torch.sin(angle), torch.cos(angle)], -1).to(self.missing.dtype)
        return torch.where(absent, self.missing, self.value(features)) + self.identity(identity)[:, None]

    def start_row(self, identity: Tensor) -> Tensor:
        """Embed the start token, (B, 1, P, c)."""
        return (self.start + self.identity(identity))[:, None]


class TargetEmbedding(nn.Module):
    """Embedding of a target, or of an unknown target, to be added to a token."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.value = nn.Sequential(nn.Linear(1, width), nn.GELU(), nn.Linear(width, width))
        self.unknown = nn.Parameter(torch.zeros(width))

    def forward(self, y: Tensor) -> Tensor:
        """Embed (B, n) targets as (B, n, width)."""
        return self.value(y[..., None].to(self.unknown.dtype))


class CausalBlock(nn.Module):
    """Attention of all tokens to the data tokens, column by column, and a feed-forward layer."""

    def __init__(self, width: int, heads: int, keys: int, expansion: int) -> None:
        super().__init__()
        self.heads = heads
        self.shared = keys * (width // heads)
        self.norm = nn.LayerNorm(width)
        self.query = nn.Linear(width, width, bias=False)
        self.key = nn.Linear(width, self.shared, bias=False)
        self.value = nn.Linear(width, self.shared, bias=False)
        self.out = nn.Linear(width, width)
        self.sharpness = nn.Linear(width, heads)
        nn.init.zeros_(self.sharpness.weight)
        nn.init.constant_(self.sharpness.bias, -1.5)
        self.feed_forward = FeedForward(width, expansion)

    def forward(
        self,
        h: Tensor,
        position: Tensor,
        data: int,
        attend: Callable[[Tensor, Tensor, Tensor], Tensor],
        *,
        skip: int = 0,
    ) -> Tensor:
        """Map tokens (B, m, P, w), of which the first ``data`` are attended to; leave out the first ``skip``.

        ``position`` (m,) is the number of rows that each token sees, as `log_position`.
        """
        return self.finish(h[:, skip:], attend(*self.ask(h, position, data, skip)))

    def ask(self, h: Tensor, position: Tensor, data: int, skip: int = 0) -> tuple[Tensor, Tensor, Tensor]:
        """Queries of the tokens (B, m, P, w) after ``skip``, keys and values of the first ``data`` tokens."""
        normed = self.norm(h)
        query = self.queries(normed[:, skip:], position[skip:])
        normed = normed[:, :data]
        return query, self._split(self.key(normed)), self._split(self.value(normed))

    def queries(self, normed: Tensor, position: Tensor) -> Tensor:
        """Queries of tokens (B, m, P, w) as (B, P * heads, m, w / heads), longer if they see more rows."""
        growth = F.softplus(self.sharpness(normed))  # (B, m, P, heads)
        scale = 1 + growth * position.to(normed.dtype)[:, None, None]
        query = self.query(normed).unflatten(-1, (self.heads, -1)) * scale[..., None]
        return query.flatten(-3, -2).transpose(-3, -2)

    def finish(self, h: Tensor, attended: Tensor) -> Tensor:
        """Add attended values (B, P * heads, m, w / heads) to tokens (B, m, P, w), and transform each."""
        return self.feed_forward(h + self.out(attended.transpose(-3, -2).reshape(h.shape)))

    def _split(self, tokens: Tensor) -> Tensor:
        width = self.query.weight.shape[0] // self.heads
        return tokens.unflatten(-1, (-1, width)).flatten(-3, -2).transpose(-3, -2)


class RowBlock(nn.Module):
    """Adds a summary of its row to every cell."""

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
    """Attention with learned queries: each head weighs the cells of a row and averages them."""

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
    """From a query's token to the mean and quantiles of its target, and the uncertainty of the mean."""

    def __init__(self, a: Architecture) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(a.row)
        self.widen = nn.Linear(a.row, 2 * a.row)
        self.out = nn.Linear(2 * a.row, 1 + a.quantiles)
        self.trust = nn.Linear(2 * a.row, BASE_PREDICTIONS)
        self.spread = nn.Linear(2 * a.row, 1 + NOTES)
        for layer in (self.trust, self.spread):  # base predictions have no weight at first
            nn.init.zeros_(layer.weight)
            nn.init.zeros_(layer.bias)

    def forward(self, h: Tensor, base_predictions: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Map tokens (..., w) and base predictions (..., BASE_PREDICTIONS) to predictions, in float32.

        Return means (...), quantiles (..., Q) and the logarithm of the mean's standard deviation (...). Means
        and quantiles are corrections of a sum of base predictions, each weighted by its trust.
        """
        h = F.gelu(self.widen(self.norm(h)))
        out, trust, spread = self.out(h).float(), self.trust(h).float(), self.spread(h).float()
        out = out + (trust * base_predictions).sum(-1, keepdim=True)
        log_sd = spread[..., 0] - 1 + (spread[..., 1:] * base_predictions[..., -NOTES:]).sum(-1)
        return out[..., 0], out[..., 1:], log_sd.clamp(*LOG_SD)


def quantile_levels(count: int, *, device: str | torch.device = "cpu") -> Tensor:
    """Return the levels of the network's quantiles."""
    return torch.arange(1, count + 1, device=device) / (count + 1)
