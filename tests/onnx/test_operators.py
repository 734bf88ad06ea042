"""Exported operators over the types that models use, alone and in the heads of detectors.

The law for every operator and option is in `test_rows.py`; here the same operators meet half and
double precision, whole numbers, dynamic batches and each other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mxnet as mx
from mxnet.onnx.export import build_model
from tests.onnx.running import assert_equal_outputs, run

RNG = np.random.RandomState(0)
FLOATS = ("float16", "float32", "float64")
NUMBERS = ("float32", "float64", "int32", "int64")
S = mx.sym


def _check(
    build: Callable[..., Any],
    *datas: np.ndarray,
    dynamic: list | None = None,
    others: list | None = None,
    opset: int = 13,
) -> None:
    """Export a symbol and compare with onnxruntime, for the data and for other sizes."""
    names = [f"x{i}" for i in range(len(datas))]
    symbol = build(*(S.var(n, dtype=str(d.dtype)) for n, d in zip(names, datas, strict=True)))
    model = build_model(
        symbol,
        {},
        {n: d.shape for n, d in zip(names, datas, strict=True)},
        {n: d.dtype for n, d in zip(names, datas, strict=True)},
        dynamic_shapes=dict(zip(names, dynamic, strict=True)) if dynamic else None,
        opset=opset,
    )
    for given in [datas, *(others or [])]:
        arrays = {n: mx.nd.array(d, dtype=d.dtype) for n, d in zip(names, given, strict=True)}
        executor = symbol.bind(mx.cpu(), arrays, grad_req="null")
        wanted = [o.asnumpy() for o in executor.forward(is_train=False)]
        found = run(model, dict(zip(names, given, strict=True)))
        loose = any(w.dtype == np.float16 for w in wanted)
        assert_equal_outputs(found, wanted, *((1e-2, 1e-2) if loose else (1e-4, 1e-5)))


def _normal(dtype: str, *shape: int) -> np.ndarray:
    if dtype.startswith("int"):
        return RNG.randint(1, 9, shape).astype(dtype)
    return RNG.standard_normal(shape).astype(dtype)


ELEMENTWISE = {
    "exp": S.exp,
    "tanh": S.tanh,
    "sigmoid": S.sigmoid,
    "abs": S.abs,
    "square": S.square,
    "floor": S.floor,
    "relu": S.relu,
    "softmax": lambda x: S.softmax(x, axis=1),
    "log_softmax": lambda x: S.log_softmax(x, axis=-1),
    "hard_sigmoid": S.hard_sigmoid,
    "gelu": lambda x: S.LeakyReLU(x, act_type="gelu"),
    "norm": lambda x: S.norm(x, axis=1, keepdims=True),
    "l2": lambda x: S.L2Normalization(x, mode="instance"),
}
ANY_NUMBER = {
    "reshape": lambda x: S.reshape(x, shape=(0, -1)),
    "transpose": lambda x: S.transpose(x, axes=(1, 0)),
    "sum": lambda x: S.sum(x, axis=0),
    "max": lambda x: S.max(x, axis=1),
    "tile": lambda x: S.tile(x, reps=(2, 1)),
    "repeat": lambda x: S.repeat(x, repeats=2, axis=0),
    "slice": lambda x: S.slice(x, begin=(0, 1), end=(2, None), step=(1, 2)),
    "clip": lambda x: S.clip(x, a_min=2, a_max=5),
    "where": lambda x: S.where(x > 3, x, x * 2),
    "stack": lambda x: S.stack(x, x + 1, axis=1),
    "argmax": lambda x: S.argmax(x, axis=1),
    "topk": lambda x: S.topk(x, k=2, ret_typ="indices", axis=1),
    "one_hot": lambda x: S.one_hot(S.argmax(x, axis=1), depth=5),
    "scalars": lambda x: (x + 1) * 3 - 2,
    "maximum": lambda x: S.broadcast_maximum(x, S.slice_axis(x, axis=0, begin=0, end=1)),
    "cast": lambda x: S.cast(x, dtype="float32"),
    "concat": lambda x: S.concat(x, x, dim=0),
    "expand": lambda x: S.expand_dims(x, axis=1),
    "pick": lambda x: S.pick(x, S.argmax(x, axis=1), axis=1),
    "cumsum": lambda x: S._internal._np_cumsum(x, axis=1),
}


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ELEMENTWISE)
def test_float_operators(name: str, dtype: str) -> None:
    """Half, single and double precision."""
    _check(ELEMENTWISE[name], _normal(dtype, 3, 4))


@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize("name", ANY_NUMBER)
def test_operators_of_numbers(name: str, dtype: str) -> None:
    """Floats and whole numbers, of values that no two of a row share."""
    data = RNG.permutation(12).reshape(3, 4).astype(dtype)
    _check(ANY_NUMBER[name], data)


@pytest.mark.parametrize("dtype", FLOATS)
def test_layers_in_three_precisions(dtype: str) -> None:
    """Convolution, normalization, pooling and a dense layer of one type."""

    def net(x: Any, w: Any, v: Any) -> Any:
        y = S.Convolution(x, w, kernel=(3, 3), num_filter=4, pad=(1, 1), no_bias=True)
        y = S.Pooling(S.LeakyReLU(y, slope=0.1), kernel=(2, 2), stride=(2, 2), pool_type="max")
        return S.FullyConnected(y, v, num_hidden=3, no_bias=True)

    _check(net, _normal(dtype, 2, 3, 6, 6), _normal(dtype, 4, 3, 3, 3), _normal(dtype, 3, 36))


def test_embedding_takes_whole_and_broken_numbers() -> None:
    """Indices may be int32, int64 or floats."""
    table = _normal("float32", 6, 3)
    for dtype in ("float32", "int32", "int64"):
        _check(
            lambda x, w: S.Embedding(x, w, input_dim=6, output_dim=3),
            np.array([[0, 5], [2, 1]], dtype),
            table,
        )


def test_sizes_may_change() -> None:
    """Batch and length are names in the file; reshapes copy them."""

    def net(x: Any) -> Any:
        y = S.reshape(S.transpose(x, axes=(0, 2, 1)), shape=(0, -1, 2, 2))
        return S.mean(S.broadcast_mul(y, S.softmax(y, axis=-1)), axis=(2, 3))

    others = [(_normal("float32", n, t, 4),) for n, t in ((1, 2), (5, 8))]
    _check(net, _normal("float32", 2, 6, 4), dynamic=[("n", "t", 4)], others=others)


def test_a_detection_head_runs_end_to_end() -> None:
    """Anchors, scores, offsets and suppression, as SSD ends."""

    def head(x: Any, scores: Any, offsets: Any) -> Any:
        anchors = S.contrib.MultiBoxPrior(x, sizes=(0.3, 0.6), ratios=(1, 2))
        return S.contrib.MultiBoxDetection(
            S.softmax(scores, axis=1), offsets, anchors, nms_threshold=0.4, threshold=0.1
        )

    count = 4 * 4 * 3
    _check(
        head,
        _normal("float32", 1, 2, 4, 4),
        _normal("float32", 1, 3, count),
        _normal("float32", 1, 4 * count) * 0.1,
    )


def test_a_two_stage_detector_runs_end_to_end() -> None:
    """Proposals, pooled regions and their classes, as Faster R-CNN and R-FCN end."""

    def net(prob: Any, offsets: Any, info: Any, features: Any) -> Any:
        rois = S.contrib.Proposal(
            prob,
            offsets,
            info,
            scales=(1, 2),
            ratios=(1,),
            feature_stride=4,
            rpn_pre_nms_top_n=20,
            rpn_post_nms_top_n=5,
            rpn_min_size=2,
        )
        pooled = S.contrib.ROIAlign(features, rois, pooled_size=(2, 2), spatial_scale=0.25)
        votes = S.contrib.PSROIPooling(
            features, rois, output_dim=2, pooled_size=2, spatial_scale=0.25
        )
        return S.Group([rois, S.softmax(S.Flatten(pooled)), votes])

    _check(
        net,
        RNG.uniform(size=(1, 4, 6, 6)).astype("float32"),
        _normal("float32", 1, 8, 6, 6) * 0.1,
        np.array([[24, 24, 1]], "float32"),
        _normal("float32", 1, 8, 6, 6),
    )


@pytest.mark.parametrize("mode", ["lstm", "gru", "rnn_tanh", "rnn_relu"])
@pytest.mark.parametrize("bidirectional", [False, True])
def test_recurrent_modes_with_states(mode: str, bidirectional: bool) -> None:
    """Two layers, one or both directions, states in and out."""
    gates = {"lstm": 4, "gru": 3}.get(mode, 1)
    directions, size, width = 1 + bidirectional, 3, 2
    count = 0
    for layer in range(2):
        inputs = width if layer == 0 else size * directions
        count += directions * gates * size * (inputs + size + 2)
    weights = mx.nd.array(RNG.standard_normal(count) * 0.3)
    names = ["x", "h"] + (["c"] if mode == "lstm" else [])
    arrays = {"x": _normal("float32", 4, 2, width)}
    arrays |= {n: _normal("float32", 2 * directions, 2, size) for n in names[1:]}
    symbol = S.RNN(
        S.var("x"),
        S.var("w"),
        *(S.var(n) for n in names[1:]),
        state_size=size,
        num_layers=2,
        bidirectional=bidirectional,
        mode=mode,
        state_outputs=True,
    )
    model = build_model(symbol, {"w": weights}, {n: a.shape for n, a in arrays.items()})
    given = {n: mx.nd.array(a) for n, a in arrays.items()} | {"w": weights}
    wanted = [o.asnumpy() for o in symbol.bind(mx.cpu(), given, grad_req="null").forward()]
    assert_equal_outputs(run(model, arrays), wanted)
