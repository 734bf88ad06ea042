"""Run every page of the documentation as a newcomer has it: ``python -m tools.try_wheel WHEEL``.

A new environment gets the wheel with its extra ``tutorial`` and nothing else. Each page then runs
in an empty folder, in a process that sees neither the checkout nor the variables of Python. The
table tells what ran. ``--torch torch==2.13.0`` chooses torch, which comes first as in the README;
``--python PATH`` names an environment that is there already.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile
from typing import NamedTuple

from tools import run_page

ROOT = pathlib.Path(__file__).resolve().parents[1]
PATTERNS = ("*.md", "docs/**/*.md")
TIMEOUT = 600


class Result(NamedTuple):
    """What came of a page: how many of its blocks there are, and why it failed, if it did."""

    page: str
    blocks: int
    reason: str = ""


def list_pages() -> list[pathlib.Path]:
    """Return the pages that have a block of Python."""
    pages = sorted(path for pattern in PATTERNS for path in ROOT.glob(pattern))
    return [page for page in pages if count_blocks(page.read_text(encoding="utf-8"))]


def count_blocks(text: str) -> int:
    r"""Return how many blocks of Python a page has.

    >>> count_blocks("```python\n1 + 1\n```\n```output\n2\n```\n")
    1
    """
    return sum(match[1] == "python" for match in run_page.BLOCK.finditer(text))


def try_page(page: pathlib.Path, python: str, timeout: float = TIMEOUT) -> Result:
    """Run a page by another Python, in an empty folder."""
    result = Result(page.name, count_blocks(page.read_text(encoding="utf-8")))
    env = {name: text for name, text in os.environ.items() if not name.startswith("PYTHON")}
    env["PATH"] = os.pathsep.join([str(pathlib.Path(python).parent), env.get("PATH", "")])
    with tempfile.TemporaryDirectory() as folder:
        try:
            # -I: the folder of the program, which is in the checkout, is not on the path.
            done = subprocess.run(
                [python, "-I", run_page.__file__, str(page)],
                cwd=folder,
                env=env,
                capture_output=True,
                text=True,
                timeout=timeout,
            )
        except subprocess.TimeoutExpired:
            return result._replace(reason=f"did not end in {timeout:g} s")
    if done.returncode:
        return result._replace(reason=_summarize(done.stderr) or f"exit {done.returncode}")
    return result


def _summarize(errors: str) -> str:
    """Return the error at the end of a traceback, with the lines of its message, as one line."""
    lines = errors.strip().splitlines()
    frames = [i for i, line in enumerate(lines) if line.startswith("  ")]
    return " ".join(lines[frames[-1] + 1 if frames else 0 :])[:400]


def install(wheel: pathlib.Path, folder: pathlib.Path, torch: str) -> str:
    """Make an environment with the wheel and all that the pages need; return its Python."""
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True, timeout=TIMEOUT)
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    for package in (torch, f"{wheel.resolve()}[tutorial]"):
        pip = [str(python), "-m", "pip", "install", "--quiet", package]
        subprocess.run(pip, check=True, timeout=6 * TIMEOUT)
    return str(python)


def main() -> int:
    """Print the table; the exit code is 1 if a page failed."""
    parser = argparse.ArgumentParser(description="Run every page as a newcomer has it.")
    parser.add_argument("wheel", nargs="?", type=pathlib.Path, help="the file *.whl")
    parser.add_argument("--torch", default="torch", help="what pip installs as torch")
    parser.add_argument("--python", help="use this environment instead of a new one")
    options = parser.parse_args()
    if (options.wheel is None) == (options.python is None):
        parser.error("name a wheel, or an environment by --python")
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        python = options.python or install(options.wheel, pathlib.Path(folder), options.torch)
        for page in list_pages():
            _, blocks, reason = try_page(page, python)
            failed += bool(reason)
            path = page.relative_to(ROOT).as_posix()
            print(f"{path:36} {blocks:3} blocks  {reason or 'ok'}", flush=True)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
