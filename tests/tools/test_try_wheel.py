"""Pages are tried in an environment that has the package and no checkout."""

from __future__ import annotations

import sys
from pathlib import Path

from tools.try_wheel import ROOT, list_pages, try_page


def write_page(folder: Path, code: str, output: str) -> Path:
    page = folder / "page.md"
    page.write_text(f"```python\n{code}\n```\n```output\n{output}\n```\n")
    return page


def test_a_page_runs_in_an_empty_folder_without_the_checkout(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    code = f"import os, sys; print(os.listdir(), {str(tmp_path)!r} in sys.path)"
    code += f"\nprint({str(ROOT / 'tools')!r} in sys.path, 'PYTHONPATH' in os.environ)"
    page = write_page(tmp_path, code, "[] False\nFalse False")
    assert try_page(page, sys.executable, timeout=60) == ("page.md", 1, "")


def test_failed_pages_report_the_reason(tmp_path):
    page = write_page(tmp_path, "import no_such_module", "")
    reason = try_page(page, sys.executable, timeout=60).reason
    assert reason == "ModuleNotFoundError: No module named 'no_such_module'"
    page = write_page(tmp_path, "print(1 + 1)", "3")
    assert try_page(page, sys.executable, timeout=60).reason.endswith("line 4: printed 2")
    page = write_page(tmp_path, "import time; time.sleep(600)", "")
    assert try_page(page, sys.executable, timeout=0.5).reason == "did not end in 0.5 s"


def test_all_pages_with_programs_are_tried():
    pages = {page.relative_to(ROOT).as_posix() for page in list_pages()}
    assert {"README.md", "README.zh-CN.md", "docs/quantization.md", "docs/zh/index.md"} <= pages
    assert "docs/operators.md" not in pages
