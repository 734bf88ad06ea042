"""Symbol JSON files: old versions and invalid files."""

from __future__ import annotations

import copy
import json
import random
import time
import warnings

import pytest

import mxnet as mx
from mxnet.error import FormatError, MXNetError
from mxnet.graph import symbol_json
from tests.golden import HERE


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


def test_oldest_format_is_upgraded_like_in_mxnet():
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


def test_added_auxiliary_states_inherit_hidden_attributes():
    norm = {"op": "BatchNorm", "param": {}, "name": "bn", "inputs": [[0, 0], [1, 0], [2, 0]]}
    inputs = (variable(n, param={}) for n in ("data", "bn_gamma", "bn_beta"))
    found = rows(file(*inputs, {**norm, "attr": {"mirror_stage": "1"}}))
    assert found[3][2] == {"__init__": '["zero", {}]', "__mirror_stage__": "1"}


@pytest.mark.parametrize(("version", "attrs"), [(None, {}), (904, {}), (905, {"axis": "-1"})])
def test_argmax_axis_of_files_before_0_9_5_is_upgraded(version, attrs):
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
def test_invalid_file_raises_with_the_reason(name):
    text, reason = REFUSED[name]
    with pytest.raises(FormatError, match=reason):
        mx.sym.load_json(text)


def test_too_many_nodes_raise_quickly():
    row = '{"op": "null", "name": "x", "inputs": []}, '
    count = symbol_json.MAX_NODES + 1
    text = '{"nodes": [' + (row * count)[:-2] + '], "arg_nodes": [], "heads": [[0, 0]]}'
    start = time.perf_counter()
    with pytest.raises(FormatError, match="nodes"):
        mx.sym.load_json(text)
    assert time.perf_counter() - start < 30


def test_depth_of_nested_subgraphs_is_limited():
    graph = {"nodes": [variable("x")], "arg_nodes": [0], "heads": [[0, 0]]}
    for _ in range(symbol_json.MAX_DEPTH + 2):
        inner = node(op="relu", attrs={}, subgraphs=[graph])
        graph = {"nodes": [variable("x"), inner], "arg_nodes": [0], "heads": [[1, 0]]}
    with pytest.raises(FormatError, match="deep"):
        mx.sym.load_json(json.dumps(graph))


def test_subgraphs_roundtrip():
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


def test_save_and_load_a_file(tmp_path):
    symbol = mx.sym.relu(mx.sym.Variable("é"), name="r")
    symbol.save(str(tmp_path / "s.json"))
    assert mx.sym.load(str(tmp_path / "s.json")).list_arguments() == ["é"]


RECORDED = HERE / "symbols"
BASES = ("attribute_scopes", "auxiliary_states", "composition", "convolutional_network", "variadic")
HOSTILE = (
    None,
    True,
    -1,
    0,
    3,
    10**30,
    1.5,
    "",
    "null",
    "BatchNorm",
    "no_such_operator",
    "(" * 300,
    "x" * 2000,
    "(99999999999999999999,)",
    "[" + "1," * 500 + "]",
    "__import__('os')",
    [],
    [[0, 0, 0]],
    [[99, 0, 0]],
    [[-1, 0]],
    [0, 0, 0],
    {},
    {"num_hidden": "-5"},
    {"__shape__": "(1e400,)"},
    {"__dtype__": "77"},
    {"kernel": "(0,0)", "num_filter": "0"},
    {"num_args": "100000000000"},
    [{"nodes": [], "arg_nodes": [], "heads": []}],
)
KEYS = ("op", "name", "attrs", "attr", "param", "inputs", "subgraphs", "nodes", "heads", "zzz")


def places(tree):
    """Return every (container, key) of a JSON tree."""
    found, stack = [], [tree]
    while stack:
        here = stack.pop()
        keys = here if isinstance(here, dict) else range(len(here))
        for key in keys:
            found.append((here, key))
            if isinstance(here[key], dict | list):
                stack.append(here[key])
    return found


def change_tree(rng, tree):
    """Return the text of a tree with one to three wrong values."""
    tree = copy.deepcopy(tree)
    for _ in range(rng.randint(1, 3)):
        here, key = rng.choice(places(tree))
        kind = rng.randrange(4)
        if kind == 0:
            del here[key]
        elif kind == 1 and isinstance(here, dict):
            here[rng.choice(KEYS)] = copy.deepcopy(rng.choice(HOSTILE))
        elif kind == 2:
            there, other = rng.choice(places(tree))
            here[key] = copy.deepcopy(there[other])
        else:
            here[key] = copy.deepcopy(rng.choice(HOSTILE))
        if not tree:
            break
    return json.dumps(tree)


def change_text(rng, text):
    """Return the text with some characters cut, doubled or replaced."""
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(text) + 1)
        kind = rng.randrange(3)
        if kind == 0:
            text = text[:at] + text[at + rng.randint(1, 30) :]
        elif kind == 1:
            text = text[:at] + text[at : at + 30] + text[at:]
        else:
            text = text[:at] + rng.choice('{}[]",:0-9eE\\\x00\ud800é') + text[at + 1 :]
    return text


def try_all(text):
    """Load and use a symbol; return whether it could be loaded."""
    try:
        symbol = mx.sym.load_json(text)
    except FormatError as error:
        assert str(error)
        assert len(str(error)) < 5000
        return False
    symbol.list_arguments(), symbol.list_outputs(), symbol.attr_dict(), symbol.debug_str()
    assert mx.sym.load_json(symbol.tojson()).tojson() == symbol.tojson()
    try:
        symbol.infer_shape_partial()
        symbol.infer_type_partial()
    except MXNetError as error:
        assert str(error)
    return True


@pytest.mark.parametrize("part", range(10))
def test_damaged_files_load_or_raise(part):
    rng = random.Random(part)
    texts = [
        json.loads((RECORDED / f"{name}.json").read_text(encoding="utf-8"))["tojson"]
        for name in BASES
    ]
    trees = [json.loads(t) for t in texts]
    loaded = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(1000):
            if rng.random() < 0.7:
                text = change_tree(rng, rng.choice(trees))
            else:
                text = change_text(rng, rng.choice(texts))
            loaded += try_all(text)
    assert 0 < loaded < 1000


def test_zero_sizes_in_legacy_files_are_unknown_with_np_shape():
    classic = mx.sym.relu(mx.sym.var("x", shape=(0, 3))).tojson()
    with mx.util.np_shape(True):
        loaded = mx.sym.load_json(classic)
        assert loaded.infer_shape_partial()[1] == [(-1, 3)]
        assert loaded.infer_shape(x=(2, 3))[1] == [(2, 3)]
        scalar = mx.sym.load_json(classic.replace("(0, 3)", "()").replace("(0,3)", "()"))
        assert scalar.infer_shape_partial()[1] == [None]
        exact = mx.sym.relu(mx.sym.var("y", shape=(0, 3))).tojson()
        assert mx.sym.load_json(exact).infer_shape()[1] == [(0, 3)]
    assert mx.sym.load_json(classic).infer_shape_partial()[1] == [(0, 3)]
