"""LeakyReLU, softmax, FullyConnected, Dropout and contrib layers."""

from __future__ import annotations

import numpy as np
import pytest

import mxnet as mx
from mxnet import autograd, nd
from mxnet.error import MXNetError
from mxnet.ops import registry
from tests.arrays import check
from tests.batches import check_each

NEGATIVE = np.full((50, 40), -1.0, dtype="float32")


def test_rrelu_slopes_are_within_bounds() -> None:
    data = mx.nd.array(NEGATIVE)
    data.attach_grad()
    with mx.autograd.record():
        out, slopes = mx.nd.LeakyReLU(data, act_type="rrelu", lower_bound=0.1, upper_bound=0.3)
    out.backward()
    drawn = slopes.asnumpy()
    assert 0.1 <= drawn.min() < 0.12
    assert 0.28 < drawn.max() <= 0.3
    assert abs(drawn.mean() - 0.2) < 0.01
    np.testing.assert_allclose(out.asnumpy(), -drawn)
    np.testing.assert_allclose(data.grad.asnumpy(), drawn)


def test_rrelu_uses_the_mean_slope_in_prediction() -> None:
    out, _ = mx.nd.LeakyReLU(mx.nd.array([-1, 2]), act_type="rrelu")
    np.testing.assert_allclose(out.asnumpy(), [-0.2295, 2], rtol=1e-5)


def test_prelu_has_one_slope_per_channel() -> None:
    assert infer("LeakyReLU", (2, 4, 5), act_type="prelu")[0] == [(2, 4, 5), (4,)]


def test_softmax_is_zero_beyond_the_length() -> None:
    out = mx.nd.softmax(
        mx.nd.array([[0, 0, 9], [0, 0, 9]]), mx.nd.array([2, 0], dtype="int32"), use_length=True
    )
    assert out.asnumpy().tolist() == [[0.5, 0.5, 0], [0, 0, 0]]


def test_softmax_length_has_the_data_shape_without_the_axis() -> None:
    assert infer("softmax", (2, -1, 5), use_length=True, axis=1)[0][1] == (2, 5)
    with pytest.raises(MXNetError, match="softmax"):
        mx.nd.softmax(mx.nd.array([[1, 2]]), mx.nd.array([1, 2]), use_length=True)


def test_softmax_output_has_the_requested_dtype() -> None:
    for name in ("softmax", "log_softmax", "softmin"):
        out = getattr(mx.nd, name)(mx.nd.array([[1, 2]]), dtype="float64")
        assert out.dtype == np.float64


def infer(name: str, data: tuple, outs: list | None = None, **attrs: object) -> tuple[list, list]:
    op = registry.get(name)
    complete = op.complete(op.parse(attrs))
    names = op.names_of_inputs(complete)
    return op.infer_shapes([data] + [None] * (len(names) - 1), outs or [None], complete)


def test_infer_shape_of_fully_connected_weights() -> None:
    ins, outs = infer("FullyConnected", (2, 3, 5), num_hidden=4)
    assert ins == [(2, 3, 5), (4, 15), (4,)]
    assert outs == [(2, 4)]


def test_infer_shape_of_fully_connected_without_flatten() -> None:
    ins, outs = infer("FullyConnected", (-1, 3, 5), num_hidden=4, flatten=False)
    assert ins[1] == (4, 5)
    assert outs == [(-1, 3, 4)]


def test_infer_shape_of_the_batch_from_the_output() -> None:
    ins, _ = infer("FullyConnected", (-1, 3), [(7, 4)], num_hidden=4)
    assert ins[0] == (7, 3)


def test_fully_connected_with_a_wrong_weight_shape_raises() -> None:
    with pytest.raises(MXNetError, match="FullyConnected"):
        mx.nd.FullyConnected(
            mx.nd.array([[1, 2]]), mx.nd.array([[1, 2]]), num_hidden=3, no_bias=True
        )
    with pytest.raises(MXNetError, match="FullyConnected"):
        mx.nd.FullyConnected(
            mx.nd.array([[1, 2, 3]]), mx.nd.array([[1, 2]]), num_hidden=1, no_bias=True
        )


@pytest.mark.parametrize("hybridize", [False, True])
def test_fully_connected_with_wrong_input_size_raises_like_mxnet(hybridize: bool) -> None:
    net = mx.gluon.nn.Dense(3, in_units=4)
    net.initialize()
    if hybridize:
        net.hybridize()
    with pytest.raises(MXNetError, match=r"Provided = \[3, 4\], inferred shape=\[3, 5\]"):
        net(mx.nd.ones((2, 5)))


