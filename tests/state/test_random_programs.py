"""Random programs match MXNet 1.9.1: all live arrays are compared at the end."""

from __future__ import annotations

import functools
import json
import math

import numpy as np
import pytest

import mxnet as mx
from tests.golden import HERE
from tests.state.programs import checksum, make_program, run_program

BATCH = 10  # programs in one test


@functools.cache
def answers() -> dict[int, tuple[int, dict[str, np.ndarray]]]:
    """Return the checksum and the recorded arrays of each program, by its seed."""
    with np.load(HERE / "state_programs.npz") as stored:
        index, numbers = json.loads(stored["index"].tobytes()), stored["numbers"]
    found, start = {}, 0
    for seed, row in index.items():
        arrays = {}
        for name, shape in row["shapes"].items():
            end = start + math.prod(shape)
            arrays[name] = numbers[start:end].reshape(shape)
            start = end
        found[int(seed)] = row["program"], arrays
    return found


SEEDS = sorted(answers())
BATCHES = [SEEDS[i : i + BATCH] for i in range(0, len(SEEDS), BATCH)]


def check(seed: int) -> None:
    """Run a program, and compare every array."""
    statements = make_program(seed)
    recorded, expected = answers()[seed]
    assert checksum(statements) == recorded, "the programs have changed: run the recorder"
    found = run_program(mx, statements)
    assert sorted(found) == sorted(expected)
    for name, right in expected.items():
        assert found[name].shape == right.shape, name
        assert found[name].dtype == right.dtype, name
        scale = max(
            0.1, np.abs(right).max()
        )  # smaller values are rounding errors of larger numbers
        np.testing.assert_allclose(
            found[name], right, rtol=2e-3, atol=2e-4 * scale, err_msg=f"{name} of program {seed}"
        )


@pytest.mark.parametrize("seeds", BATCHES, ids=lambda seeds: f"{seeds[0]}-{seeds[-1]}")
def test_random_programs_match_mxnet(seeds: list[int]) -> None:
    wrong = []
    for seed in seeds:
        try:
            check(seed)
        except Exception as error:
            program = "\n".join(make_program(seed))
            wrong.append(f"program {seed}:\n{program}\n{type(error).__name__}: {error}")
    assert not wrong, "\n\n".join(wrong)


def test_random_programs_are_numerous_and_varied() -> None:
    assert len(SEEDS) == 300
    assert len({statement for seed in SEEDS for statement in make_program(seed)}) > 2000
