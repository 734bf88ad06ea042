"""Gluon blocks as torch modules, and torch modules as Gluon blocks, with shared memory."""

from __future__ import annotations

import copy
import pickle
import threading

import numpy as np
import pytest
import torch
from torch.nn import functional

import mxnet as mx
from mxnet import autograd, gluon, nd
from mxnet.gluon import nn


def small_resnet() -> nn.HybridSequential:
    """Return a Gluon ResNet of two residual units, initialized."""
    unit = gluon.model_zoo.vision.BasicBlockV1
    net = nn.HybridSequential()
    net.add(nn.Conv2D(4, 3, padding=1, use_bias=False, in_channels=2), nn.BatchNorm(in_channels=4))
    net.add(nn.Activation("relu"), unit(4, 1, False, in_channels=4))
    net.add(unit(8, 2, True, in_channels=4), nn.GlobalAvgPool2D(), nn.Flatten())
    net.add(nn.Dense(3, in_units=8))
    mx.random.seed(7)
    net.initialize(mx.init.Xavier())
    net(nd.ones((1, 2, 8, 8)))
    return net


class Unit(torch.nn.Module):
    def __init__(self, inputs: int, channels: int, stride: int) -> None:
        super().__init__()
        self.conv1 = torch.nn.Conv2d(inputs, channels, 3, stride, 1, bias=False)
        self.bn1 = torch.nn.BatchNorm2d(channels)
        self.conv2 = torch.nn.Conv2d(channels, channels, 3, 1, 1, bias=False)
        self.bn2 = torch.nn.BatchNorm2d(channels)
        self.shortcut = torch.nn.Identity()
        if stride > 1:
            conv = torch.nn.Conv2d(inputs, channels, 1, stride, bias=False)
            self.shortcut = torch.nn.Sequential(conv, torch.nn.BatchNorm2d(channels))

    def forward(self, x):
        y = self.bn2(self.conv2(self.bn1(self.conv1(x)).relu()))
        return (y + self.shortcut(x)).relu()


def small_torch_resnet() -> torch.nn.Module:
    """Return a torch ResNet of two residual units."""
    torch.manual_seed(7)
    layers = torch.nn
    return layers.Sequential(
        layers.Conv2d(2, 4, 3, padding=1, bias=False),
        layers.BatchNorm2d(4),
        layers.ReLU(),
        Unit(4, 4, 1),
        Unit(4, 8, 2),
        layers.AdaptiveAvgPool2d(1),
        layers.Flatten(),
        layers.Linear(8, 3),
    )


def batches(count: int) -> list[tuple[torch.Tensor, torch.Tensor]]:
    rng = torch.Generator().manual_seed(3)
    return [
        (torch.randn(4, 2, 8, 8, generator=rng), torch.randint(3, (4,), generator=rng))
        for _ in range(count)
    ]


