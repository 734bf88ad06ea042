"""`mx port` on the command line: files in, a folder out, and errors that write nothing."""

from __future__ import annotations

import ast
import json
import random
import shutil
from pathlib import Path

import pytest

import mxnet as mx
from mxnet.interop.port.build import draft_symbol
from mxnet.interop.port.comparison.verify import Verifier
from mxnet.interop.port.porting import FILES
from mxnet.interop.port.text.file import write_file
from mxnext_cli import main

from ..damage import damaged
from . import symbols


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """Return the prefix of a saved perceptron."""
    data = mx.sym.Variable("data")
    with mx.name.NameManager():  # automatic names begin at 0
        hidden = mx.sym.Activation(mx.sym.FullyConnected(data, num_hidden=4, name="fc1"), "relu")
        symbol = mx.sym.SoftmaxOutput(mx.sym.FullyConnected(hidden, num_hidden=3, name="fc2"))
    shapes = {"data": (2, 5)}
    params = symbols.random_parameters(symbol, shapes)
    prefix = tmp_path / "my-net"
    mx.model.save_checkpoint(str(prefix), 3, symbol, params, {})
    return prefix


def test_a_checkpoint_is_ported(
    model: Path, new_interpreter: None, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = model.parent / "out"
    assert main(["port", str(model), "--shape", "data=2,5", "--output", str(folder)]) == 0
    shown = capsys.readouterr().out
    assert "gradients" in shown
    text = (folder / "model.py").read_text()
    assert "class MyNet(nn.Module):" in text
    assert "`my-net-symbol.json`" in text
    assert "def loss(scores: Tensor, softmaxoutput0_label: Tensor)" in text
    assert main(["port", str(model), "--shape", "data=2,5", "--output", str(folder)]) == 1
    assert "--force" in capsys.readouterr().err


@pytest.mark.parametrize("suffix", ["-symbol.json", "-0003.params"])
def test_a_truncated_file_is_an_error(
    model: Path, suffix: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = Path(f"{model}{suffix}")
    content = file.read_bytes()
    file.write_bytes(content[: len(content) // 2])
    folder = model.parent / "out"
    assert main(["port", str(model), "--shape", "data=2,5", "--output", str(folder)]) == 1
    assert 0 < len(capsys.readouterr().err.splitlines()) < 20
    assert not folder.exists()


@pytest.mark.parametrize(
    "name", ["x'''; import os; os._exit(7) #", 'a"""\nraise SystemExit(7)', "class", "self.x = 1"]
)
def test_names_in_files_do_not_become_code(name: str) -> None:
    data = mx.sym.Variable("data")
    symbol = mx.sym.FullyConnected(data, num_hidden=2, name=name)
    symbol = mx.sym.FullyConnected(symbol, num_hidden=2, name="last")
    shapes = {"data": (2, 5)}
    params = symbols.random_parameters(symbol, shapes)
    draft = draft_symbol(symbol, params, shapes)
    draft.parts.source = name
    statements = ast.parse(write_file(draft.parts, ())).body
    assert {type(s) for s in statements} == {
        ast.Expr, ast.ImportFrom, ast.ClassDef, ast.FunctionDef
    }  # fmt: skip
    with pytest.raises(mx.MXNetError, match="not the name of a class"):
        mx.convert.port(symbol, None, shapes, params, name=name)


def test_outputs_cut_the_network(model: Path) -> None:
    folder = model.parent / "out"
    arguments = ["--shape", "data=2,5", "--outputs", "fc1", "--output", str(folder)]
    assert main(["port", str(model), *arguments]) == 0
    text = (folder / "model.py").read_text()
    assert "self.fc1" in text
    assert "fc2" not in text
    arguments[3] = "absent"
    assert main(["port", str(model), *arguments, "--force"]) == 2


@pytest.mark.parametrize("suffix", ["-symbol.json", "-0003.params"])
def test_damaged_files_are_ported_or_refused(
    model: Path, suffix: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever bytes are changed, there is a whole folder, or a short error and no file."""
    monkeypatch.setattr(Verifier, "run", lambda self, report, given: None)
    file, rng = Path(f"{model}{suffix}"), random.Random(0)
    content, before = file.read_bytes(), sorted(p.name for p in model.parent.iterdir())
    refused = 0
    for i in range(60):
        folder = model.parent / "out"
        file.write_bytes(damaged(content, rng))
        status = main(["port", str(model), "--shape", "data=2,5", "--output", str(folder)])
        shown = capsys.readouterr().err
        if status == 0:
            assert sorted(p.name for p in folder.iterdir()) == sorted(FILES), i
            ast.parse((folder / "model.py").read_text())
            shutil.rmtree(folder)
        else:
            refused += 1
            assert 0 < len(shown.splitlines()) < 20, shown
            assert "Traceback" not in shown
        assert sorted(p.name for p in model.parent.iterdir()) == before
    assert refused > 20


HOSTILE = {
    "a cycle": {"nodes": [{"op": "relu", "name": "a", "inputs": [[0, 0, 0]]}], "heads": [[0, 0]]},
    "an entry behind the end": {
        "nodes": [{"op": "null", "name": "data", "inputs": []}], "heads": [[2**31, 0]]
    },
    "a huge layer": {
        "nodes": [
            {"op": "null", "name": "data", "inputs": []},
            {"op": "null", "name": "w", "inputs": []},
            {"op": "FullyConnected", "name": "fc", "inputs": [[0, 0, 0], [1, 0, 0]],
             "attrs": {"num_hidden": str(2**40), "no_bias": "True"}},
        ],
        "heads": [[2, 0, 0]],
    },
    "huge zeros": {
        "nodes": [
            {"op": "null", "name": "data", "inputs": []},
            {"op": "_zeros", "name": "z", "inputs": [], "attrs": {"shape": f"({2**31}, {2**20})"}},
            {"op": "broadcast_add", "name": "sum", "inputs": [[0, 0, 0], [1, 0, 0]]},
        ],
        "heads": [[2, 0, 0]],
    },
    "a long name": {
        "nodes": [
            {"op": "null", "name": "data", "inputs": []},
            {"op": "no_such_operator" * 4000, "name": "x", "inputs": [[0, 0, 0]]},
        ],
        "heads": [[1, 0, 0]],
    },
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(HOSTILE))
def test_hostile_symbols_are_refused_on_one_screen(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    graph = {"arg_nodes": [0], "node_row_ptr": [0], **HOSTILE[name]}
    (tmp_path / "net-symbol.json").write_text(json.dumps(graph))
    mx.nd.save(str(tmp_path / "net-0000.params"), {"arg:w": mx.nd.ones((1, 5))})
    folder = tmp_path / "out"
    arguments = ["--shape", "data=2,5", "--output", str(folder)]
    assert main(["port", str(tmp_path / "net"), *arguments]) != 0
    shown = capsys.readouterr().err
    assert 0 < len(shown.splitlines()) < 20
    assert len(shown) < 4000
    assert "Traceback" not in shown
    assert not folder.exists()
