"""Quantized networks become QDQ files, which onnxruntime runs in integers."""

from __future__ import annotations

import numpy as np
import pytest

import mxnet as mx
from mxnet.contrib import quantization as quant

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")


def network():
    x = mx.sym.Convolution(mx.sym.var("data"), kernel=(3, 3), num_filter=4, name="first")
    x = mx.sym.clip(x, a_min=0, a_max=6, name="relu6")
    y = mx.sym.Convolution(x, kernel=(1, 1), num_filter=4, num_group=2, name="second")
    x = mx.sym.relu(mx.sym.elemwise_add(x, y, name="add"))
    z = mx.sym.Convolution(x, kernel=(1, 1), num_filter=2, no_bias=True, name="third")
    x = mx.sym.concat(x, z, dim=1)
    x = mx.sym.Pooling(x, kernel=(2, 2), stride=(2, 2), name="pool")
    x = mx.sym.Pooling(x, global_pool=True, kernel=(1, 1), pool_type="avg", name="mean")
    return mx.sym.FullyConnected(mx.sym.Flatten(x), num_hidden=3, name="last")


def _remove_parameters_from_inputs(file):
    """Make parameters constants, as `mx.convert` does; MXNet's exporter lists them as inputs."""
    model = onnx.load(file)
    known = {i.name for i in model.graph.initializer}
    inputs = [i for i in model.graph.input if i.name not in known]
    del model.graph.input[:]
    model.graph.input.extend(inputs)
    onnx.save(model, file)


def quantized_files(tmp_path, granularity, mode="naive"):
    mx.random.seed(0)
    net = mx.gluon.SymbolBlock(network(), mx.sym.var("data"))
    net.initialize(mx.init.Normal(0.5))
    data = mx.nd.array(np.random.RandomState(0).uniform(-1, 1, (2, 3, 8, 8)))
    wanted = net(data).asnumpy()
    small = quant.quantize_net_v2(
        net, calib_mode=mode, calib_data=[data], quantize_granularity=granularity
    )
    found = small(data).asnumpy()
    small.export(str(tmp_path / "small"))
    files = [str(tmp_path / f) for f in ("small-symbol.json", "small-0000.params", "small.onnx")]
    mx.onnx.export_model(files[0], files[1], [(2, 3, 8, 8)], np.float32, files[2])
    _remove_parameters_from_inputs(files[2])
    return files[2], data.asnumpy(), found, wanted


@pytest.mark.parametrize("granularity", ["tensor-wise", "channel-wise"])
def test_a_quantized_network_runs_in_onnxruntime(tmp_path, granularity):
    file, data, found, wanted = quantized_files(tmp_path, granularity)
    onnx.checker.check_model(onnx.load(file), full_check=True)
    session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
    (there,) = session.run(None, {"data": data})
    np.testing.assert_allclose(there, found, atol=0.05 * abs(wanted).max())
    np.testing.assert_allclose(there, wanted, atol=0.08 * abs(wanted).max())


def test_weights_are_integers_with_a_scale_for_each_filter(tmp_path):
    file, *_ = quantized_files(tmp_path, "channel-wise")
    model = onnx.load(file)
    arrays = {i.name: onnx.numpy_helper.to_array(i) for i in model.graph.initializer}
    pairs = [n for n in model.graph.node if n.op_type == "DequantizeLinear"]
    scales = {n.input[0]: arrays[n.input[1]].shape for n in pairs if n.input[0] in arrays}
    assert scales["first_weight_quantize"] == (4,) and scales["last_weight_quantize"] == (3,)
    assert arrays["first_weight_quantize"].dtype == np.int8
    assert not [n for n in model.graph.node if n.op_type == "Abs"]  # ranges are constants


def test_onnxruntime_makes_integer_operators_of_it(tmp_path):
    file, *_ = quantized_files(tmp_path, "channel-wise")
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.optimized_model_filepath = str(tmp_path / "optimized.onnx")
    onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
    kinds = [n.op_type for n in onnx.load(tmp_path / "optimized.onnx").graph.node]
    assert kinds.count("QLinearConv") == 3 and "Conv" not in kinds
