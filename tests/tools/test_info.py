"""`mx info` says what files are and what is wrong; `mx summary` counts what layers have."""

from __future__ import annotations

import json
import pickle
import shutil
import struct
from pathlib import Path

import numpy as np
import pytest

import mxnet as mx
from mxnet.visualization.costs import layer_costs, layer_times
from mxnext_cli import main
from tests.golden import HERE as GOLDEN

OLD_JSON = {  # as MXNet 0.8 wrote it: "param" beside "attr", no version
    "nodes": [
        {"op": "null", "param": {}, "name": "data", "inputs": [], "backward_source_id": -1},
        {"op": "null", "param": {}, "name": "fc_weight", "inputs": [], "backward_source_id": -1},
        {"op": "null", "param": {}, "name": "fc_bias", "inputs": [], "backward_source_id": -1},
        {
            "op": "FullyConnected",
            "param": {"no_bias": "False", "num_hidden": "3"},
            "name": "fc",
            "inputs": [[0, 0], [1, 0], [2, 0]],
            "backward_source_id": -1,
            "attr": {"lr_mult": "0.5"},
        },
    ],
    "arg_nodes": [0, 1, 2],
    "heads": [[3, 0]],
}


def facts(capsys, *files, code=0):
    assert main(["info", "--json", *map(str, files)]) == code
    return json.loads(capsys.readouterr().out)


def test_a_gluon_export(capsys):
    symbol, params = facts(
        capsys, GOLDEN / "gluon/convolution-symbol.json", GOLDEN / "gluon/convolution-0000.params"
    )
    assert symbol["written_by"] == "MXNet 1.9.1"
    assert symbol["inputs"] == ["data"]
    assert symbol["layers"] == 6
    assert symbol["operators"]["Convolution"] == 1
    assert symbol["parameters"] == params["parameters"] == 153
    assert params["kind"] == "checkpoint"
    assert params["dtypes"] == {"float32": 8}


def test_a_module_checkpoint(tmp_path, capsys):
    out = mx.sym.SoftmaxOutput(mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2), name="sm")
    module = mx.mod.Module(out, label_names=["sm_label"])
    module.bind([("data", (4, 3))], [("sm_label", (4,))])
    module.init_params()
    module.save_checkpoint(str(tmp_path / "net"), 7)
    (symbol,) = facts(capsys, tmp_path / "net-symbol.json")
    assert (symbol["inputs"], symbol["labels"]) == (["data"], ["sm_label"])
    assert symbol["parameters_file"].endswith("net-0007.params")
    assert symbol["parameters"] == 8


def test_prefix_with_the_name_of_a_folder_is_found(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("model").mkdir()
    mx.sym.FullyConnected(mx.sym.var("data"), num_hidden=2).save("model-symbol.json")
    assert main(["info", "model"]) == 0
    assert "model-symbol.json" in capsys.readouterr().out


def test_a_symbol_of_the_year_2016(tmp_path, capsys):
    path = tmp_path / "old-symbol.json"
    path.write_text(json.dumps(OLD_JSON))
    (result,) = facts(capsys, path)
    assert result["written_by"] == "MXNet 0.8 or older"
    assert result["inputs"] == ["data"]


def test_parameters_of_old_versions_name_their_version(tmp_path, capsys):
    head = struct.pack("<QQQ", 0x112, 0, 1)
    oldest = struct.pack("<IIiii", 1, 2, 1, 0, 0)
    (tmp_path / "v0.params").write_bytes(head + oldest + b"\0" * 8 + struct.pack("<Q", 0))
    (result,) = facts(capsys, tmp_path / "v0.params")
    assert result["written_by"] == "MXNet 0.8 or older"
    assert result["kind"] == "list of arrays"


def test_optimizer_states(capsys):
    (result,) = facts(capsys, GOLDEN / "states/adam-optimizer.states")
    assert (result["kind"], result["optimizer"], result["states"]) == (
        "optimizer states",
        "Adam",
        3,
    )


def test_records_index_and_list(tmp_path, capsys):
    for suffix in (".rec", ".idx"):
        shutil.copy(GOLDEN / f"records/images{suffix}", tmp_path)
    (tmp_path / "images.lst").write_text("0\t1.0\ta.png\n1\t2.0\tb.png\n")
    rec, idx, lst = facts(capsys, *(tmp_path / f"images{s}" for s in (".rec", ".idx", ".lst")))
    assert (rec["records"], rec["contents"]) == (7, {".png": 7})
    assert idx["keys"] == 7
    assert (lst["images"], lst["classes"]) == (2, 2)


def test_damage_in_records_is_a_problem(tmp_path, capsys):
    raw = bytearray((GOLDEN / "records/images.rec").read_bytes())
    raw[1600] ^= 255
    raw[0] ^= 1
    (tmp_path / "x.rec").write_bytes(raw)
    (result,) = facts(capsys, tmp_path / "x.rec", code=1)
    assert "damaged" in result["problems"][0]


def test_safetensors(tmp_path, capsys):
    numpy_files = pytest.importorskip("safetensors.numpy")
    path = tmp_path / "x.safetensors"
    numpy_files.save_file({"w": np.zeros((2, 3), np.float32)}, path)
    (result,) = facts(capsys, path)
    assert (result["arrays"], result["parameters"]) == (1, 6)
    path.write_bytes(path.read_bytes()[:-4])
    (result,) = facts(capsys, path, code=1)
    assert result["problems"] == ["4 bytes are missing at its end"]


def test_onnx(tmp_path, capsys):
    onnx = pytest.importorskip("onnx")
    value = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("Relu", ["x"], ["y"])],
        "g",
        [value("x", onnx.TensorProto.FLOAT, ["N", 3])],
        [value("y", onnx.TensorProto.FLOAT, ["N", 3])],
    )
    opsets = [onnx.helper.make_opsetid("", 17)]
    onnx.save(onnx.helper.make_model(graph, opset_imports=opsets), tmp_path / "x.onnx")
    (result,) = facts(capsys, tmp_path / "x.onnx")
    assert result["inputs"] == ["x(N, 3)"]
    assert result["operators"] == {"Relu": 1}


