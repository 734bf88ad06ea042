"""ONNX import of dynamic models: loops, branches, sequences, dynamic sizes."""

from __future__ import annotations

import io
import warnings
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper
from torch import nn

import mxnet as mx
from mxnet.contrib import onnx as contrib_onnx
from mxnet.interop.onnx.importer.value import UnsupportedImport
from tests.interop.onnx.running import relative_error, run

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
info = helper.make_tensor_value_info
node = helper.make_node


def _model(graph: onnx.GraphProto, opset: int = 17, **options: Any) -> onnx.ModelProto:
    return helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8, **options
    )


def _check(model: onnx.ModelProto, *datas: np.ndarray) -> list[np.ndarray]:
    """Compare an imported model with onnxruntime."""
    names = [i.name for i in model.graph.input]
    wanted = run(model, dict(zip(names, datas, strict=True)))
    block = contrib_onnx.import_to_gluon(model.SerializeToString())
    made = block(*(mx.nd.array(d, dtype=d.dtype) for d in datas))
    found = [a.asnumpy() for a in (made if isinstance(made, list | tuple) else [made])]
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    return found


def _loop_body(nodes: list, more: str = "go") -> onnx.GraphProto:
    return helper.make_graph(
        nodes,
        "body",
        [info("i", INT64, []), info("go", BOOL, []), info("s", FLOAT, [2])],
        [info(more, BOOL, []), info("s2", FLOAT, [2]), info("out", FLOAT, [2])],
    )


def test_loop_with_a_dynamic_trip_count_and_condition() -> None:
    """The count is data, and the condition can end the loop earlier."""
    limit = numpy_helper.from_array(np.array(20.0, np.float32), "limit")
    body = _loop_body(
        [
            node("Add", ["s", "s"], ["s2"]),
            node("Identity", ["s2"], ["out"]),
            node("ReduceMax", ["s2"], ["top"], keepdims=0),
            node("Less", ["top", "limit"], ["more"]),
        ],
        "more",
    )
    graph = helper.make_graph(
        [node("Loop", ["n", "", "x"], ["last", "all"], body=body)],
        "g",
        [info("n", INT64, []), info("x", FLOAT, [2])],
        [info("last", FLOAT, [2]), info("all", FLOAT, [None, 2])],
        [limit],
    )
    data = np.array([1, 2], np.float32)
    assert _check(_model(graph), np.array(3), data)[1].shape == (3, 2)
    assert _check(_model(graph), np.array(30), data)[1].shape == (4, 2)


def test_loop_with_a_constant_trip_count_becomes_foreach() -> None:
    """A constant count and no condition: the step number is an input of the body."""
    body = _loop_body(
        [
            node("Cast", ["i"], ["f"], to=FLOAT),
            node("Add", ["s", "f"], ["s2"]),
            node("Mul", ["s2", "s"], ["out"]),
        ]
    )
    count = numpy_helper.from_array(np.array(4), "n")
    graph = helper.make_graph(
        [node("Loop", ["n", "", "x"], ["last", "all"], body=body)],
        "g",
        [info("x", FLOAT, [2])],
        [info("last", FLOAT, [2]), info("all", FLOAT, [4, 2])],
        [count],
    )
    model = _model(graph)
    _check(model, np.array([1, 2], np.float32))
    symbol = contrib_onnx.import_model(model.SerializeToString())[0]
    assert "_foreach" in symbol.tojson()


def test_branches_use_values_of_the_outer_graph() -> None:
    """Both branches use the model's input, and constants of their own."""
    one = numpy_helper.from_array(np.ones(2, np.float32), "one")
    then = helper.make_graph([node("Add", ["x", "one"], ["a"])], "t", [], [info("a", FLOAT, [2])])
    other = helper.make_graph(
        [node("Mul", ["x", "b1"], ["b"])],
        "e",
        [],
        [info("b", FLOAT, [2])],
        [numpy_helper.from_array(np.array([3, 4], np.float32), "b1")],
    )
    graph = helper.make_graph(
        [node("If", ["c"], ["y"], then_branch=then, else_branch=other)],
        "g",
        [info("c", BOOL, []), info("x", FLOAT, [2])],
        [info("y", FLOAT, [2])],
        [one],
    )
    for chosen in (True, False):
        _check(_model(graph), np.array(chosen), np.array([5, 6], np.float32))


def test_scan_in_reverse_direction_along_any_axis() -> None:
    """Reverse running sums over axis 1, stacked along axis 1."""
    body = helper.make_graph(
        [node("Add", ["s", "x"], ["s2"]), node("Identity", ["s2"], ["y"])],
        "body",
        [info("s", FLOAT, [2]), info("x", FLOAT, [2])],
        [info("s2", FLOAT, [2]), info("y", FLOAT, [2])],
    )
    scan = node(
        "Scan",
        ["s0", "data"],
        ["last", "all"],
        body=body,
        num_scan_inputs=1,
        scan_input_axes=[1],
        scan_input_directions=[1],
        scan_output_axes=[1],
        scan_output_directions=[1],
    )
    graph = helper.make_graph(
        [scan],
        "g",
        [info("s0", FLOAT, [2]), info("data", FLOAT, [2, 3])],
        [info("last", FLOAT, [2]), info("all", FLOAT, [2, 3])],
    )
    data = np.arange(6, dtype=np.float32).reshape(2, 3)
    _check(_model(graph), np.zeros(2, np.float32), data)


