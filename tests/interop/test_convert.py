"""`mx.convert.convert` compares both sides and writes a file only if they agree."""

from __future__ import annotations

import pathlib
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import safetensors.torch
from mxnet.convert import ConversionError, Difference, Report

import mxnet as mx
from mxnet.error import InvalidValue
from mxnet.gluon import nn
from mxnet.interop import conversion
from mxnet.interop.source import compare
from tests.interop.onnx.running import relative_error

WITHOUT_US = """
import sys
sys.modules["mxnet"] = None  # an import would fail
import numpy, onnxruntime
session = onnxruntime.InferenceSession(sys.argv[1], providers=["CPUExecutionProvider"])
name = session.get_inputs()[0].name
numpy.save(sys.argv[3], session.run(None, {name: numpy.load(sys.argv[2])})[0])
"""
# The format of MXNet 0.8: `param` and `attr`, inputs of two numbers, no version.
OLD_JSON = """{"nodes": [
 {"op": "null", "param": {}, "name": "data", "inputs": [], "backward_source_id": -1},
 {"op": "null", "param": {}, "name": "fc_weight", "inputs": [], "backward_source_id": -1},
 {"op": "null", "param": {}, "name": "fc_bias", "inputs": [], "backward_source_id": -1},
 {"op": "FullyConnected", "param": {"no_bias": "False", "num_hidden": "3"}, "name": "fc",
  "inputs": [[0, 0], [1, 0], [2, 0]], "backward_source_id": -1},
 {"op": "null", "param": {}, "name": "softmax_label", "inputs": [], "backward_source_id": -1},
 {"op": "SoftmaxOutput", "param": {"grad_scale": "1"}, "name": "softmax",
  "inputs": [[3, 0], [4, 0]], "backward_source_id": -1}],
 "arg_nodes": [0, 1, 2, 4], "heads": [[5, 0]]}"""


def _dense() -> mx.gluon.HybridBlock:
    net = mx.gluon.nn.Dense(3, in_units=4, activation="tanh")
    net.initialize(mx.init.Normal(1.0))
    return net


@pytest.mark.parametrize("target", ["net.onnx", pytest.param("net.pt2", marks=pytest.mark.slow)])
def test_report_has_a_row_for_each_set_of_inputs(target: str, tmp_path: pathlib.Path) -> None:
    """Random, edge and passed inputs, with absolute and relative errors."""
    given = {"data": np.full((2, 4), 3.0)}
    report = mx.convert.convert(_dense(), tmp_path / target, shapes=[(2, 4)], inputs=given)
    assert {"normal", "zeros", "ones", "alternating", "given 0"} <= set(report.rows)
    assert report.passed
    assert report.largest.relative <= 1e-5
    assert "both sides agree" in str(report)
    assert (tmp_path / target).stat().st_size > 0


def test_parameters_are_initializers_but_not_inputs(tmp_path: pathlib.Path) -> None:
    """Runtimes can then fold them as constants."""
    import onnx

    mx.convert.convert(_dense(), tmp_path / "net.onnx", shapes=[(2, 4)])
    graph = onnx.load(tmp_path / "net.onnx").graph
    assert [i.name for i in graph.input] == ["data"]
    assert len(graph.initializer) == 2


def test_mismatch_raises_and_writes_no_file(tmp_path: pathlib.Path, monkeypatch) -> None:
    """The error shows the differences."""
    target = tmp_path / "net.onnx"
    wrong = [np.full((2, 3), 9.0, np.float32)]
    monkeypatch.setattr(conversion, "run_file", lambda file, cases: dict.fromkeys(cases, wrong))
    with pytest.raises(ConversionError, match="above the tolerance"):
        mx.convert.convert(_dense(), target, shapes=[(2, 4)])
    assert list(tmp_path.iterdir()) == []


