"""Automatic mixed precision: training (`amp.init` is permanent, so it runs in a subprocess) and
converted models.
"""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys

import numpy as np
import pytest

import mxnet as mx
from mxnet.contrib import amp
from mxnet.contrib.amp.lists import symbol_bf16, symbol_fp16
from mxnet.contrib.amp.loss_scaler import LossScaler


def dense() -> mx.gluon.nn.Dense:
    net = mx.gluon.nn.Dense(2, in_units=2)
    net.initialize()
    return net


def overflows(scaler: LossScaler, net, value: float) -> bool:
    for param in net.collect_params().values():
        param.grad()[:] = value
    return scaler.has_overflow(net.collect_params().values())


class TestLossScaler:
    @pytest.mark.parametrize(
        ("value", "overflow"),
        [(1.0, False), (1e30, False), (np.inf, True), (-np.inf, True), (np.nan, True)],
    )
    def test_loss_scaler_detects_overflow(self, value, overflow):
        assert overflows(LossScaler(), dense(), value) is overflow

    def test_loss_scale_decreases_after_overflow_and_increases_again(self, caplog):
        caplog.set_level(logging.INFO)
        scaler, net = LossScaler(), dense()
        scaler._scale_seq_len = 3
        overflows(scaler, net, np.inf)
        assert scaler.loss_scale == 2.0**16  # this step's gradients were scaled by it
        scales = [overflows(scaler, net, 1.0) or scaler.loss_scale for _ in range(4)]
        assert scales == [2.0**15, 2.0**15, 2.0**15, 2.0**16]
        assert [record.message for record in caplog.records] == [
            "AMP: decreasing loss scale to 32768.000000",
            "AMP: increasing loss scale to 65536.000000",
        ]

    def test_loss_scale_has_an_upper_limit(self):
        scaler, net = LossScaler(), dense()
        scaler._scale_seq_len = 1
        for _ in range(12):
            overflows(scaler, net, 1.0)
        assert scaler.loss_scale == 2.0**24


def test_amp_functions_before_init_raise():
    net = dense()
    trainer = mx.gluon.Trainer(net.collect_params(), "sgd")
    with pytest.raises(AssertionError, match=r"call amp.init\(\)"):
        amp.init_trainer(trainer)
    with pytest.raises(AssertionError, match=r"amp.init_trainer\(\)"):
        amp.scale_loss(mx.nd.ones(1), trainer).__enter__()
    with pytest.raises(TypeError, match="should be a Gluon Trainer"):
        amp.unscale(3)
    with pytest.raises(TypeError, match="only compatible with Gluon Trainer"):
        amp.unscale(mx.optimizer.SGD())
    with pytest.raises(AssertionError, match="only float16 or bfloat16"):
        amp.init("float64")


FUNCTIONS = """
import mxnet as mx
from mxnet.contrib import amp
amp.init("bfloat16")
amp.init("bfloat16")

def name(array):
    return mx.dtypes.to_name(array.dtype)

x, w = mx.nd.ones((2, 3)), mx.nd.ones((4, 3))
y = mx.nd.FullyConnected(x, w, no_bias=True, num_hidden=4)
assert name(y) == "bfloat16"
assert name(mx.nd.FullyConnected(data=x, weight=w, no_bias=True, num_hidden=4)) == "bfloat16"
assert name(mx.nd.relu(y)) == "bfloat16"
assert name(y + y) == "bfloat16"
for full in (mx.nd.exp(y), y.exp(), y.softmax(), mx.nd.softmax(y), y + x[:, :1], x[:, :1] * y,
             mx.nd.concat(y, x, dim=1).sum(), y**2, 1 / y, mx.nd.broadcast_add(y, x[:, :1]),
             mx.nd.Activation(y, act_type="softrelu"), mx.nd.Activation(y, "softrelu")):
    assert name(full) == "float32", full
assert name(mx.nd.Activation(y, act_type="relu")) == "bfloat16"
out = mx.nd.zeros((2, 4))
assert mx.nd.exp(y, out=out) is out

a, b = mx.sym.var("a"), mx.sym.var("b")
s = mx.sym.FullyConnected(a, num_hidden=2, name="f")
assert s.list_arguments() == ["a", "f_weight", "f_bias"]
assert s.get_internals().list_outputs() == [
    "a", "amp_cast0_output", "f_weight", "amp_cast1_output", "f_bias", "amp_cast2_output",
    "f_output"]
assert "amp_multicast0" in (s + b).get_internals().list_outputs()[-3]
assert [n for n in mx.sym.softmax(s).get_internals().list_outputs() if "cast3" in n]
assert s.infer_shape(a=(5, 7))[0] == [(5, 7), (2, 7), (2,)]
"""


