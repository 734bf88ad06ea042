"""`tools/reference.py`: the environment with the real MXNet, without making one."""

import subprocess
import sys
from pathlib import Path

import pytest

from tools import reference

FILE = Path(reference.__file__)


def test_reference_tool_uses_only_the_standard_library(tmp_path):
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(FILE), "--folder", str(tmp_path), "run", "-c", "1"],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert "python tools/reference.py setup" in done.stderr


def test_a_missing_python_is_explained(monkeypatch):
    monkeypatch.setattr(reference, "PYTHON", "3.0")
    monkeypatch.setenv("PATH", "")
    with pytest.raises(SystemExit, match=r"needs Python 3\.0"):
        reference.find_python(None)


def test_versions_are_pinned():
    assert all("==" in package for package in reference.PACKAGES)


def test_programs_see_neither_the_checkout_nor_its_path(tmp_path, monkeypatch, capfd):
    """An environment with another Python stands in for the real one."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path)], check=True)
    monkeypatch.chdir(FILE.parents[1])
    code = "import importlib.util as u; print(u.find_spec('mxnet'))"
    assert reference.main(["--folder", str(tmp_path), "run", "-c", code]) == 0
    assert capfd.readouterr().out == "None\n"
    assert not reference.works(tmp_path)
