"""Normalization: moving statistics, fix_gamma, parameter shapes and dtypes."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import mxnet as mx
from mxnet.error import MXNetError
from mxnet.ops import registry
from tests.ops.nn.test_layers import infer

DATA = np.random.RandomState(0).standard_normal((4, 3, 2, 2)).astype("float32")


def states() -> list[mx.nd.NDArray]:
    """Return gamma, beta, moving mean and moving variance."""
    return [mx.nd.array(v) for v in ([2, 3, 4], [1, 2, 3], [0.5, 0.5, 0.5], [2, 2, 2])]


@pytest.mark.parametrize(
    "name", ["BatchNorm", "BatchNorm_v1", "_contrib_SyncBatchNorm", "_contrib_BatchNormWithReLU"]
)
def test_training_updates_moving_variance_with_biased_variance(name: str) -> None:
    op = registry.get(name)
    attrs = op.parse({"momentum": 0.8, **({"key": "k"} if "Sync" in name else {})})
    gamma, beta, mean, var = (torch.tensor(s.asnumpy()) for s in states())
    op(
        torch.tensor(DATA),
        gamma,
        beta,
        mean,
        var,
        **attrs,
        **op.context_for(True, torch.device("cpu")),
    )
    np.testing.assert_allclose(mean, 0.8 * 0.5 + 0.2 * DATA.mean((0, 2, 3)), rtol=1e-5)
    np.testing.assert_allclose(var, 0.8 * 2 + 0.2 * DATA.var((0, 2, 3)), rtol=1e-5)


@pytest.mark.parametrize(
    ("train", "use_global_stats"), [(False, False), (True, True), (False, True)]
)
def test_moving_statistics_change_only_when_training_on_batches(
    train: bool, use_global_stats: bool
) -> None:
    gamma, beta, mean, var = states()
    with mx.autograd.record(train_mode=train):
        mx.nd.BatchNorm(
            mx.nd.array(DATA), gamma, beta, mean, var, use_global_stats=use_global_stats
        )
    assert mean.asnumpy().tolist() == [0.5] * 3
    assert var.asnumpy().tolist() == [2] * 3


def test_batch_of_one_has_zero_variance() -> None:
    gamma, beta, mean, var = states()
    with mx.autograd.record():
        out = mx.nd.BatchNorm(mx.nd.array([[1, 2, 3]]), gamma, beta, mean, var)
    np.testing.assert_allclose(out.asnumpy(), beta.asnumpy()[None], atol=1e-5)
    np.testing.assert_allclose(var.asnumpy(), [1.8] * 3, rtol=1e-6)


def test_two_forward_calls_with_one_backward() -> None:
    gamma, beta, mean, var = states()
    data = mx.nd.array(DATA)
    data.attach_grad()
    with mx.autograd.record():
        total = mx.nd.BatchNorm(data, gamma, beta, mean, var) + mx.nd.BatchNorm(
            data * 2, gamma, beta, mean, var
        )
    total.backward()
    assert np.isfinite(data.grad.asnumpy()).all()


@pytest.mark.parametrize("train", [True, False])
def test_fix_gamma_sets_gamma_to_one_with_zero_gradient(train: bool) -> None:
    gamma, beta, mean, var = states()
    gamma.attach_grad()
    gamma.grad[:] = 7
    with mx.autograd.record(train_mode=train):
        fixed = mx.nd.BatchNorm(mx.nd.array(DATA), gamma, beta, mean, var)
    fixed.backward()
    assert gamma.grad.asnumpy().tolist() == [0, 0, 0]
    gamma, beta, mean, var = states()
    with mx.autograd.record(train_mode=train):
        free = mx.nd.BatchNorm(mx.nd.array(DATA), gamma * 0 + 1, beta, mean, var, fix_gamma=False)
    np.testing.assert_allclose(fixed.asnumpy(), free.asnumpy(), rtol=1e-5, atol=1e-6)


def test_half_precision_keeps_float32_parameters() -> None:
    gamma, beta, mean, var = states()
    for train in (True, False):
        with mx.autograd.record(train_mode=train):
            out, batch_mean, _ = mx.nd.BatchNorm(
                mx.nd.array(DATA, dtype="float16"), gamma, beta, mean, var, output_mean_var=True
            )
        assert out.dtype == np.float16
        assert batch_mean.dtype == np.float32
    op = registry.get("BatchNorm")
    half, wide = torch.float16, torch.float32
    ins, outs = op.infer_types([half, None, None, None, None], [None], op.complete({}))
    assert (ins, outs) == ([half, wide, wide, wide, wide], [half])
    with pytest.raises(MXNetError, match="uniform type"):
        op.infer_types([half, half, None, None, None], [None], op.complete({}))


def test_infer_shape_of_normalization_parameters() -> None:
    assert infer("BatchNorm", (-1, 3, -1, 4))[0][1:] == [(3,)] * 4
    ins, outs = infer("BatchNorm", (2, 3, 4, 5), [None] * 3, axis=-1, output_mean_var=True)
    assert ins[1:] == [(5,)] * 4
    assert outs == [(2, 3, 4, 5), (5,), (5,)]
    ins, outs = infer("LayerNorm", (2, 3, 4, 5), [None] * 3, axis=1, output_mean_var=True)
    assert ins[1:] == [(3,)] * 2
    assert outs == [(2, 3, 4, 5), (2, 1, 4, 5), (2, 1, 4, 5)]
    ins, outs = infer("GroupNorm", (-1, 4, 6), [None] * 3, num_groups=2, output_mean_var=True)
    assert ins[1:] == [(2,)] * 2
    assert outs == [(-1, 4, 6), (-1, 2), (-1, 2)]
    assert infer("InstanceNorm", (2, 4, -1))[0][1:] == [(4,)] * 2


def test_inconsistent_shapes_of_normalizations_raise() -> None:
    data = mx.nd.array(DATA)
    with pytest.raises(MXNetError, match="GroupNorm"):
        mx.nd.GroupNorm(data, mx.nd.array([1, 1]), mx.nd.array([0, 0]), num_groups=3)
    with pytest.raises(MXNetError, match="L2Normalization"):
        mx.nd.L2Normalization(mx.nd.array([[1, 2]]), mode="channel")
    with pytest.raises(MXNetError, match="BatchNorm"):
        mx.nd.BatchNorm(data, *[mx.nd.array([1, 2])] * 4, fix_gamma=False)


def test_batch_norm_of_a_vector() -> None:
    x = mx.nd.array([1, 2, 3])
    still = mx.nd.BatchNorm(x, *states(), axis=-1, fix_gamma=False, eps=0)
    np.testing.assert_allclose(
        still.asnumpy(), [1 + 2 * 0.5 / 2**0.5, 2 + 3 * 1.5 / 2**0.5, 3 + 4 * 2.5 / 2**0.5], 1e-6
    )
    with mx.autograd.record():
        moving = mx.nd.BatchNorm(x, *states(), axis=0)
    np.testing.assert_allclose(moving.asnumpy(), [1, 2, 3], 1e-5)


@pytest.mark.parametrize("name", ["BatchNorm", "BatchNorm_v1"])
def test_training_with_fix_gamma_writes_ones_to_gamma(name):
    data, zeros = mx.nd.array([[1, 2], [3, 4], [5, 9]]), mx.nd.zeros(2)
    gamma = mx.nd.array([2, 3])
    gamma.attach_grad()
    normalize = getattr(mx.nd, name)
    with mx.autograd.record():  # twice: the layer may be shared
        once = normalize(data, gamma, zeros, mx.nd.zeros(2), mx.nd.ones(2))
        twice = normalize(once + data, gamma, zeros, mx.nd.zeros(2), mx.nd.ones(2))
    twice.backward(mx.nd.array([[1, 2], [3, 4], [5, 7]]))
    assert gamma.asnumpy().tolist() == [1, 1]
    assert gamma.grad.asnumpy().tolist() == [0, 0]


def test_weight_decay_does_not_change_fixed_gamma():
    net = mx.sym.BatchNorm(mx.sym.var("data"), name="bn")
    net = mx.sym.LinearRegressionOutput(net, name="out")
    module = mx.mod.Module(net, label_names=["out_label"])
    module.bind([("data", (3, 2))], [("out_label", (3, 2))])
    module.init_params(mx.init.One(), {"bn_gamma": mx.nd.array([2, 3])}, allow_missing=True)
    module.init_optimizer(optimizer_params={"learning_rate": 0.1, "wd": 0.5})
    batch = mx.io.DataBatch([mx.nd.array([[1, 2], [3, 4], [5, 9]])], [mx.nd.ones((3, 2))])
    for _ in range(3):
        module.forward_backward(batch)
        module.update()
    gamma = module.get_params()[0]["bn_gamma"].asnumpy()
    assert gamma == pytest.approx([0.95, 0.95])  # as in MXNet: 1 - lr * wd, for any number of steps


def test_group_norm_with_moments_equals_group_norm_without():
    data = mx.nd.array(DATA)
    gamma, beta = mx.nd.array([2]), mx.nd.array([3])
    expected = mx.nd.GroupNorm(data, gamma, beta).asnumpy()
    output, mean, std = mx.nd.GroupNorm(data, gamma, beta, output_mean_var=True)
    np.testing.assert_allclose(output.asnumpy(), expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(mean.asnumpy().ravel(), DATA.mean((1, 2, 3)), atol=1e-6)
    np.testing.assert_allclose(std.asnumpy().ravel(), DATA.std((1, 2, 3)), rtol=1e-4)