def test_amp_init_casts_operator_inputs():
    run(FUNCTIONS)


HALF = """
import mxnet as mx, numpy as np
from mxnet.contrib import amp
amp.init()
x = mx.nd.ones((2, 3))
assert mx.nd.FullyConnected(x, x, no_bias=True, num_hidden=2).dtype == np.float16
picture, kernel = mx.nd.ones((1, 1, 3, 3)), mx.nd.ones((1, 1, 2, 2))
y = mx.nd.Convolution(picture, kernel, kernel=(2, 2), num_filter=1, no_bias=True)
assert y.dtype == np.float16
assert mx.nd.exp(x.astype("float16")).dtype == np.float16
assert (x.astype("float16") + x).dtype == np.float32
names = mx.sym.FullyConnected(mx.sym.var("a"), num_hidden=2).get_internals().list_outputs()
assert "amp_cast0_output" in names
"""


def test_float16_arrays_on_a_cpu_are_not_cast_to_float32():
    run(HALF)


TRAINING = """
import numpy as np
import mxnet as mx
from mxnet import autograd, gluon
from mxnet.contrib import amp
amp.init("bfloat16")
mx.random.seed(1)
np.random.seed(1)
net = gluon.nn.HybridSequential()
net.add(gluon.nn.Conv2D(4, 3, padding=1), gluon.nn.BatchNorm(), gluon.nn.Activation("relu"),
        gluon.nn.Dense(2))
net.initialize()
if HYBRID:
    net.hybridize()
trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1})
amp.init_trainer(trainer)
label = np.arange(16) % 2
x = mx.nd.array(np.random.rand(16, 1, 6, 6) + label[:, None, None, None])
y = mx.nd.array(label)
loss_of = gluon.loss.SoftmaxCrossEntropyLoss()
losses = []
for step in range(12):
    with autograd.record():
        out = net(x)
        loss = loss_of(out, y)
        with amp.scale_loss(loss, trainer) as scaled:
            autograd.backward(scaled)
    assert mx.dtypes.to_name(out.dtype) == "bfloat16"
    trainer.step(16)
    losses.append(loss.mean().asscalar())
assert losses[-1] < losses[0] / 2, losses
assert {mx.dtypes.to_name(p.dtype) for p in net.collect_params().values()} == {"float32"}

before = net[3].weight.data().asnumpy()
for grad in net[3].weight.list_grad():
    grad[:] = np.inf
trainer.step(16)
assert (net[3].weight.data().asnumpy() == before).all()
assert trainer._amp_loss_scaler._next_loss_scale == 2.0**15

with autograd.record():
    loss = loss_of(net(x), y)
    with amp.scale_loss([loss], trainer) as scaled:
        autograd.backward(scaled)
big = net[3].weight.grad().asnumpy()
scale = trainer._scale
amp.unscale(trainer)
np.testing.assert_allclose(net[3].weight.grad().asnumpy(), big * scale, rtol=1e-6)
assert trainer._scale == 1.0

z = mx.nd.ones((1, 2))
z.attach_grad()
with autograd.record():
    p = mx.nd.SoftmaxOutput(z, mx.nd.zeros((1,)))
p.backward()
scale = trainer._amp_loss_scaler.loss_scale
np.testing.assert_allclose(z.grad.asnumpy(), np.array([[-0.5, 0.5]]) * scale)
"""


@pytest.mark.parametrize("hybrid", [False, True])
def test_training_with_amp(hybrid):
    run(f"HYBRID = {hybrid}\n{TRAINING}")


def var(name, **options):
    return mx.sym.var(name, **options)


def fc(data, name):
    return mx.sym.FullyConnected(data, num_hidden=3, no_bias=True, name=name)


def exp(data, name="e"):
    return mx.sym.exp(data, name=name)


def add(left, right):
    return mx.sym.broadcast_add(left, right, name="ad")


def casts(sym, **options) -> list[str]:
    """Return the nodes of the converted symbol that are casts, by name."""
    converted = amp.convert_symbol(sym, **options)
    nodes = json.loads(converted.tojson(remove_amp_cast=False))["nodes"]
    return [n["name"] for n in nodes if n["op"].startswith("amp_")]


