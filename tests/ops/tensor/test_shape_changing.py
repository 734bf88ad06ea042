"""Shape operators: inference of inputs, copies, errors."""

from __future__ import annotations

import numpy as np
import pytest

import mxnet as mx
from mxnet import autograd
from mxnet.error import MXNetError, ShapeError
from mxnet.ops import registry
from mxnet.ops.tensor.shape_changing import resolve_reshape


def infer(name: str, ins: list, outs: list, **attrs: object) -> tuple[list, list]:
    op = registry.get(name)
    return op.infer_shapes(ins, outs, op.complete(op.parse(attrs)))


def test_infer_shape_of_reshape_input_from_output() -> None:
    assert infer("Reshape", [(-1, 3, 4)], [None], shape=(2, 12)) == ([(2, 3, 4)], [(2, 12)])
    found = infer("Reshape", [(-1, 5)], [(4, 5)], shape=(-1, 5))
    assert found == ([(4, 5)], [(4, 5)])


def test_infer_shape_of_flatten_requires_all_sizes() -> None:
    assert infer("Flatten", [(-1, 5, 3)], [None])[1] == [None]
    assert infer("Flatten", [(2, 5, 3)], [None])[1] == [(2, 15)]


def test_infer_shape_of_transpose_input_from_output() -> None:
    assert infer("transpose", [None], [(4, 15)], axes=(1, 0))[0] == [(15, 4)]


def test_infer_shape_of_concat_completes_inputs() -> None:
    ins, outs = infer("Concat", [(2, -1), (-1, 3)], [None], dim=1)
    assert ins == [(2, -1), (2, 3)]
    assert outs == [(2, -1)]
    assert infer("Concat", [(-1, 3), None], [(4, 15)], dim=1)[0] == [(4, 3), (4, 12)]


def test_infer_shape_of_split_input_from_an_output() -> None:
    ins, _ = infer("SliceChannel", [None], [(4, 5), None], num_outputs=2, axis=1)
    assert ins == [(4, 10)]


def test_infer_shape_of_embedding_weight() -> None:
    ins, outs = infer("Embedding", [(5, -1), None], [None], input_dim=3, output_dim=4)
    assert ins[1] == (3, 4)
    assert outs == [(5, -1, 4)]


@pytest.mark.parametrize(
    ("name", "attrs"),
    [
        ("Reshape", {"shape": (4,)}),
        ("Flatten", {}),
        ("transpose", {}),
        ("expand_dims", {"axis": 0}),
        ("squeeze", {}),
        ("slice", {"begin": (0,), "end": (2,)}),
        ("slice_axis", {"axis": 0, "begin": 0, "end": None}),
        ("broadcast_to", {"shape": (2, 2)}),
        ("SliceChannel", {"num_outputs": 1}),
        ("repeat", {"repeats": 1, "axis": 0}),
    ],
)
def test_shape_functions_return_copies(name: str, attrs: dict) -> None:
    x = mx.nd.ones((2, 2))
    y = getattr(mx.nd, name)(x, **attrs)
    y[:] = 5
    assert x.asnumpy().tolist() == [[1, 1], [1, 1]]


def test_view_variant_of_reshape_does_not_copy() -> None:
    op = registry.get("Reshape")
    x = mx.nd.ones((2, 2))._data
    assert op.find_variant("view", {"shape": (4,)})(x).data_ptr() == x.data_ptr()


