"""The network of the demo through every command that takes a model."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

import numpy as np
import pytest

import mxnet as mx
from mxnext_cli import main

pytest.importorskip("sklearn")
pytest.importorskip("matplotlib")
DEMO = Path(__file__).parents[2] / "examples" / "demo.py"


@pytest.fixture
def demo(tmp_path, monkeypatch):
    """The demo's network, trained for no time, exported as the demo exports it."""
    monkeypatch.chdir(tmp_path)
    names = runpy.run_path(str(DEMO), run_name="demo")
    mx.random.seed(0)
    net = names["lenet"]()
    net.initialize(mx.init.Xavier())
    net.hybridize()
    _, held_out = names["digits"]()
    images = np.stack([image for image, _ in (held_out[i] for i in range(4))])
    scores = net(mx.nd.array(images)).asnumpy()
    net.export("digits")
    np.save("images.npy", images)
    return scores


def test_the_demo_through_the_commands(demo, capsys):
    assert main(["info", "digits-symbol.json", "digits-0000.params", "--json"]) == 0
    symbol, params = json.loads(capsys.readouterr().out)
    assert symbol["inputs"] == ["data"]
    assert symbol["parameters"] == params["parameters"] == 53_002

    assert main(["summary", "digits", "--shape", "1,1,8,8", "--json"]) == 0
    totals = json.loads(capsys.readouterr().out)["totals"]
    assert totals["parameters"] == 53_002
    assert totals["multiply_adds"] == 64 * 32 * 9 + 16 * 64 * 32 * 9 + 256 * 128 + 128 * 10

    assert main(["view", "digits", "--shape", "1,1,8,8"]) == 0
    assert Path("digits.html").stat().st_size > 20_000

    assert main(["predict", "digits", "--input", "images.npy", "--output", "scores.npy"]) == 0
    np.testing.assert_allclose(np.load("scores.npy"), demo, rtol=1e-4, atol=1e-5)

    assert main(["check", str(DEMO), "digits-symbol.json"]) == 0
    capsys.readouterr()

    arguments = ["convert", "digits", "--to", "torch", "--shape", "1,1,8,8", "--json"]
    assert main([*arguments, "--input", "images.npy"]) == 0
    (output,) = json.loads(capsys.readouterr().out)["outputs"]
    assert output["relative"] <= 1e-4

    assert main(["convert", "digits", "--to", "int8", "--input", "images.npy", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["outputs"][0]["relative"] <= 0.1
    size = Path("digits-int8-0000.params").stat().st_size
    assert size < 0.3 * Path("digits-0000.params").stat().st_size
    assert main(["predict", "digits-int8", "--input", "images.npy", "--output", "small.npy"]) == 0
    np.testing.assert_allclose(np.load("small.npy"), demo, atol=0.1 * np.abs(demo).max())
