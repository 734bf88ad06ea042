"""Pattern matching and replacement of graph rewrite rules."""

from __future__ import annotations

import pytest

import mxnet as mx
from mxnet.graph.rewrite import Pattern, Rule, make_node, named_inputs, rewrite
from mxnet.graph.typed_graph import INFERENCE, Inputs, TensorType, TypedGraph
from mxnet.ops.tensor.arithmetic import broadcast_add, elemwise_add
from mxnet.ops.tensor.elementwise import relu, sigmoid, tanh

X = mx.sym.Variable("x")


def typed(symbol, **shapes):
    return TypedGraph(symbol._graph.heads, INFERENCE, Inputs(shapes))


def operators(graph):
    return [n.op.name for n in graph.nodes if n.op is not None]


def replace_by(op):
    return lambda match: make_node(op, match.root.name, {"data": match.root.inputs[0]}, {})


TO_TANH = Rule("to_tanh", Pattern(relu), replace_by(tanh))
TO_SIGMOID = Rule("to_sigmoid", Pattern(tanh), replace_by(sigmoid))


def test_rewrite_without_a_match_returns_the_same_graph():
    graph = typed(mx.sym.exp(X))
    assert rewrite(graph, [TO_TANH]) is graph


def test_replacements_are_matched_again():
    graph = rewrite(typed(mx.sym.relu(X, name="r") * 2), [TO_TANH, TO_SIGMOID])
    assert operators(graph) == ["sigmoid", "_mul_scalar"]
    assert graph.history == {"to_tanh": 1, "to_sigmoid": 1}
    assert graph.nodes[1].name == "r"


def test_rewrite_does_not_modify_the_original_graph():
    symbol = mx.sym.relu(X) * 2
    rewrite(typed(symbol), [TO_TANH])
    assert operators(symbol._graph) == ["relu", "_mul_scalar"]


def test_alone_matches_only_inner_nodes_with_one_consumer():
    drop = Rule(
        "drop",
        Pattern(tanh, data=Pattern(relu, "inner", alone=True)),
        lambda match: make_node(tanh, match.root.name, named_inputs(match["inner"]), {}),
    )
    inner = mx.sym.relu(X)
    assert operators(rewrite(typed(mx.sym.tanh(inner)), [drop])) == ["tanh"]
    for other in (mx.sym.Group([mx.sym.tanh(inner), inner]), mx.sym.tanh(inner) + inner):
        assert "relu" in operators(rewrite(typed(other), [drop]))


def test_patterns_match_on_facts_and_attributes():
    by_fact = Pattern(lambda op: op.facts.commutative)
    symbol = mx.sym.elemwise_add(X, X) - mx.sym.relu(X)
    found = []
    rewrite(typed(symbol), [Rule("see", by_fact, lambda m: found.append(m.root.op))])
    assert found == [elemwise_add]
    assert broadcast_add.facts.commutative
    only_two = Pattern(lambda op: "scalar" in op.attributes, when=lambda n: n.typed["scalar"] == 2)
    found.clear()
    rewrite(typed(X * 2 + 3), [Rule("see", only_two, lambda m: found.append(m.root.op.name))])
    assert found == ["_mul_scalar"]


def test_rules_can_replace_a_node_by_an_existing_entry():
    skip = Rule("skip", Pattern(relu), lambda match: match.root.inputs[0])
    graph = rewrite(typed(mx.sym.relu(mx.sym.relu(X)) * 2), [skip])
    assert operators(graph) == ["_mul_scalar"] and graph.history == {"skip": 2}
    assert graph.uses[graph.nodes[0], 0] == 1


def test_rewrite_keeps_the_execution_order():
    a, b = mx.sym.Variable("a"), mx.sym.Variable("b")

    def swap(match):
        lhs, rhs = match.root.inputs
        return make_node(broadcast_add, match.root.name, {"lhs": rhs, "rhs": lhs}, {})

    symbol = mx.sym.elemwise_add(mx.sym.sin(a), mx.sym.cos(b))
    graph = rewrite(typed(symbol), [Rule("swap", Pattern(elemwise_add), swap)])
    assert operators(graph) == ["sin", "cos", "broadcast_add"]
    assert [n.name for n in graph.variables] == ["a", "b"]


def test_rewrite_infers_types_of_new_nodes():
    graph = typed(mx.sym.dot(mx.sym.relu(X), X, transpose_b=True), x=(2, 3))
    after = rewrite(graph, [TO_TANH])
    last = after.nodes[-1]
    assert after.types[last] == (TensorType((2, 2), None),)
    assert after.multiply_adds(last) == 2 * 2 * 3
    assert after.origin(after.nodes[1]) is graph.nodes[1]


@pytest.mark.parametrize("shape", [None, (2, -1)])
def test_unknown_input_types_do_not_raise(shape):
    graph = typed(mx.sym.relu(X), x=shape)
    assert graph.result_bytes == 0
    assert str(graph.types[graph.nodes[-1]][0]) == ("?[?]" if shape is None else "?[2x?]")


def test_conflicting_types_do_not_raise_before_execution():
    a, b = mx.sym.Variable("a"), mx.sym.Variable("b")
    graph = typed(mx.sym.elemwise_add(a, b), a=(2,), b=(3,))
    assert graph.types[graph.nodes[-1]][0].shape is None