ONES = np.ones((1000, 10), dtype="float32")


def test_dropout_drops_a_fraction_and_scales_the_rest() -> None:
    data = mx.nd.array(ONES)
    data.attach_grad()
    with mx.autograd.record():
        out = mx.nd.Dropout(data, p=0.3)
    out.backward()
    values = out.asnumpy()
    assert abs((values == 0).mean() - 0.3) < 0.03
    np.testing.assert_allclose(values[values != 0], 1 / 0.7, rtol=1e-5)
    np.testing.assert_allclose(data.grad.asnumpy(), values)


def test_dropout_masks_do_not_depend_on_the_layout_in_memory() -> None:
    class Net(mx.gluon.HybridBlock):
        def hybrid_forward(self, F, x):
            return F.Dropout(F.transpose(x), p=0.5, mode="always")

    net, data = Net(), mx.nd.array(ONES)
    mx.random.seed(3)
    eager = net(data).asnumpy()
    net.hybridize()
    mx.random.seed(3)
    np.testing.assert_array_equal(net(data).asnumpy(), eager)


def test_dropout_mask_is_shared_along_axes() -> None:
    with mx.autograd.record():
        out = mx.nd.Dropout(mx.nd.array(ONES), p=0.5, axes=(1,)).asnumpy()
    assert (out == out[:, :1]).all()
    assert abs((out[:, 0] == 0).mean() - 0.5) < 0.08


def test_dropout_is_inactive_in_prediction_unless_mode_is_always() -> None:
    data = mx.nd.array(ONES)
    assert (mx.nd.Dropout(data, p=0.5).asnumpy() == 1).all()
    assert (mx.nd.Dropout(data, p=0.5, mode="always").asnumpy() == 0).any()


def test_dropout_returns_a_copy_in_prediction() -> None:
    data = mx.nd.array([1, 2])
    out = mx.nd.Dropout(data)
    out[:] = 0
    assert data.asnumpy().tolist() == [1, 2]


@pytest.mark.parametrize("p", [-0.1, 1.5])
def test_dropout_with_p_outside_0_and_1_raises(p: float) -> None:
    with pytest.raises(MXNetError, match="Dropout"):
        mx.nd.Dropout(mx.nd.array([1]), p=p)


def test_fft_and_ifft_match_numpy() -> None:
    data = np.random.RandomState(0).rand(3, 6).astype("float32")
    wanted = np.fft.fft(data)
    found = mx.nd.contrib.fft(mx.nd.array(data)).asnumpy()
    np.testing.assert_allclose(found[:, ::2], wanted.real, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found[:, 1::2], wanted.imag, rtol=1e-4, atol=1e-5)
    back = mx.nd.contrib.ifft(mx.nd.array(found)).asnumpy()
    np.testing.assert_allclose(back, data * 6, rtol=1e-4, atol=1e-5)


def test_count_sketch_gradient() -> None:
    data, place, sign = mx.nd.ones((2, 3)), mx.nd.array([[1, 0, 1]]), mx.nd.array([[1, -1, 1]])
    data.attach_grad()
    with mx.autograd.record():
        out = mx.nd.contrib.count_sketch(data, place, sign, out_dim=2)
    out.backward(mx.nd.array([[1, 2], [3, 4]]))
    assert out.asnumpy().tolist() == [[-1, 2], [-1, 2]]
    assert data.grad.asnumpy().tolist() == [[2, -1, 2], [4, -3, 4]]


def test_hawkes_gradients_match_mxnet() -> None:
    rates, alpha = mx.nd.array([[1.5, 2.0]]), mx.nd.array([0.2, 0.4])
    beta, state = mx.nd.array([1.0, 2.0]), mx.nd.array([[0.1, 0.2]])
    for array in (rates, alpha, beta):
        array.attach_grad()
    marks = mx.nd.array([[0, 1, 0]], dtype="int32")
    with mx.autograd.record():
        likelihood, memory = mx.nd.contrib.hawkesll(
            rates, alpha, beta, state, mx.nd.array([[0.5, 0.6, 0.7]]), marks,
            mx.nd.array([3]), mx.nd.array([4]),
        )  # fmt: skip
    likelihood.backward()
    near = {"rtol": 1e-3, "atol": 1e-4}
    np.testing.assert_allclose(likelihood.asnumpy(), [-13.3114], **near)
    np.testing.assert_allclose(memory.asnumpy(), [[0.1428, 0.0031]], **near)
    np.testing.assert_allclose(rates.grad.asnumpy(), [[-2.6968, -3.5044]], **near)
    np.testing.assert_allclose(alpha.grad.asnumpy(), [-1.7315, -1.1749], **near)
    np.testing.assert_allclose(beta.grad.asnumpy(), [-0.0795, -0.0089], **near)


