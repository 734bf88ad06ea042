"""Sparse variables in executors and modules match MXNet 1.9.1."""

from __future__ import annotations

import json

import numpy as np
import pytest

import mxnet as mx
from mxnet import nd
from mxnet.graph.passes.storage import infer_gradient_storage, infer_storage
from tests.batches import check_each
from tests.golden.record import sparse_executors as programs

sym = mx.sym
RECORDED = json.loads(programs.FILE.read_text())
GRAPHS = sorted(RECORDED["graphs"])
# As in MXNet: fallbacks to dense storage, and stores that do not pull row_sparse weights.
pytestmark = [
    pytest.mark.filterwarnings("ignore:Storage"),
    pytest.mark.filterwarnings("ignore:non-default weights detected"),
]


def agree(found, wanted):
    if isinstance(wanted, dict):
        assert found.keys() == wanted.keys()
        for key in wanted:
            agree(found[key], wanted[key])
    elif isinstance(wanted, list) and wanted and isinstance(wanted[0], str):
        assert found[0] == wanted[0]
        agree(found[1:], wanted[1:])
    elif isinstance(wanted, list) and any(isinstance(w, list) and w for w in wanted):
        assert len(found) == len(wanted)
        for one, other in zip(found, wanted, strict=True):
            agree(one, other)
    elif isinstance(wanted, str):
        assert found == wanted
    else:
        np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("name", GRAPHS)
def test_recorded_sparse_graphs_match_mxnet(name):
    symbol, shapes = programs.graphs(mx)[name]
    agree(programs.run_graph(mx, symbol, shapes), RECORDED["graphs"][name])


@pytest.mark.parametrize("name", sorted(RECORDED["trainings"]))
def test_recorded_sparse_trainings_match_mxnet(name):
    options = programs.trainings()[name]
    agree(programs.train(mx, *options), RECORDED["trainings"][name])


def test_every_recorded_program_is_run():
    assert set(GRAPHS) == set(programs.graphs(mx))
    assert set(RECORDED["trainings"]) == set(programs.trainings())


# -- binding --------------------------------------------------------------------------------------

X = nd.array([[1, 0, 2, 0], [0, 0, 0, 3], [0, 0, 0, 0]])
W = nd.array([[1, 2], [3, 4], [5, 6], [7, 8]])
PRODUCT = [[11, 14], [21, 24], [0, 0]]


def product():
    return sym.dot(sym.var("x", stype="csr"), sym.var("w", stype="row_sparse"))


def test_storage_types_follow_bound_arrays():
    plain = sym.dot(sym.var("x"), sym.var("w"))
    for symbol in (plain, product()):
        for x in (X, X.tostype("csr")):
            for w in (W, W.tostype("row_sparse")):
                exe = symbol.bind(mx.cpu(), {"x": x, "w": w})
                assert exe.forward()[0].asnumpy().tolist() == PRODUCT
                assert exe.arg_dict["x"] is x and exe.arg_dict["w"] is w


@pytest.mark.parametrize("stype", ["default", "row_sparse"])
def test_gradients_are_written_to_bound_arrays_of_any_storage(stype):
    wanted = [[1, 1], [0, 0], [2, 2], [3, 3]]
    for x, w in ((X.tostype("csr"), W), (X.tostype("csr"), W.tostype("row_sparse")), (X, W)):
        grad = nd.sparse.zeros(stype, (4, 2))
        exe = product().bind(mx.cpu(), {"x": x, "w": w}, {"w": grad})
        for _ in range(2):  # the second time by a compiled program
            exe.forward(is_train=True)
            exe.backward(nd.ones((3, 2)))
        assert grad.asnumpy().tolist() == wanted
        if stype != "default":
            assert grad.indices.asnumpy().tolist() == [0, 2, 3]


