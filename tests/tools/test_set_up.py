"""Setting up the environment of the Makefile says which package is missing, and what to do."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tools import set_up

CONFLICT = """\
Collecting mkdocs-material==9.8.1
ERROR: Cannot install mxnext because these package versions have conflicting dependencies.
The conflict is caused by:
    mkdocs-material 9.8.1 depends on pymdown-extensions>=11.0.1
    The user requested (constraint) pymdown-extensions==13.0
"""


def test_an_old_python_is_refused(monkeypatch, tmp_path):
    monkeypatch.setattr(set_up, "MIN_PYTHON", (99, 0))
    with pytest.raises(set_up.SetUpError, match=r"needs Python 99\.0 or later.*make PYTHON="):
        set_up.set_up(tmp_path / "env", "dev")


def test_a_python_without_venv_is_named(monkeypatch, tmp_path):
    monkeypatch.setattr(set_up, "_run", lambda command: (1, ""))
    with pytest.raises(set_up.SetUpError, match="apt-get install python3-venv"):
        set_up.set_up(tmp_path / "env", "dev")


@pytest.mark.parametrize(
    ("output", "package"),
    [
        ("ERROR: No matching distribution found for torch==2.13.0\n", "torch==2.13.0"),
        (CONFLICT, "pymdown-extensions==13.0"),
    ],
)
def test_the_package_that_cannot_be_had_is_named(monkeypatch, tmp_path, output, package):
    python = tmp_path / "env/bin/python"
    python.parent.mkdir(parents=True)
    python.touch()
    monkeypatch.setattr(set_up, "_run", lambda command: (int("pip" in command), output))
    with pytest.raises(set_up.SetUpError, match="torch could not be installed") as error:
        set_up.set_up(tmp_path / "env", "dev", "https://example.org/cpu")
    assert f"pip found no {package} that fits" in str(error.value)
    assert "torch comes from https://example.org/cpu" in str(error.value)


@pytest.mark.slow
def test_without_an_index_the_command_fails_and_says_why(tmp_path):
    result = subprocess.run(
        [sys.executable, set_up.__file__, "demo", "--folder", str(tmp_path / "an env")],
        env={**os.environ, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert result.returncode == 1
    assert "torch could not be installed: pip found no torch==" in result.stderr
    assert "ERROR:" in result.stderr
