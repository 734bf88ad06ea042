"""`.params` files: MXNet's files are read and written byte for byte; damage raises."""

from __future__ import annotations

import pathlib
import random
import struct
import sys
import time
import tracemalloc

import numpy as np
import pytest
import torch

from mxnet.dtypes import BY_TORCH, TABLE
from mxnet.error import DTypeError, FormatError, MXNetError
from mxnet.formats import params_file
from mxnet.formats.atomic import UnwritableFile
from mxnet.formats.checksums import MAGIC as TRAILER_MAGIC
from mxnet.formats.params_file import (
    CSR,
    V1,
    V2,
    V3,
    ParamsReader,
    RowSparse,
    dumps,
    loads,
    read,
    write,
)
from tests.golden import HERE

GOLDEN = HERE / "params"
READABLE = sorted(p.stem for p in GOLDEN.glob("*.params") if p.stem != "scalar_legacy")
NO_NAMES = struct.pack("<Q", 0)
ONE_TWO = struct.pack("<2f", 1, 2)


def header(count=1):
    return struct.pack("<QQQ", 0x112, 0, count)


def shape_bytes(*shape):
    return struct.pack(f"<i{len(shape)}q", len(shape), *shape)


def dense(shape=(2,), *, magic=V2, kind=0, device=(1, 0), code=0, data=ONE_TWO):
    start = struct.pack("<Ii", magic, kind) if magic != V1 else struct.pack("<I", magic)
    return start + shape_bytes(*shape) + struct.pack("<iii", *device, code) + data


def names(*given):
    return struct.pack("<Q", len(given)) + b"".join(struct.pack("<Q", len(n)) + n for n in given)


def row_sparse(stored=(2, 2), shape=(4, 2), indices=(0, 2), code=6):
    raw = struct.pack("<Ii", V2, 1) + shape_bytes(*stored) + shape_bytes(*shape)
    raw += struct.pack("<iiii", 1, 0, 0, code) + shape_bytes(len(indices))
    raw += struct.pack(f"<{stored[0] * 2}f", *range(stored[0] * 2))
    return raw + struct.pack(f"<{len(indices)}{'q' if code == 6 else 'i'}", *indices)


def csr(stored=(2,), shape=(2, 3), indptr=(0, 1, 2), indices=(0, 2)):
    raw = struct.pack("<Ii", V2, 2) + shape_bytes(*stored) + shape_bytes(*shape)
    raw += struct.pack("<iii", 1, 0, 0)
    for index in (indptr, indices):
        raw += struct.pack("<i", 6) + shape_bytes(len(index))
    raw += struct.pack(f"<{stored[0]}f", *range(stored[0]))
    return raw + b"".join(struct.pack(f"<{len(i)}q", *i) for i in (indptr, indices))


def same(a, b):
    """Return whether two arrays are equal in kind, shape, dtype and value."""
    if isinstance(a, torch.Tensor):
        return a.dtype == b.dtype and a.shape == b.shape and torch.equal(a, b)
    return type(a) is type(b) and a.shape == b.shape and all(map(same, a[1:], b[1:]))


def listed(arrays):
    return list(arrays.values()) if isinstance(arrays, dict) else arrays


# Files of MXNet


@pytest.mark.parametrize("name", READABLE)
def test_rewriting_a_file_of_mxnet_is_byte_identical(name):
    raw = (GOLDEN / f"{name}.params").read_bytes()
    assert dumps(loads(raw), np_shape=name.startswith("np_")) == raw


@pytest.mark.parametrize("name", READABLE)
def test_loaded_values_match_mxnet(name):
    arrays = read(GOLDEN / f"{name}.params")
    with np.load(GOLDEN / f"{name}.npz") as twin:
        assert (list(arrays) if isinstance(arrays, dict) else []) == list(twin["names"])
        for i, array in enumerate(listed(arrays)):
            assert tuple(array.shape) == tuple(twin[f"{i}/shape"])
            parts = {"dense": array} if isinstance(array, torch.Tensor) else array._asdict()
            for part, tensor in parts.items():
                if part == "shape":
                    continue
                if tensor.dtype == torch.bfloat16:
                    tensor = tensor.view(torch.uint16)
                np.testing.assert_array_equal(tensor.numpy(), twin[f"{i}/{part}"], strict=True)


