"""Record what the examples print and draw: ``python -m tools.example_output [NAME...]``.

The site shows it under their code (`tools/site_hooks.py`). Each example runs with its defaults in
a folder of its own; those with the option ``--picture`` draw their result.
"""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "examples"
OUTPUT = EXAMPLES / "output"
LAUNCHED = ("distributed/train_digits",)  # by several processes
PICTURES = {"demo": "demo_output/digits.png"}  # drawn without the option
TIMEOUT = 900


def list_examples() -> list[str]:
    """Return the names of all examples, such as ``lenet_gluon``."""
    paths = (path.relative_to(EXAMPLES).with_suffix("") for path in EXAMPLES.rglob("*.py"))
    return sorted(path.as_posix() for path in paths)


def make_command(name: str) -> str:
    """Return how a reader starts an example.

    >>> make_command("vae")
    'python examples/vae.py'
    """
    program = f"python examples/{name}.py"
    return f"mx launch -n 2 {program}" if name in LAUNCHED else program


def find_output(name: str) -> tuple[str, pathlib.Path | None]:
    """Return what an example printed, and its picture if it has one."""
    text = (OUTPUT / f"{name}.txt").read_text(encoding="utf-8")
    picture = OUTPUT / f"{name}.png"
    return text, picture if picture.exists() else None


def record(name: str) -> None:
    """Run an example and keep what it prints and draws."""
    source = EXAMPLES / f"{name}.py"
    has_option = '"--picture"' in source.read_text(encoding="utf-8")
    command = make_command(name).replace("python ", f"{sys.executable} ", 1)
    command = command.replace("mx launch", f"{sys.executable} -m mxnet.launch")
    command = command.replace(f"examples/{name}.py", str(source))
    with tempfile.TemporaryDirectory() as folder:
        drawn = pathlib.Path(folder, PICTURES.get(name, "picture.png"))
        done = subprocess.run(
            [*command.split(), *(("--picture", str(drawn)) if has_option else ())],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(ROOT), "MXNET_PROGRESS": "off"},
            stdout=subprocess.PIPE,
            text=True,
            timeout=TIMEOUT,
            check=True,
        )
        target = OUTPUT / f"{name}.txt"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(done.stdout, encoding="utf-8")
        if drawn.exists():
            shutil.copy(drawn, target.with_suffix(".png"))


def main() -> None:
    """Record the examples that are named, or all."""
    for name in sys.argv[1:] or list_examples():
        record(name)
        print(f"recorded {name}", flush=True)


if __name__ == "__main__":
    main()
