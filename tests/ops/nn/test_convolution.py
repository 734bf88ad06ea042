"""Convolution and Deconvolution: layouts, shape rules and errors."""

from __future__ import annotations

import numpy as np
import pytest

import mxnet as mx
from mxnet.error import MXNetError
from tests.ops.nn.test_layers import infer

RNG = np.random.RandomState(0)


def array(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype("float32")


@pytest.mark.parametrize("op", ["Convolution", "Deconvolution"])
@pytest.mark.parametrize(("layout", "axes"), [("NHWC", 2), ("NDHWC", 3)])
def test_channels_last_layout_equals_channels_first(op: str, layout: str, axes: int) -> None:
    data, weight = array(2, 4, *(5, 6, 4)[:axes]), array(4, 4, *(3, 2, 2)[:axes])
    options = {"kernel": weight.shape[2:], "num_filter": 4, "no_bias": True}
    function = getattr(mx.nd, op)
    first = function(mx.nd.array(data), mx.nd.array(weight), **options).asnumpy()
    last = function(
        mx.nd.array(np.moveaxis(data, 1, -1)),
        mx.nd.array(np.moveaxis(weight, 1, -1)),
        layout=layout,
        **options,
    ).asnumpy()
    np.testing.assert_allclose(last, np.moveaxis(first, 1, -1), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("options", "data", "weight", "out"),
    [
        ({"kernel": (3, 3)}, (2, 6, 9, 9), (4, 6, 3, 3), (2, 4, 7, 7)),
        ({"kernel": (3, 3)}, (-1, 6, -1, -1), (4, 6, 3, 3), (-1, 4, -1, -1)),
        (
            {"kernel": (3, 3), "stride": (2, 2), "pad": (1, 1)},
            (0, -1, 9, 9),
            (4, -1, 3, 3),
            (0, 4, 5, 5),
        ),
        ({"kernel": (3,), "num_group": 2}, (2, 6, 9), (4, 3, 3), (2, 4, 7)),
        ({"kernel": (3, 3), "layout": "NHWC"}, (2, 6, 9, 9), (4, 3, 3, 9), (2, 4, 7, 4)),
    ],
)
def test_infer_shape_of_convolution(options: dict, data: tuple, weight: tuple, out: tuple) -> None:
    ins, outs = infer("Convolution", data, num_filter=4, **options)
    assert ins == [data, weight, (4,)]
    assert outs == [out]


def test_infer_shape_of_convolution_data_from_output() -> None:
    ins, _ = infer("Convolution", (-1, 6, -1, -1), [(2, 4, 7, 7)], num_filter=4, kernel=(3, 3))
    assert ins[0] == (2, 6, 9, 9)
    ins, _ = infer(
        "Convolution",
        (-1, 6, -1, -1),
        [(2, 4, 7, 7)],
        num_filter=4,
        kernel=(3, 3),
        stride=(2, 2),
    )
    assert ins[0] == (2, 6, -1, -1)


@pytest.mark.parametrize(
    ("options", "data", "weight", "out"),
    [
        ({"kernel": (3, 3)}, (2, 6, 9, 9), (6, 4, 3, 3), (2, 4, 11, 11)),
        (
            {"kernel": (4, 4), "stride": (2, 2), "pad": (1, 1)},
            (-1, 6, 9, -1),
            (6, 4, 4, 4),
            (-1, 4, 18, -1),
        ),
        (
            {"kernel": (4, 4), "stride": (2, 2), "target_shape": (19, 20)},
            (2, 6, 9, 9),
            (6, 4, 4, 4),
            (2, 4, 19, 20),
        ),
        ({"kernel": (3,), "num_group": 2}, (2, 6, 9), (6, 2, 3), (2, 4, 11)),
        (
            {"kernel": (3, 3), "stride": (2, 2), "adj": (1, 1)},
            (2, 6, 9, 9),
            (6, 4, 3, 3),
            (2, 4, 20, 20),
        ),
        ({"kernel": (3, 3), "dilate": (2, 2)}, (2, 6, 9, 9), (6, 4, 3, 3), (2, 4, 13, 13)),
        ({"kernel": (3, 3), "layout": "NHWC"}, (2, 6, 9, 9), (9, 3, 3, 4), (2, 8, 11, 4)),
    ],
)
def test_infer_shape_of_deconvolution(
    options: dict, data: tuple, weight: tuple, out: tuple
) -> None:
    ins, outs = infer("Deconvolution", data, num_filter=4, **options)
    assert ins == [data, weight]
    assert outs == [out]


@pytest.mark.parametrize(
    ("data", "weight", "options"),
    [
        ((1, 3, 5, 5), (4, 2, 3, 3), {}),
        ((1, 3, 5), (4, 3, 3, 3), {}),
        ((1, 3, 5, 5), (4, 3, 3, 3), {"num_group": 2}),
        ((1, 3, 2, 2), (4, 3, 3, 3), {}),
        ((1, 3, 5, 5), (4, 3, 3, 3), {"stride": (0, 0)}),
    ],
)
def test_inconsistent_shapes_of_convolutions_raise(
    data: tuple, weight: tuple, options: dict
) -> None:
    with pytest.raises(MXNetError, match="Convolution"):
        mx.nd.Convolution(
            mx.nd.array(array(*data)),
            mx.nd.array(array(*weight)),
            kernel=(3, 3),
            num_filter=4,
            no_bias=True,
            **options,
        )


def test_unreachable_target_shape_raises() -> None:
    with pytest.raises(MXNetError, match="too big target shape"):
        mx.nd.Deconvolution(
            mx.nd.array(array(1, 2, 3)),
            mx.nd.array(array(2, 2, 3)),
            kernel=(3,),
            stride=(2,),
            num_filter=2,
            target_shape=(9,),
        )


def test_target_shape_of_zeros_is_ignored() -> None:
    """Files of old versions write the default this way."""
    attrs = {"kernel": (3, 2), "num_filter": 1, "pad": (1, 1), "target_shape": "(0, 0)"}
    made = mx.nd.Deconvolution(mx.nd.ones((1, 1, 4, 5)), mx.nd.ones((1, 1, 3, 2)), **attrs)
    assert made.shape == (1, 1, 4, 4) and made.sum().asscalar() == 80
    graph = mx.sym.Deconvolution(mx.sym.var("x"), **attrs)
    assert graph.infer_shape(x=(1, 1, 4, 5))[1] == [(1, 1, 4, 4)]


@pytest.mark.parametrize("layer", [mx.sym.Convolution, mx.sym.Deconvolution])
@pytest.mark.parametrize("kernel", [(3, 0), (0, 3), (-1, 3)])
def test_empty_kernels_raise(layer, kernel):
    net = layer(mx.sym.Variable("data"), kernel=kernel, num_filter=1)
    with pytest.raises(mx.MXNetError, match="incorrect kernel size"):
        net.infer_shape(data=(1, 1, 28, 28))
