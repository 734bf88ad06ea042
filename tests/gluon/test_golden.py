"""Names, reprs, files and results of networks and layers match MXNet 1.9.1."""

from __future__ import annotations

import functools
import json
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose

import mxnet as mx
from mxnet.formats.checksums import MAGIC
from tests.golden import HERE as GOLDEN
from tests.golden.record.gluon_programs import (
    FACTS,
    NETWORKS,
    fill,
    flat,
    gradients,
    without_addresses,
)
from tests.golden.record.gluon_programs import answer as facts_of
from tests.golden.record.layer_cases import FAMILIES, answer, description

RECORDED = GOLDEN / "gluon"
CASES = [case for family in ("nn", "rnn", "contrib", "loss") for case in FAMILIES[family]]


@functools.cache
def recorded(family):
    """Return {case: {part: array}} and {case: description} of a family."""
    arrays = {}
    with np.load(GOLDEN / f"layers_{family}.npz") as stored:
        for name in stored.files:
            key, _, part = name.partition(":")
            arrays.setdefault(key, {})[part] = stored[name]
    text = (GOLDEN / f"layers_{family}.json").read_text(encoding="utf-8")
    return arrays, json.loads(text)


@pytest.mark.parametrize("hybridize", [False, True], ids=["eager", "hybrid"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.key)
def test_outputs_gradients_and_statistics_match_mxnet(case, hybridize):
    expected = recorded(case.key.partition("/")[0])[0][case.key]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "All children of this Sequential layer")
        actual = answer(mx, case, hybridize)
    assert actual.keys() == expected.keys()
    for part, value in expected.items():
        assert actual[part].shape == value.shape, part
        assert_allclose(actual[part], value, rtol=2e-4, atol=2e-5, err_msg=part)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.key)
def test_repr_parameters_and_graph_match_mxnet(case):
    expected = recorded(case.key.partition("/")[0])[1][case.key]
    actual = json.loads(json.dumps(description(mx, case)))
    for part, value in expected.items():
        assert actual[part] == value, part


def made(name, hybridize):
    with mx.name.NameManager():
        net, inputs = NETWORKS[name](mx)
    net.initialize()
    net(*inputs)
    fill(mx, net.collect_params())
    if hybridize:
        net.hybridize()
    return net, inputs


def arrays(name):
    with np.load(RECORDED / f"{name}.npz") as file:
        return dict(file)


def check_outputs(outputs, expected):
    outputs = flat(outputs)
    for i, output in enumerate(outputs):
        np.testing.assert_allclose(output.asnumpy(), expected[f"output{i}"], rtol=1e-4, atol=1e-5)
    assert f"output{len(outputs)}" not in expected


@pytest.mark.parametrize("name", [name for name in FACTS if name != "training"])
def test_recorded_properties_match_mxnet(name):
    expected = json.loads((RECORDED / "facts.json").read_text(encoding="utf-8"))[name]
    assert json.loads(json.dumps(facts_of(mx, name))) == expected


def test_training_steps_match_mxnet():
    expected = json.loads((RECORDED / "facts.json").read_text(encoding="utf-8"))["training"]
    actual = facts_of(mx, "training")
    for name, rows in expected.items():
        for mine, theirs in zip(actual[name], rows, strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-5, err_msg=name)


@pytest.mark.parametrize("hybridize", [False, True])
@pytest.mark.parametrize("name", NETWORKS)
def test_network_outputs_and_gradients_match_mxnet(name, hybridize):
    expected = arrays(name)
    net, inputs = made(name, hybridize)
    check_outputs(net(*inputs), expected)
    # In prediction mode, MXNet's pooling stores no positions: its gradients are wrong.
    for training in (True,) if name == "convolution" else (False, True):
        for key, mine in gradients(net, inputs, training).items():
            np.testing.assert_allclose(mine, expected[key], rtol=2e-3, atol=2e-4, err_msg=key)


@pytest.mark.parametrize("name", NETWORKS)
def test_exported_files_equal_those_of_mxnet(name, tmp_path):
    net, inputs = made(name, hybridize=True)
    net(*inputs)
    net.export(str(tmp_path / name))
    for suffix in ("-symbol.json", "-0000.params"):
        mine, theirs = tmp_path / (name + suffix), RECORDED / (name + suffix)
        if suffix.endswith("json"):
            assert without_addresses(mine.read_text()) == without_addresses(theirs.read_text())
        else:
            written, checksums = mine.read_bytes().split(MAGIC, 1)
            assert written == theirs.read_bytes()
            assert checksums  # a record that MXNet does not read


@pytest.mark.parametrize("name", NETWORKS)
def test_imports_files_exported_by_mxnet(name):
    expected = arrays(name)
    inputs = [mx.nd.array(expected[f"input{i}"]) for i in range(3) if f"input{i}" in expected]
    names = ["data"] if len(inputs) == 1 else [f"data{i}" for i in range(len(inputs))]
    base = str(RECORDED / name)
    net = mx.gluon.SymbolBlock.imports(f"{base}-symbol.json", names, f"{base}-0000.params")
    check_outputs(net(*inputs), expected)


@pytest.mark.parametrize("suffix", [".params", "-0000.params"])
@pytest.mark.parametrize("name", NETWORKS)
def test_loads_parameters_saved_by_mxnet(name, suffix):
    with mx.name.NameManager():
        net, inputs = NETWORKS[name](mx)
    net.load_parameters(str(RECORDED / f"{name}{suffix}"))
    check_outputs(net(*inputs), arrays(name))