def test_int8_models_are_compared_and_written(tmp_path: pathlib.Path) -> None:
    """A name ending in -int8 is the prefix of both files; the bare format writes nothing."""
    given = {"data": np.linspace(-1, 1, 8).reshape(2, 4)}
    report = mx.convert.convert(_dense(), tmp_path / "net-int8", shapes=[(2, 4)], inputs=given)
    assert 0 < report.largest.relative < report.tolerance == 0.1
    files = [tmp_path / "net-int8-symbol.json", tmp_path / "net-int8-0000.params"]
    assert sorted(tmp_path.iterdir()) == sorted(files)
    net = mx.gluon.SymbolBlock.imports(str(files[0]), ["data"], str(files[1]))
    assert net(mx.nd.array(given["data"])).shape == (2, 3)
    with pytest.warns(UserWarning, match="calibrated on random numbers"):
        assert mx.convert.convert(_dense(), "int8", shapes=[(2, 4)]).passed


@pytest.mark.parametrize("to", ["onnx", "torch"])
def test_int8_models_are_converted_to_other_formats(tmp_path: pathlib.Path, to: str) -> None:
    """They follow the graph; compiled layers round less often."""
    net = nn.HybridSequential()
    net.add(nn.Conv2D(4, 3), nn.BatchNorm(), nn.Activation("relu"), nn.MaxPool2D(), nn.Dense(3))
    net.initialize(mx.init.Xavier())
    shapes = [(2, 3, 8, 8)]
    given = {"data": np.random.RandomState(0).standard_normal(shapes[0])}
    mx.convert.convert(net, tmp_path / "net-int8", shapes=shapes, inputs=given)
    files = [tmp_path / "net-int8-symbol.json", str(tmp_path / "net-int8-0000.params")]
    assert mx.convert.convert(files[0], to, shapes=shapes, params=files[1]).passed


def test_wrong_int8_input_name_raises() -> None:
    """The error lists the valid names."""
    with pytest.raises(InvalidValue, match="no input 'picture'; its inputs: data"):
        mx.convert.convert(_dense(), "int8", shapes=[(2, 4)], inputs={"picture": np.ones((2, 4))})


def _checkpoint(kind: str, folder: pathlib.Path) -> tuple:
    """Return symbol and parameters of one kind of model, and data for it."""
    data = mx.nd.random.normal(shape=(2, 4))
    params = {"fc_weight": mx.nd.random.normal(shape=(3, 4)), "fc_bias": mx.nd.ones(3)}
    if kind == "gluon":
        net = _dense()
        net.hybridize()
        net(data)
        net.export(str(folder / "g"))
        return str(folder / "g-symbol.json"), str(folder / "g-0000.params"), data
    if kind == "old":
        (folder / "old.json").write_text(OLD_JSON)
        return str(folder / "old.json"), params, data
    symbol = mx.sym.SoftmaxOutput(
        mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=3, name="fc"), name="softmax"
    )
    module = mx.mod.Module(symbol)
    module.bind([("data", data.shape)], [("softmax_label", (2,))])
    module.init_params(mx.init.Normal(1.0))
    module.save_checkpoint(str(folder / "m"), 3)
    return str(folder / "m-symbol.json"), str(folder / "m-0003.params"), data


@pytest.mark.parametrize("kind", ["gluon", "module", "old"])
def test_converted_checkpoints_run_without_mxnet(kind: str, tmp_path: pathlib.Path) -> None:
    """A Gluon export, a Module checkpoint and a file of MXNet 0.8, through ONNX."""
    symbol, params, data = _checkpoint(kind, tmp_path)
    model, given, result = (str(tmp_path / n) for n in ("m.onnx", "in.npy", "out.npy"))
    report = mx.convert.convert(symbol, model, shapes=[data.shape], params=params)
    assert report.passed
    np.save(given, data.asnumpy())
    command = [sys.executable, "-c", WITHOUT_US, model, given, result]
    subprocess.run(command, check=True, timeout=120, cwd=tmp_path)
    module = mx.convert.to_torch(symbol, params, shapes=[data.shape])
    import torch

    wanted = module(torch.from_numpy(data.asnumpy())).detach().numpy()
    assert relative_error(np.load(result), wanted) < 1e-5


