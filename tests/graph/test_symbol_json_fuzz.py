"""Damaged symbol files: each is read, or refused by one clear `FormatError`."""

from __future__ import annotations

import copy
import json
import random
import warnings
from pathlib import Path

import pytest

import mxnet as mx
from mxnet.error import FormatError, MXNetError

RECORDED = Path(__file__).parent.parent / "golden" / "symbols"
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
def test_a_thousand_damaged_files(part):
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