def test_grad_req_of_sparse_gradients():
    grad = nd.sparse.zeros("row_sparse", (4, 2))
    exe = product().bind(mx.cpu(), {"x": X.tostype("csr"), "w": W}, {"w": grad}, "add")
    for _ in range(3):
        exe.forward(is_train=True)
        exe.backward(nd.ones((3, 2)))
    assert grad.asnumpy().tolist() == [[3, 3], [0, 0], [6, 6], [9, 9]]
    exe = sym.BlockGrad(product()).simple_bind(mx.cpu(), x=(3, 4), w=(4, 2))
    exe.grad_dict["w"][:] = 1
    exe.forward(is_train=True)
    exe.backward()
    assert exe.grad_dict["w"].asnumpy().tolist() == [[0, 0]] * 4


def test_repeated_backward_with_sparse_gradients():
    exe = product().simple_bind(mx.cpu(), x=(3, 4), w=(4, 2))
    exe.forward(is_train=True, x=X.tostype("csr"), w=W.tostype("row_sparse"))
    for scale in (1, 2):
        exe.backward(nd.ones((3, 2)) * scale)
        assert exe.grad_dict["w"].asnumpy()[3].tolist() == [3 * scale] * 2
    assert exe.grad_dict["x"].asnumpy().tolist() == [[0] * 4] * 3  # none for a csr factor


@pytest.mark.parametrize("sparse", [True, False])
def test_dense_and_sparse_values_are_converted(sparse):
    exe = product().simple_bind(mx.cpu(), x=(3, 4), w=(4, 2))
    x, w = (X.tostype("csr"), W.tostype("row_sparse")) if sparse else (X, W)
    exe.copy_params_from({"w": w})
    assert exe.forward(x=x)[0].asnumpy().tolist() == PRODUCT
    assert [a.stype for a in exe.arg_arrays] == ["csr", "row_sparse"]
    with pytest.raises(ValueError, match="Shape not match"):
        exe.forward(x=x[0:2])


def test_stype_dict():
    symbol = sym.dot(sym.var("x"), sym.var("w"))
    exe = symbol.simple_bind(mx.cpu(), stype_dict={"x": "csr"}, x=(3, 4), w=(4, 2))
    assert exe.arg_dict["x"].stype == "csr" and exe.grad_dict["w"].stype == "row_sparse"
    exe = product().simple_bind(mx.cpu(), stype_dict={"w": "default"}, x=(3, 4), w=(4, 2))
    assert exe.arg_dict["w"].stype == "default"
    with pytest.raises(mx.MXNetError, match="'foo' of 'w'"):
        product().simple_bind(mx.cpu(), stype_dict={"w": "foo"}, x=(3, 4), w=(4, 2))


def test_sparse_output_arrays_are_reused_by_every_forward():
    exe = sym.square(sym.var("w", stype="row_sparse")).simple_bind(mx.cpu(), w=(4, 2))
    held = exe.outputs[0]
    exe.forward(w=W.tostype("row_sparse"))
    assert exe.outputs[0] is held and held.stype == "row_sparse"
    assert held.asnumpy().tolist() == (W * W).asnumpy().tolist()


def test_reshape_shares_arrays_of_unchanged_shape():
    exe = product().simple_bind(mx.cpu(), x=(3, 4), w=(4, 2))
    small = exe.reshape(x=(2, 4), w=(4, 2))
    assert small.arg_dict["w"] is exe.arg_dict["w"] and small.arg_dict["x"].stype == "csr"
    exe.arg_dict["w"][:] = W
    assert small.forward(x=X.tostype("csr")[0:2])[0].asnumpy().tolist() == PRODUCT[:2]


def test_shared_exec_with_sparse_arrays():
    first = product().simple_bind(mx.cpu(), x=(3, 4), w=(4, 2))
    second = product().simple_bind(mx.cpu(), shared_exec=first, x=(2, 4), w=(4, 2))
    assert second.arg_dict["w"] is first.arg_dict["w"]
    assert second.grad_dict["w"] is first.grad_dict["w"]
    dense = sym.dot(sym.var("x"), sym.var("w"))
    third = dense.simple_bind(mx.cpu(), shared_exec=first, x=(3, 4), w=(4, 2))
    assert third.arg_dict["w"].stype == "default"