def test_convert_parameters_to_safetensors(tmp_path: pathlib.Path) -> None:
    """Parameters are named by their position in the tree of blocks."""
    net = _dense()
    path = tmp_path / "net.safetensors"
    assert mx.convert.convert(net, path).passed
    stored = safetensors.torch.load_file(path)
    np.testing.assert_array_equal(stored["weight"].numpy(), net.weight.data().asnumpy())
    assert [p.name for p in tmp_path.iterdir()] == ["net.safetensors"]


def test_wrong_targets_and_missing_shapes_raise() -> None:
    """They raise before anything runs."""
    with pytest.raises(InvalidValue, match=r"\.onnx"):
        mx.convert.convert(_dense(), to="net.xyz", shapes=[(1, 4)])
    with pytest.raises(InvalidValue, match="shapes is needed"):
        mx.convert.convert(_dense(), to="onnx")


def test_nan_on_one_side_is_a_mismatch() -> None:
    """NaN against a number is an infinite error; NaN against NaN is no error."""
    nan, one = np.array([np.nan]), np.array([1.0])
    assert compare([nan], [one]) == [Difference(np.inf, np.inf)]
    assert compare([nan], [nan]) == [Difference(0.0, 0.0)]
    report = Report("onnx", 1e-5)
    report.add("x", [Difference(np.inf, np.inf)])
    assert not report.passed


def test_deferred_parameters_are_initialized_from_input_shapes() -> None:
    net = mx.gluon.nn.HybridSequential()
    net.add(mx.gluon.nn.Conv2D(2, 3), mx.gluon.nn.BatchNorm(), mx.gluon.nn.Dense(3))
    net.initialize()
    assert mx.convert.convert(net, "onnx", shapes=[(1, 1, 5, 5)]).passed
    assert net[2].weight.shape == (3, 18)


def _detector() -> mx.gluon.HybridBlock:
    class Detector(mx.gluon.HybridBlock):
        def hybrid_forward(self, F: Any, x: Any) -> Any:
            return F.contrib.box_nms(x, overlap_thresh=0.5, id_index=0)

    return Detector()


@pytest.mark.parametrize("is_detector", [True, False])
def test_detections_are_compared_as_sets_of_rows(is_detector: bool, monkeypatch) -> None:
    """The order of rows matters only for other outputs."""
    run_file = conversion.run_file

    def reversed_rows(*arguments: Any) -> dict[str, list[np.ndarray]]:
        results = run_file(*arguments)
        return {case: [a[:, ::-1] for a in arrays] for case, arrays in results.items()}

    monkeypatch.setattr(conversion, "run_file", reversed_rows)
    net = _detector() if is_detector else nn.HybridLambda("relu")
    if is_detector:
        report = mx.convert.convert(net, "onnx", shapes=[(2, 5, 6)])
        assert "compared as sets of rows" in str(report)
    else:
        with pytest.raises(ConversionError, match="above the tolerance"):
            mx.convert.convert(net, "onnx", shapes=[(2, 5, 6)])


def test_difference_of_row_sets_uses_nearest_rows() -> None:
    """Empty rows are ignored; a missing row or NaN is an error."""
    rows = np.array([[[0, 0.9, 1, 2], [1, 0.8, 3, 4], [-1, 0.7, 5, 6]]])
    other = rows[:, [1, 2, 0]].copy()
    other[0, 1, 1:] = 9  # of an empty row
    assert compare([other], [rows], sets=[0]) == [Difference(0.0, 0.0)]
    assert compare([other], [rows])[0].absolute > 1
    other[0, 0, 2] += 0.5
    assert compare([other], [rows], sets=[0]) == [Difference(0.5, 0.125)]
    for value in (np.nan, -1.0):
        wrong = rows[:, [1, 0, 2]].copy()
        wrong[0, 0, 0] = value
        assert compare([wrong], [rows], sets=[0])[0].relative > 0.1


