"""Values derived from weights are invalidated by every write to the weights."""

from __future__ import annotations

import timeit

import numpy as np
import pytest
import torch

import mxnet as mx
from mxnet import nd
from mxnet._process.memory import expose, is_exposed
from mxnet.gluon import nn
from mxnet.ops.fused import dense as prepared_dense
from mxnet.ops.fused.prepared_values import Unchanged
from mxnet.ops.quantization.int8 import int8_dense
from mxnet.runtime import backends


def make():
    tensor = torch.arange(12.0).reshape(3, 4)
    return tensor, Unchanged([tensor, None])


def set_memory(tensor):
    tensor.set_(torch.zeros(3, 4))


def write_as_leaf(tensor):
    leaf = tensor.detach().requires_grad_()
    with torch.no_grad():
        leaf.mul_(2)


def write_by_numpy(tensor):
    expose(tensor)
    tensor.numpy()[0, 0] = 7


def write_by_dlpack(tensor):
    expose(tensor)
    torch.from_dlpack(tensor).zero_()


def write_an_exposed_view(tensor):
    expose(tensor[1])
    tensor[1].numpy()[0] = 7


def write_exposed_data(tensor):
    expose(tensor.data)
    tensor.data.zero_()


CHANGES = {
    "in_place": lambda t: t.add_(1),
    "view": lambda t: t.view(-1)[3:].zero_(),
    "older_view": lambda t: t.fill_(0),
    "detached": lambda t: t.detach().zero_(),
    "out": lambda t: torch.add(t, 1, out=t),
    "foreach": lambda t: torch._foreach_add_([t], 1.0),
    "strided": lambda t: t.as_strided((2,), (1,)).zero_(),
    "index": lambda t: t.__setitem__((0, 0), 5.0),
    "inference_mode": lambda t: torch.inference_mode()(t.zero_)(),
    "set": set_memory,
    "leaf": write_as_leaf,
    "numpy": write_by_numpy,
    "dlpack": write_by_dlpack,
    "exposed_view": write_an_exposed_view,
    "exposed_data": write_exposed_data,
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_every_write_invalidates_prepared_values(change):
    tensor, source = make()
    _ = tensor.view(-1), tensor.detach()
    assert source.holds_for([tensor, None]) and source.holds_for((tensor, None))
    change(tensor)
    assert not source.holds_for([tensor, None])


def test_reads_do_not_invalidate_prepared_values():
    tensor, source = make()
    _ = tensor + 1, tensor[1:].clone(), tensor.sum().item(), tensor.data
    assert source.holds_for([tensor, None])


@pytest.mark.parametrize(
    "alike",
    [
        lambda t: t.detach(),
        lambda t: t.data,
        lambda t: t.view(3, 4),
        lambda t: t.clone(),
        lambda t: torch.nn.Parameter(t),
        lambda t: torch.from_numpy(t.numpy()),
    ],
)
def test_prepared_values_are_valid_only_for_the_same_tensors(alike):
    tensor, source = make()
    other = alike(tensor)
    assert not source.holds_for([other, None])
    assert not source.holds_for([None, tensor])
    assert not source.holds_for([tensor])
    assert not source.holds_for([])
    assert source.holds_for([tensor, None])


def test_prepared_values_keep_their_source_tensor_alive():
    tensor, source = make()
    address = tensor.data_ptr()
    del tensor
    others = [torch.zeros(3, 4) for _ in range(50)]
    assert all(t.data_ptr() != address for t in others)  # the old one is kept alive
    assert not any(source.holds_for([t, None]) for t in others)


def test_a_write_to_any_source_invalidates_prepared_values():
    tensors = [torch.zeros(2) for _ in range(3)]
    for changed in tensors:
        source = Unchanged(tensors)
        assert source.holds_for(tensors)
        changed.add_(1)
        assert not source.holds_for(tensors)


def test_values_of_exposed_memory_are_not_prepared():
    for exposed in (lambda t: t, lambda t: t[1:], lambda t: t.data, lambda t: t.T):
        tensor, source = make()
        expose(exposed(tensor))
        assert not source.holds_for([tensor, None])
        assert Unchanged.of([tensor]) is None
        assert Unchanged.of([tensor[:1], None]) is None
        assert Unchanged.of([tensor.clone(), None]) is not None


def test_exposure_ends_with_the_storage():
    tensor = torch.zeros(4)
    view = tensor[1:]
    expose(tensor)
    del tensor
    assert is_exposed(view) and is_exposed(view.detach().reshape(3, 1))
    assert not is_exposed(torch.zeros(4))


@pytest.mark.parametrize(
    "make_odd",
    [
        lambda: torch.zeros(3).to_sparse(),
        lambda: torch.zeros(3, 3).to_mkldnn(),
        lambda: torch.zeros(3, device="meta"),
        lambda: torch.zeros(0),
        lambda: torch.inference_mode()(torch.zeros)(3),
        lambda: torch.quantize_per_tensor(torch.zeros(3), 1.0, 0, torch.quint8),
    ],
    ids=["sparse", "onednn", "meta", "empty", "inference", "quantized"],
)
@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")
def test_unusual_tensor_kinds_are_supported(make_odd):
    odd = make_odd()
    kept = Unchanged.of([odd])
    assert kept is None or kept.holds_for([odd])
    if odd.layout is not torch.strided or odd.is_inference():
        assert kept is None  # they have no version counter
    expose(odd)
    assert is_exposed(odd)
    assert Unchanged.of([odd]) is None


def test_is_exposed_is_fast():
    tensor = torch.zeros(4)
    seconds = min(timeit.repeat(lambda: is_exposed(tensor), number=10_000, repeat=20)) / 10_000
    assert seconds < 2e-6  # measured 0.15e-6; the bound leaves room for slow machines


# -- kernels that keep packed weights -----------------------------------------------------------


def dense(monkeypatch):
    for name, value in {"MIN_WEIGHT": 1, "MIN_ROWS": 2}.items():
        monkeypatch.setattr(prepared_dense, name, value)
    return nn.Dense(7, in_units=12), nd.random.normal(shape=(5, 12)), lambda net: [net.weight]


def convolution(monkeypatch):
    net = nn.HybridSequential()
    net.add(nn.Conv2D(4, 3, in_channels=3), nn.BatchNorm(in_channels=4), nn.Activation("relu"))
    parameters = lambda net: [  # noqa: E731
        net[0].weight, net[0].bias, net[1].gamma, net[1].beta, net[1].running_mean,
        net[1].running_var,
    ]  # fmt: skip
    return net, nd.random.normal(shape=(2, 3, 40, 40)), parameters


def copying_backend(monkeypatch):
    """Return a network with a backend that copies its parameters."""
    monkeypatch.setattr(backends, "_backends", dict(backends._backends))

    def prepare(graph, feed, data):
        copies = {i: t.clone() for i, t in enumerate(feed) if i not in data}
        own = backends.Program(graph, graph.mode, feed[0].device, optimized=False)
        return lambda feed: own.run([copies.get(i, t) for i, t in enumerate(feed)])

    mx.executor.register_backend("copying", prepare)
    net = nn.Dense(7, in_units=12)
    return net, nd.random.normal(shape=(5, 12)), lambda net: [net.weight, net.bias]


@pytest.mark.parametrize("make_net", [dense, convolution, copying_backend])
@pytest.mark.parametrize("is_packed_before", [True, False])
def test_external_writes_to_weights_are_detected(make_net, is_packed_before, monkeypatch):
    mx.random.seed(3)
    net, x, parameters = make_net(monkeypatch)
    net.initialize(mx.init.Normal(0.5))
    flags = {"backend": "copying"} if make_net is copying_backend else {}
    net.hybridize(**flags)
    if is_packed_before:
        for _ in range(3):
            net(x)
    for parameter in parameters(net):
        tensor = parameter.data()._data
        expose(tensor)
        memory = tensor.numpy()
        for factor in (2.0, 0.25):
            memory *= factor
            found = [net(x).asnumpy() for _ in range(3)]
            net.hybridize(active=False)
            expected = net(x).asnumpy()
            net.hybridize(**flags)
            for each in found:
                np.testing.assert_allclose(each, expected, rtol=1e-4, atol=1e-4)
            net(x)
            memory += 0.5  # while the compiled program is alive
            after = net(x).asnumpy()
            net.hybridize(active=False)
            np.testing.assert_allclose(after, net(x).asnumpy(), rtol=1e-4, atol=1e-4)
            net.hybridize(**flags)


@pytest.mark.parametrize("exposed", [0, 1, 2, 3])
def test_external_writes_to_8_bit_weights_are_detected(exposed):
    rng = np.random.RandomState(0)
    weight = torch.from_numpy(rng.randint(-63, 64, (4, 6)).astype("int8"))
    bias = torch.from_numpy(rng.randint(-9, 9, 4).astype("int32"))
    ends = [torch.tensor([-1.0]), torch.tensor([1.0])]
    inputs = [weight, bias, *ends, *(end.clone() for end in ends)]
    data = torch.from_numpy(rng.randint(0, 256, (3, 6)).astype("uint8"))
    attrs = int8_dense.complete({"num_hidden": 4, "data_step": 0.1, "out_type": "float32"})
    kernel = int8_dense.find_variant("node", attrs, False)
    kernel(data, *inputs)
    expose(inputs[exposed])
    memory = inputs[exposed].numpy()
    for _ in range(2):
        memory //= 2
        expected = int8_dense.function(data, *inputs, **attrs)
        torch.testing.assert_close(kernel(data, *inputs), expected, rtol=1e-5, atol=1e-5)


def test_exposed_bound_arrays_are_not_constants_of_a_backend(monkeypatch):
    copying_backend(monkeypatch)
    monkeypatch.setenv("MXNET_SUBGRAPH_BACKEND", "copying")
    x, w = mx.sym.Variable("x"), mx.sym.Variable("w")
    arrays = {"x": nd.ones((2, 3)), "w": nd.ones((2, 3))}
    expose(arrays["w"]._data)
    executor = (x * w).bind(mx.cpu(), arrays)
    memory = arrays["w"]._data.numpy()
    for value in (1, 5, 9):
        memory[:] = value
        for _ in range(2):
            np.testing.assert_array_equal(executor.forward()[0].asnumpy(), np.full((2, 3), value))