def test_legacy_scalars_are_written_as_by_mxnet_and_unreadable():
    raw = (GOLDEN / "scalar_legacy.params").read_bytes()
    assert dumps([torch.tensor(5.0)]) == raw
    with pytest.raises(FormatError, match="scalar"):
        loads(raw)


def test_empty_dict_roundtrips_to_empty_list():
    assert loads(dumps({})) == []


# Round trips


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.name)
@pytest.mark.parametrize("shape", [(1,), (3, 2), (0,), (2, 0, 3), (1, 1, 2, 1, 2)])
def test_roundtrip_of_every_dtype_and_shape(row, shape):
    tensor = torch.arange(int(np.prod(shape))).reshape(shape).to(row.torch)
    assert same(loads(dumps([tensor]))[0], tensor)


@pytest.mark.parametrize("np_shape", [False, True])
def test_file_roundtrip(tmp_path, np_shape):
    arrays = {"a": torch.ones(3), "b": torch.tensor([True, False]), "c": torch.ones(2, 2).half()}
    write(tmp_path / "x.params", arrays, np_shape=np_shape)
    found = read(str(tmp_path / "x.params"))
    assert list(found) == list(arrays)
    assert all(same(found[k], arrays[k]) for k in arrays)
    assert (tmp_path / "x.params").read_bytes().startswith(dumps(arrays, np_shape=np_shape))


def test_scalars_roundtrip_with_np_shape():
    assert same(loads(dumps([torch.tensor(5.0)], np_shape=True))[0], torch.tensor(5.0))


def test_roundtrip_of_sparse_arrays():
    rows = RowSparse((4, 2), torch.tensor([1, 3]), torch.arange(4.0).reshape(2, 2))
    matrix = CSR((2, 3), torch.tensor([0, 1, 3]), torch.tensor([2, 0, 1]), torch.arange(3.0))
    found = loads(dumps({"rows": rows, "matrix": matrix}))
    assert same(found["rows"], rows)
    assert same(found["matrix"], matrix)


def test_strided_and_requires_grad_tensors_are_written_by_value():
    base = torch.arange(6.0).reshape(2, 3)
    tracked = base.clone().requires_grad_()
    found = loads(dumps([base.T, base[:, 1], tracked, base.expand(2, 2, 3)]))
    assert same(found[0], base.T.contiguous())
    assert same(found[1], torch.tensor([1.0, 4.0]))
    assert same(found[2], base)
    assert found[3].shape == (2, 2, 3)


def test_loaded_tensors_are_writable_and_independent_of_the_file(tmp_path):
    write(tmp_path / "x", [torch.zeros(2)])
    read(tmp_path / "x")[0].add_(1)
    assert read(tmp_path / "x")[0].tolist() == [0, 0]
    raw = bytearray(dumps([torch.zeros(2)]))
    loads(raw)[0].add_(1)
    assert loads(memoryview(raw))[0].tolist() == [0, 0]


def test_unaligned_data_is_aligned_when_loaded():
    found = loads(dumps([torch.ones(1, dtype=torch.int8), torch.arange(3.0).double()]))
    assert found[1].data_ptr() % 8 == 0
    assert found[1].tolist() == [0, 1, 2]


# Old versions and what MXNet accepts


def test_files_of_version_0_load():
    raw = struct.pack("<III", 2, 1, 2) + struct.pack("<iii", 1, 0, 4) + struct.pack("<2i", 3, 4)
    assert same(loads(header() + raw + NO_NAMES)[0], torch.tensor([[3, 4]], dtype=torch.int32))


def test_files_of_version_1_without_storage_type_load():
    raw = dense(magic=V1)
    assert same(loads(header() + raw + names(b"w"))["w"], torch.tensor([1.0, 2.0]))


def test_files_of_version_3_load_with_and_without_np_shape():
    assert loads(header() + dense(magic=V3) + NO_NAMES)[0].tolist() == [1, 2]


