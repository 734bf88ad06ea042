"""Files of nested values and tensors, safetensors files, and checksums."""

from __future__ import annotations

import json
import pathlib
import random
import struct

import numpy as np
import pytest
import safetensors.torch
import torch

import mxnet as mx
from mxnet.error import FormatError, MXNetError
from mxnet.formats import params_file, tree_file
from tests.closeness import assert_equal_up_to_rounding


def test_tree_roundtrip(tmp_path):
    tree = {
        "numbers": [1, -2.5, True, None, "text", float("inf")],
        3: (1, ("a", [2])),
        "bytes": b"\x00\xff",
        "empty": [b"", [], {}, ()],
        "tensor": torch.arange(6).reshape(2, 3),
        "numpy": np.arange(4, dtype=">u2").reshape(2, 2),
        "scalar": np.float64(0.1),
    }
    tree_file.write(tmp_path / "t", tree)
    back = tree_file.read(tmp_path / "t")
    assert torch.equal(back.pop("tensor"), tree.pop("tensor"))
    array, wanted = back.pop("numpy"), tree.pop("numpy")
    assert array.dtype == wanted.dtype
    assert array.tolist() == wanted.tolist()
    assert back == tree


def test_unsupported_objects_raise(tmp_path):
    with pytest.raises(TypeError, match="cannot contain object"):
        tree_file.write(tmp_path / "t", {"x": object()})
    assert not (tmp_path / "t").exists()


@pytest.mark.parametrize(
    "tree",
    [
        "{",
        '{"tensor":"9"}',
        '{"what":1}',
        '{"numpy":["0","|O",[1]]}',
        '{"a":1,"b":2}',
        '{"dict":1}',
    ],
)
def test_damaged_tree_raises(tmp_path, tree):
    text = torch.frombuffer(bytearray(tree.encode()), dtype=torch.uint8)
    params_file.write(tmp_path / "t", {"0": torch.zeros(8), "tree": text})
    with pytest.raises(FormatError, match="damaged"):
        tree_file.read(tmp_path / "t")
    assert json.dumps(tree)


def test_safetensors_interoperate_with_the_safetensors_library(tmp_path: pathlib.Path) -> None:
    """In both directions, with all dtypes."""
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


def test_blocks_save_and_load_safetensors_by_suffix(tmp_path: pathlib.Path) -> None:
    """Including shared parameters."""
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
def test_damaged_safetensors_raise(content: bytes, tmp_path: pathlib.Path) -> None:
    """The error names the file; the claimed size is not allocated."""
    path = tmp_path / "bad.safetensors"
    path.write_bytes(content)
    with pytest.raises(FormatError, match=r"bad\.safetensors is not a valid"):
        mx.nd.load(str(path))


def test_unsupported_values_for_safetensors_raise_and_write_nothing(tmp_path: pathlib.Path) -> None:
    """Lists have no names, and sparse arrays are not dense."""
    path = tmp_path / "x.safetensors"
    with pytest.raises(MXNetError, match="dict"):
        mx.nd.save(str(path), [mx.nd.ones((1,))])
    with pytest.raises(MXNetError, match="sparse"):
        mx.nd.save(str(path), {"a": mx.nd.ones((2, 2)).tostype("row_sparse")})
    assert list(tmp_path.iterdir()) == []


ARRAYS = {
    "weight": torch.arange(12.0).reshape(3, 4),
    "mask": torch.tensor([True, False, True]),
    "large": torch.arange(200_000),
}


def test_checksum_error_names_the_damaged_array(tmp_path):
    path = tmp_path / "x.params"
    params_file.write(path, ARRAYS)
    raw = bytearray(path.read_bytes())
    at = raw.index(ARRAYS["large"].numpy().tobytes()) + 1_000_000
    raw[at] ^= 1
    path.write_bytes(raw)
    with pytest.raises(FormatError, match=r"x\.params: the file is damaged: 1 of 3.*: 'large'"):
        mx.nd.load(str(path))


def test_every_flipped_bit_raises(tmp_path):
    path = tmp_path / "x.params"
    params_file.write(path, {k: v for k, v in ARRAYS.items() if k != "large"})
    good, chance = path.read_bytes(), random.Random(3)
    for _ in range(400):
        raw = bytearray(good)
        at = chance.randrange(len(raw))
        raw[at] ^= 1 << chance.randrange(8)
        if 8 <= at < 16:  # a reserved field that is not read
            continue
        path.write_bytes(raw)
        with pytest.raises(FormatError):
            mx.nd.load(str(path))


def test_files_of_mxnet_have_no_checksums_and_load(tmp_path):
    path = tmp_path / "x.params"
    path.write_bytes(params_file.dumps(ARRAYS))
    assert mx.nd.load(str(path)).keys() == ARRAYS.keys()
    assert params_file.read_info(path) == {}


def test_checksum_error_in_a_training_state_raises(tmp_path):
    path = tmp_path / "run-resume.params"
    tree_file.write(path, {"epoch": 3, "weight": torch.ones(1000)})
    raw = bytearray(path.read_bytes())
    raw[2000] ^= 64
    path.write_bytes(raw)
    with pytest.raises(FormatError, match="the file is damaged"):
        tree_file.read(path)


def test_load_checkpoint_with_a_replaced_symbol_file_warns(tmp_path):
    prefix = str(tmp_path / "net")
    x = mx.sym.var("x")
    params = {"w": mx.nd.ones(2)}
    mx.model.save_checkpoint(prefix, 1, x * 2, params, {})
    mx.model.load_checkpoint(prefix, 1)
    (x * 3).save(f"{prefix}-symbol.json")
    with pytest.warns(UserWarning, match="was saved with a symbol different"):
        mx.model.load_checkpoint(prefix, 1)
