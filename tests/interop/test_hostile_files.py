"""Malicious files load or raise; nothing is run or written."""

from __future__ import annotations

import io
import pathlib
import random
from collections.abc import Callable

import numpy as np
import pytest
import safetensors.torch
import torch
from onnx import TensorProto, helper, numpy_helper

import mxnet as mx
from mxnet.contrib import onnx as contrib_onnx

from .damage import damaged

COUNT = 120


def _pickled(**options: bool) -> bytes:
    file = io.BytesIO()
    torch.save({"w": torch.ones(3, 4), "b": torch.zeros(5)}, file, **options)
    return file.getvalue()


CASES: dict[str, tuple[Callable[[], bytes], Callable[[pathlib.Path], object]]] = {
    "x.safetensors": (
        lambda: safetensors.torch.save({"a": torch.ones(3, 4), "b": torch.arange(5)}),
        lambda path: mx.nd.load(str(path)),
    ),
    "zip.pth": (_pickled, mx.convert.read_state_dict),
    "old.pth": (
        lambda: _pickled(_use_new_zipfile_serialization=False),
        mx.convert.read_state_dict,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_damaged_files_load_or_raise(name: str, tmp_path: pathlib.Path) -> None:
    """Whatever bytes are changed, an array or an MXNetError results, and no other file."""
    make, read = CASES[name]
    whole, path, rng = make(), tmp_path / name, random.Random(0)
    refused = 0
    for _ in range(COUNT):
        path.write_bytes(damaged(whole, rng))
        try:
            read(path)
        except mx.MXNetError:
            refused += 1
    assert refused > COUNT // 2
    assert [p.name for p in tmp_path.iterdir()] == [name]


HUGE = 2**62
ATTACKS = {
    "Reshape": ("x shape", {}, {"shape": [HUGE, HUGE]}),
    "Expand": ("x shape", {}, {"shape": [HUGE, 2]}),
    "Tile": ("x times", {}, {"times": [HUGE, HUGE]}),
    "Pad": ("x pads", {}, {"pads": [HUGE, 0, 0, HUGE]}),
    "Slice": ("x from to at", {}, {"from": [-HUGE], "to": [HUGE], "at": [HUGE]}),
    "Range": ("a b c", {}, {"a": 0, "b": HUGE, "c": 1}),
    "OneHot": ("i depth v", {}, {"i": [1], "depth": HUGE, "v": [0, 1]}),
    "TopK": ("x k", {"axis": 99}, {"k": [HUGE]}),
    "Split": ("x s", {"axis": -77}, {"s": [HUGE, -HUGE]}),
    "Concat": ("x x", {"axis": 2**31}, {}),
    "Softmax": ("x", {"axis": -(2**31)}, {}),
    "Flatten": ("x", {"axis": HUGE}, {}),
    "Gather": ("x i", {"axis": 2**31}, {"i": [HUGE]}),
    "Unsqueeze": ("x a", {}, {"a": [HUGE, -HUGE]}),
    "Resize": ("x '' '' n", {}, {"n": [HUGE, HUGE]}),
    "CumSum": ("x a", {}, {"a": HUGE}),
    "DepthToSpace": ("x", {"blocksize": HUGE}, {}),
    "MaxPool": ("x", {"kernel_shape": [HUGE, 0], "strides": [0, 0]}, {}),
    "Einsum": ("x", {"equation": "..........->"}, {}),
}


def _model(op_type: str, names: str, attrs: dict, constants: dict) -> bytes:
    inputs = [n.strip("'") for n in names.split()]
    tensors = [numpy_helper.from_array(np.array(v, np.int64), n) for n, v in constants.items()]
    outputs = ["y", "z"] if op_type in ("TopK", "Split") else ["y"]
    kind = TensorProto.INT64 if op_type in ("Range", "OneHot") else TensorProto.FLOAT
    graph = helper.make_graph(
        [helper.make_node(op_type, inputs, outputs, **attrs)],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 2])],
        [helper.make_tensor_value_info("y", kind, [None, None])],
        tensors,
    )
    opsets = [helper.make_opsetid("", 17)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()


def test_onnx_file_with_valid_numbers_is_imported() -> None:
    """So the next test fails because of its numbers."""
    model = _model("Tile", "x times", {}, {"times": [2, 1]})
    assert contrib_onnx.import_to_gluon(model)(mx.nd.ones((2, 2))).shape == (4, 2)


@pytest.mark.parametrize("op_type", ATTACKS)
def test_onnx_files_with_impossible_numbers_raise(op_type: str) -> None:
    """At import or at run time; nothing large is allocated."""
    model = _model(op_type, *ATTACKS[op_type])
    with pytest.raises(mx.MXNetError):
        block = contrib_onnx.import_to_gluon(model)
        block(mx.nd.ones((2, 2))).asnumpy()