def test_mixed_versions_in_one_file():
    old = struct.pack("<II", 1, 2) + struct.pack("<iii2f", 1, 0, 0, 1, 2)
    raw = header(4) + old + dense(magic=V1) + dense() + dense(magic=V3) + NO_NAMES
    assert [a.tolist() for a in loads(raw)] == [[1, 2]] * 4


@pytest.mark.parametrize("device", [(1, 3), (2, 5), (3, 0), (5, 0), (9, -1)])
def test_stored_device_is_ignored(device):
    assert loads(header() + dense(device=device) + NO_NAMES)[0].device.type == "cpu"


def test_malformed_files_accepted_by_mxnet_load():
    with pytest.warns(UserWarning, match="6 bytes after the last array are ignored"):
        assert len(loads(header() + dense() + NO_NAMES + b"behind")) == 1
    assert len(loads(struct.pack("<QQQ", 0x112, 7, 1) + dense() + NO_NAMES)) == 1
    other = dense(data=struct.pack("<2f", 3, 4))
    assert loads(header(2) + dense() + other + names(b"a", b"a"))["a"].tolist() == [3, 4]
    assert list(loads(header() + dense() + names(b""))) == [""]


def test_nonzero_bool_bytes_are_true():
    found = loads(header() + dense((3,), code=7, data=b"\0\2\xff") + NO_NAMES)[0]
    assert found.view(torch.uint8).tolist() == [0, 1, 1]


def test_unsorted_int32_indices_load_as_int64():
    found = loads(header() + row_sparse(code=4, indices=(2, 0)) + NO_NAMES)[0]
    assert found.indices.dtype == torch.int64
    assert found.indices.tolist() == [2, 0]


@pytest.mark.parametrize("rows", [0, 1, 5])
def test_stale_sparse_storage_size_is_ignored(rows):
    """MXNet writes this size before the array is computed: `nd.save(f, [x.tostype("csr")])`."""
    stale, right = shape_bytes(rows, 2), shape_bytes(2, 2)
    found = loads(header() + row_sparse().replace(right, stale, 1) + NO_NAMES)[0]
    assert same(found, loads(header() + row_sparse() + NO_NAMES)[0])
    stale, right = shape_bytes(rows), shape_bytes(2)
    found = loads(header() + csr().replace(right, stale, 1) + NO_NAMES)[0]
    assert same(found, loads(header() + csr() + NO_NAMES)[0])


# Damage

