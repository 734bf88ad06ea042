"""`mx check` finds every name that is absent, with its line, and no other."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from mxnext_cli import main
from mxnext_cli.check import look_up
from tests.tools.old_programs import PROGRAMS, PYTHON_2

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "golden"

ABSENT = """
import mxnet as mx
from mxnet import nd, gluon
from mxnet.gluon import nn, rnn as recurrent
from mxnet.gluon.nn import Dens  # absent
import mxnet.nothing.here  # absent

sym = mx.sym

class Net(gluon.HybridBlock):
    def hybrid_forward(self, F, x, weight):
        y = F.FullyConected(x, weight)  # absent
        return F.contrib.boxnms(F.relu(y))  # absent

net = nn.Dense(3)
net.initialise()
x = nd.zeross((2, 3))  # absent
y = sym.Convolutio(sym.var('x'))  # absent
z = recurrent.LSTMM(3)  # absent
w = mx.nd.NDArray.asnumpyy  # absent
ok = mx.nd.NDArray.asnumpy, mx.cpu().device_type, recurrent.LSTM, nd.relu
"""


def checked(capsys, *paths, code=0, everything=False):
    arguments = ["check", *map(str, paths), "--json", *(["--all"] if everything else [])]
    assert main(arguments) == code
    return json.loads(capsys.readouterr().out)


def test_absent_names_are_all_found_with_their_lines(tmp_path, capsys):
    path = tmp_path / "program.py"
    path.write_text(ABSENT)
    found = checked(capsys, path, code=1)["found"]
    marked = [i for i, x in enumerate(ABSENT.splitlines(), 1) if x.endswith("# absent")]
    assert [n["line"] for n in found] == marked
    assert {n["status"] for n in found} == {"absent"}
    hints = {n["name"]: n["hint"] for n in found}
    assert hints["mxnet.nd.zeross"] == "Did you mean 'zeros'?"
    assert hints["F.FullyConected"] == "Did you mean 'FullyConnected'?"


def test_examples_are_covered(capsys):
    facts = checked(capsys, ROOT / "examples")
    assert facts["absent"] == 0
    assert facts["names"] > 10


def test_operators_are_counted(tmp_path, capsys):
    path = tmp_path / "x.py"
    path.write_text("import mxnet as mx\nmx.nd.relu(mx.nd.zeros((1,)))\nmx.sym.Convolution()\n")
    facts = checked(capsys, path, everything=True)
    assert [n["name"] for n in facts["found"] if n["is_operator"]] == [
        "mxnet.nd.relu",
        "mxnet.sym.Convolution",
    ]


def test_old_programs_have_removed_names_but_nothing_absent(tmp_path, capsys):
    for name, source in PROGRAMS.items():
        (tmp_path / f"{name}.py").write_text(source)
    facts = checked(capsys, tmp_path)
    assert facts["absent"] == 0
    assert facts["removed"] >= 10


def test_python_2_is_reported(tmp_path, capsys):
    (tmp_path / "old.py").write_text(PYTHON_2)
    found = checked(capsys, tmp_path, code=1)["found"]
    assert [n["line"] for n in found] == [2, 4, 5, 6]
    assert {n["status"] for n in found} == {"syntax"}


def test_notebooks(tmp_path, capsys):
    cells = [
        {"cell_type": "markdown", "source": ["# not ( python"]},
        {"cell_type": "code", "source": ["!pip install x\n", "%matplotlib inline\n"]},
        {"cell_type": "code", "source": ["import mxnet as mx\n", "mx.nd.zeross((1,))"]},
    ]
    (tmp_path / "x.ipynb").write_text(json.dumps({"cells": cells}))
    found = checked(capsys, tmp_path, code=1)["found"]
    assert [n["name"] for n in found] == ["mxnet.nd.zeross"]


def test_missing_packages_are_named(tmp_path, capsys):
    (tmp_path / "helper_of_mine.py").write_text("")
    (tmp_path / "x.py").write_text("import package_that_nobody_has, helper_of_mine\n")
    (found,) = checked(capsys, tmp_path)["found"]
    assert found["status"] == "missing package"
    assert found["name"] == "package_that_nobody_has"


def test_model_files_are_checked(tmp_path, capsys):
    for name in ("gluon/dense-symbol.json", "gluon/dense-0000.params", "records/images.rec"):
        shutil.copy(GOLDEN / name, tmp_path)
    (tmp_path / "config.json").write_text("{}")  # not a model
    facts = checked(capsys, tmp_path)
    assert len(facts["files"]) == 3
    (tmp_path / "bad.params").write_bytes(b"\0" * 40)
    facts = checked(capsys, tmp_path, code=1)
    assert [bool(f["problems"]) for f in facts["files"]] == [True, False, False, False]


def test_printed_report(tmp_path, capsys):
    path = tmp_path / "program.py"
    path.write_text(ABSENT)
    assert main(["check", str(path)]) == 1
    said = capsys.readouterr().out
    assert f"{path}:17" in said
    assert "8 are absent" in said


@pytest.mark.parametrize("path", ["absent", "."])
def test_nothing_to_check(path, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["check", path]) == 1
    assert path in capsys.readouterr().err


def test_hostile_programs(tmp_path, capsys):
    (tmp_path / "deep.py").write_text("(" * 5000)
    (tmp_path / "null.py").write_bytes(b"\0\xff")
    found = checked(capsys, tmp_path, code=1)["found"]
    assert {n["status"] for n in found} == {"syntax"}


def test_a_value_of_none_is_there():
    assert look_up("mxnet.gluon.Block")[0] is not None
    assert look_up("mxnet.nothing")[0] is None
