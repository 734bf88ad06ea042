"""A compiled graph is a graph: it is reported, printed, saved, loaded, viewed and run."""

from __future__ import annotations

import json

import numpy as np
import pytest

import mxnet as mx
from mxnet import gluon, nd, profiler
from mxnet.gluon import nn


@pytest.fixture
def block():
    mx.random.seed(5)
    net = nn.HybridSequential(prefix="net_")
    with net.name_scope():
        net.add(
            nn.Conv2D(16, 3, padding=1, use_bias=False),
            nn.BatchNorm(),
            nn.Activation("relu"),
            nn.Dropout(0.5),
            nn.Conv2D(8, 1, activation="relu"),
            nn.Dense(4),
        )
    net.initialize(mx.init.Normal(0.3))
    net.hybridize()
    return net


def test_the_report_counts_nodes_rules_bytes_and_work(block):
    compiled = block.compiled(nd.ones((2, 3, 8, 8)))
    assert compiled.rules == {
        "remove_identity": 1,
        "pack_convolution": 2,
        "fold_batch_norm": 1,
        "fuse_activation": 2,
        "drop_finite_check": 1,
    }
    assert [n.op.name for n in compiled.after.nodes if n.op] == [
        "_fused_convolution",
        "_fused_convolution",
        "FullyConnected",
    ]
    first, *rest = str(compiled).splitlines()
    assert first == "inference: 7 nodes -> 3, results 41.0 kB -> 12.3 kB, 75.8 k multiply-adds"
    assert "float32[2x16x8x8] channels_last" in rest[2]
    work = sum(compiled.after.multiply_adds(n) for n in compiled.after.nodes)
    assert work == 2 * 64 * (16 * 27 + 8 * 16) + 2 * 4 * 8 * 64
    assert compiled.after.result_bytes == 4 * (2 * 16 * 64 + 2 * 8 * 64 + 2 * 4)


def test_training_is_reported_too(block):
    compiled = block.compiled(nd.ones((2, 3, 8, 8)), training=True)
    assert compiled.rules == {"channels_last": 2}
    assert str(compiled).startswith("training: ")


def test_a_block_that_is_not_hybridized_has_no_compiled_graph(block):
    block.hybridize(active=False)
    with pytest.raises(RuntimeError, match="hybridize"):
        block.compiled(nd.ones((1, 3, 8, 8)))


def test_saved_loaded_and_run(block, tmp_path):
    x = nd.random.normal(shape=(2, 3, 8, 8))
    wanted = block(x).asnumpy()
    block.compiled(x).save(tmp_path / "net-symbol.json")
    loaded = mx.sym.load(str(tmp_path / "net-symbol.json"))
    params = {n: p.data() for n, p in block.collect_params().items()}
    assert loaded.list_auxiliary_states() == [
        "net_batchnorm0_running_mean",
        "net_batchnorm0_running_var",
    ]
    args = {n: x if n == "data" else params[n] for n in loaded.list_arguments()}
    aux = {n: params[n] for n in loaded.list_auxiliary_states()}
    exe = loaded.bind(mx.cpu(), args, aux_states=aux, grad_req="null")
    for _ in range(3):
        np.testing.assert_allclose(exe.forward()[0].asnumpy(), wanted, rtol=1e-5, atol=1e-6)
    args["data"][:] = np.nan
    assert np.isnan(exe.forward()[0].asnumpy()).all()
    again = gluon.SymbolBlock(loaded, mx.sym.var("data"), params=block.collect_params())
    found, wanted = (run(nd.ones_like(x)).asnumpy() for run in (again, block))
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


def test_viewed_and_profiled(block, tmp_path, capsys):
    x = nd.ones((2, 3, 8, 8))
    mx.viz.print_summary(block.compiled(x).symbol, {"data": x.shape})
    assert "_fused_convolution" in capsys.readouterr().out
    profiler.set_config(filename=str(tmp_path / "trace.json"), profile_all=True)
    profiler.set_state("run")
    block(x)
    profiler.set_state("stop")
    rows = json.loads(profiler.dumps(reset=True, format="json"))["Time"]["operator"]
    assert rows["_fused_convolution"]["Count"] == 2


def test_executors_report_the_mode_of_the_last_forward():
    x = mx.sym.Variable("x")
    exe = mx.sym.Dropout(mx.sym.relu(x), p=0.5).simple_bind(mx.cpu(), x=(2, 2))
    assert str(exe.compiled).startswith("inference: ")
    exe.forward(is_train=True)
    assert str(exe.compiled).startswith("training: ")
