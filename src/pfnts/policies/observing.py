"""Rewards that arrive together with their contexts, as events."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pfnts.contexts import plain_rows
from pfnts.contexts.schema import Rows
from pfnts.events import ActionSet, Label, Observed
from pfnts.events.event import Encoded
from pfnts.policies.arguments import check_reward, listed
from pfnts.policies.rewards import Rewards


def observed_arms(rows: Rows, labels: Sequence[Label], reward: Any, rewards: Rewards) -> list[Observed]:
    """Rows (n,) of arms by label, with a reward each; one that does not keep to ``rewards`` is an error."""
    return [
        Observed(rows.contexts[i], labels[i], value, encoded=Encoded(rows.X[i], rows.schema))
        for i, value in enumerate(_values(rows, len(labels), reward, rewards))
    ]


def observed_candidates(rows: Rows, chosen: ActionSet, reward: Any, rewards: Rewards) -> list[Observed]:
    """Rows (n,) of the candidates that were chosen, likewise."""
    features = plain_rows(chosen.candidates)
    return [
        Observed(
            rows.contexts[i],
            None,
            value,
            features=features[i],
            encoded=Encoded(rows.X[i], rows.schema, chosen.features[i], chosen.arm_schema),
        )
        for i, value in enumerate(_values(rows, len(chosen), reward, rewards))
    ]


def _values(rows: Rows, n_arms: int, reward: Any, rewards: Rewards) -> list[float]:
    values = [reward] if rows.single else listed("reward", reward)
    if not n_arms == len(values) == len(rows.X):
        raise ValueError(
            f"context, arm and reward must have one length, got {len(rows.X)}, {n_arms} and {len(values)}"
        )
    return [check_reward(value, rewards) for value in values]
