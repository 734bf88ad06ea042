"""The safetensors format: both ways, and files that cannot be trusted."""

from __future__ import annotations

import json
import pathlib
import struct

import numpy as np
import pytest
import safetensors.torch
import torch

import mxnet as mx
from mxnet.error import FormatError, MXNetError
from tests.closeness import assert_equal_up_to_rounding


def test_arrays_go_both_ways(tmp_path: pathlib.Path) -> None:
    """What we write others read, and the other way round, with dtypes."""
    path = str(tmp_path / "x.safetensors")
    arrays = {"a": mx.nd.array([[1, 2]]), "b": mx.nd.array([3], dtype="int64")}
    arrays["c"] = mx.nd.ones((2,)).astype("float16")
    mx.nd.save(path, arrays)
    theirs = safetensors.torch.load_file(path)
    assert {n: t.dtype for n, t in theirs.items()} == {
        "a": torch.float32,
        "b": torch.int64,
        "c": torch.float16,
    }
    safetensors.torch.save_file({"w": torch.arange(6.0).reshape(2, 3)}, path)
    np.testing.assert_array_equal(mx.nd.load(path)["w"].asnumpy(), np.arange(6).reshape(2, 3))


def test_blocks_save_and_load_by_suffix(tmp_path: pathlib.Path) -> None:
    """Parameters, shared ones too, by the name of the file alone."""
    path = str(tmp_path / "net.safetensors")
    nets = [mx.gluon.nn.Dense(2, in_units=3, prefix=f"n{i}_") for i in range(2)]
    for net in nets:
        net.initialize(mx.init.Normal(1.0))
    nets[0].save_parameters(path)
    nets[1].load_parameters(path)
    data = mx.nd.ones((1, 3))
    assert_equal_up_to_rounding(nets[0](data).asnumpy(), nets[1](data).asnumpy())
    assert set(safetensors.torch.load_file(path)) == {"weight", "bias"}


def _hostile(header: dict | bytes, data: bytes = b"", claim: int | None = None) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if claim is None else claim) + text + data


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x80\x04pickle.",
        _hostile({}, claim=2**60),
        _hostile(b"{" * 64),
        _hostile({"w": {"dtype": "F32", "shape": [2**40], "data_offsets": [0, 2**42]}}),
        _hostile({"w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 4]}}, b"\0" * 4),
        _hostile({"w": {"dtype": "X9", "shape": [1], "data_offsets": [0, 4]}}, b"\0" * 4),
        _hostile({"w": {"dtype": "F32", "shape": [1], "data_offsets": [-4, 0]}}, b"\0" * 4),
    ],
    ids=["empty", "pickle", "header", "nesting", "huge", "short", "dtype", "offsets"],
)
def test_damaged_files_are_refused(content: bytes, tmp_path: pathlib.Path) -> None:
    """The error names the file; nothing of the claimed size is allocated."""
    path = tmp_path / "bad.safetensors"
    path.write_bytes(content)
    with pytest.raises(FormatError, match=r"bad\.safetensors is not a valid"):
        mx.nd.load(str(path))


def test_what_the_format_cannot_hold_writes_nothing(tmp_path: pathlib.Path) -> None:
    """A list has no names, and sparse arrays are not dense."""
    path = tmp_path / "x.safetensors"
    with pytest.raises(MXNetError, match="dict"):
        mx.nd.save(str(path), [mx.nd.ones((1,))])
    with pytest.raises(MXNetError, match="sparse"):
        mx.nd.save(str(path), {"a": mx.nd.ones((2, 2)).tostype("row_sparse")})
    assert list(tmp_path.iterdir()) == []
