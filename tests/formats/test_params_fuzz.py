"""Ten thousand damaged `.params` files: each is read or refused, in bounded time and memory."""

from __future__ import annotations

import pathlib
import random
import struct
import time
import tracemalloc

import pytest
import torch

from mxnet.error import FormatError
from mxnet.formats import params_file
from mxnet.formats.params_file import CSR, RowSparse, loads

GOLDEN = pathlib.Path(__file__).parents[1] / "golden" / "params"
CASES = 10_000
SECONDS = 60
PYTHON_BYTES = 1 << 20  # far below what one believed false size would take
LARGE = (0xFF, 0xFFFF, 2**31 - 1, 2**31, 2**32 - 1, 2**40, 2**62, 2**63 - 1, 2**64 - 1)


def flip_bits(raw: bytearray, chance: random.Random) -> None:
    for _ in range(chance.choice((1, 1, 2, 8))):
        raw[chance.randrange(len(raw))] ^= 1 << chance.randrange(8)


def truncate(raw: bytearray, chance: random.Random) -> None:
    del raw[chance.randrange(len(raw)) :]


def insert(raw: bytearray, chance: random.Random) -> None:
    at = chance.randrange(len(raw) + 1)
    raw[at:at] = chance.randbytes(chance.choice((1, 4, 8, 100)))


def remove(raw: bytearray, chance: random.Random) -> None:
    at = chance.randrange(len(raw))
    del raw[at : at + chance.choice((1, 4, 8, 100))]


def inflate(raw: bytearray, chance: random.Random) -> None:
    """Put a large number where a count, a size or a length may stand."""
    width, layout = chance.choice(((4, "<I"), (8, "<Q")))
    at = chance.randrange(0, max(1, len(raw) - width), 4)
    number = chance.choice(LARGE) & (2 ** (8 * width) - 1)
    raw[at : at + width] = struct.pack(layout, number)


def check_valid(found: object, size: int) -> None:
    """Look at everything in a result, so that a wrong tensor would show."""
    assert isinstance(found, list | dict)
    for array in found.values() if isinstance(found, dict) else found:
        assert isinstance(array, torch.Tensor | RowSparse | CSR)
        for part in [array] if isinstance(array, torch.Tensor) else array[1:]:
            assert part.clone().nbytes <= 2 * size  # int32 indices are widened to int64


@pytest.mark.filterwarnings("ignore:.*after the last array")
def test_damaged_files_are_read_or_refused(monkeypatch):
    originals = [path.read_bytes() for path in sorted(GOLDEN.glob("*.params"))]
    chance = random.Random(20)
    mutations = (flip_bits, truncate, insert, remove, inflate)
    largest = 0
    allocate = params_file._allocate

    def guarded(size: int) -> torch.Tensor:
        assert size <= len(raw), f"{size} bytes taken for a file of {len(raw)}"
        return allocate(size)

    monkeypatch.setattr(params_file, "_allocate", guarded)
    outcomes = {"read": 0, "refused": 0}
    start = time.process_time()
    tracemalloc.start()
    try:
        for case in range(CASES):
            raw = bytearray(originals[case % len(originals)])
            for _ in range(chance.choice((1, 1, 1, 2, 3))):
                if raw:
                    chance.choice(mutations)(raw, chance)
            tracemalloc.reset_peak()
            before, _ = tracemalloc.get_traced_memory()
            try:
                check_valid(loads(raw), len(raw))
                outcomes["read"] += 1
            except FormatError as error:
                assert "expected" in str(error)
                outcomes["refused"] += 1
            largest = max(largest, tracemalloc.get_traced_memory()[1] - before)
    finally:
        tracemalloc.stop()
    assert time.process_time() - start < SECONDS
    assert largest < PYTHON_BYTES
    assert min(outcomes.values()) > CASES // 20, outcomes  # both roads were really walked
