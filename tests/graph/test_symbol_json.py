"""Symbol files: old versions, and files that must be refused."""

from __future__ import annotations

import json
import time

import pytest

import mxnet as mx
from mxnet.error import FormatError
from mxnet.graph import symbol_json


def variable(name, **more):
    return {"op": "null", "name": name, "inputs": [], **more}


def file(*nodes, heads=None, version=None):
    data = {
        "nodes": list(nodes),
        "arg_nodes": [i for i, n in enumerate(nodes) if n["op"] == "null"],
        "heads": heads or [[len(nodes) - 1, 0]],
    }
    if version is not None:
        data["attrs"] = {"mxnet_version": ["int", version]}
    return json.dumps(data)


def rows(text):
    nodes = json.loads(mx.sym.load_json(text).tojson())["nodes"]
    return [(n["op"], n["name"], n.get("attrs", {}), [i[:2] for i in n["inputs"]]) for n in nodes]


OLDEST = file(
    variable("data", param={}, backward_source_id=-1),
    variable("fc_weight", param={}, attr={"lr_mult": "2", "mood": "z"}),
    variable("fc_bias", param={}),
    {
        "op": "FullyConnected",
        "param": {"no_bias": "False", "num_hidden": "3"},
        "name": "fc",
        "inputs": [[0, 0], [1, 0], [2, 0]],
        "backward_source_id": -1,
        "attr": {"ctx_group": "a", "weight_lr_mult": "5", "bias_wd_mult": "7"},
    },
    variable("bn_gamma", param={}),
    variable("bn_beta", param={}),
    {
        "op": "BatchNorm",
        "param": {"eps": "0.001"},
        "name": "bn",
        "inputs": [[3, 0], [4, 0], [5, 0]],
        "backward_source_id": -1,
    },
)


def test_the_oldest_form_is_upgraded_as_mxnet_does():
    assert rows(OLDEST) == [
        ("null", "data", {}, []),
        ("null", "fc_weight", {"__lr_mult__": "5", "mood": "z"}, []),
        ("null", "fc_bias", {"__wd_mult__": "7"}, []),
        (
            "FullyConnected",
            "fc",
            {"__ctx_group__": "a", "no_bias": "False", "num_hidden": "3"},
            [[0, 0], [1, 0], [2, 0]],
        ),
        ("null", "bn_gamma", {}, []),
        ("null", "bn_beta", {}, []),
        ("null", "bn_moving_mean", {"__init__": '["zero", {}]', "eps": "0.001"}, []),
        ("null", "bn_moving_var", {"__init__": '["one", {}]', "eps": "0.001"}, []),
        ("BatchNorm", "bn", {"eps": "0.001"}, [[3, 0], [4, 0], [5, 0], [6, 0], [7, 0]]),
    ]
    assert mx.sym.load_json(OLDEST).list_auxiliary_states() == ["bn_moving_mean", "bn_moving_var"]


def test_added_auxiliary_states_take_the_hidden_attributes_of_their_node():
    norm = {"op": "BatchNorm", "param": {}, "name": "bn", "inputs": [[0, 0], [1, 0], [2, 0]]}
    inputs = (variable(n, param={}) for n in ("data", "bn_gamma", "bn_beta"))
    found = rows(file(*inputs, {**norm, "attr": {"mirror_stage": "1"}}))
    assert found[3][2] == {"__init__": '["zero", {}]', "__mirror_stage__": "1"}


@pytest.mark.parametrize(("version", "attrs"), [(None, {}), (904, {}), (905, {"axis": "-1"})])
def test_axis_of_argmax_before_0_9_5_meant_all(version, attrs):
    node = {"op": "argmax", "name": "am", "attr": {"axis": "-1"}, "inputs": [[0, 0]]}
    assert rows(file(variable("x"), node, version=version))[1][2] == attrs


def test_user_attributes_of_old_operators_are_kept():
    node = {
        "op": "Activation",
        "param": {"act_type": "relu"},
        "attr": {"mood": "z", "mirror_stage": "1"},
        "name": "a",
        "inputs": [[0, 0]],
    }
    wanted = {"act_type": "relu", "__mood__": "z", "__mirror_stage__": "1"}
    assert rows(file(variable("x"), node))[1][2] == wanted


def test_aliases_load_as_their_operator():
    node = {"op": "_Plus", "name": "p", "inputs": [[0, 0], [0, 0]]}
    assert rows(file(variable("x"), node))[1][0] == "elemwise_add"


