"""Parameters: initialization, devices, gradients, dtypes, sharing, files."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import mxnet as mx
from mxnet import gluon
from mxnet.gluon import DeferredInitializationError, Parameter, ParameterDict
from tests.closeness import assert_equal_up_to_rounding


def initialized(name="w", shape=(2, 3), ctx=None, **kwargs):
    param = Parameter(name, shape=shape, **kwargs)
    param.initialize(init="ones", ctx=ctx)
    return param


def test_data_of_an_uninitialized_parameter_raises_with_a_hint():
    with pytest.raises(RuntimeError, match=r"'net_w' has not been initialized.*initialize\(\)"):
        Parameter("net_w", shape=(2,)).data()


@pytest.mark.parametrize("call", ["row_sparse_data", "list_row_sparse_data"])
def test_row_sparse_data_of_a_dense_parameter_raises(call):
    waiting = Parameter("w", shape=(2, 0), allow_deferred_init=True)
    waiting.initialize()
    with pytest.raises(mx.MXNetError, match=f"via {call}.* storage type is default"):
        getattr(waiting, call)(mx.nd.array([0]))


def test_deferred_parameter_is_initialized_once_its_shape_is_known():
    param = Parameter("net_w", shape=(2, 0), allow_deferred_init=True, init="ones")
    param.initialize(ctx=mx.cpu(1))
    assert param.list_ctx() == [mx.cpu(1)]
    with pytest.raises(DeferredInitializationError, match=r"first forward pass.*layer 'net'"):
        param.data()
    param.shape = (2, 4)
    param._finish_deferred_init()
    assert param.data().shape == (2, 4)
    assert param.data().context == mx.cpu(1)


def test_unknown_shape_without_deferred_init_raises():
    with pytest.raises(ValueError, match="invalid shape"):
        Parameter("w", shape=(2, 0)).initialize()


def test_changing_a_known_shape_raises():
    param = Parameter("w", shape=(2, 0))
    param.shape = (2, 3)
    with pytest.raises(AssertionError, match="incompatible"):
        param.shape = (2, 4)


def test_initialize_twice_needs_force_reinit():
    param = initialized()
    with pytest.warns(UserWarning, match="already initialized, ignoring"):
        param.initialize(init="zeros")
    assert param.data().sum().asscalar() == 6
    param.initialize(init="zeros", force_reinit=True)
    assert param.data().sum().asscalar() == 0


def test_init_of_the_parameter_overrides_the_default():
    param = Parameter("anything", shape=(2,), init=mx.init.Constant(7))
    param.initialize(default_init=mx.init.One())
    assert param.data().asnumpy().tolist() == [7, 7]


@pytest.mark.parametrize(
    "init",
    [
        mx.init.Mixed([".*"], [mx.init.One()]),
        mx.init.Load({"net_weight": mx.nd.ones((2,))}, default_init=mx.init.Zero()),
    ],
)
def test_load_and_mixed_initializers(init):
    params = ParameterDict("net_")
    params.get("weight", shape=(2,))
    params.get("bias", shape=(2,), init="zeros")
    params.initialize(init)
    assert params["net_weight"].data().asnumpy().tolist() == [1, 1]
    assert params["net_bias"].data().asnumpy().tolist() == [0, 0]


def test_parameter_has_a_copy_on_each_context():
    param = initialized(ctx=[mx.cpu(0), mx.cpu(1)])
    assert [a.context for a in param.list_data()] == [mx.cpu(0), mx.cpu(1)]
    assert [a.context for a in param.list_grad()] == [mx.cpu(0), mx.cpu(1)]
    with mx.cpu(1):
        assert param.data().context == mx.cpu(1)
    with pytest.raises(RuntimeError, match=r"not initialized on context cpu\(2\)"):
        param.data(mx.cpu(2))


def test_ctx_map_indexes_copies_by_device_type_and_id():
    p = Parameter("w", shape=(2,))
    assert p._ctx_map is None
    p.initialize(ctx=[mx.cpu(0), mx.cpu(2)])
    assert p._ctx_map == [[], [0, None, 1]]
    p.reset_ctx(mx.cpu(1))
    assert p._ctx_map == [[], [None, 0]]


def test_reset_ctx_averages_the_copies():
    param = initialized(ctx=[mx.cpu(0), mx.cpu(1)])
    param.data(mx.cpu(1))[:] = 3
    param.reset_ctx(mx.cpu(2))
    assert param.list_ctx() == [mx.cpu(2)]
    assert param.data().asnumpy().mean() == 2


def test_set_data_updates_all_contexts_and_deferred_parameters():
    param = initialized(shape=(2,), ctx=[mx.cpu(0), mx.cpu(1)])
    param.set_data(mx.nd.array([5, 6]))
    assert param.data(mx.cpu(1)).asnumpy().tolist() == [5, 6]
    waiting = Parameter("w", shape=(0,), allow_deferred_init=True)
    waiting.initialize()
    waiting.set_data(mx.nd.array([1, 2, 3]))
    assert waiting.data().asnumpy().tolist() == [1, 2, 3]


def loss_of(param):
    with mx.autograd.record():
        loss = (param.data() * 2).sum()
    loss.backward()


def test_grad_req_can_be_changed_between_steps():
    param = initialized(shape=(1,))
    for _ in range(2):
        loss_of(param)
    assert param.grad().asscalar() == 2
    param.grad_req = "add"
    for _ in range(3):
        loss_of(param)
    assert param.grad().asscalar() == 6
    param.zero_grad()
    assert param.grad().asscalar() == 0
    param.grad_req = "null"
    with pytest.raises(RuntimeError, match="grad_req='null'"):
        param.grad()
    param.grad_req = "write"
    loss_of(param)
    assert param.grad().asscalar() == 2


def test_gradient_array_is_the_same_object_after_backward():
    param = initialized(shape=(1,))
    held = param.grad()
    loss_of(param)
    assert held is param.grad()
    assert held.asscalar() == 2


def test_integer_parameters_have_zero_gradients():
    param = Parameter("w", shape=(2,), dtype="int32", init="ones")
    param.initialize()
    assert param.grad().asnumpy().tolist() == [0, 0]


def test_grad_req_of_a_non_differentiable_parameter_is_null():
    param = Parameter("w", shape=(1,), differentiable=False)
    param.grad_req = "write"
    assert param.grad_req == "null"


def test_cast_converts_data_and_gradient():
    param = initialized(shape=(1,))
    loss_of(param)
    param.cast("float64")
    assert param.data().dtype == param.grad().dtype == np.float64
    assert param.grad().asscalar() == 2
    loss_of(param)
    assert param.grad().asscalar() == 2


def test_var_has_attributes_of_the_parameter():
    param = Parameter("w", shape=(3, 0), lr_mult=2.0, init="zeros")
    attributes = param.var().list_attr()
    assert attributes["__shape__"] == "(3, 0)"
    assert attributes["__lr_mult__"] == "2.0"
    assert attributes["__init__"] == "zeros"
    assert param.var() is param.var()


def test_constant_cannot_be_trained():
    constant = gluon.Constant("c", [[1, 2]])
    constant.initialize()
    assert constant.data().asnumpy().tolist() == [[1, 2]]
    assert constant.grad_req == "null"
    with pytest.warns(UserWarning, match="other than .null."):
        constant.grad_req = "write"
    assert constant.grad_req == "null"


@pytest.mark.parametrize("how", [copy.deepcopy, lambda p: pickle.loads(pickle.dumps(p))])
def test_copies_of_parameters_are_independent(how):
    param = initialized(shape=(1,))
    twin = how(param)
    twin.set_data(mx.nd.array([9]))
    loss_of(twin)
    assert param.data().asscalar() == 1
    assert twin.grad().asscalar() == 2
    assert param.grad().asscalar() == 0


# -- dictionaries -----------------------------------------------------------------------------


def test_get_merges_shapes_and_raises_on_conflicts():
    params = ParameterDict("net_")
    first = params.get("w", shape=(2, 0))
    assert params.get("w", shape=(2, 3)) is first
    assert first.shape == (2, 3)
    with pytest.raises(AssertionError, match="attribute 'shape'"):
        params.get("w", shape=(3, 3))
    with pytest.raises(AssertionError, match="attribute 'dtype'"):
        params.get("w", dtype="float16")


def test_get_constant_requires_a_consistent_value():
    params = ParameterDict("net_")
    with pytest.raises(KeyError, match="Please specify value"):
        params.get_constant("c")
    first = params.get_constant("c", [1, 2])
    assert params.get_constant("c", [1, 2]) is first
    with pytest.raises(AssertionError, match="doesn't match"):
        params.get_constant("c", [1, 3])


def test_shared_parameter_dict():
    params = ParameterDict("net_")
    weight = params.get("w", shape=(1,))
    assert ParameterDict("net_", shared=params).get("w") is weight


def test_update_with_a_name_conflict_raises():
    params, others = ParameterDict("a_"), ParameterDict("a_")
    params.get("w", shape=(1,))
    others.get("w", shape=(1,))
    with pytest.raises(AssertionError, match="same name 'a_w'"):
        params.update(others)


def two_params(prefix="net_", init="ones"):
    params = ParameterDict(prefix)
    params.get("w", shape=(2,), init=init)
    params.get("b", shape=(1,), init=init)
    return params


def test_save_and_load_with_prefixes(tmp_path):
    path = str(tmp_path / "file.params")
    params = two_params()
    params.initialize()
    params.save(path, strip_prefix="net_")
    assert list(mx.nd.load(path)) == ["w", "b"]
    other = two_params("other_", "zeros")
    other.load(path, restore_prefix="other_")
    assert other["other_w"].data().asnumpy().tolist() == [1, 1]
    with pytest.raises(ValueError, match="does not start with"):
        params.save(path, strip_prefix="foo_")
    with pytest.raises(AssertionError, match="restore_prefix"):
        params.load(path, restore_prefix="foo_")


def test_missing_and_extra_names_in_files_raise(tmp_path):
    path = str(tmp_path / "file.params")
    mx.nd.save(path, {"arg:net_w": mx.nd.array([5, 6]), "aux:net_x": mx.nd.ones((1,))})
    params = two_params()
    with pytest.raises(AssertionError, match="'net_b' is missing in file"):
        params.load(path)
    with pytest.raises(AssertionError, match=r"'net_x' loaded from file.*ignore_extra"):
        params.load(path, allow_missing=True)
    params = two_params()
    params.load(path, allow_missing=True, ignore_extra=True)
    assert params["net_w"].data().asnumpy().tolist() == [5, 6]
    assert params["net_b"]._data is None


def test_loading_a_different_dtype_requires_cast_dtype():
    param = Parameter("w", shape=(2,))
    half = mx.nd.ones((2,), dtype="float16")
    with pytest.raises(AssertionError, match="cast_dtype=True"):
        param._load_init(half, mx.cpu())
    param._load_init(half, mx.cpu(), cast_dtype=True)
    assert param.data().dtype == np.float32
    param._load_init(half, mx.cpu(), cast_dtype=True, dtype_source="saved")
    assert param.data().dtype == np.float16


def test_loading_to_different_contexts_raises():
    param = initialized(shape=(2,))
    with pytest.raises(AssertionError, match=r"previous initialized on \[cpu\(0\)\]"):
        param._load_init(mx.nd.ones((2,)), mx.cpu(1))


def test_loading_a_list_of_arrays_raises(tmp_path):
    path = str(tmp_path / "list.params")
    mx.nd.save(path, [mx.nd.ones((1,))])
    with pytest.raises(ValueError, match="without names"):
        two_params().load(path)


def test_data_on_pinned_and_shared_contexts_is_the_cpu_copy():
    shared = mx.Context("cpu_shared", 0)
    p = Parameter("w", shape=(2,))
    p.initialize(ctx=[mx.cpu(0), mx.cpu(1)])
    assert p.data(mx.cpu_pinned(0)) is p.data(shared) is p.data(mx.cpu(0))
    assert p.data(mx.cpu_pinned(1)) is p.data(mx.cpu(1))
    assert p.grad(mx.cpu_pinned(1)) is p.grad(mx.cpu(1))
    with pytest.raises(RuntimeError, match=r"not initialized on context cpu_pinned\(2\)"):
        p.data(mx.cpu_pinned(2))
    with pytest.raises(RuntimeError, match=r"not initialized on context gpu\(0\)"):
        p.data(mx.gpu(0))
    pinned = Parameter("v", shape=(2,))
    pinned.initialize(ctx=mx.cpu_pinned(0))
    assert pinned.list_ctx() == [mx.cpu_pinned(0)]
    assert pinned.data(mx.cpu()).context == mx.cpu_pinned(0)


def test_networks_run_on_batches_in_pinned_memory():
    net = gluon.nn.Dense(2)
    net.initialize()
    batch = mx.nd.ones((2, 3), ctx=mx.cpu_pinned(0))
    plain = net(batch).asnumpy()
    net.hybridize()
    assert_equal_up_to_rounding(net(batch).asnumpy(), plain)


@pytest.mark.parametrize("req", ["write", "null"])
def test_set_data_between_recording_and_backward_changes_gradients(req):
    # spectral normalization updates its vector this way
    kept = Parameter("u", shape=(3,), grad_req=req)
    kept.initialize(init="ones")
    x = mx.nd.array([1.0, 2.0, 3.0])
    x.attach_grad()
    with mx.autograd.record():
        y = kept.data() * x
        with mx.autograd.pause():
            kept.set_data(mx.nd.array([5.0, 6.0, 7.0]))
    y.backward()
    np.testing.assert_array_equal(x.grad.asnumpy(), [5.0, 6.0, 7.0])  # MXNet's answer
    np.testing.assert_array_equal(kept.data().asnumpy(), [5.0, 6.0, 7.0])


def test_compiled_prediction_uses_set_data_of_a_frozen_weight():
    net = gluon.nn.Conv2D(1, 1, in_channels=1, use_bias=False)
    net.initialize(init="ones")
    net.weight.grad_req = "null"
    net.hybridize()
    x = mx.nd.ones((1, 1, 2, 2))
    for value in (1.0, 2.0, 3.0, 4.0):
        net.weight.set_data(mx.nd.full((1, 1, 1, 1), value))
        for _ in range(2):
            assert (net(x).asnumpy() == value).all()
