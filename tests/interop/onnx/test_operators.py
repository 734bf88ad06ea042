"""Exported operators with the dtypes that models use, and in the heads of detectors.

`test_rows.py` covers every operator and option. Here the operators are combined with half and
double precision, integers and dynamic batches, and load in ONNX Runtime with every dtype.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnxruntime
import pytest

import mxnet as mx
from mxnet.interop.onnx.export import build_model
from tests.interop.onnx.running import assert_equal_outputs, run

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
def test_float_operators_in_three_precisions(name: str, dtype: str) -> None:
    _check(ELEMENTWISE[name], _normal(dtype, 3, 4))


@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize("name", ANY_NUMBER)
def test_operators_on_floats_and_integers(name: str, dtype: str) -> None:
    """The values of each row are distinct."""
    data = RNG.permutation(12).reshape(3, 4).astype(dtype)
    _check(ANY_NUMBER[name], data)


@pytest.mark.parametrize("dtype", FLOATS)
def test_layers_in_three_precisions(dtype: str) -> None:
    """Convolution, normalization, pooling and a dense layer in one dtype."""

    def net(x: Any, w: Any, v: Any) -> Any:
        y = S.Convolution(x, w, kernel=(3, 3), num_filter=4, pad=(1, 1), no_bias=True)
        y = S.Pooling(S.LeakyReLU(y, slope=0.1), kernel=(2, 2), stride=(2, 2), pool_type="max")
        return S.FullyConnected(y, v, num_hidden=3, no_bias=True)

    _check(net, _normal(dtype, 2, 3, 6, 6), _normal(dtype, 4, 3, 3, 3), _normal(dtype, 3, 36))


def test_embedding_with_integer_and_float_indices() -> None:
    table = _normal("float32", 6, 3)
    for dtype in ("float32", "int32", "int64"):
        _check(
            lambda x, w: S.Embedding(x, w, input_dim=6, output_dim=3),
            np.array([[0, 5], [2, 1]], dtype),
            table,
        )


def test_dynamic_batch_and_length() -> None:
    """Batch and length are symbolic in the file; reshapes copy them."""

    def net(x: Any) -> Any:
        y = S.reshape(S.transpose(x, axes=(0, 2, 1)), shape=(0, -1, 2, 2))
        return S.mean(S.broadcast_mul(y, S.softmax(y, axis=-1)), axis=(2, 3))

    others = [(_normal("float32", n, t, 4),) for n, t in ((1, 2), (5, 8))]
    _check(net, _normal("float32", 2, 6, 4), dynamic=[("n", "t", 4)], others=others)


def test_detection_head_end_to_end() -> None:
    """Anchors, scores, offsets and suppression, as in SSD."""

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


def test_two_stage_detector_end_to_end() -> None:
    """Proposals, pooled regions and their classes, as in Faster R-CNN and R-FCN."""

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
    """Two layers, one or both directions, with input and output states."""
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


# -- types that runtimes compute in ---------------------------------------------------------

CLIPPED = {"lstm_state_clip_min": -0.5, "lstm_state_clip_max": 0.5}


def _run(symbol: Any, feed: dict[str, np.ndarray]) -> tuple[list, list]:
    """Return what ONNX Runtime computes and what MXNext computes."""
    model = build_model(
        symbol, {}, {n: a.shape for n, a in feed.items()}, {n: a.dtype for n, a in feed.items()}
    )
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    assert [i.name for i in session.get_inputs()] == list(feed)
    arrays = {n: mx.nd.array(a, dtype=a.dtype) for n, a in feed.items()}
    executor = symbol.bind(mx.cpu(), arrays, grad_req="null")
    wanted = [o.asnumpy() for o in executor.forward(is_train=False)]
    return session.run(None, feed), wanted


DOUBLE = {
    "gelu": lambda x: S.LeakyReLU(x, act_type="gelu"),
    "elu": lambda x: S.LeakyReLU(x, act_type="elu"),
    "softrelu": lambda x: S.Activation(x, act_type="softrelu"),
    "global_pool": lambda x: S.Pooling(x, global_pool=True, pool_type="avg", kernel=(1, 1)),
    "pool": lambda x: S.Pooling(x, kernel=(2, 2), pool_type="avg"),
    "resize": lambda x: S.contrib.BilinearResize2D(x, height=6, width=7),
    "lrn": lambda x: S.LRN(x, nsize=3),
    "nms": lambda x: S.contrib.box_nms(S.reshape(x, shape=(1, -1, 6)), coord_start=2),
}


@pytest.mark.parametrize("name", DOUBLE)
def test_float64_is_cast_where_runtimes_lack_a_kernel(name: str) -> None:
    """Runtimes compute these in float32 only; the result is float64."""
    found, wanted = _run(DOUBLE[name](S.var("x")), {"x": RNG.rand(1, 3, 4, 4)})
    assert_equal_outputs(found, wanted)


SMALL: dict[str, Callable[..., Any]] = {
    "add_n": lambda x, y: S.add_n(x, y),
    "sum": lambda x, y: S.sum(x + y),
}


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("name", SMALL)
def test_small_integers_are_computed_as_int32_with_wraparound(name: str, dtype: str) -> None:
    feed = {n: RNG.randint(90, 120, (2, 3)).astype(dtype) for n in "xy"}
    found, wanted = _run(SMALL[name](S.var("x"), S.var("y")), feed)
    assert_equal_outputs(found, wanted)


@pytest.mark.parametrize("mode", ["lstm", "gru", "rnn_tanh"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_recurrent_parameters_as_an_input(mode: str, dtype: str) -> None:
    """Packed weights passed as an input are split at run time."""
    gates, size = {"lstm": 4, "gru": 3, "rnn_tanh": 1}[mode], 4
    count = 2 * gates * size * (3 + size + 2) + 2 * gates * size * (2 * size + size + 2)
    shapes = {"x": (5, 2, 3), "w": (count,), "h": (4, 2, size)}
    shapes.update({"c": (4, 2, size)} if mode == "lstm" else {})
    feed = {n: RNG.uniform(-1, 1, s).astype(dtype) for n, s in shapes.items()}
    options = {"mode": mode, "state_size": size, "num_layers": 2, "bidirectional": True}
    symbol = S.RNN(*map(S.var, feed), state_outputs=True, **options)
    assert_equal_outputs(*_run(symbol, feed))


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("options", [{"projection_size": 3}, CLIPPED], ids=["projected", "clipped"])
def test_lstm_layers_with_projected_or_clipped_states_are_scans(
    bidirectional: bool, options: dict
) -> None:
    """ONNX's LSTM supports neither."""
    size, out, ways = 4, options.get("projection_size", 4), 1 + bidirectional
    rows = 4 * size
    count = sum(ways * rows * (width + out + 2) for width in (3, out * ways))
    count += 2 * ways * out * size if "projection_size" in options else 0
    w = mx.nd.array(RNG.uniform(-1, 1, count))
    feed = {
        n: RNG.uniform(-1, 1, s).astype("float32")
        for n, s in (("x", (5, 2, 3)), ("h", (2 * ways, 2, out)), ("c", (2 * ways, 2, size)))
    }
    symbol = S.RNN(
        S.var("x"), S.var("w"), S.var("h"), S.var("c"), mode="lstm", state_size=size,
        num_layers=2, bidirectional=bidirectional, state_outputs=True, **options,
    )  # fmt: skip
    model = build_model(symbol, {"w": w}, {n: a.shape for n, a in feed.items()})
    arrays = {"w": w, **{n: mx.nd.array(a) for n, a in feed.items()}}
    wanted = symbol.bind(mx.cpu(), arrays, grad_req="null").forward(is_train=False)
    assert_equal_outputs(run(model, feed), [o.asnumpy() for o in wanted])


def test_inputs_used_only_for_their_shape_remain_inputs() -> None:
    """Programs pass all inputs by position."""
    found, wanted = _run(S.zeros_like(S.var("x")), {"x": np.ones((2, 3), np.float32)})
    assert_equal_outputs(found, wanted)


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_arange_like_of_integers_truncates_start_and_step(dtype: str) -> None:
    """MXNet truncates start and step, not the values."""
    x = {"x": np.ones((2, 3), dtype)}
    assert_equal_outputs(*_run(S.contrib.arange_like(S.var("x"), start=1.7, step=0.5), x))
    assert_equal_outputs(*_run(S.space_to_depth(S.var("x"), block_size=2), {"x": blocks(dtype)}))
    assert_equal_outputs(*_run(S.depth_to_space(S.var("x"), block_size=2), {"x": blocks(dtype)}))
    up = S.UpSampling(S.var("x"), scale=2, sample_type="nearest", num_args=1)
    assert_equal_outputs(*_run(up, {"x": blocks(dtype)}))


def blocks(dtype: str) -> np.ndarray:
    """Return a small image whose pixels all differ."""
    return np.arange(64).reshape(1, 4, 4, 4).astype(dtype)
