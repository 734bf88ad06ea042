"""Sets up the environment that the Makefile uses: `.venv` with torch, MXNext and one of its extras.

    python3 tools/set_up.py dev

It needs nothing but Python, and says what to do where a package cannot be had.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MIN_PYTHON = (3, 10)
NO_VENV = """\
Python could not make an environment in {folder}.
Install its module `venv` (Debian and Ubuntu: apt-get install python3-venv), or name another Python:
make PYTHON=/path/to/python3 ..."""
NO_PACKAGE = """\
{what} could not be installed{missing}.
What pip said is above. Things to try:
- Is there a network, or a mirror (PIP_INDEX_URL) that has the package for Python {python}?
- torch comes from {index}. Another source: make TORCH_INDEX=https://... ; PyPI: make TORCH_INDEX=
- Other versions than those of constraints.txt: edit the line of the package there.
Then run make again; it continues where it stopped."""
# What pip says of a package that is absent, or absent in the version of constraints.txt.
MISSING_PACKAGE = re.compile(
    r"(?:No matching distribution found for|The user requested \(constraint\)) ([^\s(]+)"
)


class SetUpError(Exception):
    """A step failed; the message says what the user can do."""


def set_up(folder: Path, extra: str, torch_index: str = "") -> None:
    """Make the environment, or bring it up to date."""
    if sys.version_info < MIN_PYTHON:
        raise SetUpError(
            f"MXNext needs Python {MIN_PYTHON[0]}.{MIN_PYTHON[1]} or later, this is "
            f"{sys.version.split()[0]}. Name another one: make PYTHON=/path/to/python3 ..."
        )
    print(f"Setting up {folder.name} (torch, MXNext and its extra {extra!r}); this takes minutes.")
    if _run([sys.executable, "-m", "venv", str(folder)])[0]:
        raise SetUpError(NO_VENV.format(folder=folder))
    # torch alone asks that index: a package of the same name there must not be taken for ours.
    index = ["--extra-index-url", torch_index] if torch_index else []
    _install(folder, "torch", ["--no-deps", "--retries", "2", *index, "torch"], torch_index)
    _install(folder, f"MXNext[{extra}]", ["-e", f"{ROOT}[{extra}]"], torch_index)


def _install(folder: Path, what: str, arguments: list[str], torch_index: str) -> None:
    python = next(p for p in (folder / "bin/python", folder / "Scripts/python.exe") if p.exists())
    constraints = str(ROOT / "constraints.txt")
    pip = [str(python), "-m", "pip", "install", "--disable-pip-version-check"]
    code, output = _run([*pip, "-c", constraints, *arguments])
    if code:
        package = MISSING_PACKAGE.search(output)
        raise SetUpError(
            NO_PACKAGE.format(
                what=what,
                missing=f": pip found no {package[1]} that fits" if package else "",
                python=f"{sys.version_info[0]}.{sys.version_info[1]}",
                index=torch_index or "PyPI",
            )
        )


def _run(command: list[str]) -> tuple[int, str]:
    """Run a command; return its exit code and output, which is shown from the first error on."""
    result = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    )
    output = result.stdout
    if result.returncode:
        sys.stderr.write(output[max(output.find("ERROR"), 0) :])
    return result.returncode, output


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description="Set up the environment that the Makefile uses.")
    parser.add_argument("extra", choices=["dev", "demo"])
    parser.add_argument("--folder", type=Path, default=ROOT / ".venv")
    parser.add_argument("--torch-index", default="", help="where torch comes from besides PyPI")
    args = parser.parse_args()
    try:
        set_up(args.folder, args.extra, args.torch_index)
    except SetUpError as error:
        sys.exit(f"\n{error}")


if __name__ == "__main__":
    main()
