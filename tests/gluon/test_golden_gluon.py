"""Names, printed forms, files and training steps are those that MXNet 1.9.1 gave."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import mxnet as mx
from mxnet.formats.checksums import MAGIC
from tests.golden.gluon_programs import (
    FACTS,
    NETWORKS,
    answer,
    fill,
    flat,
    gradients,
    without_addresses,
)

RECORDED = Path(__file__).parent.parent / "golden" / "gluon"


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


def check_outputs(outputs, wanted):
    outputs = flat(outputs)
    for i, output in enumerate(outputs):
        np.testing.assert_allclose(output.asnumpy(), wanted[f"output{i}"], rtol=1e-4, atol=1e-5)
    assert f"output{len(outputs)}" not in wanted


@pytest.mark.parametrize("name", [name for name in FACTS if name != "training"])
def test_facts_are_mxnets(name):
    wanted = json.loads((RECORDED / "facts.json").read_text(encoding="utf-8"))[name]
    assert json.loads(json.dumps(answer(mx, name))) == wanted


def test_training_steps_are_mxnets():
    wanted = json.loads((RECORDED / "facts.json").read_text(encoding="utf-8"))["training"]
    found = answer(mx, "training")
    for name, rows in wanted.items():
        for mine, theirs in zip(found[name], rows, strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-5, err_msg=name)


@pytest.mark.parametrize("hybridize", [False, True])
@pytest.mark.parametrize("name", NETWORKS)
def test_outputs_and_gradients_are_mxnets(name, hybridize):
    wanted = arrays(name)
    net, inputs = made(name, hybridize)
    check_outputs(net(*inputs), wanted)
    # Without training, MXNet's pooling keeps no positions: its gradients are wrong there.
    for training in (True,) if name == "convolution" else (False, True):
        for key, mine in gradients(net, inputs, training).items():
            np.testing.assert_allclose(mine, wanted[key], rtol=2e-3, atol=2e-4, err_msg=key)


@pytest.mark.parametrize("name", NETWORKS)
def test_exported_files_are_mxnets(name, tmp_path):
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
def test_files_of_mxnet_are_imported(name):
    wanted = arrays(name)
    inputs = [mx.nd.array(wanted[f"input{i}"]) for i in range(3) if f"input{i}" in wanted]
    names = ["data"] if len(inputs) == 1 else [f"data{i}" for i in range(len(inputs))]
    base = str(RECORDED / name)
    net = mx.gluon.SymbolBlock.imports(f"{base}-symbol.json", names, f"{base}-0000.params")
    check_outputs(net(*inputs), wanted)


@pytest.mark.parametrize("suffix", [".params", "-0000.params"])
@pytest.mark.parametrize("name", NETWORKS)
def test_parameters_of_mxnet_are_loaded(name, suffix):
    with mx.name.NameManager():
        net, inputs = NETWORKS[name](mx)
    net.load_parameters(str(RECORDED / f"{name}{suffix}"))
    check_outputs(net(*inputs), arrays(name))