def test_monitor_and_errors_with_sparse_values():
    exe = sym.sum(product(), name="total").simple_bind(mx.cpu(), x=(3, 4), w=(4, 2))
    rows = []
    exe.set_monitor_callback(lambda name, array: rows.append((name.decode(), array.stype)), True)
    exe.forward(is_train=True, x=X)
    exe.backward(nd.ones(1))
    assert ("x", "csr") in rows and ("total_output", "default") in rows
    assert rows[-1] == ("total_backward_output", "default")
    assert "MB allocated" in exe.debug_str()
    bad = sym.clip(sym.var("w", stype="row_sparse"), a_min=1, a_max=2, name="clip")
    with pytest.raises(mx.MXNetError, match="a_min <= 0"):
        bad.simple_bind(mx.cpu(), w=(4, 2)).forward()


def test_dense_graphs_are_not_sparse():
    symbol = sym.FullyConnected(sym.var("x"), num_hidden=2, name="fc")
    exe = symbol.simple_bind(mx.cpu(), x=(3, 4))
    assert not exe._bound.is_sparse and exe.forward()[0].stype == "default"


# -- inference against what runs ------------------------------------------------------------------

UNARY = ["abs", "sqrt", "sign", "clip", "floor", "zeros_like", "make_loss", "sigmoid", "sum"]


@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("stype", ["csr", "row_sparse"])
def test_inferred_storage_types_equal_those_of_results(name, stype):
    options = {"clip": {"a_min": -1, "a_max": 2}, "sum": {"axis": 1}}.get(name, {})
    symbol = getattr(sym, name)(sym.var("w", stype=stype), **options)
    exe = symbol.simple_bind(mx.cpu(), grad_req="null", w=(4, 2))
    before = exe.outputs[0].stype
    exe = symbol.bind(mx.cpu(), {"w": W.tostype(stype)})
    assert exe.forward()[0].stype == before


def test_infer_gradient_storage_of_sums():
    x, w = sym.var("x", stype="csr"), sym.var("w", stype="row_sparse")
    for symbol, wanted in (
        (sym.dot(x, w) + sym.dot(x, w), "row_sparse"),
        (sym.broadcast_add(sym.dot(x, w), sym.sum(w)), "default"),
        (sym.dot(x, w, transpose_a=True), "default"),
    ):
        graph = symbol._graph
        found = infer_gradient_storage(graph, infer_storage(graph))
        assert found[graph.arguments[1]] == wanted


# -- modules --------------------------------------------------------------------------------------


def linear_module(batch=4, **options):
    module = mx.mod.Module(programs.linear(mx), **options)
    module.bind([("data", (batch, programs.FEATURES))], [("softmax_label", (batch,))])
    return module


def test_sparse_parameters_are_initialized_saved_and_loaded(tmp_path):
    module = linear_module()
    module.init_params(mx.init.One())
    module.save_checkpoint(str(tmp_path / "linear"), 1)
    _, args, _ = mx.model.load_checkpoint(str(tmp_path / "linear"), 1)
    assert args["weight"].stype == "row_sparse" and args["weight"].asnumpy().min() == 1
    loaded = mx.mod.Module.load(str(tmp_path / "linear"), 1)
    shapes = [("data", (4, programs.FEATURES))], [("softmax_label", (4,))]
    loaded.bind(*shapes, for_training=False)
    assert loaded.get_params()[0]["weight"].stype == "row_sparse"
    data = nd.array(programs.MATRIX).tostype("csr")
    loaded.forward(mx.io.DataBatch([data[0:4]], [nd.ones(4)]))
    np.testing.assert_allclose(loaded.get_outputs()[0].asnumpy(), 0.5, rtol=1e-6)
    # MXNet cannot change the batch size here.
    loaded.forward(mx.io.DataBatch([data[0:2]], [nd.ones(2)]))
    assert loaded.get_outputs()[0].shape == (2, 2)


