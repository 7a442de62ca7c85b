"""Rounds of a simulation that are decided together, because predictions stay as they are in between."""

from __future__ import annotations

import copy
from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from pfnts.arrays import Counts, Mask, Matrix
from pfnts.contexts.schema import Rows
from pfnts.events import ActionSet, Event, History, Observed, Rewarded
from pfnts.events.event import Encoded
from pfnts.policies.arguments import check_reward
from pfnts.policies.entries import decided
from pfnts.policies.model import Model
from pfnts.policies.proposal import Proposer


@dataclass(frozen=True)
class Rounds:
    """Rounds that were played."""

    events: list[Event]
    index: Counts
    """(r,) arms chosen."""
    propensities: Matrix
    """(r, K)"""


def rounds(
    proposer: Proposer,
    model: Model,
    history: History,
    rows: Rows,
    arms: ActionSet,
    masks: Mask,
    rewards: Matrix,
    *,
    rng: Generator,
    only: Counts | None,
) -> Rounds:
    """Choose at the first of ``rows``, as many as leave predictions as they are; see `Policy.play`."""
    cold = proposer.cold(model, history, arms).any()
    if cold or (only is None and proposer.rewards.budget is not None):
        rows = rows.part(slice(1))  # the next choice depends on the outcome of this one
    elif only is None and (lasts := model.lasts()) is not None:
        rows = rows.part(slice(max(1, lasts)))
    n = len(rows.X)
    # A round takes its own numbers: those for rounds that are not kept stay in the generator.
    uniforms = copy.deepcopy(rng).random((n, proposer.n_uniforms(arms)))
    choices, reasons = proposer.propose(model, history, rows.X, arms, masks[:n], uniforms)
    chosen = choices.index
    learned = np.arange(n) if only is None else np.flatnonzero(chosen == only[:n])
    pulled = np.array(arms.numbers)[chosen[learned]]
    # Where a range is known, every row changes what it leaves open.
    unchanged = 0 if proposer.rewards.range is not None else model.unchanged(pulled)
    kept = int(learned[unchanged]) + 1 if unchanged < len(learned) else n
    learned = learned[learned < kept]
    values = [check_reward(rewards[i, chosen[i]], proposer.rewards) for i in learned]
    rng.random((kept, uniforms.shape[1]))
    events: list[Event] = []
    if only is None:
        made = decided(rows.part(slice(kept)), arms, masks, choices, reasons, ids=history.new_ids(kept))
        for event, value in zip(made, values, strict=True):
            events += [event, Rewarded(event.id, value)]
    else:
        for i, value in zip(learned.tolist(), values, strict=True):
            known = Encoded(rows.X[i], rows.schema)
            events.append(Observed(rows.contexts[i], arms.labels[chosen[i]], value, encoded=known))
    return Rounds(events, chosen[:kept], choices.propensities[:kept])
