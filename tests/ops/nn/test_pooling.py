"""Pooling: shape rules, the convention ``same``, and errors."""

from __future__ import annotations

import numpy as np
import pytest

import mxnet as mx
from mxnet.error import MXNetError
from tests.ops.nn.test_layers import infer


@pytest.mark.parametrize(
    ("options", "data", "out"),
    [
        ({"kernel": (3, 3)}, (-1, 6, 9, 9), (-1, 6, 7, 7)),
        ({"kernel": (2, 2), "stride": (2, 2)}, (2, 6, 9, -1), (2, 6, 4, -1)),
        (
            {"kernel": (2, 2), "stride": (2, 2), "pooling_convention": "full"},
            (2, 6, 9, 8),
            (2, 6, 5, 4),
        ),
        ({"global_pool": True}, (2, 6, -1, -1), (2, 6, 1, 1)),
        ({"kernel": (2, 2), "layout": "NHWC"}, (2, 6, 9, 9), (2, 5, 8, 9)),
        ({"kernel": (3,)}, (2, 6, 9), (2, 6, 7)),
    ],
)
def test_infer_shape_of_pooling(options: dict, data: tuple, out: tuple) -> None:
    assert infer("Pooling", data, **options)[1] == [out]


def test_same_convention_keeps_the_size_at_stride_one() -> None:
    data = mx.nd.array([[[1, 5, 2, 4, 3]]])
    same = {"kernel": (2,), "pooling_convention": "same"}
    assert mx.nd.Pooling(data, **same).asnumpy().tolist() == [[[5, 5, 4, 4, 3]]]
    assert mx.nd.Pooling(data, stride=(2,), **same).asnumpy().tolist() == [[[5, 4, 3]]]
    with pytest.raises(mx.MXNetError, match="pads by itself"):
        mx.nd.Pooling(data, pad=(1,), **same)


@pytest.mark.parametrize("convention", ["valid", "full"])
@pytest.mark.parametrize("layout", ["NWC", "NHWC", "NDHWC"])
def test_channels_last_pooling_equals_channels_first(layout: str, convention: str) -> None:
    axes = len(layout) - 2
    data = np.random.RandomState(0).standard_normal((2, 3, *(7, 6, 5)[:axes])).astype("float32")
    options = {"kernel": (3,) * axes, "stride": (2,) * axes, "pooling_convention": convention}
    for pool_type in ("max", "avg", "sum"):
        first = mx.nd.Pooling(mx.nd.array(data), pool_type=pool_type, **options).asnumpy()
        last = mx.nd.Pooling(
            mx.nd.array(np.moveaxis(data, 1, -1)), pool_type=pool_type, layout=layout, **options
        )
        np.testing.assert_allclose(last.asnumpy(), np.moveaxis(first, 1, -1), rtol=1e-5, atol=1e-6)


def test_invalid_kernels_of_pooling_raise() -> None:
    data = mx.nd.array(np.zeros((1, 1, 4, 4)))
    for options in (
        {"kernel": (5, 5)},
        {"kernel": (2,)},
        {},
        {"kernel": (2, 2), "pool_type": "lp"},
    ):
        with pytest.raises(MXNetError, match="Pooling"):
            mx.nd.Pooling(data, **options)


@pytest.mark.parametrize("pool_type", ["max", "avg"])
@pytest.mark.parametrize("name", ["Pooling", "Pooling_v1"])
def test_extra_pad_and_stride_values_are_ignored(name: str, pool_type: str) -> None:
    data = mx.nd.arange(36).reshape((1, 1, 6, 6))
    pool = getattr(mx.nd, name)
    for long, short in (
        ({"pad": (1, 0, 2, 2)}, {"pad": (1, 0)}),
        ({"stride": (2, 1, 4)}, {"stride": (2, 1)}),
        ({"pad": (1, 1, 1)}, {"pad": (1, 1)}),
    ):
        options = {"kernel": (3, 3), "pool_type": pool_type}
        expected = pool(data, **options, **short).asnumpy()
        np.testing.assert_array_equal(pool(data, **options, **long).asnumpy(), expected)
        symbol = getattr(mx.sym, name)(mx.sym.var("data"), **options, **long)
        assert symbol.infer_shape(data=(1, 1, 6, 6))[1] == [expected.shape]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"pool_type": "avg"}, [2 / 27, 2 / 27]),
        ({"pool_type": "avg", "count_include_pad": False}, [1, 1]),
        ({"pool_type": "sum"}, [2, 2]),
        ({"pool_type": "max"}, [1, 1]),
        (
            {"pool_type": "avg", "stride": (2, 2, 2), "pooling_convention": "full"},
            [2 / 27, 1 / 18],
        ),
    ],
)
def test_kernel_larger_than_the_unpadded_image(options: dict, expected: list) -> None:
    data = mx.nd.ones((1, 1, 2, 1, 1))
    out = mx.nd.Pooling(data, kernel=(3, 3, 3), pad=(1, 1, 1), **options)
    np.testing.assert_allclose(out.asnumpy().ravel(), expected, rtol=1e-6)


