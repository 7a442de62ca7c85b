"""The loss of training."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional as F

from pfnts.backbones.network.network import LOG_SD, CausalPFN, quantile_levels
from pfnts.backbones.network.training.minibatches import Minibatch

WITHIN, HALF_WIDTH = 0.95, 1.96
"""Share of true means to lie within as many standard deviations of the predicted one."""
SPREAD_WEIGHT = 0.6
SHARPEST = 0.02
"""A mean that is known better, over the signal, counts as if it were known so well."""
FAR = 4.0
"""An error of more than as many standard deviations costs in proportion, not by its square."""


def training_loss(network: CausalPFN, minibatch: Minibatch, identity: Tensor) -> Tensor:
    """Squared error and interval of the mean, given the true one, and pinball loss, given fresh rewards.

    They have the minimisers of losses against the observed rewards, with far less noise in the gradient.
    ``identity`` (B, P, identity) are the columns' random vectors.
    """
    asked = minibatch.mean.shape[1]
    said = network.predict_tables(
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

    The standard deviation of the mean is fitted to a quantile of its errors. Errors are a mixture over what
    the table may be, with longer tails than the normal distribution has: where likelihood is greatest, fewer
    than 95 % of them lie within 1.96 standard deviations.
    """
    known = torch.exp(log_sd.detach()).minimum(signal).maximum(SHARPEST * signal)
    squared = 2 * (huber((true_mean - mean) / known) * known / signal).mean()
    level = quantile_levels(quantiles.shape[-1], device=quantiles.device)
    of_rewards = pinball(targets[..., None] - quantiles, level).mean(-1) / scale
    # On a log scale a mean that is known well counts as much as one that is not.
    error = torch.log((true_mean - mean.detach()).abs() + math.exp(LOG_SD[0])) - math.log(HALF_WIDTH)
    of_mean = pinball(error - log_sd, WITHIN)
    return squared + of_rewards.mean() + SPREAD_WEIGHT * of_mean.mean()


def pinball(error: Tensor, level: Tensor | float) -> Tensor:
    """Loss of quantiles at a level that are off by ``error``; its mean is least at the true ones."""
    return torch.maximum(level * error, (level - 1) * error)


def huber(error: Tensor) -> Tensor:
    """Half the square of standardised errors, and a straight line from `FAR` on."""
    return F.huber_loss(error, torch.zeros_like(error), delta=FAR, reduction="none")