def test_batch_size_is_dynamic_by_default() -> None:
    """The report lists frozen sizes with the reason."""
    net = nn.HybridSequential()
    net.add(nn.Conv2D(2, 3), nn.GlobalAvgPool2D())
    net.initialize()
    report = mx.convert.convert(net, "onnx", shapes=[(1, 3, 6, 6)])
    assert report.sizes == {"data": ("batch", 3, 6, 6)}
    assert "other sizes" in report.rows
    (note,) = report.notes
    assert "fixed axis 1: the graph and its parameters take no other size" in note
    assert "fixed axes 2, 3: --dynamic" in note
    axes = {"data": {2: "height", 3: "width"}}
    report = mx.convert.convert(net, "onnx", shapes=[(1, 3, 6, 6)], dynamic_shapes=axes)
    assert report.sizes == {"data": ("batch", 3, "height", "width")}
    frozen = mx.convert.convert(
        net, "onnx", shapes=[(1, 3, 6, 6)], dynamic_shapes=[(1, 3, 6, "width")]
    )
    assert frozen.sizes == {"data": (1, 3, 6, "width")}


def test_batch_size_is_frozen_if_the_format_requires_it(monkeypatch) -> None:
    """The report gives the reason; explicitly requested sizes raise."""
    write = conversion._onnx_model

    def refuse_free_sizes(source: Any, sizes: Any, opset: int) -> Any:
        if conversion.has_free_sizes(sizes):
            raise ConversionError("operator X needs the batch as a number. Freeze it.")
        return write(source, sizes, opset)

    monkeypatch.setattr(conversion, "_onnx_model", refuse_free_sizes)
    report = mx.convert.convert(_dense(), "onnx", shapes=[(2, 4)])
    assert report.sizes == {"data": (2, 4)}
    assert "fixed axis 0: operator X needs the batch as a number;" in report.notes[0]
    with pytest.raises(ConversionError, match="operator X"):
        mx.convert.convert(_dense(), "onnx", shapes=[(2, 4)], dynamic_shapes=[("batch", 4)])


def test_batch_size_is_frozen_if_the_graph_fixes_it() -> None:
    """For example by a reshape to the training batch size."""
    data = mx.sym.reshape(mx.sym.var("data"), shape=(2, 2, 2)) + mx.sym.ones((2, 2, 2))
    report = mx.convert.convert(data, "onnx", shapes=[(2, 4)], params={})
    assert report.sizes == {"data": (2, 4)}
    assert "fixed axes 0, 1: the graph" in report.notes[0]


def test_invalid_dynamic_shapes_raise() -> None:
    """Wrong inputs, axes and ranks, and sizes that the parameters fix."""
    wrong = {
        "the graph and its parameters take no other size": {"data": {1: "width"}},
        "has no axis 2": {"data": {2: "height"}},
        "the inputs are data": {"image": {0: "batch"}},
        "whose shape is": [("batch", 4, 4)],
        "2 shapes": [(2, 4), (2, 4)],
    }
    for message, sizes in wrong.items():
        with pytest.raises(InvalidValue, match=message):
            mx.convert.convert(_dense(), "onnx", shapes=[(2, 4)], dynamic_shapes=sizes)


@pytest.mark.slow
def test_dynamic_height_in_torch_programs() -> None:
    """In addition to the batch; images must be larger than the kernel."""
    net = nn.HybridSequential()
    net.add(nn.Conv2D(2, 3), nn.GlobalAvgPool2D())
    net.initialize()
    axes = {"data": {2: "height"}}
    report = mx.convert.convert(net, "torch", shapes=[(1, 3, 6, 6)], dynamic_shapes=axes)
    assert report.sizes == {"data": ("batch", 3, "height", 6)}
    assert "other sizes" in report.rows