@pytest.mark.parametrize("which", ["stride", "pad"])
def test_too_few_pad_or_stride_values_raise(which: str) -> None:
    options = {"kernel": (3, 3), which: (1,)}
    with pytest.raises(MXNetError, match=f"{which}.*needs 2"):
        mx.nd.Pooling(mx.nd.ones((1, 1, 6, 6)), **options)
    with pytest.raises(MXNetError, match=f"{which}.*needs 2"):
        mx.sym.Pooling(mx.sym.var("data"), **options).infer_shape(data=(1, 1, 6, 6))


@pytest.mark.parametrize(
    ("shape", "options"),
    [
        ((2, 3), {"global_pool": True}),
        ((2, 3), {"global_pool": True, "kernel": (1, 1)}),
        ((1,) * 6, {"global_pool": True, "kernel": (1, 1)}),
        ((3, 8, 8), {"kernel": (1, 2)}),
        ((3, 8), {"kernel": (1,)}),
    ],
)
def test_data_with_a_wrong_number_of_axes_raises(shape: tuple, options: dict) -> None:
    with pytest.raises(MXNetError, match="Pooling: Input data should be"):
        mx.nd.Pooling(mx.nd.ones(shape), **options)
    with pytest.raises(MXNetError, match="Pooling: Input data should be"):
        mx.sym.Pooling(mx.sym.var("data"), **options).infer_shape(data=shape)


def test_kernel_larger_than_the_image_raises():
    picture = mx.nd.ones((1, 3, 3, 3))
    with pytest.raises(MXNetError, match=r"Error in operator Pooling: kernel size \(13\) exceeds"):
        mx.nd.Pooling(picture, kernel=(13, 13), pool_type="avg")
    with pytest.raises(MXNetError, match="Error in operator Convolution: kernel size exceed input"):
        mx.nd.Convolution(
            picture, mx.nd.ones((2, 3, 5, 5)), kernel=(5, 5), num_filter=2, no_bias=True
        )


@pytest.mark.parametrize("kind", ["max", "avg", "sum"])
def test_float16_pooling_in_three_dimensions(kind):
    x = mx.nd.arange(64).reshape((1, 1, 4, 4, 4))
    options = {"kernel": (2, 2, 2), "stride": (2, 2, 2), "pool_type": kind}
    half = mx.nd.Pooling(x.astype("float16"), **options)
    assert half.dtype == np.float16
    assert half.asnumpy().tolist() == mx.nd.Pooling(x, **options).asnumpy().tolist()


@pytest.mark.parametrize("kind", ["max", "avg", "sum", "lp"])
@pytest.mark.parametrize("spatial", [(4,), (4, 4), (4, 4, 4)])
def test_pooling_without_channels_is_empty(kind, spatial):
    kernel = (2,) * len(spatial)
    with mx.util.np_shape(True):
        x = mx.nd.zeros((1, 0, *spatial))
        x.attach_grad()
        with mx.autograd.record():
            y = mx.nd.Pooling(x, kernel=kernel, pool_type=kind, p_value=2)
        y.backward()
        assert y.shape == (1, 0, *(3 for _ in spatial))
        assert x.grad.shape == x.shape


def test_float16_lp_pooling_does_not_overflow():
    x = mx.nd.array([[[200, 200, 200]]], dtype="float16")
    y = mx.nd.Pooling(x, kernel=(2,), pool_type="lp", p_value=2)
    np.testing.assert_allclose(y.asnumpy().ravel(), [282.75, 282.75])
