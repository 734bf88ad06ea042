"""Fuzz tests with ten thousand damaged record, index and list files."""

from __future__ import annotations

import contextlib
import random
import struct
import time
import tracemalloc

import pytest

from mxnet.error import FormatError
from mxnet.formats.recordio_file import (
    MAGIC_BYTES,
    Damage,
    ListedImage,
    RecordReader,
    encode,
    read_index,
    read_list,
)
from mxnet.recordio import unpack
from tests.golden import HERE

GOLDEN = HERE / "records"
RECORDS, TEXTS = 8_000, 1_000  # together with .idx and .lst: ten thousand
SECONDS = 120
PYTHON_BYTES = 1 << 20
NUMBERS = (0, 1, 4, 0xFF, 0xFFFF, 2**29 - 1, 2**29, 2**30, 3 << 29, 2**31, 2**32 - 1)


class Damaged:
    """Bytes with random damage, and the original position of each byte (-1: inserted)."""

    def __init__(self, raw: bytes, chance: random.Random) -> None:
        self.raw = bytearray(raw)
        self.origin = list(range(len(raw)))
        self.chance = chance

    def put(self, at: int, new: bytes, instead_of: int) -> None:
        self.raw[at : at + instead_of] = new
        self.origin[at : at + instead_of] = [-1] * len(new)

    def place(self) -> int:
        return self.chance.randrange(len(self.raw) or 1)

    def flip(self) -> None:
        for _ in range(self.chance.choice((1, 1, 2, 8))):
            at = self.place()
            if at < len(self.raw):
                self.put(at, bytes([self.raw[at] ^ 1 << self.chance.randrange(8)]), 1)

    def overwrite(self) -> None:
        length = self.chance.choice((1, 4, 16, 200))
        self.put(self.place(), self.chance.randbytes(length), length)

    def truncate(self) -> None:
        self.put(self.place(), b"", len(self.raw))

    def insert(self) -> None:
        self.put(self.place(), self.chance.randbytes(self.chance.choice((1, 2, 4, 9, 100))), 0)

    def remove(self) -> None:
        self.put(self.place(), b"", self.chance.choice((1, 2, 4, 9, 100)))

    def number(self) -> None:
        """Insert a special number where a flag and length can be."""
        at = self.place() // 4 * 4
        self.put(at, struct.pack("<I", self.chance.choice(NUMBERS)), 4)

    def false_head(self) -> None:
        """Insert bytes that look like the head of a record."""
        word = struct.pack("<I", self.chance.choice((*NUMBERS, self.chance.randrange(4000))))
        self.put(self.place(), MAGIC_BYTES + word, self.chance.choice((0, 8)))

    def attack(self) -> bytes:
        kinds = (self.flip, self.overwrite, self.truncate, self.insert, self.remove)
        for _ in range(self.chance.choice((1, 1, 1, 2, 3))):
            self.chance.choice((*kinds, self.number, self.false_head))()
        return bytes(self.raw)

    def places(self) -> dict[int, int]:
        """Return the current position of each original byte."""
        return {origin: at for at, origin in enumerate(self.origin)}


@pytest.fixture(scope="module")
def payloads() -> list[bytes]:
    reader, at, found = RecordReader(GOLDEN / "plain.rec"), 0, []
    while True:
        record, at = reader.read(at)
        if record is None:
            return found
        found.append(record)


def surviving(payloads: list[bytes], damaged: Damaged) -> list[bytes]:
    """Return the payloads whose records are intact."""
    begin, left, places = 0, [], damaged.places()
    for payload in payloads:
        end = begin + len(encode(payload))
        at = places.get(begin, -1)
        if at >= 0 and damaged.origin[at : at + end - begin] == list(range(begin, end)):
            left.append(payload)
        begin = end
    return left


def is_subsequence(few: list[bytes], many: list[bytes]) -> bool:
    rest = iter(many)
    return all(any(f == m for m in rest) for f in few)


def read_all(reader: RecordReader) -> int:
    at, count = 0, 0
    while True:
        record, at = reader.read(at)
        if record is None:
            return count
        count += 1