@pytest.mark.parametrize("codes", [(-1, -1), (-5,), (0, 0, 0), (-3, -3), (-4, 5, 2), (-4, 1)])
def test_invalid_reshape_codes_raise(codes: tuple) -> None:
    with pytest.raises(ShapeError):
        resolve_reshape((2, 3), codes)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: mx.nd.Reshape(x, shape=(7,)),
        lambda x: mx.nd.squeeze(x, axis=0),
        lambda x: mx.nd.slice_axis(x, axis=1, begin=2, end=1),
        lambda x: mx.nd.broadcast_to(x, shape=(3, 3)),
        lambda x: mx.nd.split(x, num_outputs=2, axis=1),
        lambda x: mx.nd.Pad(x, mode="edge", pad_width=(0, 0, 1, 1)),
        lambda x: mx.nd.concat(x, mx.nd.array([1]), dim=0),
        lambda x: mx.nd.dot(x, x),
        lambda x: mx.nd.batch_dot(x, x),
        lambda x: mx.nd.topk(x, k=9),
        lambda x: mx.nd.take(x, mx.nd.array([5]), mode="raise"),
        lambda x: mx.nd.pick(x, mx.nd.array([0, 1, 1])),
        lambda x: mx.nd.SequenceMask(x, mx.nd.array([1, 2, 1])),
        lambda x: mx.nd._internal._arange(start=0, stop=0),
    ],
)
def test_inconsistent_shapes_of_shape_operators_raise(call: object) -> None:
    with pytest.raises(MXNetError):
        call(mx.nd.ones((2, 3)))


def test_scatter_set_nd_writes_to_a_copy() -> None:
    x, y, at = mx.nd.zeros((2, 2)), mx.nd.array([7, 8]), mx.nd.array([[1, 0], [0, 1]])
    made = mx.nd._internal._scatter_set_nd(x, y, at, shape=(2, 2))
    np.testing.assert_array_equal(made.asnumpy(), [[0, 8], [7, 0]])
    assert not x.asnumpy().any()


def test_backward_gather_nd_sums_duplicate_indices() -> None:
    """`scatter_nd` keeps the last duplicate, the gradient of `gather_nd` sums all."""
    for dtype in ("float16", "float32", "float64", "int32", "int64"):
        x, at = mx.nd.array([2, 3, 1], dtype=dtype), mx.nd.array([[1, 1, 1], [1, 1, 0]])
        made = mx.nd._internal._backward_gather_nd(x, at, shape=(2, 2))
        assert made.dtype == np.dtype(dtype)
        np.testing.assert_array_equal(made.asnumpy(), [[0, 0], [1, 5]])


def test_index_array_of_a_scalar() -> None:
    with mx.np_shape():
        made = mx.nd.contrib.index_array(mx.nd.zeros(()))
        assert (made.shape, made.dtype) == ((0,), np.int64)


def test_invalid_histogram_bins_raise() -> None:
    for bins in ([1, 2, 3], 2.5, "auto"):
        with pytest.raises(ValueError, match="bins"):
            mx.nd.histogram(mx.nd.ones(3), bins=bins)


def test_im2col_and_col2im_of_one_and_three_axes() -> None:
    """MXNet 1.9.1 fails for one axis; col2im of ones counts how often a pixel is covered."""
    line = mx.nd.arange(5).reshape((1, 1, 5))
    columns = mx.nd.im2col(line, kernel=(2,), stride=(2,), pad=(1,))
    np.testing.assert_array_equal(columns.asnumpy(), [[[0, 1, 3], [0, 2, 4]]])
    back = mx.nd.col2im(mx.nd.ones((1, 8, 8)), output_size=(3, 3, 3), kernel=(2, 2, 2))
    assert back.asnumpy()[0, 0, 1, 1, 1] == 8


def test_cumsum_with_integer_dtype_while_recording() -> None:
    x = mx.nd.array([[1.6, 2.6], [3.6, 4.6]])
    x.attach_grad()
    with autograd.record():
        made = mx.nd.cumsum(x, axis=1, dtype="int32")
    assert made.asnumpy().tolist() == [[1, 3], [3, 7]]


def test_depth_to_space_of_empty_arrays_raises():
    with mx.util.np_shape(True):
        for shape in ((0, 4, 2, 2), (1, 0, 2, 2), (1, 4, 0, 2)):
            for move in (mx.nd.depth_to_space, mx.nd.space_to_depth):
                with pytest.raises(mx.MXNetError, match="sizes must not be 0"):
                    move(mx.nd.zeros(shape), 2)
