"""ONNX import of nodes with unknown sizes, and of integer types that MXNet lacks."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import mxnet as mx
from mxnet.error import FormatError
from mxnet.interop.onnx.export import build_model
from tests.interop.onnx.running import check_files_here, run

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
ANY = (None, None, None)
SHAPES = [(2, 3, 4), ("n", 3, 4), ANY]
X = np.random.RandomState(0).standard_normal((2, 3, 4)).astype("float32")


@pytest.fixture(autouse=True)
def files_are_checked_here(monkeypatch: pytest.MonkeyPatch) -> None:
    check_files_here(monkeypatch)


def _model(
    nodes: Sequence[Any],
    shape: tuple,
    outputs: dict[str, tuple[int, tuple]],
    opset: int = 13,
    dtype: int = FLOAT,
    **constants: np.ndarray,
) -> onnx.ModelProto:
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", dtype, shape)],
        [helper.make_tensor_value_info(n, *kind) for n, kind in outputs.items()],
        [onnx.numpy_helper.from_array(c, n) for n, c in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def _import_and_run(model: onnx.ModelProto, array: np.ndarray) -> list[np.ndarray]:
    block = mx.contrib.onnx.import_to_gluon(model.SerializeToString())
    outputs = block(mx.nd.array(array, dtype=array.dtype))
    return [o.asnumpy() for o in (outputs if isinstance(outputs, list | tuple) else [outputs])]


def _check_both_ways(model: onnx.ModelProto, x: np.ndarray, is_dynamic: bool = True) -> None:
    """Compare a block, and its export with fixed and dynamic sizes, with onnxruntime."""
    expected = run(model, {"x": x})
    symbol, args, aux = mx.contrib.onnx.import_model(model.SerializeToString())
    results = [_import_and_run(model, x)]
    for dynamic in (None, [(None, *x.shape[1:])])[: 1 + is_dynamic]:
        again = build_model(symbol, {**args, **aux}, [x.shape], dynamic_shapes=dynamic)
        results.append(run(again, {"x": x}))
    for result in results:
        for a, b in zip(result, expected, strict=True):
            assert a.dtype == b.dtype
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("op_type", ["Hardmax", "Softmax", "LogSoftmax"])
def test_softmax_along_any_axis(op_type: str, shape: tuple) -> None:
    """Before opset 13 the axes from `axis` on are flattened."""
    for opset, axis in ((11, 0), (11, 1), (11, 2), (11, None), (13, -1), (13, 0), (13, 1)):
        attrs = {} if axis is None else {"axis": axis}
        node = helper.make_node(op_type, ["x"], ["y"], **attrs)
        _check_both_ways(_model([node], shape, {"y": (FLOAT, shape)}, opset), X)


@pytest.mark.parametrize("shape", SHAPES)
def test_graph_with_only_a_shape_node_is_imported(shape: tuple) -> None:
    """A known shape is still computed from the input, which stays an argument."""
    for attrs in ({}, {"start": 1}, {"start": -2, "end": -1}):
        node = helper.make_node("Shape", ["x"], ["y"], **attrs)
        model = _model([node], shape, {"y": (INT64, (None,))}, opset=15)
        _check_both_ways(model, X)
        assert mx.contrib.onnx.import_model(model.SerializeToString())[0].list_inputs() == ["x"]


def test_inputs_used_only_for_their_shape_remain_inputs() -> None:
    """The block takes as many arguments as the file has inputs."""
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Add", ["s", "c"], ["y"]),
    ]
    model = _model(nodes, (2, 3), {"y": (INT64, (2,))}, c=np.array([10, 10]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        (output,) = _import_and_run(model, np.zeros((2, 3), "float32"))
    assert output.tolist() == [12, 13]


@pytest.mark.parametrize("slopes", [(3, 1), (4,), (1,), (), (2, 3, 4)])
def test_prelu_slopes_broadcast(slopes: tuple) -> None:
    """ONNX aligns slopes at the last axis."""
    slope = np.random.RandomState(1).uniform(0.1, 1, slopes).astype("float32")
    node = helper.make_node("PRelu", ["x", "slope"], ["y"])
    model = _model([node], (2, 3, 4), {"y": (FLOAT, (2, 3, 4))}, slope=slope)
    _check_both_ways(model, X, is_dynamic=len(slopes) < 3)


@pytest.mark.parametrize(
    ("shape", "slopes"), [((4,), (4,)), ((4,), (1,)), ((3, 4), (4,)), ((3, 4), (3, 1))]
)
def test_prelu_slopes_of_vectors_and_matrices(shape: tuple, slopes: tuple) -> None:
    """One slope per column, or per row."""
    slope = np.random.RandomState(1).uniform(0.1, 1, slopes).astype("float32")
    node = helper.make_node("PRelu", ["x", "slope"], ["y"])
    x = np.random.RandomState(2).standard_normal(shape).astype("float32")
    model = _model([node], shape, {"y": (FLOAT, shape)}, slope=slope)
    _check_both_ways(model, x, is_dynamic=slopes[0] in (1, shape[-1]) and len(shape) > 1)


@pytest.mark.parametrize("ratio", [0.0, 0.5, 1.0])
def test_dropout_of_any_ratio_returns_its_input(ratio: float) -> None:
    """Also for ratio 1, which onnxruntime does not support; the mask is all true."""
    node = helper.make_node("Dropout", ["x", "ratio"], ["y", "mask"])
    kinds = {"y": (FLOAT, (2, 3, 4)), "mask": (BOOL, (2, 3, 4))}
    model = _model([node], (2, 3, 4), kinds, opset=12, ratio=np.float32(ratio))
    data, mask = _import_and_run(model, X)
    np.testing.assert_array_equal(data, X)
    assert mask.dtype == bool
    assert mask.all()
    symbol, args, aux = mx.contrib.onnx.import_model(model.SerializeToString())
    for opset in (12, 13):
        again = build_model(symbol, {**args, **aux}, [(2, 3, 4)], opset=opset)
        np.testing.assert_array_equal(run(again, {"x": X})[0], X)


def test_outputs_of_split_are_named_after_their_node() -> None:
    """The outputs have the names of MXNet's split."""
    node = helper.make_node("Split", ["x"], ["a", "b"], "parts", axis=2)
    model = _model([node], (2, 3, 4), {"a": (FLOAT, (2, 3, 2)), "b": (FLOAT, (2, 3, 2))})
    symbol = mx.contrib.onnx.import_model(model.SerializeToString())[0]
    assert symbol.list_outputs() == ["parts_output0", "parts_output1"]
    _check_both_ways(model, X)


