"""Nodes, their order, and traversal of graphs."""

from __future__ import annotations

import subprocess
import sys

import mxnet as mx
from mxnet.graph import Entry, interpret
from mxnet.graph.graph import compose

s = mx.sym


def chain(length):
    x = s.Variable("x")
    for _ in range(length):
        x = x + 1
    return x


def test_deep_graphs_do_not_hit_the_recursion_limit():
    x = chain(10_000)
    assert len(x._graph.nodes) == 10_001
    assert x.list_arguments() == ["x"]
    assert len(mx.sym.load_json(x.tojson())._graph.nodes) == 10_001
    assert x(x=s.Variable("y")).list_arguments() == ["y"]


def test_interpret_evaluates_a_graph_with_custom_functions():
    a, b = s.Variable("a"), s.Variable("b")
    graph = ((a + b) * a)._graph
    numbers = {"a": 2, "b": 5}
    table = {"elemwise_add": lambda x, y: x + y, "elemwise_mul": lambda x, y: x * y}
    found = interpret(graph, lambda n: numbers[n.name], lambda n, i: [table[n.op.name](*i)])
    assert found == [14]
    text = interpret(graph, lambda n: n.name, lambda n, i: [f"{n.op.name}({', '.join(i)})"])
    assert text == ["elemwise_mul(elemwise_add(a, b), a)"]


def test_composition_copies_nodes():
    x = s.FullyConnected(s.Variable("x"), num_hidden=3, name="fc")
    heads = compose(x._graph, {"x": Entry(s.Variable("y")._heads[0].node)})
    assert heads[0].node is not x._heads[0].node
    assert x.list_arguments() == ["x", "fc_weight", "fc_bias"]


def test_nodes_record_the_source_line_of_their_creation():
    node = s.relu(s.Variable("x"))._heads[0].node
    assert node.source[0] == __file__


def test_graph_package_imports_neither_ndarray_nor_symbol():
    code = (
        "import sys, types\n"
        "package = types.ModuleType('mxnet')\n"
        f"package.__path__ = [{str(next(iter(mx.__path__)))!r}]\n"
        "sys.modules['mxnet'] = package\n"
        "import mxnet.graph, mxnet.graph.symbol_json\n"
        "bad = [m for m in sys.modules if m.startswith(('mxnet.ndarray', 'mxnet.symbol'))]\n"
        "assert not bad, bad\n"
        "import mxnet.symbol\n"
        "bad = [m for m in sys.modules if m.startswith(('mxnet.ndarray', 'mxnet.executor'))]\n"
        "assert not bad, bad\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=300)
