"""Decisions and rewards as events for the log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pfnts.arrays import Mask
from pfnts.contexts import plain_rows
from pfnts.contexts.schema import Rows
from pfnts.events import ActionSet, Decided, Label, Observed
from pfnts.events.event import Encoded, Shares
from pfnts.policies.arguments import check_reward, listed
from pfnts.policies.decision import Choices, Decision, Reason
from pfnts.policies.rewards import Rewards


def decided(
    rows: Rows, arms: ActionSet, masks: Mask, choices: Choices, reasons: list[Reason], *, ids: Sequence[str]
) -> list[Decided]:
    """Return the events of choices at ``rows``, one for each of ``ids``."""
    brought, labels = arms.candidates, arms.labels
    return [
        Decided(
            id=ids[i],
            context=rows.contexts[i],
            arm=labels[k],
            propensities=Shares(labels, choices.propensities[i].copy()),
            reason=reasons[i],
            eligible=None if masks[i].all() else tuple(np.array(labels, dtype=object)[masks[i]]),
            candidates=brought,
            encoded=Encoded(
                rows.X[i], rows.schema, None if brought is None else arms.features[k], arms.arm_schema
            ),
        )
        for i, k in enumerate(choices.index[: len(ids)].tolist())
    ]


def decisions(events: Sequence[Decided], arms: ActionSet, choices: Choices) -> list[Decision]:
    """Return the decisions whose events these are."""
    posterior, shortlist = choices.posterior, choices.shortlist
    return [
        Decision(
            id=event.id,
            arm=event.arm,
            index=int(choices.index[i]),
            propensities=choices.propensities[i],
            reason=event.reason,  # type: ignore[arg-type]
            posterior=None if posterior is None or event.reason == "warmup" else posterior[i],
            arms=arms.labels,
            shortlist=None if shortlist is None else shortlist[i],
        )
        for i, event in enumerate(events)
    ]


def observed(rows: Rows, arms: Sequence[Label] | ActionSet, reward: Any, rewards: Rewards) -> list[Observed]:
    """Return the events of rows (n,) of arms by label, or of candidates, with a reward each."""
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