LOW = ["a_amp_cast_float16", "f_weight_amp_cast_float16"]
OTHER = ["g_weight_amp_cast_float16", "g_output_amp_cast_float32"]


@pytest.mark.parametrize(
    ("sym", "expected"),
    [
        (exp(var("a")), []),
        (exp(exp(var("a"), "e0")), []),
        (exp(mx.sym.relu(var("a"), name="r")), ["r_output_amp_cast_float32"]),
        (exp(mx.sym.relu(exp(var("a"), "e0"), name="r")), []),
        (fc(var("a"), "f"), [*LOW, "f_output_amp_cast_float32"]),
        (fc(mx.sym.relu(fc(var("a"), "f"), name="r"), "g"), [*LOW, *OTHER]),
        (fc(exp(fc(var("a"), "f")), "g"),
         [*LOW, "f_output_amp_cast_float32", "e_output_amp_cast_float16", *OTHER]),
        (add(var("a"), var("b")), ["a_amp_multicast", "ad_output_amp_cast_float32"]),
        (add(fc(var("a"), "f"), var("b")),
         [*LOW, "f_output_amp_multicast", "ad_output_amp_cast_float32"]),
        (add(fc(var("a"), "f"), exp(var("b"))), [*LOW, "f_output_amp_cast_float32"]),
        (mx.sym.Activation(fc(var("a"), "f"), act_type="softrelu"),
         [*LOW, "f_output_amp_cast_float32"]),
        (exp(var("a", dtype="float16")), ["a_amp_cast_float32"]),
    ],
)  # fmt: skip
def test_convert_symbol_inserts_casts(sym, expected):
    assert casts(sym) == expected


def test_shared_inputs_are_cast_once():
    data = var("a")
    both = mx.sym.Group([fc(data, "f"), fc(data, "g")])
    assert casts(both).count("a_amp_cast_float16") == 1


def test_excluded_nodes_are_not_cast():
    assert casts(fc(fc(var("a"), "f"), "g"), excluded_sym_names=["g"]) == [
        *LOW,
        "f_output_amp_cast_float32",
    ]


def test_custom_operator_lists():
    assert casts(exp(fc(var("a"), "f")), target_dtype_ops=["exp"], fp32_ops=["FullyConnected"]) == [
        "f_output_amp_cast_float16",
        "e_output_amp_cast_float32",
    ]
    relu = mx.sym.Activation(mx.sym.Flatten(var("a"), name="x"), act_type="relu", name="r")
    rows = [("Activation", "act_type", ["relu"])]
    assert casts(relu, conditional_fp32_ops=rows) == ["x_output_amp_cast_float32"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"target_dtype": "float64"}, "Only target_dtype float16 and bfloat16"),
        ({"target_dtype_ops": ["nope"]}, "not in any of them"),
        ({"target_dtype_ops": ["exp"], "fp32_ops": ["exp"]}, "two or more lists"),
        ({"target_dtype_ops": "exp"}, "should be a list of strs"),
    ],
)
def test_invalid_options_raise(options, message):
    with pytest.raises(AssertionError, match=message):
        amp.convert_symbol(exp(var("a")), **options)


def test_convert_symbol_of_a_non_symbol_raises():
    with pytest.raises(AssertionError, match="should be Symbol"):
        amp.convert_symbol(3)


def network():
    body = mx.sym.BatchNorm(mx.sym.Convolution(var("data"), kernel=(3, 3), num_filter=2, name="c"))
    return exp(mx.sym.FullyConnected(body, num_hidden=3, name="f"))


def parameters(net):
    shapes, _, aux_shapes = net.infer_shape(data=(1, 1, 5, 5))
    args = dict(zip(net.list_arguments(), map(mx.nd.ones, shapes), strict=True))
    aux = dict(zip(net.list_auxiliary_states(), map(mx.nd.ones, aux_shapes), strict=True))
    del args["data"]
    return args, aux


@pytest.mark.parametrize("cast", [False, True])
def test_convert_model_casts_optional_parameters(cast):
    net = network()
    args, aux = parameters(net)
    sym, args, aux = amp.convert_model(net, args, aux, "bfloat16", cast_optional_params=cast)
    low = {name for name, array in args.items() if mx.dtypes.to_name(array.dtype) == "bfloat16"}
    assert low == ({"c_weight", "c_bias", "f_weight", "f_bias"} if cast else set())
    assert {array.dtype for array in aux.values()} == {np.float32}
    casts = [name for name in sym.get_internals().list_outputs() if "weight_amp_cast" in name]
    assert len(casts) == (0 if cast else 2)


