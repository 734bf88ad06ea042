"""Blocks: children, parameters, hooks, files, eager runs."""

from __future__ import annotations

import copy
import pickle
import warnings

import numpy as np
import pytest

import mxnet as mx
from mxnet import gluon
from mxnet.gluon import nn
from tests.closeness import assert_equal_up_to_rounding


class Net(gluon.Block):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        with self.name_scope():
            self.first = nn.Dense(4, activation="relu")
            self.second = nn.Dense(2)

    def forward(self, x):
        return self.second(self.first(x))


def ready(cls=Net, **kwargs):
    net = cls(**kwargs)
    net.initialize()
    net(mx.nd.ones((2, 3)))
    return net


def test_attributes_register_children_and_parameters():
    net = Net(prefix="net_")
    assert list(net._children) == ["first", "second"]
    net.loose = gluon.Parameter("loose", shape=(1,))
    assert net._reg_params["loose"] is net.loose
    with pytest.raises(TypeError, match="Changing attribute type for first"):
        net.first = 3
    with pytest.raises(AssertionError, match="Overriding Parameter attribute loose"):
        net.loose = gluon.Parameter("other", shape=(1,))
    net.first = nn.Dense(7)
    assert net._children["first"] is net.first


def test_unregistered_blocks_in_lists_warn():
    class Hidden(gluon.Block):
        def __init__(self):
            super().__init__()
            self.layers = [nn.Dense(1)]

    with pytest.warns(UserWarning, match='"Hidden.layers" is an unregistered container'):
        Hidden().collect_params()


def test_lists_of_registered_blocks_do_not_warn():
    class Known(gluon.Block):
        def __init__(self):
            super().__init__()
            self.layers = [nn.Dense(1)]
            for layer in self.layers:
                self.register_child(layer)

    assert len(list(Known().collect_params())) == 2


def test_params_argument_shares_parameters():
    first = nn.Dense(2, in_units=3, prefix="a_")
    second = nn.Dense(2, in_units=3, prefix="b_", params=first.collect_params())
    assert second.weight is first.weight
    assert list(second.collect_params()) == ["a_weight", "a_bias"]


def test_apply_and_cast_are_recursive():
    net = ready()
    seen = []
    assert net.apply(lambda block: seen.append(type(block).__name__)) is net
    assert seen == ["Activation", "Dense", "Dense", "Net"]
    net.cast("float64")
    assert net(mx.nd.ones((1, 3), dtype="float64")).dtype == np.float64


def test_missing_forward_raises():
    with pytest.raises(NotImplementedError, match="forward"):
        gluon.Block()(mx.nd.ones((1,)))


def test_hook_handle_as_context_manager_detaches_on_exit():
    net = ready()
    calls = []
    with net.register_forward_hook(lambda block, x, y: calls.append(y.shape)):
        net(mx.nd.ones((5, 3)))
    net(mx.nd.ones((5, 3)))
    assert calls == [(5, 2)]


def test_summary_of_hybridized_blocks_raises_and_leaves_no_hooks(capsys):
    net = ready()
    net.hybridize()
    with pytest.raises(AssertionError, match="must not be hybridized to print summary"):
        net.summary(mx.nd.ones((5, 3)))
    assert capsys.readouterr().out == ""
    assert not net.second._forward_hooks
    net.hybridize(False)
    net.summary(mx.nd.ones((5, 3)))
    assert "Unique parameters in model" in capsys.readouterr().out


def test_summary_ends_with_multiply_adds_and_memory(capsys):
    net = nn.HybridSequential()
    net.add(nn.Conv2D(4, 3, in_channels=2, use_bias=False), nn.Dense(5, in_units=144))
    net.initialize()
    net.summary(mx.nd.ones((1, 2, 8, 8)))
    products = 6 * 6 * 4 * (2 * 3 * 3) + 144 * 5
    memory = "3.2 kB of parameters, 596 B of layers' outputs"  # 797 and 149 numbers
    assert capsys.readouterr().out.endswith(f"Multiply-adds: {products:,}\nMemory: {memory}\n")


# -- files ------------------------------------------------------------------------------------


def same(one, other):
    x = mx.nd.array(np.arange(6).reshape(2, 3))
    assert_equal_up_to_rounding(one(x).asnumpy(), other(x).asnumpy())


def test_save_and_load_parameters_by_structure(tmp_path):
    path = str(tmp_path / "net.params")
    net = ready(prefix="one_")
    net.save_parameters(path)
    other = Net(prefix="another_")
    other.load_parameters(path, ctx=mx.cpu(1))
    assert other.first.weight.list_ctx() == [mx.cpu(1)]
    other.collect_params().reset_ctx(mx.cpu())
    same(net, other)


