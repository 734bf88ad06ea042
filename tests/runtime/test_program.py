"""Programs run step by step, then as one function, with equal results and errors."""

from __future__ import annotations

import json
import weakref

import numpy as np
import pytest

import mxnet as mx
from mxnet import gluon, nd, profiler
from mxnet.gluon import nn
from mxnet.runtime.program import compile_steps

RUNS = 4


def test_repeated_runs_give_equal_results():
    a, b = mx.sym.Variable("a"), mx.sym.Variable("b")
    parts = mx.sym.SliceChannel(a * 2 + b, num_outputs=2, axis=1)
    net = mx.sym.Group([parts[1] - parts[0], mx.sym.SliceChannel(b, num_outputs=1, axis=1), a])
    op = nd.CachedOp(net)
    x, y = nd.array([[1, 2]]), nd.array([[10, 30]])
    for _ in range(RUNS):
        first, second, third = op(x, y)
        assert first.asscalar() == 22
        np.testing.assert_array_equal(second.asnumpy(), y.asnumpy())
        third[:] = x + 1  # an input as output is the same array
        np.testing.assert_array_equal(x.asnumpy(), [[2, 3]])
        x -= 1


def test_unused_outputs_and_optional_inputs():
    x = mx.sym.Variable("x")
    top = mx.sym.topk(x, k=2, ret_typ="both")[1]
    net = mx.sym.FullyConnected(top, num_hidden=2, no_bias=True, name="fc")
    exe = net.simple_bind(mx.cpu(), x=(1, 3))
    exe.arg_dict["fc_weight"][:] = nd.array([[1, 0], [0, 1]])
    for _ in range(RUNS):
        out = exe.forward(x=nd.array([[3, 9, 5]]))[0]
        np.testing.assert_array_equal(out.asnumpy(), [[1, 2]])


def test_errors_name_the_node_in_every_run():
    a, b = mx.sym.Variable("a"), mx.sym.Variable("b")
    op = nd.CachedOp(mx.sym.elemwise_add(mx.sym.exp(a, name="fine"), b, name="broken") * 2)
    op(nd.ones((2, 2)), nd.ones((2, 2)))
    for _ in range(RUNS):
        with pytest.raises(mx.MXNetError, match=r"broken.*inputs: lhs \(2, 2\) float32"):
            op(nd.ones((2, 2)), nd.ones((2, 3)))
        op(nd.ones((2, 2)), nd.ones((2, 2)))


def test_values_are_freed_after_their_last_use():
    x = mx.sym.Variable("x")
    op = nd.CachedOp(mx.sym.sin(mx.sym.cos(mx.sym.exp(x))))
    op(nd.ones((3,)))
    (program,) = op.function.programs.values()
    made, alive = [], []

    def spied(kernel):
        def run(*tensors, **attrs):
            alive.append(sum(r() is not None for r in made[:-1]))
            out = kernel(*tensors, **attrs)
            made.append(weakref.ref(out))
            return out

        return run

    steps = [s._replace(kernel=spied(s.kernel)) for s in program.steps]
    program.function = compile_steps(steps, len(program.variables), program.heads)
    for _ in range(RUNS):
        made.clear()
        op(nd.ones((3,)))
    assert len(alive) == 3 * RUNS
    assert not any(alive)


def test_long_graphs_are_compiled_to_one_function():
    x = mx.sym.Variable("x")
    for _ in range(3000):
        x = x + 1
    op = nd.CachedOp(x)
    for _ in range(RUNS):
        assert op(nd.zeros((2,))).asnumpy().tolist() == [3000, 3000]
    (program,) = op.function.programs.values()
    assert program.function.__code__.co_filename == "<prepared graph>"


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


def test_compiled_report_counts_nodes_rules_bytes_and_operations(block):
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


def test_compiled_report_of_training(block):
    compiled = block.compiled(nd.ones((2, 3, 8, 8)), training=True)
    assert compiled.rules == {"channels_last": 2}
    assert str(compiled).startswith("training: ")


def test_compiled_of_a_non_hybridized_block_raises(block):
    block.hybridize(active=False)
    with pytest.raises(RuntimeError, match="hybridize"):
        block.compiled(nd.ones((1, 3, 8, 8)))


def test_compiled_graph_can_be_saved_loaded_and_run(block, tmp_path):
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


def test_compiled_graph_can_be_summarized_and_profiled(block, tmp_path, capsys):
    x = nd.ones((2, 3, 8, 8))
    mx.viz.print_summary(block.compiled(x).symbol, {"data": x.shape})
    assert "_fused_convolution" in capsys.readouterr().out
    profiler.set_config(filename=str(tmp_path / "trace.json"), profile_all=True)
    profiler.set_state("run")
    block(x)
    profiler.set_state("stop")
    rows = json.loads(profiler.dumps(reset=True, format="json"))["Time"]["operator"]
    assert rows["_fused_convolution"]["Count"] == 2


def test_compiled_report_has_the_mode_of_the_last_forward():
    x = mx.sym.Variable("x")
    exe = mx.sym.Dropout(mx.sym.relu(x), p=0.5).simple_bind(mx.cpu(), x=(2, 2))
    assert str(exe.compiled).startswith("inference: ")
    exe.forward(is_train=True)
    assert str(exe.compiled).startswith("training: ")


def test_number_of_cached_programs_is_bounded(monkeypatch):
    monkeypatch.setattr("mxnet.runtime.function.MAX_PROGRAMS", 3)
    x = mx.sym.Variable("x")
    shifted = mx.nd.CachedOp(x + mx.sym.zeros(shape=(0, 2)))
    for _ in range(2):
        for rows in range(1, 7):
            assert shifted(mx.nd.ones((rows, 2))).shape == (rows, 2)
    assert len(shifted.function.programs) == 3
