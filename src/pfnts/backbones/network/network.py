"""The network: a transformer over tables that is causal in the rows.

Two streams of tokens run through it side by side. The *data* stream holds a learned start row and then
the observed rows, each knowing its own target. The *query* stream holds rows whose target is asked for.
Both look only at the data stream, and position ``i`` sees the start row and the first ``i`` observed rows:
a data token includes itself, a query token does not. So one pass over a table predicts every row from the
rows before it, and at inference the keys and values of the data stream, computed once, serve every prefix.
Every row also comes with features computed from the rows before it (`features.table`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pfnts.backbones.network.attention import attend, attend_first
from pfnts.backbones.network.features.table import BASE_PREDICTIONS, NOTES


@dataclass(frozen=True)
class Architecture:
    """The sizes of a network."""

    cell: int = 64
    """Width of a cell's token."""
    cell_heads: int = 4
    cell_keys: int = 1
    """Of the heads, as many have keys and values of their own: few, for cheap queries."""
    cell_layers: int = 2
    """Pairs of a column block and a row block."""
    column_rows: int = 2048
    """As many rows, the first ones, are seen down each column: they say what there is to know of it alone."""
    readouts: int = 4
    """Summary tokens per row; together they make the row's token, of width ``readouts * cell``."""
    heads: int = 8
    keys: int = 2
    """The same for the in-context stage."""
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
    >>> from pfnts.backbones.network.features.features import features_of
    >>> network = CausalPFN(Architecture(layers=1))
    >>> X, y, identity = torch.randn(1, 6, 3), torch.randn(1, 6), torch.randn(1, 3, 24)
    >>> mean, quantiles, log_sd = network(X, y, identity, features_of(X, y), asked=6)
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
        *,
        asked: int,
        together: bool = False,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Predict the last rows of tables.

        Parameters
        ----------
        X
            (B, n, P), normalised; NaN where missing.
        y
            (B, n), normalised.
        identity
            (B, P, identity), the columns' random vectors.
        base_predictions
            (B, n, BASE_PREDICTIONS), the features of each row (`features_of`).
        asked
            As many rows at the end are asked for.
        together
            Each is predicted from the rows before the first of them, not from the rows before it.

        Returns
        -------
        Means (B, q), quantiles (B, q, Q), and the logarithm of the standard deviation of what is known of the
        true mean, (B, q).
        """
        n, a = X.shape[1], self.architecture
        identity = identity.to(self.cells.missing.dtype)
        sight = Sight.of(n, asked, together=together, device=X.device)
        cells = self.cells(X, identity)  # (B, n, P, c)
        known = cells[:, : sight.data - 1] + self.cells.target(y[:, : sight.data - 1])[:, :, None]
        query = cells[:, n - asked :] + self.cells.target.unknown
        h = torch.cat([self.cells.start_row(identity), known, query], 1)  # (B, data + q, P, c)
        for column, across in zip(self.columns, self.across, strict=True):
            h = across(column(h, sight.position, asked, together, most=a.column_rows))
        h = self.readout(h)  # (B, data + q, d)
        embedded = self.base_prediction(base_predictions.to(h.dtype))
        told = self.target(y[:, : sight.data - 1]) + embedded[:, : sight.data - 1]
        asked_of = self.target.unknown + embedded[:, n - asked :]
        h = h + torch.cat([F.pad(told, (0, 0, 1, 0)), asked_of], 1)
        h = h[:, :, None]  # (B, data + q, 1, d): a table of one column
        for block in self.in_context:
            h = block(h, sight.position, asked, together)
        return self.head(h[:, sight.data :, 0], base_predictions[:, n - asked :])


@dataclass(frozen=True)
class Sight:
    """Which data tokens each token sees; tokens are ``data`` rows (the start row first), then queries."""

    data: int
    position: Tensor
    """(data + q,), by `log_position`: rows that lie before a token, itself included if it is data and not the
    start."""

    @staticmethod
    def of(rows: int, asked: int, *, together: bool, device: torch.device) -> Sight:
        """The start row and the rows before the one asked for are seen."""
        data = rows - asked + 1 if together else rows
        at = torch.full((asked,), data - 1, device=device) if together else None
        queries = torch.arange(rows - asked, rows, device=device) if at is None else at
        return Sight(data, log_position(torch.cat([torch.arange(data, device=device), queries])))


def log_position(rows: Tensor) -> Tensor:
    """Numbers of rows that tokens see (m,), on a logarithmic scale on which 1023 is one."""
    return torch.log1p(rows) / math.log(1024)


def upto(position: Tensor, rows: int) -> Tensor:
    """Positions (m,), as `log_position` has them, where no more than some rows are seen."""
    return position.clamp(max=math.log1p(rows) / math.log(1024))


WAVES = 12
LOG_SD = (-8.0, 3.0)
"""Least and largest logarithm of the standard deviation of a mean, over the scale of the targets."""


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
        angle = x * torch.exp(torch.linspace(-1.5, 4.0, WAVES, device=X.device))
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
        self, h: Tensor, position: Tensor, asked: int, together: bool, *, most: int | None = None
    ) -> Tensor:
        """Map tokens (B, m, P, w), data first and ``asked`` queries last, each seeing the data before it.

        With ``most``, only the start and as many rows, the first ones, are seen.
        """
        n = h.shape[1] - asked
        seen = n if most is None else min(n, most + 1)
        query, key, value = self.ask(h, position if most is None else upto(position, most), seen)
        of_data = attend_first(query[:, :, :n], key, value, before=n)
        asking = query[:, :, n:]
        looked = attend(asking, key, value) if together else attend_first(asking, key, value, before=n)
        return self.finish(h, torch.cat([of_data, looked], 2))

    def ask(self, h: Tensor, position: Tensor, data: int) -> tuple[Tensor, Tensor, Tensor]:
        """Queries of all tokens (B, m, P, w), keys and values of the ``data`` tokens, which come first."""
        normed = self.norm(h)
        return self.queries(normed, position), *self.keys_values(normed[:, :data])

    def keys_values(self, normed: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values of data tokens (B, n, P, w), each as (B, P * keys, n, w / heads)."""
        return self._split(self.key(normed)), self._split(self.value(normed))

    def queries(self, normed: Tensor, position: Tensor) -> Tensor:
        """Queries of tokens (B, m, P, w), sharper if they see more rows, as (B, P * heads, m, w / heads).

        ``position`` (m,) is as `log_position` has it.
        """
        growth = F.softplus(self.sharpness(normed))  # (B, m, P, heads)
        scale = 1 + growth * position.to(normed.dtype)[:, None, None]
        query = self.query(normed).unflatten(-1, (self.heads, -1)) * scale[..., None]
        return query.flatten(-3, -2).transpose(-3, -2)

    def finish(self, h: Tensor, seen: Tensor) -> Tensor:
        """Add what was seen (B, P * heads, m, w / heads) to the tokens (B, m, P, w), and transform each."""
        h = h + self.out(seen.transpose(-3, -2).reshape(h.shape))
        return self.feed_forward(h)

    def _split(self, tokens: Tensor) -> Tensor:
        width = self.query.weight.shape[0] // self.heads
        return tokens.unflatten(-1, (-1, width)).flatten(-3, -2).transpose(-3, -2)


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
    """From a query's token to its target's mean and quantiles, and how well the mean is known."""

    def __init__(self, a: Architecture) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(a.row)
        self.widen = nn.Linear(a.row, 2 * a.row)
        self.out = nn.Linear(2 * a.row, 1 + a.quantiles)
        self.trust = nn.Linear(2 * a.row, BASE_PREDICTIONS)
        self.spread = nn.Linear(2 * a.row, 1 + NOTES)
        for told in (self.trust, self.spread):  # what is told need not be believed at first
            nn.init.zeros_(told.weight)
            nn.init.zeros_(told.bias)

    def forward(self, h: Tensor, base_predictions: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Map tokens (..., d) and base predictions (..., BASE_PREDICTIONS) to what is said of their targets.

        That is means (...), quantiles (..., Q) and log standard deviations of the mean (...).

        As far as a base prediction is trusted, the network only says what is to be added to it. The last is
        the logarithm of the standard deviation of the mean, given the rows seen. All are float32.
        """
        h = F.gelu(self.widen(self.norm(h)))
        out, trust, spread = self.out(h).float(), self.trust(h).float(), self.spread(h).float()
        out = out + (trust * base_predictions).sum(-1, keepdim=True)
        log_sd = spread[..., 0] - 1 + (spread[..., 1:] * base_predictions[..., -NOTES:]).sum(-1)
        return out[..., 0], out[..., 1:], log_sd.clamp(*LOG_SD)


def quantile_levels(count: int, *, device: str | torch.device = "cpu") -> Tensor:
    """Levels at which the network gives quantiles."""
    return torch.arange(1, count + 1, device=device) / (count + 1)