@pytest.mark.parametrize("strip", [True, False])
def test_load_parameters_accepts_files_keyed_by_parameter_name(tmp_path, strip):
    path = str(tmp_path / "net.params")
    net = ready(prefix="net_")
    net.collect_params().save(path, strip_prefix="net_" if strip else "")
    other = Net(prefix="net_")
    other.load_parameters(path)
    same(net, other)


def test_save_and_load_parameters_of_a_single_layer(tmp_path):
    path = str(tmp_path / "net.params")
    net = nn.Dense(2, in_units=3)
    net.initialize()
    net.save_parameters(path)
    other = nn.Dense(2, in_units=3)
    other.load_parameters(path)
    same(net, other)


def test_save_parameters_deduplicates_shared_parameters(tmp_path):
    class Twice(gluon.Block):
        def __init__(self):
            super().__init__()
            self.a = nn.Dense(3, in_units=3)
            self.b = nn.Dense(3, in_units=3, params=self.a.params)

        def forward(self, x):
            return self.b(self.a(x))

    path = str(tmp_path / "net.params")
    net = ready(Twice)
    net.save_parameters(path, deduplicate=True)
    assert list(mx.nd.load(path)) == ["b.weight", "b.bias"]
    other = Twice()
    other.load_parameters(path)
    same(net, other)


def test_load_parameters_error_names_missing_and_extra_parameters(tmp_path):
    path = str(tmp_path / "net.params")
    ready().save_parameters(path)
    with pytest.raises(AssertionError, match=r"'weight'.*missing in file.*allow_missing=True"):
        nn.Dense(2).load_parameters(path)
    with pytest.raises(ValueError, match=r"'first.weight' loaded from file.*ignore_extra=True"):
        nn.Dense(2).load_parameters(path, allow_missing=True)
    nn.Dense(2).load_parameters(path, allow_missing=True, ignore_extra=True)


def test_load_parameters_with_cast_dtype(tmp_path):
    path = str(tmp_path / "net.params")
    net = ready()
    net.cast("float64")
    net.save_parameters(path)
    other = Net()
    with pytest.raises(AssertionError, match="dtype incompatible"):
        other.load_parameters(path)
    other = Net()
    other.load_parameters(path, cast_dtype=True)
    assert other.first.weight.data().dtype == np.float32
    other = Net()
    other.load_parameters(path, cast_dtype=True, dtype_source="saved")
    assert other.first.weight.data().dtype == np.float64


def test_save_params_and_load_params_warn_as_deprecated(tmp_path):
    path = str(tmp_path / "net.params")
    net = ready()
    with pytest.warns(UserWarning, match="save_params is deprecated"):
        net.save_params(path)
    with pytest.warns(UserWarning, match="load_params is deprecated"):
        net.load_params(path)


def test_save_and_load_restore_hybridized_graphs(tmp_path):
    net = nn.HybridSequential(prefix="net_")
    with net.name_scope():
        net.add(nn.Dense(3), nn.Dense(2))
    net.initialize()
    net.hybridize()
    net(mx.nd.ones((1, 3)))
    net.save(str(tmp_path / "whole"))
    other = nn.HybridSequential(prefix="net_")
    with other.name_scope():
        other.add(nn.Dense(3), nn.Dense(2))
    other.load(str(tmp_path / "whole"))
    assert other._cached_graph
    same(net, other)