def train_by_torch(module: torch.nn.Module, steps: int, lr: float = 0.02) -> list[float]:
    optimizer = torch.optim.SGD(module.parameters(), lr=lr, momentum=0.9, weight_decay=1e-3)
    losses = []
    module.train()
    for x, label in batches(steps):
        loss = functional.cross_entropy(module(x), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def train_by_gluon(net: gluon.Block, steps: int, lr: float = 0.02) -> list[float]:
    options = {"learning_rate": lr, "momentum": 0.9, "wd": 1e-3}
    trainer = gluon.Trainer(net.collect_params(), "sgd", options)
    criterion = gluon.loss.SoftmaxCrossEntropyLoss()
    losses = []
    for x, label in batches(steps):
        with autograd.record():
            loss = criterion(net(nd.from_torch(x)), nd.from_torch(label))
        loss.backward()
        trainer.step(4)
        losses.append(loss.mean().asscalar())
    return losses


def largest_difference(one, other) -> float:
    return max(
        (a.detach().double() - b.detach().double()).abs().max().item()
        for a, b in zip(one, other, strict=True)
    )


@pytest.mark.parametrize("hybrid", [False, True])
def test_torch_optim_trains_a_gluon_resnet_like_trainer(hybrid):
    by_torch, by_gluon = small_resnet(), small_resnet()
    by_torch.hybridize(hybrid)
    by_gluon.hybridize(hybrid)
    module = by_torch.as_torch()
    losses = train_by_torch(module, 50), train_by_gluon(by_gluon, 50)
    np.testing.assert_allclose(*losses, atol=1e-6)
    twin = by_gluon.as_torch().state_dict()
    assert list(twin) == list(module.state_dict())
    assert largest_difference(module.state_dict().values(), twin.values()) < 1e-6
    assert losses[0][-1] != losses[0][0]


def test_trainer_trains_a_torch_resnet_like_torch_optim():
    block = nn.TorchBlock(small_torch_resnet())
    block.initialize()
    twin = small_torch_resnet()
    losses = train_by_gluon(block, 50), train_by_torch(twin, 50)
    np.testing.assert_allclose(*losses, atol=1e-6)
    state = block.module.state_dict()
    assert largest_difference(state.values(), twin.state_dict().values()) < 1e-6
    assert state["1.num_batches_tracked"] == 50


# -- arrays ----


def test_gradients_flow_through_mxnet_and_torch_operators():
    x, w = nd.array([1.0, 2.0]), torch.tensor([3.0, 4.0], requires_grad=True)
    x.attach_grad()
    with autograd.record():
        y = nd.from_torch(torch.sin(x.as_torch()) * w) ** 2
    y.backward()
    inner = np.sin([1.0, 2.0])
    weight = np.array([3.0, 4.0])
    np.testing.assert_allclose(x.grad.asnumpy(), 2 * inner * weight**2 * np.cos([1, 2]), rtol=1e-5)
    np.testing.assert_allclose(w.grad.numpy(), 2 * inner**2 * weight, rtol=1e-5)


@pytest.mark.parametrize("size", [10, 200])
def test_backward_reaches_arrays_and_torch_leaves_of_any_size(size):
    x, w = nd.ones((size, size)), torch.ones(size, size, requires_grad=True)
    x.attach_grad()
    with autograd.record():
        y = nd.from_torch((x * 2).as_torch() * w).sum()
    y.backward()
    assert (x.grad.asnumpy() == 2).all()
    assert (w.grad == 2).all()


def test_torch_backward_respects_grad_req_of_arrays():
    x, z = nd.array([1.0, 2.0]), nd.array([1.0, 2.0])
    x.attach_grad()
    z.attach_grad("add")
    gradient = x.grad
    for _ in range(2):
        with autograd.record():
            y = (x * 3 + z).as_torch()
        y.sum().backward()
    assert x.grad is gradient
    assert gradient.asnumpy().tolist() == [3, 3]
    assert z.grad.asnumpy().tolist() == [2, 2]


def test_as_torch_requires_grad_only_if_recording_or_requested():
    x = nd.array([1.0, 2.0])
    x.attach_grad()
    assert not x.as_torch().requires_grad
    assert x.as_torch(grad=True).requires_grad
    with autograd.record():
        y = x * 2
        assert not x.as_torch(grad=False).requires_grad
    assert not y.as_torch().requires_grad
    y.as_torch(grad=True).sum().backward()
    assert x.grad.asnumpy().tolist() == [2, 2]
    t = torch.ones(2, requires_grad=True)
    nd.from_torch(t, grad=True).as_torch(grad=True).sum().backward()
    assert t.grad.tolist() == [1, 1]
    assert not nd.from_torch(t).as_torch(grad=True).requires_grad


def test_as_torch_of_a_freed_graph_does_not_require_grad():
    x = nd.array([1.0])
    x.attach_grad()
    with autograd.record():
        y = x * 2
    y.backward()
    assert not y.as_torch(grad=True).requires_grad


def test_arrays_and_tensors_share_memory():
    x = nd.zeros((2, 3))
    x.as_torch()[0, 1] = 5
    assert x[0, 1].asscalar() == 5
    t = torch.zeros(4)
    nd.from_torch(t)[1:3] = 7
    assert t.tolist() == [0, 7, 7, 0]
    integers = nd.array([1, 2], dtype="int32")
    integers.attach_grad()
    with autograd.record():
        assert integers.as_torch().dtype is torch.int32


def test_prepacked_weights_are_refreshed_after_writes_by_torch():
    net = nn.Dense(16, in_units=16)
    net.initialize()
    net.hybridize()
    x = nd.ones((1, 16))
    for _ in range(4):
        net(x)
    module = net.as_torch()
    with torch.no_grad():
        module.weight.data.fill_(2)  # without incrementing torch's version counter
    np.testing.assert_allclose(net(x).asnumpy(), 32 + net.bias.data().asnumpy()[None])
    module.load_state_dict({"weight": torch.full((16, 16), 3.0), "bias": torch.zeros(16)})
    np.testing.assert_allclose(net(x).asnumpy(), 48)


# -- blocks as modules ----


def test_gradients_are_written_to_the_framework_that_ran_forward():
    net = small_resnet()
    module = net.as_torch()
    x = torch.randn(2, 2, 8, 8, requires_grad=True)
    module(x).sum().backward()
    assert x.grad.abs().sum() > 0
    assert all(p.grad is not None for p in module.parameters())
    assert net[0].weight.grad().abs().sum().asscalar() == 0
    before = module.get_parameter("0.weight").grad.clone()
    with autograd.record():
        y = net(nd.from_torch(x.detach()))
    y.backward()
    assert net[0].weight.grad().abs().sum().asscalar() > 0
    assert (module.get_parameter("0.weight").grad == before).all()


def test_train_and_eval_set_the_mode_of_gluon_layers():
    net = nn.HybridSequential()
    net.add(nn.BatchNorm(in_channels=2), nn.Dropout(0.5))
    net.initialize()
    module = net.as_torch()
    x = torch.randn(64, 2) + 3
    module.eval()
    assert (module(x) - x).abs().max() < 1e-4
    assert net[0].running_mean.data().abs().sum().asscalar() == 0
    module.train()
    assert (module(x) == 0).float().mean() > 0.2
    assert dict(module.named_buffers())["0.running_mean"].min() > 0.1
    with torch.no_grad():
        assert not module(x).requires_grad
    assert not autograd.is_training()


def test_as_torch_keeps_names_sharing_and_frozen_parameters():
    net = nn.HybridSequential()
    first = nn.Dense(3, in_units=3)
    net.add(first, nn.Dense(3, in_units=3, params=first.params), nn.Dense(2, in_units=3))
    net.initialize()
    net[2].weight.grad_req = "null"
    module = net.as_torch()
    names = ["0.weight", "0.bias", "1.weight", "1.bias", "2.weight", "2.bias"]
    assert list(module.state_dict()) == names
    assert module.get_parameter("1.weight") is module.get_parameter("0.weight")
    assert net.as_torch().get_parameter("0.weight") is module.get_parameter("0.weight")
    assert len(list(module.parameters())) == 4
    assert not module.get_parameter("2.weight").requires_grad
    module.get_parameter("0.weight").requires_grad_(False)
    module(torch.ones(1, 3)).sum().backward()
    assert module.get_parameter("0.weight").grad is None
    assert module.get_parameter("0.bias").grad is not None


def test_casts_on_either_side_keep_parameters_shared():
    net = nn.Dense(2, in_units=3)
    net.initialize()
    module = net.as_torch()
    module.double()
    assert net.weight.data().dtype == np.float64
    net.cast("float32")
    assert module.weight.dtype is torch.float32
    net.initialize(mx.init.One(), force_reinit=True)
    assert (module.weight == 1).all()
    module.weight.data.fill_(2)
    assert net.weight.data().asnumpy().max() == 2
    assert module(torch.ones(1, 3)).tolist() == [[6, 6]]


def test_copies_of_modules_have_independent_blocks():
    module = small_resnet().as_torch().eval()
    module.get_parameter("0.weight").requires_grad_(False)
    x = torch.randn(1, 2, 8, 8)
    for other in (copy.deepcopy(module), pickle.loads(pickle.dumps(module))):
        assert torch.equal(other(x), module(x))
        assert not other.training
        assert not other.get_parameter("0.weight").requires_grad
        with torch.no_grad():
            other.get_parameter("0.weight").zero_()
        assert other.block[0].weight.data().abs().sum().asscalar() == 0
        assert not torch.equal(other(x), module(x))


def test_torch_func_transforms_of_a_gluon_block():
    module = small_resnet().as_torch().eval()
    x = torch.randn(2, 2, 8, 8)
    values = {name: p.detach() for name, p in module.named_parameters()}

    def loss(params):
        return torch.func.functional_call(module, params, (x,)).square().sum()

    gradients = torch.func.grad(loss)(values)
    module(x).square().sum().backward()
    for name, p in module.named_parameters():
        torch.testing.assert_close(gradients[name], p.grad)


def test_functional_call_does_not_affect_other_threads():
    class Waiting(gluon.Block):
        def __init__(self):
            super().__init__()
            self.dense = nn.Dense(1, in_units=1)

        def forward(self, x):
            if threading.current_thread() is not threading.main_thread():
                inside.set()
                assert leave.wait(30)
            return self.dense(x)

    inside, leave = threading.Event(), threading.Event()
    net = Waiting()
    net.initialize()
    module = net.as_torch()
    thread = threading.Thread(target=lambda: module(torch.ones(1, 1)).sum().backward())
    thread.start()
    assert inside.wait(30)
    try:
        with autograd.record():
            y = net(nd.ones((1, 1)))
        y.backward()
    finally:
        leave.set()
        thread.join(30)
    assert net.dense.weight.grad().asscalar() == 1
    assert module.dense.weight.grad.item() == 1


def test_keyword_arguments_become_inputs_in_order():
    class Add(gluon.HybridBlock):
        def hybrid_forward(self, F, left, right):
            return left - right

    module = Add().as_torch()
    assert module(torch.ones(1), right=torch.ones(1) * 3).item() == -2
    with pytest.raises(mx.MXNetError, match="does not take other: its inputs are left, right"):
        module(torch.ones(1), other=torch.ones(1))


def test_as_torch_of_unsupported_blocks_raises():
    with pytest.raises(gluon.DeferredInitializationError, match="pass one batch"):
        net = nn.Dense(2)
        net.initialize()
        net.as_torch()
    with pytest.raises(mx.MXNetError, match="has copies on"):
        net = nn.Dense(2, in_units=1)
        net.initialize(ctx=[mx.cpu(0), mx.cpu(1)])
        net.as_torch()
    net = nn.Dense(2, in_units=1)
    net.initialize()
    with pytest.raises(mx.MXNetError, match="complex64 cannot be an array"):
        net.as_torch()(torch.ones(1, 1, dtype=torch.complex64))


@pytest.mark.slow
def test_hybrid_blocks_compile_without_graph_breaks():
    class Net(gluon.HybridBlock):
        def __init__(self):
            super().__init__()
            with self.name_scope():
                self.conv = nn.Conv2D(3, 3, in_channels=2, use_bias=False)
                self.norm = nn.BatchNorm(in_channels=3)
                self.recurrent = gluon.rnn.LSTM(4, input_size=18)

        def hybrid_forward(self, F, x):
            return self.recurrent(F.reshape(self.norm(self.conv(x)), shape=(0, 6, 18)))

    net = Net()
    net.initialize(mx.init.Xavier())
    module = net.as_torch()
    twin = copy.deepcopy(module)
    compiled = torch.compile(twin, backend="aot_eager", fullgraph=True)
    losses = []
    for run, owner in ((module, module), (compiled, twin)):
        optimizer = torch.optim.Adam(owner.parameters(), lr=1e-2)
        for x, _ in batches(3):
            loss = run(x).square().sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    np.testing.assert_allclose(losses[:3], losses[3:], rtol=1e-4)
    for name in ("norm.running_mean", "norm.running_var"):
        torch.testing.assert_close(module.get_buffer(name), twin.get_buffer(name))


def test_blocks_without_a_graph_run_eagerly_inside_torch_compile():
    class Branch(gluon.Block):
        def forward(self, x):
            return x * 2 if x.sum().asscalar() > 0 else x

    compiled = torch.compile(Branch().as_torch(), backend="aot_eager")
    assert compiled(torch.ones(2)).tolist() == [2, 2]
    assert compiled(-torch.ones(2)).tolist() == [-1, -1]


# -- modules as blocks ----


def half_torch() -> nn.HybridSequential:
    torch.manual_seed(0)
    net = nn.HybridSequential()
    middle = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4))
    net.add(nn.Dense(4, in_units=3), nn.TorchBlock(middle), nn.Dense(2, in_units=4))
    net.initialize()
    return net


