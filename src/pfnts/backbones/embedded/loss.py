"""What the network is trained to make small."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from pfnts.backbones.embedded.minibatches import Minibatch
from pfnts.backbones.embedded.model import CausalPFN, quantile_levels

SPREAD_WEIGHT = 0.1
SHARPEST = 0.02
"""A mean that is known better, over the signal, counts as if it were known so well."""
FAR = 4.0
"""An error of more than as many standard deviations costs in proportion, not by its square."""


def training_loss(network: CausalPFN, minibatch: Minibatch, identity: Tensor) -> Tensor:
    """Squared error and likelihood of the mean, given the true one, and pinball loss, given fresh rewards.

    They have the minimisers of losses against the observed rewards, with far less noise in the gradient.
    ``identity`` (B, P, identity) are the columns' random vectors.
    """
    asked = minibatch.mean.shape[1]
    said = network(
        minibatch.X,
        minibatch.y,
        identity,
        minibatch.base_predictions,
        asked=asked,
        together=minibatch.together,
    )
    scale = minibatch.y.std(1, keepdim=True) + 0.1
    # Where noise hides the signal, being near the mean counts as much as where it does not.
    signal = minibatch.mean.std(1, keepdim=True) + 0.2 * scale + 0.03
    mean, quantiles, log_sd = said
    return loss_of(mean, quantiles, log_sd, minibatch.mean, minibatch.again, scale, signal)


def loss_of(
    mean: Tensor,
    quantiles: Tensor,
    log_sd: Tensor,
    true_mean: Tensor,
    targets: Tensor,
    scale: Tensor,
    signal: Tensor,
) -> Tensor:
    """Loss of predictions (B, n), (B, n, Q), (B, n), given true means (B, n) and targets (draws, B, n).

    Errors of the mean are counted over ``signal`` (B, 1), the pinball loss over ``scale`` (B, 1). Squared
    errors count the more the better the mean is known: else the functions that long histories leave open
    outweigh those that they settle, and a prediction twice as far off as it need be costs next to nothing.
    """
    known = torch.exp(log_sd.detach()).minimum(signal).maximum(SHARPEST * signal)
    squared = 2 * (huber((true_mean - mean) / known) * known / signal).mean()
    level = quantile_levels(quantiles.shape[-1], device=quantiles.device)
    error = targets[..., None] - quantiles
    pinball = torch.maximum(level * error, (level - 1) * error).mean(-1) / scale
    surprise = log_sd + huber((true_mean - mean.detach()) * torch.exp(-log_sd))
    return squared + pinball.mean() + SPREAD_WEIGHT * surprise.mean()


def huber(error: Tensor) -> Tensor:
    """Half the square of standardised errors, and a straight line from `FAR` on."""
    return F.huber_loss(error, torch.zeros_like(error), delta=FAR, reduction="none")