# Data -1, -2, ... and slopes 1, 2, ...: MXNet's slope per element, and gradient of the slopes.
PRELU = {
    ((2, 3, 2), (2, 3)): ([1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6], [-3, -7, -11, -15, -19, -23]),
    ((2, 3, 2), (1, 3)): ([1, 1, 2, 2, 3, 3, 1, 1, 2, 2, 3, 3], [-18, -26, -34]),
    ((2, 3, 2), (2, 1)): ([1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2], [-21, -57]),
    ((2, 3, 2), (1, 1)): ([1] * 12, [-78]),
    ((2, 3, 2), (3,)): ([1, 1, 2, 2, 3, 3, 1, 1, 2, 2, 3, 3], [-18, -26, -34]),
    ((2, 3, 2), (2,)): ([1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2], [-21, -57]),
    ((2, 2, 2, 2), (2, 2)): ([1] * 4 + [2] * 4 + [3] * 4 + [4] * 4, [-10, -26, -42, -58]),
    ((2, 2, 2, 2), (1, 2)): ([1] * 4 + [2] * 4 + [1] * 4 + [2] * 4, [-52, -84]),
    ((2, 3), (2, 3)): ([1, 2, 3, 4, 5, 6], [-1, -2, -3, -4, -5, -6]),
    ((2, 3), (2,)): ([1, 1, 1, 2, 2, 2], [-6, -15]),
    ((3,), (3,)): ([1, 2, 3], [-1, -2, -3]),
    ((2, 3, 2), (3, 2)): None,
    ((2, 3, 2), (2, 3, 1)): None,
    ((2, 3, 2), (2, 3, 2)): None,
    ((2, 2, 2, 2), (1, 2, 1, 1)): None,
    ((2, 1, 3), (3,)): None,
    ((3,), (1, 3)): None,
}


def test_prelu_slopes_broadcast_over_the_first_axes() -> None:
    def check(case: tuple) -> None:
        (shape, slopes), expected = case
        data = -mx.nd.arange(1, 1 + np.prod(shape)).reshape(shape)
        gamma = mx.nd.arange(1, 1 + np.prod(slopes)).reshape(slopes)
        data.attach_grad()
        gamma.attach_grad()
        with mx.autograd.record():
            if expected is None:
                with pytest.raises(mx.MXNetError, match="gamma of prelu"):
                    mx.nd.LeakyReLU(data, gamma, act_type="prelu")
                return
            out = mx.nd.LeakyReLU(data, gamma, act_type="prelu")
        out.backward()
        of_data, of_gamma = expected
        assert (out / data).asnumpy().ravel().tolist() == of_data
        assert data.grad.asnumpy().ravel().tolist() == of_data
        assert gamma.grad.shape == slopes
        assert gamma.grad.asnumpy().ravel().tolist() == of_gamma

    check_each({str(key): (key, value) for key, value in PRELU.items()}, check)


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_backward_writes_zeros_for_the_lengths_of_softmax(dtype: str) -> None:
    data, length = mx.nd.ones((2, 3)), mx.nd.array([2, 1], dtype=dtype)
    for array in (data, length):
        array.attach_grad()
        array.grad[:] = 7
    with mx.autograd.record():
        out = mx.nd.softmax(data, length, axis=1, use_length=True)
    out.backward()
    assert length.grad.asnumpy().tolist() == [0, 0]
    symbol = mx.sym.softmax(mx.sym.var("d"), mx.sym.var("l"), axis=1, use_length=True)
    grads = {"d": mx.nd.zeros((2, 3)), "l": mx.nd.array([7, 7], dtype=dtype)}
    executor = symbol.bind(mx.cpu(), {"d": data, "l": length}, grads)
    executor.forward(is_train=True)
    executor.backward(mx.nd.ones((2, 3)))
    assert grads["l"].asnumpy().tolist() == [0, 0]


@pytest.mark.parametrize("mode", [autograd.train_mode, autograd.predict_mode, autograd.record])
def test_dropout_with_p_0_returns_a_copy(mode):
    x = nd.ones((2,))
    with mode():
        y = nd.Dropout(x, p=0)
    y[:] = 5
    check(x, 1)
    x[:] = 3
    check(y, 5)
