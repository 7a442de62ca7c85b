"""Devices named on the command line."""

from __future__ import annotations


def check_device(device: str) -> None:
    """Raise a ValueError where PyTorch cannot compute on ``device``.

    Examples
    --------
    >>> check_device("cpu")
    >>> check_device("abacus")
    Traceback (most recent call last):
    ...
    ValueError: --device must be one that works here, such as cpu, got 'abacus': ...
    """
    import torch

    try:
        # Read back, because a device may accept what it cannot compute.
        torch.zeros(1, device=device).add_(1).item()
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).splitlines()[0]
        raise ValueError(
            f"--device must be one that works here, such as cpu, got {device!r}: {reason}"
        ) from error
