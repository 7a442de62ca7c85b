"""Many runs in one process: the decisions of single runs, questions asked together, nobody left waiting."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest
import torch

from pfnts.backbones import together
from pfnts.backbones.embedded import EmbeddedBackbone, asking
from pfnts.backbones.embedded.model import Architecture, CausalPFN
from pfnts.backbones.embedded.weights import export_weights
from pfnts.experiments import Job, LockstepEngine, PolicySpec, RunSpec, RunStore, plan, prepare, run, run_all
from pfnts.experiments.engines import lockstep
from pfnts.experiments.jobs import Failure, Finished

ON = "cpu:0"  # where a choice was made, even if it is the CPU


class Tiny(EmbeddedBackbone):
    """The embedded backbone with a small network of random weights."""

    path: Path

    def __init__(self, *, device: str = "cpu") -> None:
        super().__init__(device=device, weights=self.path)


@pytest.fixture(autouse=True)
def tiny(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    small = Architecture(cell=16, cell_heads=2, cell_layers=1, readouts=2, heads=4, keys=2, layers=1)
    Tiny.path = tmp_path_factory.mktemp("tiny") / "weights.safetensors"
    export_weights(CausalPFN(small), Tiny.path)
    monkeypatch.setattr("pfnts.backbones.embedded.EmbeddedBackbone", Tiny)
    monkeypatch.setattr("pfnts.backbones.embedded.backbone.EmbeddedBackbone", Tiny)


def specs(horizon: int = 60, replications: int = 1) -> list[RunSpec]:
    policies = [PolicySpec("pfn-ts"), PolicySpec.of("pfn-ts", encoding="joint")]
    return plan(
        scenarios=["linear", "friedman"],
        policies=policies,
        horizon=horizon,
        replications=replications,
        seed=3,
    )


def ignore(job: Job, rounds: int, regret: float) -> None:
    pass


def test_runs_are_those_of_single_ones_and_share_their_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    answer = asking.answer

    def counted(network: CausalPFN, questions: list) -> list:
        asked.append(len(questions))
        return answer(network, questions)

    monkeypatch.setattr("pfnts.backbones.embedded.backbone.answer", counted)
    jobs = prepare(specs(replications=2), device=ON)
    single = {job.spec: run(job.spec, device=ON) for job in jobs}
    alone = len(asked)
    asked.clear()
    heard: list[tuple[object, int]] = []
    results = list(
        LockstepEngine(workers=8).execute(jobs, listener=lambda job, n, _: heard.append((job.spec, n)))
    )
    assert all(isinstance(each, Finished) for each in results)
    assert {each.job.spec for each in results} == set(single)
    assert {spec for spec, n in heard if n == 0} == set(single)
    assert {spec for spec, n in heard if n == spec.horizon} == set(single)
    for each in results:
        assert isinstance(each, Finished)
        np.testing.assert_array_equal(each.result.arms, single[each.job.spec].arms)
        np.testing.assert_allclose(each.result.propensities, single[each.job.spec].propensities, atol=1e-3)
    assert len(asked) < alone / 3
    assert threading.active_count() < 10


def test_an_error_in_one_run_stops_no_other() -> None:
    jobs = prepare(specs(), device=ON)
    broken = Job(jobs[0].spec, {"pfnts": "9.9"}, asked=ON)
    rotten = plan(
        scenarios=["linear"], policies=[PolicySpec.of("pfn-ts", encoding="no-such")], horizon=60,
        replications=1, seed=3,
    )  # fmt: skip
    results = list(
        lockstep.side_by_side(
            [broken, Job(rotten[0], {}, asked=ON), *jobs], runs=9, listener=ignore, elsewhere=False
        )
    )
    failures = [each for each in results if isinstance(each, Failure)]
    assert [each.job.spec for each in failures] == rotten
    assert sum(isinstance(each, Finished) for each in results) == len(jobs) + 1


def test_question_that_fails_is_the_failure_of_its_run_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = prepare(specs(), device=ON)
    answer = asking.answer
    victims: set[int] = set()

    def failing(network: CausalPFN, questions: list) -> list:
        victims.update([id(questions[0].sequence)] if not victims else [])
        if any(id(question.sequence) in victims for question in questions):
            raise ArithmeticError("not this one")
        return answer(network, questions)

    monkeypatch.setattr("pfnts.backbones.embedded.backbone.answer", failing)
    results = list(LockstepEngine().execute(jobs, listener=ignore))
    (failure,) = [each for each in results if isinstance(each, Failure)]
    assert failure.reason == "ArithmeticError: not this one"
    assert len(results) == 4


def test_stopping_ends_all_runs_and_a_store_goes_on_from_there(tmp_path: Path) -> None:
    asked = specs()
    jobs, store = prepare(asked, device=ON), RunStore(tmp_path)
    before = threading.active_count()
    runs = run_all(jobs, store=store, engine=LockstepEngine(workers=2))
    next(runs)
    runs.close()
    assert threading.active_count() == before
    kept = sum(job in store for job in jobs)
    assert 1 <= kept < len(jobs)
    again: list[Job] = []
    everything = run_all(
        jobs, store=store, engine=LockstepEngine(), listener=lambda job, *_: again.append(job)
    )
    assert {each.spec for each in everything} == set(asked)
    assert len(set(again)) == len(jobs) - kept


def test_an_interrupt_ends_all_runs() -> None:
    before = threading.active_count()

    def interrupt(job: Job, rounds: int, regret: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(LockstepEngine().execute(prepare(specs(), device=ON), listener=interrupt))
    assert threading.active_count() == before


def test_what_cannot_share_a_network_is_made_by_processes() -> None:
    baselines = plan(
        scenarios=["linear"], policies=[PolicySpec("lin-ts")], horizon=30, replications=1, seed=3
    )
    jobs = prepare(baselines, device=ON)
    assert [lockstep.shares(job) for job in jobs] == [False]
    (done,) = LockstepEngine().execute(jobs, listener=ignore)
    np.testing.assert_array_equal(done.result.arms, run(baselines[0]).arms)  # type: ignore[union-attr]


def test_all_that_have_asked_before_are_waited_for_until_they_leave() -> None:
    meeting, sizes = together.Meeting(), []

    def answer(model: object, questions: list) -> list:
        sizes.append(len(questions))
        assert len(questions) == len(meeting._expected)
        return [(model, question) for question in questions]

    def ask(count: int) -> None:
        with meeting.attended():
            for i in range(count):
                assert together.ask("m", answer, [i]) == [("m", i)]  # type: ignore[arg-type, comparison-overlap]

    threads = [threading.Thread(target=ask, args=(count,)) for count in (300, 300, 50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
        assert not thread.is_alive()
    assert sum(sizes) == 650
    assert not meeting._expected
    assert together.ask("m", lambda model, questions: [model], [1]) == ["m"], "no meeting, no waiting"  # type: ignore[list-item]
