"""Recurrent models of MXNet 1.9.1 as torch modules and as programs without mxnet."""

from __future__ import annotations

import pathlib

import numpy as np
import pytest
import torch
from mxnet.convert import UnsupportedTorch

import mxnet as mx
from mxnet.interop import to_torch
from mxnet.interop.comparison.isolated import run_file
from tests.golden import HERE
from tests.interop.onnx.running import relative_error
from tests.without_mxnet import forked_conversions  # noqa: F401

pytestmark = pytest.mark.usefixtures("forked_conversions")
FOLDER = HERE / "recurrent_models"
MODELS = ("lstm", "gru", "rnn", "cells")


def _files(name: str) -> tuple[str, str, np.ndarray, np.ndarray]:
    with np.load(FOLDER / f"{name}.npz") as stored:
        data, result = stored["data"], stored["result"]
    return str(FOLDER / f"{name}-symbol.json"), str(FOLDER / f"{name}-0000.params"), data, result


@pytest.mark.parametrize("name", MODELS)
def test_exported_recurrent_models_match_mxnet(name: str) -> None:
    """Layers become torch's; initial states have the batch size."""
    symbol, params, data, expected = _files(name)
    module = to_torch(symbol, params, shapes=[data.shape])
    output = module(torch.from_numpy(data)).detach().numpy()
    assert relative_error(output, expected) < 1e-5
    kinds = {type(m) for m in module.modules()}
    assert name == "cells" or kinds & {torch.nn.LSTM, torch.nn.GRU, torch.nn.RNN}


@pytest.mark.slow
def test_exported_lstm_program_runs_without_mxnet(tmp_path: pathlib.Path) -> None:
    """With a fixed and with a dynamic batch size."""
    symbol, params, data, expected = _files("lstm")
    free = [(5, "batch", 4)]
    report = mx.convert.convert(
        symbol, tmp_path / "lstm.pt2", [data.shape], params=params, inputs=[{"data": data}]
    )
    assert report.passed
    output = run_file(tmp_path / "lstm.pt2", {"data": {"data": data}})["data"]
    assert relative_error(output[0], expected) < 1e-5
    symbol, params, data, _ = _files("gru")
    layer = mx.sym.load(symbol).get_internals()["gru_rnn0_output"]
    report = mx.convert.convert(layer, "torch", [data.shape], params=params, dynamic_shapes=free)
    assert "other sizes" in report.rows


def test_recurrent_layers_convert_with_and_without_states() -> None:
    """A layer that has run has states as graph inputs; a single shape means data only."""
    layer = mx.gluon.rnn.LSTM(3, 2, bidirectional=True, input_size=2)
    layer.initialize()
    layer.hybridize()
    data = mx.nd.random.normal(shape=(4, 2, 2))
    expected = layer(data).asnumpy()
    alone = layer.to_torch(shapes=[data.shape])(data.to_torch())
    assert relative_error(alone.detach().numpy(), expected) < 1e-6
    with_states = layer.to_torch(shapes=[data.shape, (4, 2, 3), (4, 2, 3)])
    zeros = torch.zeros(4, 2, 3)
    output = with_states(data.to_torch(), zeros, zeros)
    assert relative_error(output.detach().numpy(), expected) < 1e-6


@pytest.mark.filterwarnings("ignore:LSTM with projections")  # torch has no fast kernel for it
@pytest.mark.parametrize("kind", ["projection", "clipping"])
def test_lstm_with_projection_or_clipping_converts_to_torch(kind: str) -> None:
    """Projections use torch's LSTM, clipped cells are unrolled."""
    options = {
        "projection": {"projection_size": 2},
        "clipping": {"state_clip_min": -0.1, "state_clip_max": 0.1},
    }[kind]
    layer = mx.gluon.rnn.LSTM(3, input_size=2, **options)
    layer.initialize(mx.init.Uniform(1.0))
    data = mx.nd.random.normal(shape=(4, 2, 2))
    output = layer.to_torch(shapes=[data.shape])(data.to_torch())
    assert relative_error(output.detach().numpy(), layer(data).asnumpy()) < 1e-5


def test_to_torch_without_required_shapes_raises() -> None:
    symbol, params, *_ = _files("cells")
    with pytest.raises(UnsupportedTorch, match="Give shapes"):
        to_torch(symbol, params)


@pytest.mark.parametrize("name", ["LSTM", "GRU"])
def test_sequence_length_of_recurrent_layers(name: str) -> None:
    """An LSTM masks its steps; others would need packing by values, which cannot be exported."""
    layer = getattr(mx.gluon.rnn, name)(3, input_size=2, use_sequence_length=True)
    layer.initialize(mx.init.Uniform(1.0))
    symbol = layer(mx.sym.var("data"), sequence_length=mx.sym.var("lengths"))
    params = {n: p.data() for n, p in layer.collect_params().items()}
    shapes = {"data": (4, 2, 2), "lengths": (2,)}
    if name == "GRU":
        with pytest.raises(UnsupportedTorch, match=r"RNN.*values"):
            to_torch(symbol, params, shapes)
        return
    module = to_torch(symbol, params, shapes)
    data, lengths = mx.nd.random.normal(shape=(4, 2, 2)), mx.nd.array([4, 2])
    expected = layer(data, sequence_length=lengths).asnumpy()
    read = {"data": data.to_torch(), "lengths": lengths.to_torch()}
    feed = [read[n.name] for n in module.graph.nodes if n.op == "placeholder"]
    assert relative_error(module(*feed).detach().numpy(), expected) < 1e-5
