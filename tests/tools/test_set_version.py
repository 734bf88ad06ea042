"""The tag of a release becomes its version, once its changes are told."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tools.set_version import PLACES, set_version

ROOT = Path(__file__).resolve().parents[2]


def copy_files(folder: Path) -> None:
    for name in (*PLACES, "CHANGELOG.md"):
        shutil.copy(ROOT / name, folder)


def test_a_version_with_changes_is_written_everywhere(tmp_path):
    copy_files(tmp_path)
    changes = tmp_path / "CHANGELOG.md"
    changes.write_text(changes.read_text().replace("## Unreleased", "## 7.8.9", 1))
    set_version("7.8.9", tmp_path)
    assert 'version = "7.8.9"' in (tmp_path / "pyproject.toml").read_text().splitlines()
    assert 'version: "7.8.9"' in (tmp_path / "CITATION.cff").read_text().splitlines()


@pytest.mark.parametrize("version", ["7.8.9", "v1", "1.0; rm -rf", ""])
def test_versions_without_changes_and_invalid_versions_are_refused(tmp_path, version):
    copy_files(tmp_path)
    with pytest.raises(SystemExit):
        set_version(version, tmp_path)
    assert (tmp_path / "pyproject.toml").read_text() == (ROOT / "pyproject.toml").read_text()