def test_not_a_number_in_parameters_is_a_problem(tmp_path, capsys):
    mx.nd.save(str(tmp_path / "x.params"), {"w": mx.nd.array([1, float("nan")])})
    (result,) = facts(capsys, tmp_path / "x.params", code=1)
    assert result["problems"] == ["w holds NaN or infinite values"]


def test_parameters_that_do_not_fit_are_a_problem(tmp_path, capsys):
    shutil.copy(GOLDEN / "gluon/dense-symbol.json", tmp_path)
    params = mx.nd.load(str(GOLDEN / "gluon/dense-0000.params"))
    name = next(n for n in params if n.endswith("weight"))
    params[name] = mx.nd.zeros((9, 9))
    mx.nd.save(str(tmp_path / "dense-0000.params"), params)
    (result,) = facts(capsys, tmp_path / "dense-symbol.json", code=1)
    assert "do not fit the graph" in result["problems"][0]


def test_unknown_operators_are_all_named(tmp_path, capsys):
    text = (GOLDEN / "gluon/convolution-symbol.json").read_text()
    text = text.replace('"Pooling"', '"PoolingOfMine"').replace('"Flatten"', '"FlattenOfMine"')
    (tmp_path / "x-symbol.json").write_text(text)
    (result,) = facts(capsys, tmp_path / "x-symbol.json", code=1)
    assert [p.split()[1] for p in result["problems"]] == ["FlattenOfMine", "PoolingOfMine"]


class Evil:
    def __init__(self, victim):
        self.victim = victim

    def __reduce__(self):
        return (Path.touch, (self.victim,))


def test_hostile_files_do_nothing_and_fail(tmp_path, tmp_path_factory, capsys):
    victim = tmp_path_factory.mktemp("victim") / "touched"
    (tmp_path / "x.states").write_bytes(pickle.dumps({0: Evil(victim)}))
    (tmp_path / "x.safetensors").write_bytes(struct.pack("<Q", 2**63) + b"{}")
    (tmp_path / "y.safetensors").write_bytes(struct.pack("<Q", 2) + b"[]")
    (tmp_path / "x.onnx").write_bytes(b"\xff" * 100)
    (tmp_path / "x.idx").write_bytes(b"\xff" * 100)
    (tmp_path / "x.rec").write_bytes(b"\xff" * 100)
    (tmp_path / "x.lst").write_bytes(b"\xff" * 100)
    files = sorted(tmp_path.iterdir())
    result = facts(capsys, *files, tmp_path, tmp_path / "absent.params", code=1)
    assert [f["file"] for f in result if "error" not in f] == []
    assert not victim.exists()


def test_printed_facts(capsys):
    assert main(["info", str(GOLDEN / "gluon/dense-symbol.json")]) == 0
    said = capsys.readouterr().out
    assert "written by       MXNet 1.9.1" in said
    assert main(["info", "--all", str(GOLDEN / "gluon/dense-symbol.json")]) == 0
    assert "num_hidden" in capsys.readouterr().out


def test_without_files_it_describes_the_installation(capsys):
    main(["info"])
    assert "MXNext" in capsys.readouterr().out


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
    result = summary(capsys, tmp_path / "resnet", "--shape", "data=1,3,224,224")
    assert result["totals"]["parameters"] == 11_689_512
    assert 1.8e9 < result["totals"]["multiply_adds"] < 1.83e9
    assert result["totals"]["multiply_adds_unknown"] == []


def test_times_of_layers(capsys):
    result = summary(
        capsys, GOLDEN / "gluon/convolution", "--shape", "2,2,6,6", "--time", "--runs", "2"
    )
    assert all(layer["seconds"] > 0 for layer in result["layers"])
    assert sum(layer["share_of_time"] for layer in result["layers"]) == pytest.approx(1)


def test_layers_run_one_by_one_give_what_the_graph_gives():
    net = s.FullyConnected(s.var("data"), s.var("w"), num_hidden=2, no_bias=True, name="fc")
    feed = {"data": mx.nd.ones((1, 3)).to_torch(), "w": mx.nd.ones((2, 3)).to_torch()}
    assert list(layer_times(net, feed, runs=1)) == ["fc"]


def test_a_model_of_many_kinds_of_layers(capsys):
    result = summary(
        capsys, GOLDEN / "models/every_layer_kind-symbol.json", "--shape", "data=2,3,16,16"
    )
    assert result["inputs"]["data"] == [2, 3, 16, 16]
    assert "softmax" not in result["inputs"]
    layers = {layer["name"]: layer for layer in result["layers"]}
    assert layers["conv1"]["parameters"] == 8 * 3 * 9 + 8


def test_layers_of_a_symbol_of_the_year_2016(tmp_path, capsys):
    (tmp_path / "old-symbol.json").write_text(json.dumps(OLD_JSON))
    result = summary(capsys, tmp_path / "old", "--shape", "2,5")
    assert result["totals"]["parameters"] == 18


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
