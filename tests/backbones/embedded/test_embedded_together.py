from __future__ import annotations

import numpy as np
import pytest
from numpy.random import Generator

from pfnts import PFNTS
from pfnts.backbones.embedded import sequence as module
from pfnts.backbones.embedded.cores import Cores
from pfnts.backbones.embedded.model import CausalPFN
from pfnts.backbones.embedded.sequence import EmbeddedSequence, answer_together

SIZES = ([2, 16, 31, 40], [3, 20])


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Passes of queries through the network: how many histories each was about."""
    counts: list[int] = []
    predict = module.predict

    def counted(network: CausalPFN, questions: list[module._Question], cores: Cores) -> object:
        counts.append(len(questions))
        return predict(network, questions, cores)

    monkeypatch.setattr(module, "predict", counted)
    return counts


def histories(network: CausalPFN, rng: Generator) -> list[EmbeddedSequence]:
    made = []
    for n in (48, 20):
        X = rng.standard_normal((n, 3))
        made.append(EmbeddedSequence(network, X, X[:, 0] + rng.standard_normal(n)))
    return made


def ask(sequences: list[EmbeddedSequence], x: np.ndarray) -> list[np.ndarray]:
    answers = [s.means(x, sizes) for s, sizes in zip(sequences, SIZES, strict=True)]
    return answers + [
        s.quantiles(x, sizes[-1], [0.1, 0.9]) for s, sizes in zip(sequences, SIZES, strict=True)
    ]


def test_one_pass_gives_the_answers_of_single_passes(
    small_network: CausalPFN, rng: Generator, passes: list[int]
) -> None:
    sequences, x = histories(small_network, rng), rng.standard_normal((2, 3))
    alone = ask(sequences, x)
    ask(sequences, x + 1)
    passes.clear()
    answer_together(sequences, x)
    together = ask(sequences, x)
    assert passes == [2]
    for one, other in zip(alone, together, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)


def test_a_history_with_new_rows_is_left_out(
    small_network: CausalPFN, rng: Generator, passes: list[int]
) -> None:
    sequences, x = histories(small_network, rng), rng.standard_normal((1, 3))
    ask(sequences, x + 1)
    sequences[0].append(np.zeros((1, 3)), [0.0])
    passes.clear()
    answer_together(sequences, x)
    assert passes == [1]


def test_rows_leave_smaller_sizes_alike_bit_for_bit(small_network: CausalPFN, rng: Generator) -> None:
    X, y, x = rng.standard_normal((48, 3)), rng.standard_normal(48), rng.standard_normal((1, 3))
    other, changed = y.copy(), []
    other[40] -= 3.0
    for targets in (y, other):
        sequences = [EmbeddedSequence(small_network, X, targets) for _ in range(2)]
        for sequence in sequences:
            sequence.means(x + 1, [4, 40, 48])
        answer_together(sequences, x)
        changed.append(sequences[1].means(x, [4, 40, 48]))
    np.testing.assert_array_equal(changed[0][:2], changed[1][:2])
    assert changed[0][2] != changed[1][2]


@pytest.mark.parametrize("limit", ["FEW_QUERIES", "CELLS_AT_ONCE"])
def test_too_much_for_one_pass_is_left_alone(
    small_network: CausalPFN,
    rng: Generator,
    passes: list[int],
    monkeypatch: pytest.MonkeyPatch,
    limit: str,
) -> None:
    sequences, x = histories(small_network, rng), rng.standard_normal((2, 3))
    ask(sequences, x + 1)
    passes.clear()
    monkeypatch.setattr(module, limit, 1 if limit == "FEW_QUERIES" else {"cpu": 6 * 6 - 1})
    answer_together(sequences, x)
    assert passes == []


def test_arms_of_a_policy_are_asked_in_one_pass(rng: Generator, passes: list[int]) -> None:
    policy = PFNTS(arms=3, encoding="disjoint")
    X, arms = rng.standard_normal((60, 2)), np.arange(60) % 3
    policy.update(X, arm=arms.tolist(), reward=rng.standard_normal(60).tolist())
    policy.decide(X[0], rng=rng)
    passes.clear()
    policy.decide(X[1], rng=rng)
    assert passes == [3]
