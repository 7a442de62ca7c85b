from __future__ import annotations

import threading

import torch
from numpy.random import Generator

from pfnts.backbones.network.features.rows import Rows


def test_any_successors_of_any_values_equal_concatenation(rng: Generator) -> None:
    values, expected = [Rows.of(torch.zeros(2, 1))], [torch.zeros(2, 1)]
    for _ in range(200):
        number, new = rng.integers(len(values)), torch.from_numpy(rng.normal(size=(2, rng.integers(0, 5))))
        values.append(values[number].append(new.float()))
        expected.append(torch.cat([expected[number], new.float()], 1))
    for value, rows in zip(values, expected, strict=True):
        assert torch.equal(value.first(value.length), rows)
        some = rng.integers(0, rows.shape[1], size=3).tolist()
        assert torch.equal(value.at(some), rows[:, some])


def test_one_line_of_successors_is_copied_only_when_the_buffer_is_full() -> None:
    value, buffers = Rows.of(torch.zeros(1, 0)), set()
    for number in range(1000):
        value = value.append(torch.full((1, 1), float(number)))
        buffers.add(value.buffer.data_ptr())
    assert value.first(1000)[0].tolist() == list(range(1000))
    assert len(buffers) <= 12


def test_threads_that_extend_one_value_do_not_write_over_each_other() -> None:
    for _ in range(50):
        value = Rows.of(torch.zeros(1, 4)).append(torch.zeros(1, 1))
        barrier, found = threading.Barrier(4), {}

        def grow(number: int, value: Rows = value, barrier: threading.Barrier = barrier) -> None:
            barrier.wait()
            longer = value
            for _ in range(3):
                longer = longer.append(torch.full((1, 1), float(number)))
            found[number] = longer  # noqa: B023

        threads = [threading.Thread(target=grow, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert all((rows.first(8)[0, 5:] == number).all() for number, rows in found.items())


def test_rows_begun_in_inference_mode_grow_outside_of_it() -> None:
    with torch.inference_mode():
        value = Rows.of(torch.zeros(1, 2)).append(torch.ones(1, 1))
    assert value.append(torch.ones(1, 1)).first(4).sum() == 2
