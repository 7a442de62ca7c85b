"""Where PyTorch can compute."""

from __future__ import annotations


def check_device(device: str) -> str:
    """Return the name of a device that works here, and refuse any other.

    Examples
    --------
    >>> check_device("cpu")
    'cpu'
    >>> check_device("abacus")
    Traceback (most recent call last):
    ...
    ValueError: device must be one that works here, such as cpu, got 'abacus': ...
    """
    import torch  # takes seconds, and commands ask before they need it

    try:
        # Read back, because a device may accept what it cannot compute.
        torch.zeros(1, device=device).add_(1).item()
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).splitlines()[0]
        raise ValueError(
            f"device must be one that works here, such as cpu, got {device!r}: {reason}"
        ) from error
    return device