def attacked(payloads: list[bytes], chance: random.Random) -> tuple[bytes, list[bytes]]:
    """Return the bytes of a damaged file, and the payloads that are intact."""
    some = chance.sample(payloads[:-1], 12)
    damaged = Damaged(b"".join(map(encode, some)), chance)
    return damaged.attack(), surviving(some, damaged)


def test_intact_records_are_read_from_damaged_files(payloads):
    chance = random.Random(2024)
    start, outcomes = time.process_time(), {"read": 0, "refused": 0}
    for case in range(RECORDS):
        raw, spared = attacked(payloads, chance)
        found = [x for _, x in RecordReader(raw).whole_records()]
        whole = [x for x in found if not isinstance(x, Damage)]
        assert is_subsequence(spared, whole), f"case {case}: {raw.hex()}"
        assert sum(map(len, whole)) <= 2 * len(raw)
        try:
            read_all(RecordReader(raw))
            outcomes["read"] += 1
        except FormatError as error:
            assert "expected" in str(error)
            outcomes["refused"] += 1
    assert time.process_time() - start < SECONDS
    assert min(outcomes.values()) > RECORDS // 20, outcomes


def test_damaged_files_do_not_use_excessive_memory(payloads):
    chance, largest = random.Random(2025), 0
    files = [attacked(payloads, chance)[0] for _ in range(500)]
    tracemalloc.start()
    try:
        for raw in files:
            tracemalloc.reset_peak()
            before = tracemalloc.get_traced_memory()[0]
            for _ in RecordReader(raw).whole_records():
                pass
            with contextlib.suppress(FormatError):
                read_all(RecordReader(raw))
            largest = max(largest, tracemalloc.get_traced_memory()[1] - before)
    finally:
        tracemalloc.stop()
    assert largest < PYTHON_BYTES


@pytest.mark.parametrize(
    "raw",
    [
        MAGIC_BYTES * 100_000,
        (MAGIC_BYTES + struct.pack("<I", 1 << 29)) * 50_000,
        (MAGIC_BYTES + struct.pack("<I", 2**20) + b"x") * 40_000,
        (MAGIC_BYTES + struct.pack("<I", 9) + b"x") * 40_000,
        b"".join(MAGIC_BYTES + struct.pack("<I", 4 * n + 1) + b"x" for n in range(40_000)),
    ],
    ids=["magic", "starts", "long", "overlapping", "growing"],
)
def test_adversarial_files_are_read_in_linear_time(raw):
    start = time.process_time()
    for _ in RecordReader(raw).whole_records():
        pass
    assert time.process_time() - start < 20


def test_damaged_index_files_load_or_raise(tmp_path):
    chance, path = random.Random(7), tmp_path / "a.idx"
    raw = (GOLDEN / "indexed.idx").read_bytes()
    reader = RecordReader(GOLDEN / "indexed.rec")
    outcomes = {"read": 0, "refused": 0}
    for _ in range(TEXTS):
        path.write_bytes(Damaged(raw, chance).attack())
        try:
            read_index(path)
            outcomes["read"] += 1
        except FormatError as error:
            assert "in line" in str(error)
            outcomes["refused"] += 1
        for key, offset in read_index(path, on_error="skip"):
            assert isinstance(key, int)
            try:
                reader.read(offset)
            except FormatError as error:
                assert "expected" in str(error)
    assert min(outcomes.values()) > 20, outcomes


def test_damaged_list_files_load_or_raise(tmp_path):
    chance, path = random.Random(8), tmp_path / "a.lst"
    raw = b"".join(b"%d\t%f\t%f\tfolder/%d.jpg\n" % (n, n / 7, n % 3, n) for n in range(20))
    for _ in range(TEXTS):
        path.write_bytes(Damaged(raw, chance).attack())
        try:
            read_list(path)
        except FormatError as error:
            assert "in line" in str(error)
        assert all(isinstance(line, ListedImage) for line in read_list(path, on_error="skip"))


def test_damaged_headers_load_or_raise():
    chance = random.Random(9)
    for _ in range(500):
        raw = struct.pack("<IfQQ", chance.randrange(6), 0, 1, 2) + chance.randbytes(12)
        raw = Damaged(raw, chance).attack()
        try:
            header, content = unpack(raw)
            assert len(content) + 4 * header.flag + 24 == len(raw)
        except FormatError:
            pass
