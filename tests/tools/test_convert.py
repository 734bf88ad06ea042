"""`mx convert` writes a model that computes the same, or nothing."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

import mxnet as mx
from mxnext_cli import convert, main
from tests.golden import HERE as GOLDEN
from tests.tools.test_info import OLD_JSON
from tests.without_mxnet import forked_conversions  # noqa: F401

pytestmark = pytest.mark.usefixtures("forked_conversions")
DENSE = str(GOLDEN / "gluon/dense")
CONVOLUTION = str(GOLDEN / "gluon/convolution")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def converted(capsys, *arguments, code=0):
    assert main(["convert", *arguments, "--json"]) == code
    return json.loads(capsys.readouterr().out)


def test_onnx_computes_the_same(capsys):
    onnxruntime = pytest.importorskip("onnxruntime")
    facts = converted(capsys, CONVOLUTION, "--to", "onnx", "--shape", "2,2,6,6", "-o", "net.onnx")
    assert facts["written"] == ["net.onnx"]
    (output,) = facts["outputs"]
    assert output["absolute"] < 1e-4
    x = np.random.default_rng(0).random((2, 2, 6, 6), np.float32)
    (there,) = onnxruntime.InferenceSession("net.onnx").run(None, {"data": x})
    net = mx.gluon.SymbolBlock.imports(
        f"{CONVOLUTION}-symbol.json", ["data"], f"{CONVOLUTION}-0000.params"
    )
    np.testing.assert_allclose(there, net(mx.nd.array(x)).asnumpy(), rtol=1e-4, atol=1e-5)


def test_safetensors_are_exact_and_read_by_other_commands(capsys):
    pytest.importorskip("safetensors")
    facts = converted(capsys, DENSE, "--to", "safetensors", "--shape", "2,5", "-o", "net")
    assert facts["outputs"][0]["absolute"] == 0
    assert main(["summary", DENSE, "--params", "net.safetensors", "--shape", "1,5"]) == 0
    capsys.readouterr()
    Path("net.safetensors").write_bytes(b"\xff" * 20)
    assert main(["summary", DENSE, "--params", "net.safetensors", "--shape", "1,5"]) == 1
    assert "not a safetensors file" in capsys.readouterr().err


def test_a_symbol_of_the_year_2016_for_mxnet_of_today(capsys):
    Path("old-symbol.json").write_text(json.dumps(OLD_JSON))
    params = {"arg:fc_weight": mx.nd.ones((3, 4)), "arg:fc_bias": mx.nd.zeros(3)}
    mx.nd.save("old-0000.params", params)
    facts = converted(capsys, "old", "--to", "mxnet", "--shape", "2,4", "-o", "new")
    assert facts["written"] == ["new-symbol.json", "new-0000.params"]
    assert '"mxnet_version": ["int", 10901]' in Path("new-symbol.json").read_text()
    _, arguments, _ = mx.model.load_checkpoint("new", 0)
    assert arguments["fc_weight"].shape == (3, 4)


def test_given_inputs_say_the_shape(capsys):
    np.save("x.npy", np.ones((3, 5), np.float32))
    facts = converted(capsys, DENSE, "--to", "mxnet", "--input", "x.npy", "-o", "new")
    assert facts["inputs"] == 7


def test_inaccurate_conversion_writes_nothing(capsys, folder):
    pytest.importorskip("onnxruntime")
    arguments = ["convert", CONVOLUTION, "--to", "onnx", "--shape", "2,2,6,6", "-o", "new"]
    assert main([*arguments, "--tolerance", "0"]) == 1
    said = capsys.readouterr().err
    assert "nothing was written" in said
    assert len(said.splitlines()) <= 17
    assert list(folder.iterdir()) == []


def test_models_that_read_back_wrong_are_not_written(capsys, monkeypatch, folder):
    class Wrong(convert.Predictor):
        count = 0

        def __init__(self, model):
            super().__init__(model)
            Wrong.count += 1
            self.number = Wrong.count

        def __call__(self, inputs):
            return [out + self.number for out in super().__call__(inputs)]

    monkeypatch.setattr(convert, "Predictor", Wrong)
    assert main(["convert", DENSE, "--to", "mxnet", "--shape", "1,5", "-o", "new"]) == 1
    assert "nothing was written" in capsys.readouterr().err
    assert list(folder.iterdir()) == []


def test_a_torch_program_computes_the_same(capsys):
    facts = converted(capsys, CONVOLUTION, "--to", "torch", "--shape", "2,2,6,6", "-o", "net.pt2")
    assert facts["written"] == ["net.pt2"]
    x = np.random.default_rng(0).random((2, 2, 6, 6), np.float32)
    there = torch.export.load("net.pt2").module()(torch.from_numpy(x))
    there = there[0] if isinstance(there, tuple) else there
    net = mx.gluon.SymbolBlock.imports(
        f"{CONVOLUTION}-symbol.json", ["data"], f"{CONVOLUTION}-0000.params"
    )
    right = net(mx.nd.array(x)).asnumpy()
    np.testing.assert_allclose(there.detach().numpy(), right, rtol=1e-4, atol=1e-5)


def test_int8_is_calibrated_on_given_inputs_and_runs(capsys):
    x = np.random.default_rng(0).uniform(-1, 1, (4, 2, 6, 6)).astype(np.float32)
    np.save("x.npy", x)
    facts = converted(capsys, CONVOLUTION, "--to", "int8", "--input", "x.npy", "-o", "small")
    assert facts["written"] == ["small-symbol.json", "small-0000.params"]
    assert facts["inputs"] == 1
    assert 0 < facts["outputs"][0]["relative"] < facts["tolerance"] == 0.1
    saved = mx.nd.load("small-0000.params")
    assert any(array.dtype == np.int8 for array in saved.values())
    for model in (CONVOLUTION, "small"):
        out = f"{Path(model).name}.npy"
        assert main(["predict", model, "--input", "x.npy", "--output", out]) == 0
    there, right = np.load("small.npy"), np.load("convolution.npy")
    np.testing.assert_allclose(there, right, atol=0.1 * abs(right).max())


def test_int8_without_inputs_says_that_its_ranges_are_made_up(capsys, folder):
    for suffix in ("-symbol.json", "-0000.params"):
        shutil.copy(DENSE + suffix, folder)
    assert main(["convert", "dense", "--to", "int8", "--shape", "8,5"]) == 0
    said = capsys.readouterr()
    assert "random numbers" in said.err
    assert "wrote dense-int8-symbol.json, dense-int8-0000.params" in said.out


def test_int8_above_the_tolerance_writes_nothing(capsys, folder):
    np.save("x.npy", np.random.default_rng(0).random((4, 5), np.float32))
    arguments = ["convert", DENSE, "--to", "int8", "--input", "x.npy", "-o", "small"]
    assert main([*arguments, "--tolerance", "1e-6"]) == 1
    assert "nothing was written" in capsys.readouterr().err
    assert [file.name for file in folder.iterdir()] == ["x.npy"]


def test_existing_files_are_kept(capsys):
    Path("new-symbol.json").write_text("mine")
    arguments = ["convert", DENSE, "--to", "mxnet", "--shape", "1,5", "-o", "new"]
    assert main(arguments) == 1
    assert "--force" in capsys.readouterr().err
    assert Path("new-symbol.json").read_text() == "mine"
    assert main([*arguments, "--force"]) == 0


def test_a_model_does_not_replace_itself(capsys, folder):
    for suffix in ("-symbol.json", "-0000.params"):
        shutil.copy(DENSE + suffix, folder)
    assert main(["convert", "dense", "--to", "mxnet", "--shape", "1,5", "--force"]) == 2
    assert "is the model itself" in capsys.readouterr().err


def test_absent_folders(capsys):
    assert main(["convert", DENSE, "--to", "mxnet", "--shape", "1,5", "-o", "no/x"]) == 1
    assert "no folder no" in capsys.readouterr().err


def test_onnx_files_are_models_for_every_command(capsys):
    """There and back: shapes come from the file, and the numbers stay the same."""
    pytest.importorskip("onnxruntime")
    converted(capsys, CONVOLUTION, "--to", "onnx", "--shape", "2,2,6,6", "-o", "net.onnx")
    assert main(["info", "net.onnx"]) == 0
    assert main(["summary", "net.onnx"]) == 0
    assert "Convolution" in capsys.readouterr().out
    assert main(["view", "net.onnx"]) == 0
    np.save("x.npy", np.ones((2, 2, 6, 6), np.float32))
    for model in ("net.onnx", CONVOLUTION):
        out = f"{Path(model).stem}.npy"
        assert main(["predict", model, "--input", "x.npy", "--output", out]) == 0
    np.testing.assert_allclose(np.load("net.npy"), np.load("convolution.npy"), rtol=1e-4)
    capsys.readouterr()
    facts = converted(capsys, "net.onnx", "--to", "mxnet", "-o", "back")
    assert facts["outputs"][0]["absolute"] == 0


def test_damaged_onnx_files(capsys):
    pytest.importorskip("onnx")
    Path("bad.onnx").write_bytes(b"\xff" * 50)
    for arguments in (["summary"], ["view"], ["predict", "--input", "x.npy"]):
        assert main([arguments[0], "bad.onnx", *arguments[1:]]) == 1
        error = capsys.readouterr().err
        assert "bad.onnx" in error
        assert len(error.splitlines()) <= 17


@pytest.mark.slow
def test_a_free_batch(capsys):
    """Other batches than the given one run, in ONNX and in torch; both are compared on one."""
    onnxruntime = pytest.importorskip("onnxruntime")
    shape = ["--shape", "2,2,6,6", "--dynamic-batch"]
    for target in ("onnx", "torch"):
        facts = converted(capsys, CONVOLUTION, "--to", target, *shape, "-o", "net")
        assert facts["inputs"] == 7  # one of them of another batch
    x = np.ones((5, 2, 6, 6), np.float32)
    (there,) = onnxruntime.InferenceSession("net.onnx").run(None, {"data": x})
    program = torch.export.load("net.pt2").module()
    np.testing.assert_allclose(program(torch.from_numpy(x)).detach().numpy(), there, rtol=1e-4)
    assert len(there) == 5


def test_networks_are_cut_and_sizes_are_free(capsys):
    pytest.importorskip("onnxruntime")
    arguments = [CONVOLUTION, "--to", "onnx", "--shape", "2,2,6,6", "-o", "net", "--force"]
    cut = ["--outputs", "conv_pool0_fwd", "--dynamic", "data:2=height,3=width"]
    facts = converted(capsys, *arguments, *cut)
    assert facts["outputs"][0]["output"].startswith("conv_pool0_fwd")
    assert facts["sizes"] == {"data": ["batch", 2, "height", "width"]}
    facts = converted(capsys, *arguments, "--dynamic", "none")
    assert facts["sizes"] == {"data": [2, 2, 6, 6]}
    assert "fixed axes 0, 1" not in facts["notes"][0]
    for wrong in ("data:9=x", "data:2", "image:2=x"):
        assert main(["convert", *arguments, "--dynamic", wrong]) == 2
    assert main(["convert", *arguments, "--outputs", "absent"]) == 2
    assert "no output 'absent'" in capsys.readouterr().err
    assert main(["convert", DENSE, "--to", "mxnet", "--shape", "1,5", "--dynamic", "none"]) == 2


def test_opsets_are_chosen(capsys):
    onnx = pytest.importorskip("onnx")
    converted(capsys, DENSE, "--to", "onnx", "--shape", "2,5", "--opset", "17", "-o", "net")
    assert onnx.load("net.onnx").opset_import[0].version == 17
    arguments = ["convert", DENSE, "--to", "mxnet", "--shape", "2,5", "-o", "new"]
    assert main([*arguments, "--opset", "17"]) == 2
    assert "--opset is for onnx" in capsys.readouterr().err


def test_int8_says_what_it_gains(capsys):
    """Bytes of the parameters, seconds of a prediction, and how often the answer is the same."""
    np.save("x.npy", np.random.default_rng(0).random((4, 2, 6, 6), np.float32))
    facts = converted(capsys, CONVOLUTION, "--to", "int8", "--input", "x.npy", "-o", "net")
    change = facts["change"]
    assert change["bytes"][1] < change["bytes"][0]
    assert min(change["seconds"]) > 0
    assert change["same_top1"] is None or 0 <= change["same_top1"] <= 1