BIG = 2**40
DAMAGE = {
    "nothing": (b"", "the header"),
    "half a header": (header()[:20], "the header"),
    "another format": (b"PK\3\4" + bytes(60), "0x112"),
    "too many arrays": (header(BIG) + dense() + NO_NAMES, f"found {BIG}"),
    "no array": (header() + NO_NAMES[:3], "at most 0 arrays"),
    "names missing": (header() + dense(), "number of names"),
    "fewer names": (header(2) + dense() * 2 + names(b"a"), "1 names"),
    "more names": (header() + dense() + names(b"a", b"b"), "2 names"),
    "endless name": (header() + dense() + struct.pack("<QQ", 1, BIG), "a name of"),
    "name not UTF-8": (header() + dense() + names(b"\xff\xfe"), "UTF-8"),
    "truncated data": (header() + dense(data=b"\0\0\0"), "8 bytes of float32 data"),
    "large shape": (header() + dense((BIG,)) + NO_NAMES, f"{4 * BIG} bytes"),
    "overflowing shape": (header() + dense((2**31, 2**31, 4)) + NO_NAMES, "2[*][*]63"),
    "overflow beside 0": (header() + dense((0, 2**62, 2**62), data=b"") + NO_NAMES, "2[*][*]63"),
    "negative size": (header() + dense((-1,), data=b"") + NO_NAMES, "sizes from 0"),
    "negative ndim": (header() + struct.pack("<Iii", V2, 0, -1) + bytes(40), "64 dimensions"),
    "too many dims": (header() + struct.pack("<Iii", V2, 0, 65) + bytes(40), "found 65"),
    "V0 many dims": (header() + struct.pack("<I", 2**31) + bytes(40), "64 dimensions"),
    "dims cut off": (header() + struct.pack("<Iii", V2, 0, 9) + bytes(8), "expected dimensions"),
    "V0 scalar": (header() + bytes(40), "scalar"),
    "unknown type": (header() + dense(code=8) + NO_NAMES, "data type code"),
    "negative type": (header() + dense(code=-1) + NO_NAMES, "data type code"),
    "unknown storage": (header() + dense(kind=3) + NO_NAMES, "storage type"),
    "undefined storage": (header() + dense(kind=-1) + NO_NAMES, "storage type"),
    "V3 sparse": (header() + dense(magic=V3, kind=1) + NO_NAMES, "storage type"),
    "index too large": (header() + row_sparse(indices=(0, 4)) + NO_NAMES, "indices from 0 to 3"),
    "index negative": (header() + row_sparse(indices=(-1, 0)) + NO_NAMES, "-1 to 0"),
    "index count": (header() + row_sparse(indices=(1,)) + NO_NAMES, "indices from 0 to 3"),
    "index type": (header() + row_sparse(code=0) + NO_NAMES, "index type 4"),
    "row shape": (header() + row_sparse(shape=(4, 3)) + NO_NAMES, "one index a row"),
    "no rows": (header() + row_sparse(shape=()) + NO_NAMES, "one index a row"),
    "csr falling": (header() + csr(indptr=(0, 2, 1)) + NO_NAMES, "rises from 0 to 2"),
    "csr not from 0": (header() + csr(indptr=(1, 1, 2)) + NO_NAMES, "rises from 0 to 2"),
    "csr too short": (header() + csr(indptr=(0, 1, 1)) + NO_NAMES, "rises from 0 to 2"),
    "csr pointer": (header() + csr(indptr=(0, 1, 9)) + NO_NAMES, "indices from 0 to 2"),
    "csr rows": (header() + csr(indptr=(0, 2)) + NO_NAMES, "rows [+] 1"),
    "csr column": (header() + csr(indices=(0, 3)) + NO_NAMES, "indices from 0 to 2"),
    "csr cube": (header() + csr(shape=(2, 3, 1)) + NO_NAMES, "csr storage"),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_damage_raises_with_position_and_reason(kind, tmp_path):
    raw, words = DAMAGE[kind]
    with pytest.raises(FormatError, match=words):
        loads(raw)
    path = tmp_path / "broken.params"
    path.write_bytes(raw)
    with pytest.raises(FormatError, match=r"broken\.params: .* at byte \d+: expected .*; found "):
        read(path)


@pytest.mark.parametrize("name", ["mixed", "dtypes"])
def test_every_truncation_raises(name):
    raw = (GOLDEN / f"{name}.params").read_bytes()
    for size in range(len(raw)):
        with pytest.raises(FormatError):
            loads(raw[:size])


def test_truncated_checksums_raise(tmp_path):
    path = tmp_path / "cut.params"
    write(path, [torch.ones(3)])
    raw = path.read_bytes()
    start = raw.index(TRAILER_MAGIC)
    for size in range(start + 1, len(raw)):
        path.write_bytes(raw[:size])
        with pytest.raises(FormatError, match="valid checksums"):
            read(path)


def test_error_offset_points_at_the_invalid_value():
    raw = header() + dense(code=8) + NO_NAMES
    with pytest.raises(
        FormatError, match=f"at byte {raw.index(struct.pack('<iii', 1, 0, 8)) + 8}:"
    ):
        loads(raw)


def test_file_that_shrinks_while_being_read_raises(tmp_path):
    path = tmp_path / "x"
    write(path, [torch.zeros(100_000)])
    with path.open("rb") as file:
        size = path.stat().st_size
        path.write_bytes(path.read_bytes()[:200_000])
        with pytest.raises(FormatError, match="became shorter"):
            ParamsReader(file, size, "x").arrays()


# Paths and invalid use


@pytest.mark.parametrize("place", ["s3://bucket/x.params", "hdfs://node/x", "https://host/x"])
def test_remote_urls_raise(place):
    for attempt in (lambda: read(place), lambda: write(place, [])):
        with pytest.raises(MXNetError, match="local files only"):
            attempt()


def test_file_urls_are_local_paths(tmp_path):
    write(f"file://{tmp_path}/x.params", [torch.ones(1)])
    assert len(read(f"file://{tmp_path}/x.params")) == 1


def test_missing_file_raises_mxnet_error_and_file_not_found_error(tmp_path):
    with pytest.raises(MXNetError, match="No such file"):
        read(tmp_path / "none")
    with pytest.raises(FileNotFoundError):
        read(tmp_path / "none")
    with pytest.raises(FileNotFoundError, match="not a regular file"):
        read(tmp_path)


def test_unsupported_values_raise_before_the_file_is_changed(tmp_path):
    path = tmp_path / "x"
    write(path, [torch.ones(1)])
    before = path.read_bytes()
    rows = RowSparse((4, 2), torch.tensor([1]), torch.ones(1, 2))
    for arrays, error in (
        ([torch.ones(1), torch.ones(1).to(torch.int16)], DTypeError),
        ([torch.ones(1), [1, 2]], TypeError),
        ({1: torch.ones(1)}, TypeError),
    ):
        with pytest.raises(error):
            write(path, arrays)
    with pytest.raises(FormatError, match="Sparse"):
        write(path, [rows], np_shape=True)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_failed_write_keeps_only_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "x"
    write(path, [torch.ones(1)])
    before = path.read_bytes()

    def fails(tensor):
        raise OSError("disk full")

    monkeypatch.setattr(params_file, "_bytes_of", fails)
    with pytest.raises(OSError, match="disk full"):
        write(path, [torch.zeros(5)])
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(not pathlib.Path("/dev/full").exists(), reason="needs a full disk")
def test_full_disk_error_is_not_file_not_found_error():
    with pytest.raises(UnwritableFile, match="No space left on device") as error:
        write("/dev/full", [torch.ones(100_000)])
    assert not isinstance(error.value, FileNotFoundError | PermissionError)


def test_writing_keeps_links_and_permissions(tmp_path):
    target, link = tmp_path / "target", tmp_path / "link"
    write(target, [torch.ones(1)])
    target.chmod(0o640)
    link.symlink_to(target)
    write(link, [torch.zeros(1)])
    assert link.is_symlink()
    assert target.stat().st_mode & 0o777 == 0o640
    assert read(target)[0].tolist() == [0]


def test_writing_to_a_device_file(tmp_path):
    write("/dev/null", [torch.ones(1)])
    assert pathlib.Path("/dev/null").is_char_device()


def test_dtype_table_covers_all_torch_dtypes():
    assert {row.torch for row in TABLE} == set(BY_TORCH)


@pytest.mark.parametrize(
    ("name", "kind", "said"),
    [
        ("nowhere/x.params", FileNotFoundError, "Create it first"),
        ("", IsADirectoryError, "Is a directory"),
    ],
    ids=["folder is missing", "is a folder"],
)
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has other errors")
def test_unwritable_file_raises_mxnet_error_and_os_error(tmp_path, name, kind, said):
    with pytest.raises(kind, match=said) as caught:
        write(tmp_path / name, [torch.ones(1)])
    assert isinstance(caught.value, MXNetError)
    assert caught.value.errno and caught.value.filename == str(tmp_path / name)


CASES = 10_000
SECONDS = 60
PYTHON_BYTES = 1 << 20  # far below what a false size would allocate
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
    """Insert a large number where a count, a size or a length can be."""
    width, layout = chance.choice(((4, "<I"), (8, "<Q")))
    at = chance.randrange(0, max(1, len(raw) - width), 4)
    number = chance.choice(LARGE) & (2 ** (8 * width) - 1)
    raw[at : at + width] = struct.pack(layout, number)


def check_valid(found: object, size: int) -> None:
    """Read everything in a result, so that an invalid tensor would fail."""
    assert isinstance(found, list | dict)
    for array in found.values() if isinstance(found, dict) else found:
        assert isinstance(array, torch.Tensor | RowSparse | CSR)
        for part in [array] if isinstance(array, torch.Tensor) else array[1:]:
            assert part.clone().nbytes <= 2 * size  # int32 indices are widened to int64


@pytest.mark.filterwarnings("ignore:.*after the last array")
def test_randomly_damaged_files_load_or_raise(monkeypatch):
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
    assert min(outcomes.values()) > CASES // 20, outcomes  # both outcomes occurred
