"""ONNX import: our exports, torch's exports, and malicious files."""

from __future__ import annotations

import contextlib
import io
import os
import pathlib
import signal
import warnings

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper
from torch import nn

import mxnet as mx
from mxnet.contrib import onnx as contrib_onnx
from mxnet.error import FormatError, MXNetError
from mxnet.interop.onnx.importer.reading import run_isolated
from mxnet.interop.onnx.importer.value import UnsupportedImport
from tests.interop.onnx.running import relative_error


def _torch_file(module: nn.Module, *inputs: torch.Tensor) -> bytes:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch announces its newer exporter
        file = io.BytesIO()
        torch.onnx.export(module.eval(), inputs, file, dynamo=False, opset_version=17)
    return file.getvalue()


class _Encoder(nn.Module):
    """A small BERT: embeddings, two encoder layers, a pooler."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(50, 32)
        self.places = nn.Parameter(torch.randn(1, 6, 32))
        layer = nn.TransformerEncoderLayer(32, 4, 64, activation="gelu", batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(32, 3)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        hidden = self.layers(self.words(tokens) + self.places)
        return self.head(torch.tanh(hidden[:, 0]))


class _Recurrent(nn.Module):
    """A bidirectional LSTM of two layers, then a GRU."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(8, 6, 2, bidirectional=True, batch_first=True)
        self.gru = nn.GRU(12, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.gru(self.lstm(x)[0].transpose(0, 1))[0]


class _Residual(nn.Module):
    """Convolutions, including depthwise ones, with normalization and a residual."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), nn.BatchNorm2d(8), nn.ReLU6())
        self.depthwise = nn.Conv2d(8, 8, 3, padding=1, groups=8)
        self.norm, self.act = nn.GroupNorm(2, 8), nn.Hardswish()
        self.tail = nn.Sequential(
            nn.MaxPool2d(2, ceil_mode=True), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 4)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.stem(x)
        return self.tail(self.act(self.norm(self.depthwise(x))) + x)


@pytest.mark.parametrize(
    ("module", "data"),
    [
        (_Encoder, torch.arange(12).reshape(2, 6)),
        (_Recurrent, torch.linspace(-1, 1, 80).reshape(2, 5, 8)),
        (_Residual, torch.linspace(-1, 1, 3 * 81 * 2).reshape(2, 3, 9, 9)),
    ],
    ids=["encoder", "recurrent", "residual"],
)
def test_imported_torch_models_match_torch(module: type, data: torch.Tensor) -> None:
    torch.manual_seed(0)
    theirs = module()
    block = contrib_onnx.import_to_gluon(_torch_file(theirs, data))
    found = block(mx.nd.array(data.numpy(), dtype=data.numpy().dtype))
    wanted = theirs(data).detach().numpy()
    assert relative_error(found.asnumpy(), wanted) < 1e-5


def test_exported_model_runs_in_a_module_after_import(tmp_path: pathlib.Path) -> None:
    net = mx.gluon.model_zoo.vision.get_model("mobilenetv2_0.25", classes=5)
    net.initialize(mx.init.Xavier())
    net.hybridize()
    data = mx.nd.random.normal(shape=(2, 3, 64, 64))
    wanted = net(data).asnumpy()
    net.export(str(tmp_path / "net"))
    files = [str(tmp_path / f) for f in ("net-symbol.json", "net-0000.params")]
    path = mx.onnx.export_model(*files, [data.shape], onnx_file_path=str(tmp_path / "net.onnx"))
    symbol, args, aux = contrib_onnx.import_model(path)
    module = mx.mod.Module(symbol, data_names=["data"], label_names=None)
    module.bind([("data", data.shape)], for_training=False)
    module.set_params(args, aux)
    module.forward(mx.io.DataBatch([data]))
    assert relative_error(module.get_outputs()[0].asnumpy(), wanted) < 1e-6


def test_get_model_metadata_excludes_parameters(tmp_path: pathlib.Path) -> None:
    """Names and shapes of the model's inputs and outputs."""
    path = tmp_path / "fc.onnx"
    symbol = mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2, name="fc")
    params = {"fc_weight": mx.nd.ones((2, 3)), "fc_bias": mx.nd.zeros(2)}
    mx.onnx.export_model(symbol, params, [(4, 3)], onnx_file_path=path)
    assert contrib_onnx.get_model_metadata(path) == {
        "input_tensor_data": [("data", (4, 3))],
        "output_tensor_data": [("fc", (4, 2))],
    }


def _model(nodes: list, tensors: list = ()) -> onnx.ModelProto:
    values = [[helper.make_tensor_value_info(n, TensorProto.FLOAT, [2, 2])] for n in ("x", "y")]
    graph = helper.make_graph(nodes, "g", *values, list(tensors))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def _with_claim(dims: list[int]) -> bytes:
    """Return a model whose parameter declares a wrong shape."""
    tensor = numpy_helper.from_array(np.ones((2, 2), np.float32), "w")
    del tensor.dims[:]
    tensor.dims.extend(dims)
    return _model([helper.make_node("Add", ["x", "w"], ["y"])], [tensor]).SerializeToString()


