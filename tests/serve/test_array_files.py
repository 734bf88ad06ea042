"""Arrays in files of NumPy and safetensors, and files that claim what they do not hold."""

from __future__ import annotations

import io
import struct
import zipfile

import numpy as np
import pytest

pytest.importorskip("msgspec")
pytest.importorskip("starlette")
pytest.importorskip("python_multipart")

from mxnext_cli.serve.decoding import read_npy, read_npz, read_safetensors
from mxnext_cli.serve.limits import Refused

from .server import npy, npz

ROWS = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.mark.parametrize("dtype", ["<f4", ">f4", "<f8", ">i8", "u1", "?", "<f2", "g"])
def test_arrays_of_numbers(dtype):
    values = ROWS.astype(dtype)
    np.testing.assert_array_equal(read_npy(npy(values)), values)
    np.testing.assert_array_equal(read_npy(npy(np.asfortranarray(values))), values)
    np.testing.assert_array_equal(read_npz(npz(a=values), 10**6)["a"], values)


@pytest.mark.parametrize("value", [np.array(["a"]), np.zeros(2, "c8"), np.zeros(2, "M8[s]")])
def test_arrays_of_other_types_are_refused(value):
    with pytest.raises(ValueError, match="not numbers"):
        read_npy(npy(value))


def test_pickles_are_refused():
    file = io.BytesIO()
    np.save(file, np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(ValueError, match="not numbers"):
        read_npy(file.getvalue())


def header(text: str) -> bytes:
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x93NUMPY",
        b"\x93NUMPY\x01\x00\xff\xff",
        header("{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000,)}"),
        header("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}"),
        header("{'descr': '<f4', 'fortran_order': False, 'shape': (True,)}") + bytes(5),
        header("(" * 3000),
        header("__import__('os').getpid()"),
        npy(ROWS)[:-1],
        npy(ROWS) + b"a",
    ],
)
def test_damaged_arrays(content):
    with pytest.raises(ValueError):
        read_npy(content)


def test_headers_are_cached_by_all_that_they_say():
    first, second = npy(np.zeros((2, 3), "f4")), npy(np.zeros((3, 2), "f4"))
    assert [read_npy(x).shape for x in (first, second, first)] == [(2, 3), (3, 2), (2, 3)]
    assert read_npy(npy(np.ones((2, 3), "i4"))).dtype == np.int32


def archive(**members: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as target:
        for name, content in members.items():
            target.writestr(name, content)
    return file.getvalue()


def test_invalid_npz_archives_raise():
    bomb = archive(data=npy(np.zeros(10**6)))
    assert len(bomb) < 20_000
    with pytest.raises(ValueError, match="unpacks to"):
        read_npz(bomb, 10**5)
    with pytest.raises(Refused, match="'data': its header is damaged"):
        read_npz(archive(data=b"hello"), 10**6)
    with pytest.raises(ValueError, match="not an"):
        read_npz(b"PK\x03\x04zzz", 10**6)
    with pytest.raises(ValueError, match="too many members"):
        read_npz(archive(**{f"member{i}": b"" for i in range(2000)}), 10**6)
    damaged = bytearray(npz(data=ROWS))
    damaged[60] ^= 255
    with pytest.raises((zipfile.BadZipFile, Refused)):
        read_npz(bytes(damaged), 10**6)


def test_safetensors():
    save = pytest.importorskip("safetensors.numpy").save
    from safetensors import SafetensorError

    np.testing.assert_array_equal(read_safetensors(save({"a": ROWS}))["a"], ROWS)
    for content in (b"", b"\xff" * 100, save({"a": ROWS})[:-1], struct.pack("<Q", 1 << 40) + b"{}"):
        with pytest.raises((ValueError, SafetensorError)):
            read_safetensors(content)
