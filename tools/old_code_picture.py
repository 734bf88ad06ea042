"""Draw the picture of the README: a program of 2017, and what `mx run` prints for it.

``python -m tools.old_code_picture`` writes ``docs/images/old-code.svg``.
"""

from __future__ import annotations

import io
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
PROGRAM = ROOT / "tests" / "tools" / "readme_train.txt"
PICTURE = ROOT / "docs" / "images" / "old-code.svg"
WIDTH = 92
PROMPT = "bold green"


def run_program(source: str) -> str:
    """Return what ``mx run train.py`` prints, with its report."""
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "train.py").write_text(source, encoding="utf-8")
        done = subprocess.run(
            [sys.executable, "-m", "mxnext_cli", "run", "train.py"],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=300,
            check=True,
        )
    return done.stdout.strip()


def draw(source: str, output: str) -> str:
    """Return the program and its output as an SVG."""
    from rich.console import Console
    from rich.syntax import Syntax
    from rich.text import Text

    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True)
    console.print(Text("$ cat train.py       # Python 2 and MXNet 0.12", style=PROMPT))
    console.print(Syntax(source.rstrip(), "python", theme="ansi_dark", background_color="default"))
    console.print(
        Text("\n$ mx run train.py       # Python 3 and today's NumPy", style="bold green")
    )
    console.print(Text(output))
    picture = console.export_svg(title="mx run", unique_id="old-code")
    # Without fonts of another host.
    return re.sub(r"@font-face \{.*?\}\s*", "", picture, flags=re.DOTALL)


def main() -> None:
    """Write the picture."""
    source = PROGRAM.read_text(encoding="utf-8")
    PICTURE.write_text(draw(source, run_program(source)), encoding="utf-8")


if __name__ == "__main__":
    main()
