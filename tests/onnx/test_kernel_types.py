"""Exported models load in ONNX Runtime in every type that MXNet computes them in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnxruntime
import pytest

import mxnet as mx
from mxnet.onnx.export import build_model
from tests.onnx.running import assert_equal_outputs, run

S = mx.sym
RNG = np.random.RandomState(0)
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
def test_doubles_are_cast_where_runtimes_have_no_kernel(name: str) -> None:
    """Runtimes compute these in 32 bits only; the result still is a double."""
    found, wanted = _run(DOUBLE[name](S.var("x")), {"x": RNG.rand(1, 3, 4, 4)})
    assert_equal_outputs(found, wanted)


SMALL: dict[str, Callable[..., Any]] = {
    "add_n": lambda x, y: S.add_n(x, y),
    "sum": lambda x, y: S.sum(x + y),
}


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("name", SMALL)
def test_small_integers_are_computed_in_32_bits(name: str, dtype: str) -> None:
    """Sums wrap as those of the small type."""
    feed = {n: RNG.randint(90, 120, (2, 3)).astype(dtype) for n in "xy"}
    found, wanted = _run(SMALL[name](S.var("x"), S.var("y")), feed)
    assert_equal_outputs(found, wanted)


@pytest.mark.parametrize("mode", ["lstm", "gru", "rnn_tanh"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_recurrent_parameters_may_be_an_input(mode: str, dtype: str) -> None:
    """Packed weights that the user feeds are cut when the model runs."""
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
    """ONNX's own LSTM has neither."""
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


def test_inputs_of_which_only_the_shape_matters_stay_inputs() -> None:
    """Programs feed all inputs by position."""
    found, wanted = _run(S.zeros_like(S.var("x")), {"x": np.ones((2, 3), np.float32)})
    assert_equal_outputs(found, wanted)


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_whole_numbers_take_whole_steps(dtype: str) -> None:
    """MXNet cuts start and step to whole numbers, not the values."""
    x = {"x": np.ones((2, 3), dtype)}
    assert_equal_outputs(*_run(S.contrib.arange_like(S.var("x"), start=1.7, step=0.5), x))
    assert_equal_outputs(*_run(S.space_to_depth(S.var("x"), block_size=2), {"x": blocks(dtype)}))
    assert_equal_outputs(*_run(S.depth_to_space(S.var("x"), block_size=2), {"x": blocks(dtype)}))
    up = S.UpSampling(S.var("x"), scale=2, sample_type="nearest", num_args=1)
    assert_equal_outputs(*_run(up, {"x": blocks(dtype)}))


def blocks(dtype: str) -> np.ndarray:
    """Return a small image whose pixels all differ."""
    return np.arange(64).reshape(1, 4, 4, 4).astype(dtype)
