"""Conversion of models to mixed precision: which casts a graph gets, and what comes out."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest

import mxnet as mx
from mxnet.contrib import amp
from mxnet.contrib.amp.lists import symbol_bf16, symbol_fp16


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
def test_casts(sym, expected):
    assert casts(sym) == expected


def test_a_cast_is_made_once():
    data = var("a")
    both = mx.sym.Group([fc(data, "f"), fc(data, "g")])
    assert casts(both).count("a_amp_cast_float16") == 1


def test_excluded_nodes_stay():
    assert casts(fc(fc(var("a"), "f"), "g"), excluded_sym_names=["g"]) == [
        *LOW,
        "f_output_amp_cast_float32",
    ]


def test_own_lists():
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
def test_wrong_options(options, message):
    with pytest.raises(AssertionError, match=message):
        amp.convert_symbol(exp(var("a")), **options)


def test_only_symbols():
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
def test_parameters(cast):
    net = network()
    args, aux = parameters(net)
    sym, args, aux = amp.convert_model(net, args, aux, "bfloat16", cast_optional_params=cast)
    low = {name for name, array in args.items() if mx.dtypes.to_name(array.dtype) == "bfloat16"}
    assert low == ({"c_weight", "c_bias", "f_weight", "f_bias"} if cast else set())
    assert {array.dtype for array in aux.values()} == {np.float32}
    casts = [name for name in sym.get_internals().list_outputs() if "weight_amp_cast" in name]
    assert len(casts) == (0 if cast else 2)


def test_model_needs_dicts():
    with pytest.raises(AssertionError, match="should be dicts"):
        amp.convert_model(network(), [], {})


def test_block_must_have_run():
    block = mx.gluon.nn.Dense(2)
    with pytest.raises(RuntimeError, match=r"call block.hybridize\(\)"):
        amp.convert_hybrid_block(block, ctx=mx.cpu())
    with pytest.raises(AssertionError, match="should be a HybridBlock"):
        amp.convert_hybrid_block(3)


def test_bucketing_module():
    def generate(key):
        net = mx.sym.FullyConnected(var("data"), num_hidden=2, name="f")
        return mx.sym.SoftmaxOutput(net, name="softmax"), ("data",), ("softmax_label",)

    made = mx.mod.BucketingModule(generate, default_bucket_key=4)
    converted = amp.amp.convert_bucketing_module(made, "bfloat16")
    names = converted._call_sym_gen(4)[0].get_internals().list_outputs()
    assert "f_weight_amp_cast_bfloat16_output" in names
    with pytest.raises(AssertionError, match="BucketingModule"):
        amp.amp.convert_bucketing_module(3)


# The values of the lists that everybody leans on.
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_lists(dtype):
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


def test_lists_of_other_types():
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
    # The processor's own 16-bit instructions are not to be trusted on every machine.
    env = {**os.environ, "ONEDNN_MAX_CPU_ISA": "AVX512_CORE_BF16", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-W", "ignore", "-c", script]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


def test_hybrid_block(tmp_path):
    run(f"PATH = {str(tmp_path / 'net')!r}\n{BLOCK}")
