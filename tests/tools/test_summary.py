"""`mx summary` counts what layers have, compute, keep and take."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import mxnet as mx
from mxnet.visualization.costs import layer_costs, layer_times
from mxnext_cli import main
from tests.tools.test_info import OLD_JSON

GOLDEN = Path(__file__).parents[1] / "golden"
s = mx.sym


def summary(capsys, *arguments):
    assert main(["summary", *map(str, arguments), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_multiply_adds_of_a_convolution_by_hand():
    conv = s.Convolution(s.var("data"), kernel=(3, 3), num_filter=8, pad=(1, 1), num_group=2)
    (cost,) = layer_costs(conv, {"data": (2, 4, 10, 10)})
    assert cost.multiply_adds == 2 * 8 * 10 * 10 * (4 // 2) * 3 * 3
    assert cost.parameters == 8 * 2 * 3 * 3 + 8
    assert cost.activation_bytes == 2 * 8 * 10 * 10 * 4
    assert cost.output_shapes == ((2, 8, 10, 10),)


def test_multiply_adds_of_a_recurrent_layer_by_hand():
    lstm = s.RNN(s.var("data"), mode="lstm", state_size=8, num_layers=1)
    (cost,) = layer_costs(lstm, {"data": (5, 2, 4)})
    assert cost.multiply_adds == 5 * 2 * 4 * 8 * (4 + 8)


def test_shared_parameters_are_counted_once():
    weight = s.var("w")
    first = s.FullyConnected(s.var("data"), weight, num_hidden=4, no_bias=True)
    second = s.FullyConnected(first, weight, num_hidden=4, no_bias=True)
    assert [c.parameters for c in layer_costs(second, {"data": (1, 4)})] == [16, 0]


def test_half_precision_takes_half_the_memory():
    net = s.FullyConnected(s.Cast(s.var("data"), dtype="float16"), num_hidden=4)
    cast, dense = layer_costs(net, {"data": (1, 4)})
    assert (cast.dtype, dense.activation_bytes) == ("float16", 8)


def test_resnet_has_the_multiply_adds_of_the_paper(tmp_path, capsys):
    net = mx.gluon.model_zoo.vision.resnet18_v1()
    net.initialize()
    net(s.var("data")).save(str(tmp_path / "resnet-symbol.json"))
    found = summary(capsys, tmp_path / "resnet", "--shape", "data=1,3,224,224")
    assert found["totals"]["parameters"] == 11_689_512
    assert 1.8e9 < found["totals"]["multiply_adds"] < 1.83e9
    assert found["totals"]["multiply_adds_unknown"] == []


def test_times_of_layers(capsys):
    found = summary(
        capsys, GOLDEN / "gluon/convolution", "--shape", "2,2,6,6", "--time", "--runs", "2"
    )
    assert all(layer["seconds"] > 0 for layer in found["layers"])
    assert sum(layer["share_of_time"] for layer in found["layers"]) == pytest.approx(1)


def test_layers_run_one_by_one_give_what_the_graph_gives():
    net = s.FullyConnected(s.var("data"), s.var("w"), num_hidden=2, no_bias=True, name="fc")
    feed = {"data": mx.nd.ones((1, 3)).to_torch(), "w": mx.nd.ones((2, 3)).to_torch()}
    assert list(layer_times(net, feed, runs=1)) == ["fc"]


def test_a_model_of_many_kinds_of_layers(capsys):
    found = summary(
        capsys, GOLDEN / "models/every_layer_kind-symbol.json", "--shape", "data=2,3,16,16"
    )
    assert found["inputs"]["data"] == [2, 3, 16, 16]
    assert "softmax" not in found["inputs"]
    layers = {layer["name"]: layer for layer in found["layers"]}
    assert layers["conv1"]["parameters"] == 8 * 3 * 9 + 8


def test_a_symbol_of_the_year_2016(tmp_path, capsys):
    (tmp_path / "old-symbol.json").write_text(json.dumps(OLD_JSON))
    found = summary(capsys, tmp_path / "old", "--shape", "2,5")
    assert found["totals"]["parameters"] == 18


def test_printed_table(capsys):
    assert main(["summary", str(GOLDEN / "gluon/dense"), "--shape", "1,5"]) == 0
    said = capsys.readouterr().out
    assert "multiply-adds:" in said
    assert "FullyConnected" in said


@pytest.mark.parametrize(
    "arguments, code, said",
    [
        (["gluon/dense"], 2, "--shape data="),
        (["gluon/dense", "--shape", "zz=1,2"], 2, "no input 'zz'"),
        (["gluon/dense", "--shape", "data=1,a"], 2, "write it as data=1,3,224,224"),
        (["gluon/dense", "--shape", "data=1,0"], 2, "1 or more"),
        (["gluon/dense", "--shape", "1,5", "--epoch", "5"], 1, "no epoch 5; found: 0"),
        (["gluon/dense", "--shape", "1,5", "--params", "zz"], 1, "zz: there is no such file"),
        (["gluon/nothing", "--shape", "1,4"], 1, "models there: convolution-symbol.json"),
        (["nowhere/nothing", "--shape", "1,4"], 1, "no folder"),
        (["gluon/dense", "--shape", "1,7"], 1, "Shape inconsistent"),
    ],
)
def test_mistakes(arguments, code, said, capsys, monkeypatch):
    monkeypatch.chdir(GOLDEN)
    assert main(["summary", *arguments]) == code
    assert said in capsys.readouterr().err