def test_files_of_a_newer_version_warn():
    with pytest.warns(UserWarning, match="20000"):
        mx.sym.load_json(file(variable("x"), version=20000))


def node(op="Activation", attrs=None, inputs=((0, 0),), **more):
    attrs = {"act_type": "relu"} if attrs is None else attrs
    return {"op": op, "name": "n", "attrs": attrs, "inputs": [list(i) for i in inputs], **more}


REFUSED = {
    "not JSON": ("{", "not JSON"),
    "a number": ("3", "dict"),
    "nothing": ("{}", "nodes"),
    "deep": ("[" * 100_000, "nested|not JSON"),
    "cycle": (file(variable("x"), node(inputs=[(1, 0)])), "refers to node 1"),
    "forward": (file(node(inputs=[(1, 0)]), variable("x"), heads=[[0, 0]]), "refers to node 1"),
    "absent": (file(variable("x"), node(inputs=[(7, 0)])), "refers to node 7"),
    "negative": (file(variable("x"), node(inputs=[(-1, 0)])), "refers to node -1"),
    "output": (file(variable("x"), node(inputs=[(0, 2)])), "output 2"),
    "head": (file(variable("x"), heads=[[3, 0]]), "refers to node 3"),
    "operator": (
        file(variable("x"), node(op="Activatoin")),
        "Op n of type Activatoin.*'Activation'",
    ),
    "attribute": (file(variable("x"), node(attrs={"act_typ": "relu"})), "Cannot find argument"),
    "value": (file(variable("x"), node(attrs={"act_type": "up"})), "valid values"),
    "number": (file(variable("x"), node(attrs={"act_type": 3})), "must be text"),
    "inputs": (file(variable("x"), node(inputs=[])), "needs 1 inputs"),
    "field": (file(variable("x", color="red")), "color"),
    "name": (file({"op": "null", "inputs": []}), "name"),
    "shape": (file(variable("x", attrs={"__shape__": "(1e999,)"})), "__shape__"),
    "size": (file(variable("x", attrs={"__shape__": f"({10**30},)"})), "__shape__"),
    "type": (file(variable("x", attrs={"__dtype__": "99"})), "__dtype__"),
    "version": (file(variable("x"), version="new"), "mxnet_version"),
    "infinity": ('{"nodes": Infinity}', "Infinity"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_bad_file_is_refused_with_the_reason(name):
    text, reason = REFUSED[name]
    with pytest.raises(FormatError, match=reason):
        mx.sym.load_json(text)


def test_too_many_nodes_are_refused_quickly():
    row = '{"op": "null", "name": "x", "inputs": []}, '
    count = symbol_json.MAX_NODES + 1
    text = '{"nodes": [' + (row * count)[:-2] + '], "arg_nodes": [], "heads": [[0, 0]]}'
    start = time.perf_counter()
    with pytest.raises(FormatError, match="nodes"):
        mx.sym.load_json(text)
    assert time.perf_counter() - start < 30


def test_nested_subgraphs_are_limited():
    graph = {"nodes": [variable("x")], "arg_nodes": [0], "heads": [[0, 0]]}
    for _ in range(symbol_json.MAX_DEPTH + 2):
        inner = node(op="relu", attrs={}, subgraphs=[graph])
        graph = {"nodes": [variable("x"), inner], "arg_nodes": [0], "heads": [[1, 0]]}
    with pytest.raises(FormatError, match="deep"):
        mx.sym.load_json(json.dumps(graph))


def test_subgraphs_come_back():
    graph = {"nodes": [variable("y")], "arg_nodes": [0], "heads": [[0, 0]]}
    text = file(variable("x"), node(op="relu", attrs={}, subgraphs=[graph]))
    again = json.loads(mx.sym.load_json(text).tojson())["nodes"][1]["subgraphs"]
    assert again == [
        {
            "nodes": [variable("y")],
            "arg_nodes": [0],
            "node_row_ptr": [0, 1],
            "heads": [[0, 0, 0]],
        }
    ]


def test_a_file_on_disk(tmp_path):
    symbol = mx.sym.relu(mx.sym.Variable("é"), name="r")
    symbol.save(str(tmp_path / "s.json"))
    assert mx.sym.load(str(tmp_path / "s.json")).list_arguments() == ["é"]