def _with_external_file() -> bytes:
    tensor = numpy_helper.from_array(np.ones((2, 2), np.float32), "w")
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    entry = tensor.external_data.add()
    entry.key, entry.value = "location", "../../etc/passwd"
    return _model([helper.make_node("Add", ["x", "w"], ["y"])], [tensor]).SerializeToString()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "no graph"),
        (b"\x80\x04not a model", "not an ONNX file"),
        (b"\x00" * 64, "ONNX"),
        (_with_claim([2**40, 2**20]), "claims"),
        (_with_claim([-1, 4]), "negative"),
        (_with_external_file(), "another file"),
    ],
    ids=["empty", "text", "zeros", "huge", "negative", "external"],
)
def test_malicious_files_raise(content: bytes, said: str) -> None:
    """The error gives the reason; the claimed size is not allocated."""
    with pytest.raises(FormatError, match=said):
        contrib_onnx.import_model(content)


def test_truncated_files_raise() -> None:
    """A truncated file never loads, wherever it ends."""
    whole = _model([helper.make_node("Relu", ["x"], ["y"])]).SerializeToString()
    for length in range(0, len(whole) - 1, 7):
        with pytest.raises(MXNetError):
            contrib_onnx.import_model(whole[:length])


def test_damaged_files_load_or_raise_mxnet_error() -> None:
    """Whatever bytes are changed, the file loads or raises an MXNetError."""
    weight = numpy_helper.from_array(np.ones((2, 2), np.float32), "weight")
    nodes = [
        helper.make_node("Gemm", ["x", "weight"], ["h"], transB=1, name="dense"),
        helper.make_node("Softmax", ["h"], ["y"], axis=1),
    ]
    whole = _model(nodes, [weight]).SerializeToString()
    rng = np.random.RandomState(0)
    refused = 0
    for _ in range(150):
        damaged = bytearray(whole)
        for place in rng.randint(0, len(whole), 2):
            damaged[place] = rng.randint(256)
        try:
            contrib_onnx.import_model(bytes(damaged))
        except MXNetError:
            refused += 1
    assert refused > 50


def test_huge_constants_raise() -> None:
    """A tiny file can request a terabyte."""
    shape = numpy_helper.from_array(np.array([2**20, 2**20], np.int64), "shape")
    nodes = [
        helper.make_node("ConstantOfShape", ["shape"], ["big"]),
        helper.make_node("Add", ["x", "big"], ["y"]),
    ]
    with pytest.raises(UnsupportedImport, match="elements"):
        contrib_onnx.import_model(_model(nodes, [shape]).SerializeToString())


def test_crashes_of_the_onnx_library_are_isolated() -> None:
    """Its C++ shape inference reads out of bounds for this axis, in a subprocess."""
    scale = numpy_helper.from_array(np.ones(2, np.float32), "scale")
    node = helper.make_node("LayerNormalization", ["x", "scale"], ["y"], axis=2**31)
    with contextlib.suppress(MXNetError):  # it must only not crash this process
        contrib_onnx.import_model(_model([node], [scale]).SerializeToString())


def test_run_isolated_returns_results_and_raises_errors() -> None:
    """Results, errors and crashes of isolated work."""
    assert run_isolated(lambda: b"x" * 3_000_000, "file") == b"x" * 3_000_000
    with pytest.raises(FormatError, match=r"file is not a valid ONNX model: .*by zero"):
        run_isolated(lambda: b"%d" % (1 // 0), "file")
    with pytest.raises(FormatError, match="crashes"):
        run_isolated(lambda: os.kill(os.getpid(), signal.SIGKILL) or b"", "file")


@pytest.mark.parametrize("op_type", ["RandomUniformLike", "RandomNormalLike", "Bernoulli"])
def test_random_like_operators_keep_the_shape_of_their_input(op_type: str) -> None:
    model = _model([helper.make_node(op_type, ["x"], ["y"])])
    symbol, _, _ = contrib_onnx.import_model(model.SerializeToString())
    x = mx.nd.ones([d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim])
    assert symbol.bind(mx.cpu(), {"x": x}).forward()[0].shape == x.shape


def test_unknown_operators_raise_with_their_name() -> None:
    """The error names the operator and the node."""
    node = helper.make_node("StringNormalizer", ["x"], ["y"], name="clean")
    with pytest.raises(MXNetError, match="StringNormalizer"):
        contrib_onnx.import_model(_model([node]).SerializeToString())


def test_supports_all_operators_that_mxnet_imports() -> None:
    """All 97 ONNX operators that MXNet 1.9.1 imports have a row."""
    from mxnet.interop.onnx.importer.value import importers

    theirs = (pathlib.Path(__file__).parent / "mxnet_imports.txt").read_text().split()
    assert len(theirs) == 97
    assert [n for n in theirs if n not in importers()] == []
