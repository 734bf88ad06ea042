"""`check_*` helpers accept correct symbols and detect wrong ones."""

from __future__ import annotations

import numpy as np
import pytest

import mxnet as mx
from mxnet import test_utils as t

A = np.array([[1, 2], [3, 4.0]])
B = np.array([[5, 6], [7, 8.0]])
ONES = np.ones((2, 2))
x, y = mx.sym.Variable("x"), mx.sym.Variable("y")
product = mx.sym.dot(x, y, name="dot")


@pytest.fixture(autouse=True)
def seed():
    np.random.seed(7)  # noqa: NPY002 (what the helpers use)
    mx.random.seed(7)


def test_check_symbolic_forward():
    for location in ([A, B], {"y": B, "x": A}):
        for expected in ([A @ B], {"dot_output": A @ B}):
            (out,) = t.check_symbolic_forward(product, location, expected)
            assert (out.asnumpy() == A @ B).all() and out.dtype == np.float32
    with pytest.raises(AssertionError, match=r"EXPECTED_dot_output=4.0+, FORWARD_dot_output=50"):
        t.check_symbolic_forward(product, [A, B], [A])
    (out,) = t.check_symbolic_forward(x * x, [A], [A * A], dtype="asnumpy")
    assert out.dtype == np.float64
    assert (t.simple_forward(x * 2, x=ONES) == 2 * ONES).all()
    assert len(t.simple_forward(mx.sym.Group([x, x * 2]), x=ONES)) == 2


def test_wrong_location_raises():
    with pytest.raises(ValueError, match="keys of the given location do not match"):
        t.check_symbolic_forward(product, {"x": A}, [A])
    with pytest.raises(ValueError, match="y"):
        t.check_symbolic_forward(product, [A], [A])
    with pytest.raises(ValueError, match="aux_states do not match"):
        t.check_symbolic_forward(
            mx.sym.BatchNorm(x, name="bn"), [A, 1, 1], [A], aux_states={"z": A}
        )
    with pytest.raises(AssertionError, match="dtype"):
        t.check_symbolic_forward(x, [A], [A], dtype=None)


def test_check_symbolic_backward():
    wanted = {"x": ONES @ B.T, "y": A.T @ ONES}
    grads = t.check_symbolic_backward(product, [A, B], [ONES], list(wanted.values()))
    assert (grads["x"].asnumpy() == wanted["x"]).all()
    assert list(t.check_symbolic_backward(product, [A, B], [ONES], {"x": wanted["x"]})) == ["x"]
    for req in ("add", "null", {"x": "write", "y": "add"}, ["add", "null"]):
        t.check_symbolic_backward(product, [A, B], [ONES], wanted, grad_req=req)
    t.check_symbolic_backward(mx.sym.MakeLoss(product), [A, B], None, wanted)
    t.check_symbolic_backward(product, [A, B], {"dot_output": mx.nd.ones((2, 2))}, wanted)
    with pytest.raises(AssertionError, match=r"EXPECTED_x=2.0+, BACKWARD_x=15"):
        t.check_symbolic_backward(product, [A, B], [ONES], {"x": A})
    with pytest.raises(AssertionError, match="out_grads must be"):
        t.check_symbolic_backward(product, [A, B], 3, wanted)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_check_numeric_gradient_accepts_correct_gradients(dtype):
    t.check_numeric_gradient(product, [A / 4, B / 8], dtype=dtype)
    t.check_numeric_gradient(mx.sym.tanh(x), {"x": A}, dtype=dtype)


def test_check_numeric_gradient_options():
    t.check_numeric_gradient(product, {"x": A, "y": B}, grad_nodes=["y"])
    t.check_numeric_gradient(product, [A, B], grad_nodes={"x": "add", "y": "null"})
    t.check_numeric_gradient(mx.sym.Group([x * x, x * 3]), [A])
    net = mx.sym.Embedding(x, y, input_dim=4, output_dim=2)
    t.check_numeric_gradient(net, {"x": np.array([0, 3]), "y": np.ones((4, 2))}, grad_nodes=["y"])
    with pytest.raises(ValueError, match="grad_nodes"):
        t.check_numeric_gradient(x, [A], grad_nodes=3)
    with pytest.raises(AssertionError, match="dtype"):
        t.check_numeric_gradient(x, [A], dtype=np.int32)


def test_check_numeric_gradient_with_auxiliary_states():
    bn = mx.sym.BatchNorm(x, name="bn", fix_gamma=False)
    data = np.random.normal(size=(4, 3))  # noqa: NPY002 (seeded)
    location = {"x": data, "bn_gamma": np.ones(3), "bn_beta": np.zeros(3)}
    states = {"bn_moving_mean": np.zeros(3), "bn_moving_var": np.ones(3)}
    t.check_numeric_gradient(bn, location, states, rtol=1e-2, atol=1e-2)