class Chain(gluon.HybridBlock):
    """A container that calls its children by their names."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        with self.name_scope():
            self.factor = self.params.get("w", shape=(2, 2))
            for i in range(2):
                child = nn.Dense(2, in_units=2)
                self.register_child(child, child.name + str(i))

    def hybrid_forward(self, F, x, factor):
        x = F.dot(x, factor)
        for child in self._children.values():
            x = child(x)
        return x


@pytest.mark.parametrize("hybridized", [False, True])
def test_load_restores_saved_parameter_names(tmp_path, hybridized):
    path, x = str(tmp_path / "whole"), mx.nd.ones((1, 2))
    net, other = Chain(prefix="old_"), Chain(prefix="new_")
    net.initialize(mx.init.Normal(1))
    if hybridized:
        net.hybridize()
    expected = net(x).asnumpy()
    net.save(path)
    other.initialize()
    trainer = gluon.Trainer(other.collect_params(), "sgd", kvstore=mx.kv.create("local"))
    other.load(path)
    assert (other.name, other.prefix) == ("old", "new_")
    assert list(other._children) == ["old_dense00", "old_dense11"]
    assert [child.name for child in other._children.values()] == ["old_dense0", "old_dense1"]
    assert list(other.params) == ["old_w"]
    assert list(other.collect_params()) == list(net.collect_params())
    assert [p.name for p in other.collect_params().values()] == list(net.collect_params())
    assert bool(other._cached_graph) is hybridized
    np.testing.assert_array_equal(other(x).asnumpy(), expected)
    with mx.autograd.record():
        loss = other(x).sum()
    loss.backward()
    trainer.step(1)
    other.hybridize()
    other(x)
    other.export(path)
    assert set(mx.nd.load(path + "-0000.params")) == {"arg:" + n for n in net.collect_params()}


@pytest.mark.parametrize("how", [copy.deepcopy, lambda b: pickle.loads(pickle.dumps(b))])
@pytest.mark.parametrize("hybridize", [False, True])
def test_copies_of_blocks_do_not_share_parameters(how, hybridize):
    net = nn.HybridSequential()
    net.add(nn.Dense(4), nn.BatchNorm(), nn.Dense(2))
    net.initialize()
    if hybridize:
        net.hybridize()
    net(mx.nd.ones((2, 3)))
    twin = how(net)
    same(net, twin)
    assert twin[0].weight is not net[0].weight
    assert list(twin.collect_params()) == list(net.collect_params())
    twin[0].weight.set_data(mx.nd.zeros((4, 3)))
    assert net[0].weight.data().asnumpy().any()


def test_load_parameters_is_atomic(tmp_path):
    path = str(tmp_path / "x.params")
    net = mx.gluon.nn.HybridSequential()
    net.add(mx.gluon.nn.Dense(2, in_units=3), mx.gluon.nn.Dense(4, in_units=2))
    net.initialize(mx.init.One())
    saved = {
        "0.weight": mx.nd.zeros((2, 3)),
        "0.bias": mx.nd.zeros((5,)),
        "1.weight": mx.nd.zeros((4, 2), dtype="float64"),
        "2.bias": mx.nd.zeros((4,)),
    }
    mx.nd.save(path, saved)
    with pytest.raises(AssertionError) as error:
        net.load_parameters(path)
    message = str(error.value)
    assert "4 parameters do not fit file" in message and "none was changed" in message
    for part in (
        "'1.bias'",
        "'2.bias' loaded from",
        "shape incompatible expected (2,) vs saved (5,)",
        "dtype incompatible",
    ):
        assert part in message
    assert all(float(p.data().sum().asscalar()) != 0 for p in (net[0].weight, net[1].weight))
    with pytest.raises(AssertionError, match="none was changed"):
        net.collect_params().load(path)
    assert net[0].weight.data().asnumpy().tolist() == [[1, 1, 1], [1, 1, 1]]


def test_failed_load_keeps_deferred_initialization(tmp_path):
    path = str(tmp_path / "x.params")
    net = mx.gluon.nn.Dense(2)
    mx.nd.save(path, {"weight": mx.nd.ones((3, 3)), "bias": mx.nd.ones((2,))})
    with pytest.raises(AssertionError, match="shape incompatible"):
        net.load_parameters(path)
    with pytest.raises(mx.MXNetError, match="has not been initialized"):
        net.bias.data()


class NamedOtherwise(gluon.Block):
    """A block whose attributes and parameters have different names."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        with self.name_scope():
            self.wo = self.params.get("output_weights", shape=(2, 2))
            self.bo = self.params.get("output_bias", shape=(2,))
            self.weight = self.params.get("weight", shape=(2,))


@pytest.mark.parametrize("strip", [True, False])
def test_load_by_name_with_custom_parameter_names(tmp_path, strip):
    source, path = NamedOtherwise(prefix="own_"), str(tmp_path / "x.params")
    source.initialize(mx.init.Normal(1))
    source.collect_params().save(path, strip_prefix=source.prefix if strip else "")
    for load in ("load_params", "load_parameters"):
        block = NamedOtherwise(prefix="own_")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            getattr(block, load)(path)
        for name, parameter in block.collect_params().items():
            expected = source.collect_params()[name].data().asnumpy()
            np.testing.assert_array_equal(parameter.data().asnumpy(), expected)
    source.save_parameters(path)
    NamedOtherwise().load_parameters(path)


def test_summary_error_names_the_hybridized_block():
    net = mx.gluon.nn.HybridSequential()
    net.add(mx.gluon.nn.Dense(2), mx.gluon.nn.Dense(3))
    net.initialize()
    net.hybridize()
    with pytest.raises(AssertionError, match=rf'^"{net.name}" .* hybridize\(False\) on it'):
        net.summary(mx.nd.ones((2, 3)))
    net.hybridize(False)
    net[1].hybridize()
    with pytest.raises(AssertionError, match=f"on its layer '{net[1].name}'"):
        net.summary(mx.nd.ones((2, 3)))
