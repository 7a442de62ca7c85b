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


def observed(rows: Rows, arms: Sequence[Label] | ActionSet, reward: Any, rewards: Rewards) -> list[Observed]:
    """Rows (n,) of arms by label, or of candidates, with a reward each, which must keep to ``rewards``."""
    values = [reward] if rows.single else listed("reward", reward)
    if not len(arms) == len(values) == len(rows.X):
        raise ValueError(
            f"context, arm and reward must have one length, got {len(rows.X)}, {len(arms)} and {len(values)}"
        )
    paid = [check_reward(value, rewards) for value in values]
    if not isinstance(arms, ActionSet):
        return [
            Observed(rows.contexts[i], arms[i], value, encoded=Encoded(rows.X[i], rows.schema))
            for i, value in enumerate(paid)
        ]
    features = plain_rows(arms.candidates)
    return [
        Observed(
            rows.contexts[i],
            None,
            value,
            features=features[i],
            encoded=Encoded(rows.X[i], rows.schema, arms.features[i], arms.arm_schema),
        )
        for i, value in enumerate(paid)
    ]