def test_check_numeric_gradient_detects_wrong_gradients():
    with pytest.raises(AssertionError, match=r"NUMERICAL_x=.*BACKWARD_x="):
        t.check_numeric_gradient(mx.sym.BlockGrad(x) * x, [A])


def test_numeric_grad():
    exe = (x * x).bind(mx.cpu(), {"x": mx.nd.array(A)})
    for location in ({"x": A.astype(np.float32)}, {"x": mx.nd.array(A)}):
        found = t.numeric_grad(exe, location, eps=1e-2)
        np.testing.assert_allclose(found["x"], 2 * A, rtol=1e-3)
    assert (exe.arg_dict["x"].asnumpy() == A).all()


def rows(*types):
    return [{"ctx": mx.cpu(), "x": (2, 4), "type_dict": {"x": dt}} for dt in types]


def test_check_consistency():
    fc = mx.sym.FullyConnected(x, num_hidden=3, name="fc")
    found = t.check_consistency(fc, rows(np.float64, np.float32, np.float16), scale=0.5)
    assert list(found) == ["fc_output", "x", "fc_weight", "fc_bias"]
    assert found["fc_output"].dtype == np.float64
    np.testing.assert_allclose(
        found["fc_bias"].asnumpy(), found["fc_output"].asnumpy().sum(0), rtol=1e-6
    )
    found = t.check_consistency(
        fc, rows(np.float32, np.float64), grad_req="null", arg_params={"x": np.ones((2, 4))}
    )
    assert list(found) == ["fc_output"]
    t.check_consistency(fc, rows(np.float32, np.float32), use_uniform=True, rand_type=np.float16)


def test_check_consistency_detects_differences(capsys):
    right = mx.sym.FullyConnected(x, num_hidden=3, name="fc")
    wrong = mx.sym.FullyConnected(x * 1.1, num_hidden=3, name="fc")
    pair = rows(np.float32, np.float32)
    with pytest.raises(AssertionError, match=r"Predict Err: float32 cpu.0. ctx 1 vs .*fc_output"):
        t.check_consistency([right, wrong], pair)
    t.check_consistency([right, wrong], pair, raise_on_err=False)
    assert "Train Err" in capsys.readouterr().out
    with pytest.raises(AssertionError, match="different outputs"):
        t.check_consistency([right, wrong * 1], pair)
    with pytest.raises(AssertionError, match="at least two"):
        t.check_consistency(right, pair[:1])
    truth = {"sq_output": np.ones((2, 4)), "x": 2 * np.ones((2, 4))}
    square = mx.sym.square(x, name="sq")
    t.check_consistency(square, pair, arg_params={"x": np.ones((2, 4))}, ground_truth=truth)


def test_check_speed():
    fc = mx.sym.FullyConnected(x, num_hidden=3)
    assert t.check_speed(fc, N=2, x=(2, 4)) > 0
    assert t.check_speed(fc, location={"x": A}, N=2, typ="forward") > 0
    with pytest.raises(ValueError, match="typ"):
        t.check_speed(fc, N=2, typ="zz", x=(2, 4))


def test_check_gluon_hybridize_consistency():
    def dense(prefix):
        return mx.gluon.nn.Dense(3, prefix=prefix)

    data = [mx.nd.arange(8).reshape((2, 4)) / 8]
    mx.test_utils.check_gluon_hybridize_consistency(dense, data)
    mx.test_utils.check_gluon_hybridize_consistency(dense, data, test_grad=False)

    class Pair(mx.gluon.HybridBlock):
        def hybrid_forward(self, F, x, y):
            return x * y, x + y

    both = [mx.nd.ones(3) * 2, mx.nd.ones(3)]
    check = mx.test_utils.check_gluon_hybridize_consistency
    check(Pair, both, lambda x, y: (x * y, x + y))
    with pytest.raises(AssertionError):
        check(Pair, both, lambda x, y: (x * y, x - y))

    class Differs(mx.gluon.HybridBlock):
        def hybrid_forward(self, F, x):
            return x * x if F is mx.nd else F.stop_gradient(x) * x

    check(Differs, [mx.nd.ones(3)], test_grad=False)
    with pytest.raises(AssertionError, match="gradient of input 0"):
        check(Differs, [mx.nd.ones(3)])


def test_check_numeric_gradient_of_np_symbols() -> None:
    a, b = (s.as_np_ndarray() for s in (x, y))
    with mx.util.np_shape(True):
        t.check_numeric_gradient(mx.sym.np.dot(a, b), [A, B], numeric_eps=1e-2, rtol=0.1)
        t.check_numeric_gradient(mx.sym.np.sum(a), [A], numeric_eps=1e-2, rtol=0.1)


def test_extra_out_grads_are_ignored():
    double, ones = mx.sym.Variable("a") * 2, np.ones(2)
    mx.test_utils.check_symbolic_backward(double, [ones], [ones, np.ones(5)], [ones * 2])