def test_torch_block_save_load_copy_and_summary(tmp_path, capsys):
    net, other = half_torch(), half_torch()
    x = nd.array(np.random.RandomState(0).randn(5, 3))
    for param in net.collect_params().values():
        param.set_data(nd.ones(param.shape, dtype=param.dtype) * 2)
    assert net[1].module[0].weight.min() == 2
    net.save_parameters(f"{tmp_path}/half.params")
    assert "1.1.running_mean" in nd.load(f"{tmp_path}/half.params")
    other.load_parameters(f"{tmp_path}/half.params")
    assert other[1].module[1].num_batches_tracked == 2
    assert (other(x) == net(x)).min().asscalar()
    twin = copy.deepcopy(net)
    twin[1].module[0].weight.data.zero_()
    assert (twin(x) == net(x)).min().asscalar() == 0
    assert (pickle.loads(pickle.dumps(net))(x) == net(x)).min().asscalar()
    net.summary(x)
    assert "TorchBlock-2                                      (5, 4)              37" in (
        capsys.readouterr().out
    )


def test_hybridize_with_a_torch_block_hybridizes_other_children():
    net = half_torch()
    x = nd.ones((2, 3))
    expected = net(x)
    with pytest.warns(UserWarning, match="holds a TorchBlock"):
        net.hybridize()
    assert net[0]._active
    np.testing.assert_allclose(net(x).asnumpy(), expected.asnumpy(), rtol=1e-5)
    with pytest.raises(mx.MXNetError, match=r"cannot be exported.*from_torch"):
        net.export("model")
    with pytest.raises(TypeError, match="has no symbol"):
        net[1](mx.sym.var("x"))