def test_convert_model_without_dicts_raises():
    with pytest.raises(AssertionError, match="should be dicts"):
        amp.convert_model(network(), [], {})


def test_convert_hybrid_block_before_forward_raises():
    block = mx.gluon.nn.Dense(2)
    with pytest.raises(RuntimeError, match=r"call block.hybridize\(\)"):
        amp.convert_hybrid_block(block, ctx=mx.cpu())
    with pytest.raises(AssertionError, match="should be a HybridBlock"):
        amp.convert_hybrid_block(3)


def test_convert_bucketing_module():
    def generate(key):
        net = mx.sym.FullyConnected(var("data"), num_hidden=2, name="f")
        return mx.sym.SoftmaxOutput(net, name="softmax"), ("data",), ("softmax_label",)

    made = mx.mod.BucketingModule(generate, default_bucket_key=4)
    converted = amp.amp.convert_bucketing_module(made, "bfloat16")
    names = converted._call_sym_gen(4)[0].get_internals().list_outputs()
    assert "f_weight_amp_cast_bfloat16_output" in names
    with pytest.raises(AssertionError, match="BucketingModule"):
        amp.amp.convert_bucketing_module(3)


# Important entries of the lists.
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_operator_lists_are_disjoint(dtype):
    low, full = amp.list_lp16_ops(dtype), amp.list_fp32_ops(dtype)
    widest, either = amp.list_widest_type_cast(dtype), amp.list_lp16_fp32_ops(dtype)
    assert {"Convolution", "FullyConnected"} <= set(low)
    assert {"exp", "softmax", "LayerNorm", "mean"} <= set(full)
    assert {"broadcast_add", "elemwise_add", "where", "dot"} <= set(widest)
    assert {"BatchNorm", "Pooling", "relu", "amp_cast"} <= set(either)
    together = [*low, *full, *widest, *either]
    assert len(together) == len(set(together))
    assert amp.list_conditional_fp32_ops(dtype)[0] == ("Activation", "act_type", ["softrelu"])
    assert "SoftmaxOutput" in amp.list_loss_output_functions(dtype)


def test_operator_lists_of_unsupported_dtypes_raise():
    for dtype in ("float32", "nothing"):
        with pytest.raises(AssertionError, match="not supported type"):
            amp.list_lp16_ops(dtype)
    assert amp.list_lp16_use_fp32_params("float16") is None
    assert "BatchNorm" in amp.list_lp16_use_fp32_params("bfloat16")
    assert "RNN" in symbol_fp16.FP16_FUNCS
    assert "RNN" not in symbol_bf16.BF16_FUNCS


BLOCK = """
import mxnet as mx, numpy as np
from mxnet.contrib import amp
mx.random.seed(1)
net = mx.gluon.nn.HybridSequential()
net.add(mx.gluon.nn.Conv2D(4, 3), mx.gluon.nn.BatchNorm(), mx.gluon.nn.Dense(3))
net.initialize()
net.hybridize()
x = mx.nd.random.normal(shape=(2, 3, 8, 8))
wanted = net(x).asnumpy()
for cast in (False, True):
    low = amp.convert_hybrid_block(net, "bfloat16", ctx=mx.cpu(), cast_optional_params=cast)
    out = low(x)
    assert out.dtype == np.float32, out.dtype
    difference = abs(out.asnumpy() - wanted).max()
    assert 0 < difference < 0.05, difference
    types = {mx.dtypes.to_name(p.dtype) for p in low.collect_params().values()}
    assert types == ({"float32", "bfloat16"} if cast else {"float32"}), types
    low.export(PATH + str(cast))
files = PATH + "False-symbol.json", ["data"], PATH + "False-0000.params"
back = mx.gluon.SymbolBlock.imports(*files)
assert abs(back(x).asnumpy() - wanted).max() < 0.05
"""


def run(script: str) -> None:
    # Native 16-bit instructions are unreliable on some machines.
    env = {**os.environ, "ONEDNN_MAX_CPU_ISA": "AVX512_CORE_BF16", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-W", "ignore", "-c", script]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


def test_converted_hybrid_block_runs_and_exports(tmp_path):
    run(f"PATH = {str(tmp_path / 'net')!r}\n{BLOCK}")