# -- integers -------------------------------------------------------------------------------

WIDE = {"int16": "int32", "uint16": "int32", "uint32": "int64", "uint64": "int64"}


@pytest.mark.parametrize("name", WIDE)
def test_unsupported_integer_types_become_the_next_wider_type(name: str) -> None:
    """Inputs, parameters and results; sums wrap around as in the narrow type. Warns once."""
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(name))
    top = min(np.iinfo(name).max, np.iinfo("int64").max)
    nodes = [
        helper.make_node("Add", ["x", "c"], ["s"]),
        helper.make_node("Cast", ["s"], ["y"], to=FLOAT),
    ]
    kinds = {"s": (kind, (2,)), "y": (FLOAT, (2,))}
    c = np.array([1, 2], name)
    model = _model(nodes, (2,), kinds, dtype=kind, c=c)
    with pytest.warns(UserWarning, match=f"{name} as {WIDE[name]}") as record:
        symbol, args, _ = mx.contrib.onnx.import_model(model.SerializeToString())
    assert len(record) == 1
    assert args["c"].dtype == np.dtype(WIDE[name])
    x = np.array([5, top if name != "uint64" else 7], name)
    args["x"] = mx.nd.array(x.astype(WIDE[name]), dtype=WIDE[name])
    total, real = symbol.bind(mx.cpu(), args, grad_req="null").forward()
    assert total.dtype == np.dtype(WIDE[name])
    np.testing.assert_array_equal(total.asnumpy(), (x + c).astype(WIDE[name]))
    np.testing.assert_array_equal(real.asnumpy(), (x + c).astype("float32"))


@pytest.mark.parametrize("name", ["int16", "uint16", "uint32"])
def test_casts_to_narrow_integers_wrap_around(name: str) -> None:
    """A cast keeps the low bits, as in NumPy."""
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(name))
    node = helper.make_node("Cast", ["x"], ["y"], to=kind)
    x = np.array([-1, 40000, 70000, 2**33 + 5, -(2**16) - 3])
    model = _model([node], (5,), {"y": (kind, (5,))}, dtype=INT64)
    with pytest.warns(UserWarning, match=name):
        (output,) = _import_and_run(model, x)
    np.testing.assert_array_equal(output, x.astype(name).astype(WIDE[name]))


def test_integers_beyond_int64_raise() -> None:
    """A parameter of 2**63 raises; a smaller one does not."""
    node = helper.make_node("Identity", ["c"], ["y"])
    for number in (2**63 - 1, 2**63):
        kinds = {"y": (TensorProto.UINT64, (1,))}
        model = _model([node], (1,), kinds, c=np.array([number], "uint64"))
        if number == 2**63:
            with pytest.raises(FormatError, match="beyond those of int64"):
                mx.contrib.onnx.import_model(model.SerializeToString())
            return
        with pytest.warns(UserWarning, match="uint64 as int64"):
            args = mx.contrib.onnx.import_model(model.SerializeToString())[1]
        (array,) = args.values()
        assert array.asnumpy().tolist() == [number]


def test_supported_types_are_imported_without_warning() -> None:
    node = helper.make_node("Relu", ["x"], ["y"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mx.contrib.onnx.import_model(_model([node], (2,), {"y": (FLOAT, (2,))}).SerializeToString())
