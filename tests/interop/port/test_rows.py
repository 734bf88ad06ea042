"""Each row gives what MXNet's operator gives, in prediction, for many attributes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from mxnet import sym
from mxnet.interop.port.build import draft_symbol
from mxnet.interop.port.text.file import write_file

from .symbols import random_parameters

x, y = sym.Variable("x"), sym.Variable("y")
IMAGE, ROWS = {"x": (2, 4, 7, 8)}, {"x": (3, 6)}
PAIR = {"x": (3, 6), "y": (3, 6)}

CASES: dict[str, tuple[Any, dict[str, tuple]]] = {
    "convolution 1d": (sym.Convolution(x, num_filter=4, kernel=(3,), pad=(1,)), {"x": (2, 4, 7)}),
    "grouped convolution": (
        sym.Convolution(x, num_filter=4, kernel=(3, 1), num_group=2, dilate=(2, 1), no_bias=True),
        IMAGE,
    ),
    "convolution 3d": (sym.Convolution(x, num_filter=2, kernel=(2, 2, 2)), {"x": (1, 2, 4, 4, 4)}),
    "deconvolution": (
        sym.Deconvolution(x, num_filter=6, kernel=(3, 3), stride=(2, 2), adj=(1, 1), pad=(1, 1)),
        IMAGE,
    ),
    "dense of images": (sym.FullyConnected(x, num_hidden=3), IMAGE),
    "dense of the last axis": (sym.FullyConnected(x, num_hidden=3, flatten=False), IMAGE),
    "batch norm of rows": (sym.BatchNorm(x, fix_gamma=False), ROWS),
    "batch norm of the last axis": (sym.BatchNorm(x, axis=-1, fix_gamma=False), IMAGE),
    "frozen batch norm": (sym.BatchNorm(x, use_global_stats=True), IMAGE),
    "layer norm": (sym.LayerNorm(x, eps=1e-3), ROWS),
    "instance norm": (sym.InstanceNorm(x, eps=1e-3), IMAGE),
    "group norm": (sym.GroupNorm(x, num_groups=2), IMAGE),
    "l2": (sym.L2Normalization(x, mode="channel"), IMAGE),
    "lrn": (sym.LRN(x, nsize=3, alpha=0.1, knorm=1.5), IMAGE),
    "max pooling": (
        sym.Pooling(x, kernel=(3, 3), stride=(2, 2), pad=(1, 1), pool_type="max"),
        IMAGE,
    ),
    "full pooling": (
        sym.Pooling(x, kernel=(2, 2), stride=(2, 2), pool_type="max", pooling_convention="full"),
        IMAGE,
    ),
    "average pooling": (
        sym.Pooling(x, kernel=(3, 3), pad=(1, 1), pool_type="avg", count_include_pad=False),
        IMAGE,
    ),
    "pooling 1d": (sym.Pooling(x, kernel=(2,), stride=(2,), pool_type="avg"), {"x": (2, 3, 8)}),
    "global pooling": (sym.Pooling(x, global_pool=True, pool_type="max", kernel=(1, 1)), IMAGE),
    "elu": (sym.LeakyReLU(x, act_type="elu", slope=0.3), ROWS),
    "selu": (sym.LeakyReLU(x, act_type="selu"), ROWS),
    "gelu": (sym.LeakyReLU(x, act_type="gelu"), ROWS),
    "prelu": (sym.LeakyReLU(x, act_type="prelu"), IMAGE),
    "softrelu": (sym.Activation(x, act_type="softrelu"), ROWS),
    "softsign": (sym.Activation(x, act_type="softsign"), ROWS),
    "reshape 0 and -1": (sym.Reshape(x, shape=(0, -1)), IMAGE),
    "reshape -2": (sym.Reshape(x, shape=(0, 0, -2)), IMAGE),
    "reshape -3": (sym.Reshape(x, shape=(-3, 0, -2)), IMAGE),
    "reshape -4": (sym.Reshape(x, shape=(0, -4, 2, -1, -2)), IMAGE),
    "reverse reshape": (sym.Reshape(x, shape=(-1, 0, 0), reverse=True), IMAGE),
    "transpose": (sym.transpose(x), IMAGE),
    "transpose axes": (sym.transpose(x, axes=(0, 2, 3, 1)), IMAGE),
    "swap axes": (sym.SwapAxis(x, dim1=1, dim2=3), IMAGE),
    "flatten": (sym.Flatten(x), IMAGE),
    "flatten rows": (sym.Flatten(sym.sum(x, axis=1)), ROWS),
    "split": (sym.concat(*sym.split(x, num_outputs=3, axis=1), dim=0), ROWS),
    "squeezed split": (sym.add_n(*sym.split(x, num_outputs=6, axis=1, squeeze_axis=True)), ROWS),
    "slice axis": (sym.slice_axis(x, axis=-1, begin=1, end=-1), IMAGE),
    "slice": (sym.slice(x, begin=(0, 1), end=(None, 4)), IMAGE),
    "slice like": (sym.slice_like(x, y, axes=(1,)), {"x": (3, 6), "y": (3, 4)}),
    "broadcast like": (sym.broadcast_like(x, y), {"x": (3, 1), "y": (3, 4)}),
    "broadcast axis": (sym.broadcast_axis(x, axis=1, size=5), {"x": (3, 1)}),
    "tile": (sym.tile(x, reps=(2, 1)), ROWS),
    "repeat": (sym.repeat(x, repeats=2, axis=1), ROWS),
    "pad": (sym.Pad(x, mode="edge", pad_width=(0, 0, 0, 0, 1, 2, 3, 0)), IMAGE),
    "constant pad": (
        sym.Pad(x, mode="constant", pad_width=(0, 0, 0, 0, 1, 1, 1, 1), constant_value=2),
        IMAGE,
    ),
    "one hot": (sym.one_hot(sym.abs(sym.floor(x)), depth=4), ROWS),
    "take": (sym.take(x, sym.abs(y), axis=1), {"x": (3, 6), "y": (2,)}),
    "pick": (sym.pick(x, sym.abs(y)), {"x": (3, 6), "y": (3,)}),
    "argmax": (sym.argmax(x, axis=1), ROWS),
    "mean": (sym.mean(x, axis=(2, 3), keepdims=True), IMAGE),
    "sum": (sym.sum(x), ROWS),
    "max": (sym.max(x, axis=1), ROWS),
    "norm by squares": (sym.sqrt(sym.sum(sym.square(x), axis=-1)), ROWS),
    "where of several tests": (
        sym.where(sym.broadcast_greater(x, y), sym.slice_like(x, y * 0), sym.reshape_like(y, x)),
        PAIR,
    ),
    "reshape like parts": (
        sym.reshape_like(x, y, lhs_begin=1, lhs_end=2, rhs_begin=1, rhs_end=3),
        {"x": (2, 6, 4), "y": (2, 2, 3)},
    ),
    "repeat all": (sym.repeat(x, repeats=2), ROWS),
    "limits": (sym.maximum(x, 0.1) + sym.minimum(x, 0.2), ROWS),
    "masked softmax": (
        sym.softmax(x, y, axis=-1, use_length=True),
        {"x": (3, 6), "y": (3,)},
    ),
    "box decode": (
        sym.contrib.box_decode(x, y, std0=0.1, std2=0.2, clip=0.3),
        {"x": (2, 5, 4), "y": (1, 5, 4)},
    ),
    "shape": (sym.cast(sym.shape_array(x), dtype="float32"), IMAGE),
    "arange": (sym.broadcast_add(x, sym.arange(6)), ROWS),
    "common type": (sym.add_n(*sym.amp_multicast(x, y, num_outputs=2)), PAIR),
    "where": (sym.where(x > 0, x, y), PAIR),
    "compare": (sym.broadcast_greater(x, y) + (x < 0.5), PAIR),
    "arithmetic": ((1 - x) * 2 / (y * y + 3) - (-x) ** 2, PAIR),
    "clip": (sym.clip(x, -0.5, 0.5), ROWS),
    "softmax": (sym.softmax(x, axis=1, temperature=2.0), IMAGE),
    "log softmax": (sym.log_softmax(x), ROWS),
    "channel softmax": (sym.SoftmaxActivation(x, mode="channel"), IMAGE),
    "batch dot": (sym.batch_dot(x, y, transpose_b=True), {"x": (2, 3, 4), "y": (2, 5, 4)}),
    "dot": (sym.dot(x, y, transpose_a=True), {"x": (3, 6), "y": (3, 2)}),
    "up sampling": (sym.UpSampling(x, scale=2, sample_type="nearest"), IMAGE),
    "bilinear resize": (sym.contrib.BilinearResize2D(x, height=9, width=5), IMAGE),
    "adaptive pooling": (sym.contrib.AdaptiveAvgPooling2D(x, output_size=(2, 3)), IMAGE),
    "sequence mask": (
        sym.SequenceMask(x, sym.abs(y), use_sequence_length=True, axis=1),
        {"x": (3, 6), "y": (3,)},
    ),
    "reverse": (sym.reverse(x, axis=1), ROWS),
    "squeeze": (sym.squeeze(sym.expand_dims(x, axis=1)), ROWS),
    "arange like": (sym.broadcast_mul(x, sym.contrib.arange_like(x, axis=1)), ROWS),
    "unary": (sym.erf(x) + sym.exp(x) + sym.log1p(sym.abs(x)) + sym.rsqrt(sym.abs(x) + 1), ROWS),
    "gru": (
        sym.RNN(x, sym.Variable("w"), sym.zeros((2, 2, 4)), state_size=4, num_layers=1, mode="gru",
                bidirectional=True),
        {"x": (5, 2, 3)},
    ),
    "rnn with states": (
        sym.Group(list(sym.RNN(x, sym.Variable("w"), y, state_size=4, num_layers=1,
                               mode="rnn_relu", state_outputs=True))),
        {"x": (5, 2, 3), "y": (1, 2, 4)},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(CASES))
def test_ported_operator_matches_mxnext(name: str) -> None:
    symbol, shapes = CASES[name]
    params = random_parameters(symbol, shapes)
    draft = draft_symbol(symbol, params, shapes)
    space: dict[str, Any] = {"__name__": "ported"}
    exec(compile(write_file(draft.parts, ()), "model.py", "exec"), space)
    model = space["Model"]().eval()
    arrays = {n: a.asnumpy() for n, a in draft.model.arrays.items()}
    model.load_state_dict(draft.parts.layout.state_dict(arrays))
    rng = np.random.RandomState(1)
    feed = {n: rng.standard_normal(s).astype(np.float32) for n, s in draft.model.shapes.items()}
    references = draft.model.run(feed)
    with torch.no_grad():
        output = model(*(torch.from_numpy(feed[n.name]) for n in draft.model.inputs))
    outputs = output if isinstance(output, tuple) else (output,)
    for result, reference in zip(outputs, references, strict=True):
        assert result.dtype == torch.from_numpy(reference).dtype
        np.testing.assert_allclose(result.numpy(), reference, rtol=1e-4, atol=1e-5)
