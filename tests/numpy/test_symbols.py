"""`mx.sym.np`: graphs with NumPy's operators, their names, JSON, shapes and blocks."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as onp
import pytest

import mxnet as mx
from mxnet import gluon, np
from tests.batches import check_each
from tests.golden import HERE

x = mx.sym.var("x").as_np_ndarray()
y = mx.sym.var("y").as_np_ndarray()


def _operators(symbol: mx.sym.Symbol) -> list[tuple[str, str]]:
    nodes = json.loads(symbol.tojson())["nodes"]
    return [(node["op"], node["name"]) for node in nodes if node["op"] != "null"]


@pytest.mark.parametrize(
    ("make", "wanted"),
    [
        (lambda: x + y, [("_npi_add", "add0")]),
        (lambda: 1 - x, [("_npi_rsubtract_scalar", "rsubtract_scalar0")]),
        (lambda: x > 1, [("_npi_greater_scalar", "greater_scalar0")]),
        (lambda: -x, [("_npi_multiply_scalar", "multiply_scalar0")]),
        (lambda: x.sum(axis=1), [("_np_sum", "sum0")]),
        (lambda: mx.sym.np.maximum(x, 0), [("_maximum_scalar", "maximum_scalar0")]),
        (lambda: mx.sym.np.zeros((2,)), [("_npi_zeros", "zeros0")]),
        (lambda: x[0], [("slice", "slice0"), ("_npx_reshape", "reshape0")]),
        (lambda: mx.sym.npx.relu(x), [("_npx_relu", "relu0")]),
        (
            lambda: mx.sym.npx.fully_connected(x, num_hidden=3),
            [("FullyConnected", "fully_connected0")],
        ),
        (lambda: mx.sym.np.where(x, 1, y), [("_npi_where_lscalar", "where_lscalar0")]),
    ],
)
def test_json_operator_names_match_mxnet(make, wanted) -> None:
    with mx.name.NameManager():
        made = make()
    assert type(made) is mx.sym.np._Symbol
    assert _operators(made) == wanted


def test_infer_shape_of_scalars_and_unknown_sizes() -> None:
    total = x.sum()
    assert total.infer_shape(x=(2, 3))[1] == [()]
    assert (x + 1).infer_shape(x=())[1] == [()]
    assert (x + 1).infer_shape(x=(0, 3))[1] == [(0, 3)]
    assert (x + 1).infer_shape_partial(x=(-1, 3))[1] == [(-1, 3)]


def test_json_has_the_np_shape_flag() -> None:
    text = (x + 1).tojson()
    assert json.loads(text)["attrs"]["is_np_shape"] == ["int", 1]
    assert mx.sym.load_json(text).list_arguments() == ["x"]


def test_executors_return_np_arrays() -> None:
    executor = (x * 2).bind(mx.cpu(), {"x": np.ones(2)})
    (out,) = executor.forward()
    assert type(out) is np.ndarray
    assert out.tolist() == [2, 2]


class Mixed(gluon.HybridBlock):
    """Uses operators, functions, methods, splits, creation and indexing of both namespaces."""

    def hybrid_forward(self, F, data):
        made = F.np.concatenate([F.np.exp(data) - 1, data * 2], axis=1)
        left, right = F.np.split(made, 2, axis=1)
        chosen = F.np.where(data > 0.5, left, F.np.zeros_like(right))
        return (
            F.np.dot(left, right.T).sum(),
            chosen,
            F.npx.softmax(made)[:, 0],
            made.reshape(-1) + F.np.ones((1,)),
            F.npx.reshape(made, (-2, 2, -1)),
        )


def test_hybridized_blocks_equal_eager_blocks() -> None:
    data = np.array(onp.random.RandomState(0).rand(2, 3).astype("float32"))
    eager = Mixed()(data)
    net = Mixed()
    net.hybridize()
    for a, b in zip(eager, net(data), strict=True):
        assert type(b) is np.ndarray and a.shape == b.shape
        onp.testing.assert_allclose(a.asnumpy(), b.asnumpy(), rtol=1e-5)


def test_export_and_import_roundtrip(tmp_path: Path) -> None:
    net = gluon.nn.HybridSequential()
    net.add(gluon.nn.Conv2D(2, 3, activation="relu"), gluon.nn.BatchNorm(), gluon.nn.Dense(3))
    net.initialize()
    net.hybridize()
    data = np.ones((1, 1, 5, 5))
    wanted = net(data)
    symbol, params = net.export(str(tmp_path / "net")) or (
        str(tmp_path / "net-symbol.json"),
        str(tmp_path / "net-0000.params"),
    )
    loaded = gluon.SymbolBlock.imports(symbol, ["data"], params)
    out = loaded(data)
    assert type(out) is np.ndarray
    onp.testing.assert_allclose(out.asnumpy(), wanted.asnumpy(), rtol=1e-5)


def test_loops_in_hybridized_blocks() -> None:
    class Loop(gluon.HybridBlock):
        def hybrid_forward(self, F, data):
            step = lambda a, s: (a + s, a + s)  # noqa: E731
            return F.contrib.foreach(step, data, F.np.zeros_like(data[0]))[0]

    net = Loop()
    net.hybridize()
    out = net(np.ones((3, 2)))
    assert type(out) is np.ndarray
    assert out.tolist() == [[1, 1], [2, 2], [3, 3]]


def test_model_exported_by_mxnet_matches_its_outputs() -> None:
    folder = HERE / "numpy_model"
    net = gluon.SymbolBlock.imports(
        str(folder / "net-symbol.json"), ["data"], str(folder / "net-0000.params")
    )
    data = onp.sin(onp.arange(50)).reshape(2, 1, 5, 5).astype("float32")
    total, products = net(np.array(data))
    wanted = json.loads((folder / "answer.json").read_text())
    assert total.shape == ()
    assert float(total) == pytest.approx(wanted["total"], rel=1e-5)
    onp.testing.assert_allclose(products.asnumpy(), wanted["products"], rtol=1e-4, atol=1e-5)


def test_symbol_functions_accept_name() -> None:
    x = mx.sym.var("x").as_np_ndarray()
    assert mx.sym.np.sum(x, axis=0, name="total").name == "total"
    with mx.name.Prefix("net_"):
        assert mx.sym.np.dot(x, x, name="product").name == "net_product"


def test_flip_of_symbols_along_all_axes() -> None:
    x = mx.sym.var("x").as_np_ndarray()
    out = mx.sym.np.flip(x).bind(mx.cpu(), {"x": np.array([[1.0, 2.0], [3.0, 4.0]])}).forward()[0]
    assert out.asnumpy().tolist() == [[4, 3], [2, 1]]


def test_split_of_symbols_with_one_section_returns_a_list() -> None:
    def check(name: str) -> None:
        split = getattr(mx.sym.np, name)
        for sections in (1, (), []):
            single = split(x, sections)
            # MXNet's dsplit is the exception.
            assert isinstance(single, list) == (name != "dsplit")
        assert len(split(x, [1])) == 2
        if name == "dsplit":
            return

        class First(gluon.HybridBlock):
            def hybrid_forward(self, F, data):
                return getattr(F.np, name)(data, 1)[0]

        net = First()
        net.hybridize()
        assert net(np.ones((4, 2, 6))).shape == (4, 2, 6)

    names = ("split", "array_split", "hsplit", "vsplit", "dsplit")
    check_each({name: name for name in names}, check)