def test_csr_batch_is_split_over_two_devices():
    contexts = [mx.cpu(0), mx.cpu(1)]
    data = nd.array(programs.MATRIX).tostype("csr")
    batch = mx.io.DataBatch([data[0:4]], [nd.array(programs.LABELS[:4])])
    found = []
    for options in ({}, {"context": contexts}):
        module = linear_module(**options)
        module.init_params(arg_params={"weight": nd.ones((8, 2)), "bias": nd.array([0, 1])})
        module.init_optimizer(optimizer_params={"learning_rate": 0.5})
        module.forward_backward(batch)
        module.update()
        found.append(module.get_params()[0]["weight"])
        assert module._exec_group.execs[-1].arg_dict["data"].stype == "csr"
    np.testing.assert_allclose(found[0].asnumpy(), found[1].asnumpy(), rtol=1e-5)


def test_fit_from_a_libsvm_file(tmp_path):
    file = tmp_path / "data.libsvm"
    lines = []
    for row, label in zip(programs.MATRIX, programs.LABELS, strict=True):
        stored = " ".join(f"{i}:{v:.4f}" for i, v in enumerate(row) if v)
        lines.append(f"{int(label)} {stored}")
    file.write_text("\n".join(lines) + "\n")
    batches = mx.io.LibSVMIter(data_libsvm=str(file), data_shape=(programs.FEATURES,), batch_size=4)
    module = mx.mod.Module(programs.linear(mx))
    module.fit(
        batches,
        num_epoch=30,
        optimizer="adam",
        optimizer_params={"learning_rate": 0.1},
        initializer=mx.init.Zero(),
        sparse_row_id_fn=lambda batch: {"weight": batch.data[0].indices},
    )
    assert module.score(batches, "acc")[0][1] >= 0.75
    assert module.get_params()[0]["weight"].stype == "row_sparse"


class Sparse(mx.gluon.HybridBlock):
    """A block with a weight of ones and any function of it and the input."""

    def __init__(self, function):
        super().__init__()
        self.function = function
        self.weight = self.params.get("weight", shape=(3, 2), init="ones")

    def hybrid_forward(self, F, x, weight):
        return self.function(F, x, weight)


# The storage type of the result, and the gradient of the weight, in MXNet with csr input.
HYBRID = {
    "scaled": (lambda F, x, w: x * 2, "csr", None),
    "shifted": (lambda F, x, w: x + 1, "default", None),
    "absolute": (lambda F, x, w: F.abs(x), "csr", None),
    "itself": (lambda F, x, w: F.identity(x), "csr", None),
    "sum": (lambda F, x, w: F.sparse.sum(x, axis=1), "default", None),
    "product": (lambda F, x, w: F.sparse.dot(x, w), "default", [1, 0, 5]),
    "product of scaled": (lambda F, x, w: F.dot(x * 2, w) + 1, "default", [2, 0, 10]),
    "dense layer": (
        lambda F, x, w: F.FullyConnected(x, F.transpose(w), num_hidden=2, no_bias=True),
        "default",
        [1, 0, 5],
    ),
}


@pytest.mark.filterwarnings("ignore:Parameter")
def test_hybridized_blocks_with_sparse_inputs():
    def check(case):
        function, stype, gradient = case
        dense = mx.nd.array([[1, 0, 2], [0, 0, 3]])
        for kind, first in (("csr", None), ("row_sparse", None), ("csr", dense)):
            block = Sparse(function)
            block.initialize()
            expected = block(dense).asnumpy()
            block.hybridize()
            if first is not None:
                block(first)
            x = dense.tostype(kind)
            out = block(x)
            assert out.stype == (kind if stype == "csr" else "default")
            np.testing.assert_array_equal(out.asnumpy(), expected)
            with mx.autograd.record():
                out = block(x)
            np.testing.assert_array_equal(out.asnumpy(), expected)
            if gradient is not None:
                out.backward()
                assert block.weight.grad().asnumpy()[:, 0].tolist() == gradient

    check_each(HYBRID, check)
