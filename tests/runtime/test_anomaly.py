"""NaN detection names the operator, node and layer, in forward and backward."""

import subprocess
import sys

import pytest

import mxnet as mx
from mxnet import autograd, gluon, nd
from mxnet.runtime.anomaly import NotFinite


class Net(gluon.HybridBlock):
    def __init__(self):
        super().__init__()
        with self.name_scope():
            self.first = gluon.nn.Dense(3)
            self.second = gluon.nn.HybridLambda(lambda F, x: F.log(x - 100))

    def hybrid_forward(self, F, x):
        return F.relu(self.second(self.first(x)))


@pytest.mark.parametrize("is_hybrid", [False, True])
def test_nan_error_names_operator_and_layer(is_hybrid):
    net = Net()
    net.initialize()
    x = nd.ones((2, 4))
    net(x)
    if is_hybrid:
        net.hybridize()
        net(x)
    with autograd.detect_anomaly(), pytest.raises(NotFinite, match=r"operator log.*6 of 6 values"):
        net(x)
    assert net(x).shape == (2, 3)  # only inside the block


def test_nan_inputs_do_not_raise():
    x = nd.array([float("nan"), 1])
    with autograd.detect_anomaly():
        assert nd.contrib.isnan(nd.relu(x) + 1).asnumpy().tolist() == [1, 0]


def test_infinities_raise_only_if_requested():
    x = nd.array([0.0])
    with autograd.detect_anomaly():
        nd.log(x)
    with autograd.detect_anomaly(infinities=True), pytest.raises(NotFinite, match="log"):
        nd.log(x)


def test_nan_in_backward_raises():
    x = nd.array([0.0, 4.0])
    x.attach_grad()
    with (
        pytest.warns(UserWarning, match="Error detected"),
        pytest.raises(NotFinite, match="backward pass made a NaN"),
        autograd.detect_anomaly(),
    ):
        with autograd.record():
            y = nd.sqrt(x) * 0  # 0 times the infinite derivative of the root
        y.backward()


def test_nan_in_executors_names_the_node():
    net = mx.sym.log(mx.sym.var("x") - 5, name="middle")
    executor = net.bind(mx.cpu(), {"x": nd.ones((2,))})
    with autograd.detect_anomaly(), pytest.raises(NotFinite, match="node 'middle'"):
        executor.forward()


def test_MXNET_CHECK_FINITE_enables_anomaly_detection(tmp_path):
    program = "import mxnet as mx\nmx.nd.ones((2,)) / mx.nd.zeros((2,))"
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False,
        env={"MXNET_CHECK_FINITE": "1", "PYTHONPATH": ":".join(sys.path), "HOME": str(tmp_path)},
    )  # fmt: skip
    assert result.returncode == 1
    assert "NotFinite" in result.stderr
    assert "broadcast_div" in result.stderr