def test_outputs_of_a_torch_block_do_not_alias():
    class Views(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones(2))

        def forward(self, x):
            return {
                "same": x,
                "part": x[:1],
                "transposed": x.T,
                "weight": self.weight,
                "none": None,
            }

    block = nn.TorchBlock(Views())
    x = nd.array([[1, 2], [3, 4]])
    x.attach_grad()
    with autograd.record():
        recorded = block(x)
        total = recorded["same"].sum() + recorded["transposed"].sum()
    total.backward()
    assert x.grad.asnumpy().tolist() == [[2, 2], [2, 2]]
    for outputs in (block(x), recorded):
        outputs["same"][:] = 0
        outputs["part"][:] = 0
        outputs["weight"][:] = 0
        assert outputs["none"] is None
        assert outputs["transposed"].asnumpy().tolist() == [[1, 3], [2, 4]]
    assert x.asnumpy().tolist() == [[1, 2], [3, 4]]
    assert block.module.weight.tolist() == [1, 1]


def test_torch_block_tracks_changes_of_its_module():
    class Counter(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = torch.nn.Parameter(torch.tensor(2.0))
            self.register_buffer("calls", torch.zeros(()))

        def forward(self, x):
            self.calls = self.calls + 1  # another tensor each time
            return x * self.scale

    block = nn.TorchBlock(Counter())
    array = block._reg_params["calls"].data()
    x = nd.ones((2,))
    with autograd.record():
        y = block(block(x))
    y.backward()
    assert array.asscalar() == 2
    assert block.module.calls.item() == 2
    assert block._reg_params["scale"].grad().asscalar() == 8
    block.module.double()
    assert block(x.astype("float64")).dtype == np.float64
    assert block._reg_params["scale"].data().dtype == np.float64
    block.cast("float32")
    assert block.module.scale.dtype is torch.float32
    assert block(x).asnumpy().tolist() == [2, 2]


def test_torch_lstm_and_tied_modules_train_in_gluon():
    lstm = torch.nn.LSTM(3, 3, batch_first=True)
    twin = copy.deepcopy(lstm)
    block = nn.TorchBlock(lstm)
    x = nd.array(np.random.RandomState(0).randn(2, 4, 3))
    with autograd.record():
        y, (h, _) = block(x)
        loss = (y * y).sum() + h.sum()
    loss.backward()
    y, (h, _) = twin(x.as_torch())
    ((y * y).sum() + h.sum()).backward()
    for name, p in twin.named_parameters():
        np.testing.assert_allclose(
            block._reg_params[name].grad().asnumpy(), p.grad.numpy(), rtol=1e-4, atol=1e-6
        )
    tied = torch.nn.ModuleList([torch.nn.Linear(2, 2, bias=False) for _ in range(2)])
    tied[1].weight = tied[0].weight
    tied.forward = lambda x: tied[1](tied[0](x))
    block = nn.TorchBlock(tied)
    assert len(block.collect_params().keys()) == 1
    with autograd.record():
        loss = block(nd.ones((1, 2))).sum()
    loss.backward()
    tied(torch.ones(1, 2)).sum().backward()
    gradient = block.collect_params().values()
    np.testing.assert_allclose(next(iter(gradient)).grad().asnumpy(), tied[0].weight.grad.numpy())


def test_as_torch_of_a_network_with_a_torch_block():
    net = half_torch()
    module = net.as_torch()
    assert module.get_submodule("1") is net[1].module
    x = torch.randn(5, 3)
    module.train()
    module(x).square().sum().backward()
    assert all(p.grad is not None for p in module.parameters())
    assert net[1].module[1].num_batches_tracked == 1
    block = nn.TorchBlock(torch.nn.Sequential(small_resnet().as_torch(), torch.nn.Linear(3, 1)))
    with autograd.record():
        y = block(nd.ones((1, 2, 8, 8)))
    y.backward()
    assert all(p.grad().abs().sum().asscalar() > 0 for p in block.collect_params(".*bias").values())


def test_initialize_keeps_module_values_unless_force_reinit():
    module = torch.nn.Linear(2, 2)
    block, values = nn.TorchBlock(module), module.weight.tolist()
    block.initialize(mx.init.One())
    assert module.weight.tolist() == values
    block.initialize(mx.init.One(), force_reinit=True)
    assert module.weight.tolist() == [[1, 1], [1, 1]]
    with pytest.raises(TypeError, match=r"takes a torch\.nn\.Module"):
        nn.TorchBlock(torch.relu)


# -- data ----


def test_datasets_and_loaders_work_in_both_frameworks():
    data = gluon.data.ArrayDataset(np.arange(6, dtype="float32"), np.arange(6) % 2)
    loader = torch.utils.data.DataLoader(data, batch_size=3)
    assert [x.tolist() for x, _ in loader] == [[0, 1, 2], [3, 4, 5]]
    arrays = gluon.data.ArrayDataset(nd.arange(4), nd.arange(4) * 2)
    x, y = next(iter(torch.utils.data.DataLoader(arrays, batch_size=4)))
    assert x.reshape(-1).tolist() == [0, 1, 2, 3]
    assert y.reshape(-1).tolist() == [0, 2, 4, 6]
    scaled = arrays.transform_first(lambda x: nd.array([x, x]))
    x, _ = next(iter(torch.utils.data.DataLoader(scaled, batch_size=4)))
    assert isinstance(x, torch.Tensor)
    assert x.tolist() == [[0, 0], [1, 1], [2, 2], [3, 3]]
    tensors = torch.utils.data.TensorDataset(torch.arange(4.0), torch.arange(4))
    x, y = next(iter(gluon.data.DataLoader(tensors, batch_size=4)))
    assert isinstance(x, nd.NDArray)
    assert x.asnumpy().tolist() == [0, 1, 2, 3]
    assert y.asnumpy().tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("hybridized", [False, True])
def test_forward_hooks_of_submodules_are_called(hybridized: bool) -> None:
    """Hooks receive tensors with gradients, which can be added to the loss."""
    net = nn.HybridSequential()
    net.add(nn.Dense(3, in_units=2), nn.Activation("relu"), nn.Dense(1, in_units=3))
    net.initialize(mx.init.One())
    if hybridized:
        net.hybridize()
    module = net.as_torch()
    x = torch.ones(2, 2)
    module(x)
    seen: list[tuple] = []
    first, second = module.get_submodule("0"), module.get_submodule("1")
    handle = first.register_forward_hook(lambda m, args, out: seen.append((m, args[0], out)))
    second.register_forward_pre_hook(
        lambda m, args, kwargs: seen.append((m, *args)), with_kwargs=True
    )
    output = module(x)
    assert [item[0] for item in seen] == [first, second]
    assert seen[0][1].shape == (2, 2)
    (output.sum() + seen[0][2].sum()).backward()
    assert torch.equal(first.weight.grad, torch.full((3, 2), 4.0))
    handle.remove()
    seen.clear()
    net(mx.nd.ones((2, 2)))  # calls through Gluon run no torch hooks
    assert seen == []
    assert torch.equal(module(x), output)
    assert len(seen) == 1
    assert not hybridized or net._active


def test_submodule_hooks_that_replace_values_raise() -> None:
    """They cannot be applied, so they raise instead of being ignored."""
    net = nn.HybridSequential()
    net.add(nn.Dense(1, in_units=2))
    net.initialize()
    module = net.as_torch()
    part = module.get_submodule("0")
    handle = part.register_forward_hook(lambda m, args, out: 2 * out)
    with pytest.raises(mx.MXNetError, match="cannot replace values"):
        module(torch.ones(1, 2))
    handle.remove()
    part.register_full_backward_hook(lambda *_: None)
    with pytest.warns(UserWarning, match="call output.register_hook in a forward hook"):
        module(torch.ones(1, 2))