def test_sequence_operators_are_resolved_at_import() -> None:
    """Split to a sequence, insert, index, concatenate."""
    at = numpy_helper.from_array(np.array(1), "at")
    nodes = [
        node("SplitToSequence", ["x"], ["seq"], axis=0, keepdims=1),
        node("SequenceAt", ["seq", "at"], ["second"]),
        node("SequenceInsert", ["seq", "second"], ["longer"]),
        node("ConcatFromSequence", ["longer"], ["y"], axis=0),
    ]
    graph = helper.make_graph(
        nodes, "g", [info("x", FLOAT, [3, 2])], [info("y", FLOAT, [4, 2])], [at]
    )
    _check(_model(graph), np.arange(6, dtype=np.float32).reshape(3, 2))


def test_functions_of_a_file_are_expanded_with_attributes() -> None:
    """A function with an attribute, called twice."""
    function = helper.make_function(
        "mine",
        "scaled",
        ["a"],
        ["b"],
        [
            onnx.parser.parse_node("c = Constant <value_float : float = @by> ()"),
            node("Mul", ["a", "c"], ["b"]),
        ],
        [helper.make_opsetid("", 17)],
        ["by"],
    )
    nodes = [
        node("scaled", ["x"], ["h"], domain="mine", by=2.0),
        node("scaled", ["h"], ["y"], domain="mine", by=5.0),
    ]
    graph = helper.make_graph(nodes, "g", [info("x", FLOAT, [2])], [info("y", FLOAT, [2])])
    model = helper.make_model(
        graph,
        opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("mine", 1)],
        ir_version=8,
        functions=[function],
    )
    np.testing.assert_array_equal(_check(model, np.ones(2, np.float32))[0], [10, 10])


def test_recursive_functions_raise() -> None:
    """Expanding them would not terminate."""
    function = helper.make_function(
        "mine",
        "again",
        ["a"],
        ["b"],
        [node("again", ["a"], ["b"], domain="mine")],
        [helper.make_opsetid("mine", 1)],
    )
    graph = helper.make_graph(
        [node("again", ["x"], ["y"], domain="mine")],
        "g",
        [info("x", FLOAT, [2])],
        [info("y", FLOAT, [2])],
    )
    model = helper.make_model(
        graph,
        opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("mine", 1)],
        ir_version=8,
        functions=[function],
    )
    with pytest.raises(mx.MXNetError):
        contrib_onnx.import_model(model.SerializeToString())


class _Decoder(nn.Module):
    """Causal attention as in small language models: every size is computed."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(30, 8)
        self.places = nn.Parameter(torch.randn(1, 64, 8))
        self.out = nn.Linear(8, 5)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        batch, length = tokens.shape
        hidden = self.words(tokens) + self.places[:, :length]
        mask = torch.tril(torch.ones(length, length))
        heads = hidden.view(batch, -1, 2, 4).transpose(1, 2)
        scores = (heads @ heads.transpose(-1, -2)).masked_fill(mask == 0, -1e9)
        joined = (scores.softmax(-1) @ heads).transpose(1, 2).reshape(batch, length, 8)
        return self.out(joined)


class _Resized(nn.Module):
    """A convolution, upsampling by 2, and downsampling to the input size."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 4, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        large = nn.functional.interpolate(self.stem(x), scale_factor=2, mode="bilinear")
        return nn.functional.interpolate(large, size=x.shape[2:], mode="nearest")


@pytest.mark.parametrize(
    ("module", "axes", "datas"),
    [
        (_Decoder, ("batch", "time"), [torch.arange(12).reshape(2, 6), torch.ones(3, 9).long()]),
        (_Resized, ("n", None, "h", "w"), [torch.ones(1, 3, 8, 8), torch.rand(2, 3, 6, 10)]),
    ],
    ids=["decoder", "resized"],
)
def test_models_with_dynamic_axes_run_with_any_size(module: type, axes: tuple, datas: list) -> None:
    """One import runs with all batch sizes, lengths and image sizes."""
    torch.manual_seed(0)
    theirs = module().eval()
    dynamic = {"x": {i: n for i, n in enumerate(axes) if n}}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch announces its newer exporter
        file = io.BytesIO()
        torch.onnx.export(
            theirs, (datas[0],), file, dynamo=False, input_names=["x"], dynamic_axes=dynamic
        )
    block = contrib_onnx.import_to_gluon(file.getvalue())
    for data in datas:
        found = block(mx.nd.array(data.numpy(), dtype=data.numpy().dtype)).asnumpy()
        assert relative_error(found, theirs(data).detach().numpy()) < 1e-5


def test_sequences_of_unknown_length_raise() -> None:
    graph = helper.make_graph(
        [node("ConcatFromSequence", ["s"], ["y"], axis=0)],
        "g",
        [helper.make_tensor_sequence_value_info("s", FLOAT, [2])],
        [info("y", FLOAT, [None])],
    )
    with pytest.raises(UnsupportedImport, match="value is needed at import"):
        contrib_onnx.import_model(_model(graph).SerializeToString())


def test_imported_models_of_torch_dynamo_exporter_match_torch() -> None:
    """It writes functions, newer operators and symbolic sizes."""
    pytest.importorskip("onnxscript")
    torch.manual_seed(0)
    theirs, data = _Decoder().eval(), torch.arange(12).reshape(2, 6)
    sizes = {0: torch.export.Dim("batch"), 1: torch.export.Dim("time", min=2, max=60)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch warns about its own deprecations
        program = torch.onnx.export(
            theirs, (data,), dynamo=True, dynamic_shapes=(sizes,), verbose=False
        )
    block = contrib_onnx.import_to_gluon(program.model_proto.SerializeToString())
    for tokens in (data, torch.ones(3, 9).long()):
        found = block(mx.nd.array(tokens.numpy(), dtype="int64")).asnumpy()
        assert relative_error(found, theirs(tokens).detach().numpy()) < 1e-5
