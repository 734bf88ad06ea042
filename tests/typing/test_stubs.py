"""Stubs of generated functions and methods for editors and type checkers."""

from __future__ import annotations

import json
import pathlib
import runpy
import subprocess
import sys

import pytest

from tools.stubs import stubs

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parents[1]
PROGRAMS = sorted((HERE / "programs").glob("*.py"))


def test_stubs_are_up_to_date() -> None:
    stale = [p.name for p, text in stubs().items() if p.read_text(encoding="utf-8") != text]
    assert not stale, "run: python -m tools.stubs"


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.stem)
def test_sample_programs_run(program: pathlib.Path, capsys: pytest.CaptureFixture) -> None:
    runpy.run_path(str(program))
    assert capsys.readouterr().out


@pytest.mark.slow
def test_sample_programs_have_no_type_errors(tmp_path: pathlib.Path) -> None:
    pytest.importorskip("basedpyright", reason="the type checker is not installed")
    settings = {
        "include": [str(HERE / "programs")],
        "extraPaths": [str(ROOT)],
        "typeCheckingMode": "basic",
    }
    config = tmp_path / "pyrightconfig.json"
    config.write_text(json.dumps(settings))
    command = [sys.executable, "-m", "basedpyright", "-p", str(config), "--pythonpath"]
    done = subprocess.run([*command, sys.executable], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("mx.nd.Conv", "Convolution"),
        ("mx.sym.SoftmaxOut", "SoftmaxOutput"),
        ("mx.nd.array([1]).exp", "expand_dims"),
        ("mx.nd.contrib.box_", "box_nms"),
        ("mx.nd.random.unif", "uniform"),
        ("mx.sym.Variable('x').log_", "log_softmax"),
    ],
)
def test_editors_can_complete_names(
    line: str, name: str, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    jedi = pytest.importorskip("jedi", reason="the completion engine is not installed")
    cache = tmp_path_factory.getbasetemp() / "jedi"  # the home may be read-only
    monkeypatch.setattr(jedi.settings, "cache_directory", str(cache))
    project = jedi.Project(str(ROOT))
    found = jedi.Script(f"import mxnet as mx\n{line}", project=project).complete()
    assert name in [c.name for c in found]
