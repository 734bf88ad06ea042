"""Make the real MXNet 1.9.1, and ask it: ``python tools/reference.py setup``.

What MXNet does is recorded from MXNet itself, in an environment of its own: it needs Python 3.11
and an old NumPy, and both packages have the module name `mxnet`. This file needs nothing but
Python, and no MXNext.

    python tools/reference.py setup
    python tools/reference.py run -c 'import mxnet as mx; print(mx.nd.ones(2))'
    python tools/reference.py run tests/golden/record/record_models.py
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

PYTHON = "3.11"  # the last one that MXNet 1.9.1 runs on
PACKAGES = (
    "mxnet==1.9.1",
    "numpy==1.23.5",  # later ones do not have np.bool
    "opencv-python-headless==4.8.1.78",  # later ones need NumPy 2
    "scipy==1.11.4",
    "requests==2.32.3",
    "graphviz==0.8.4",
)
TRIAL = "import mxnet as mx, cv2; print('MXNet', mx.__version__, mx.nd.ones(2).asnumpy())"
NO_PYTHON = """\
MXNet 1.9.1 needs Python {version}, which is not on the path.
Debian and Ubuntu: apt-get install python{version}-venv; others: uv python install {version}, or
pyenv install {version}. Or name it: python tools/reference.py setup --python /path/to/python"""


def default_folder() -> Path:
    """Return where the environment is: ``MXNET_ORACLE``, or a folder of the user's cache."""
    return Path(os.environ.get("MXNET_ORACLE") or Path.home() / ".cache" / "mxnet-oracle")


def python_of(folder: Path) -> Path:
    """Return the interpreter of an environment."""
    return folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")


def find_python(given: str | None) -> str:
    """Return an interpreter of the right version."""
    here = f"{sys.version_info.major}.{sys.version_info.minor}"
    found = given or (sys.executable if here == PYTHON else shutil.which(f"python{PYTHON}"))
    if found is None:
        raise SystemExit(NO_PYTHON.format(version=PYTHON))
    return found


def environment() -> dict[str, str]:
    """Return the variables for the real MXNet: without the path to another `mxnet`."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}


def works(folder: Path) -> bool:
    """Return whether the environment is there and MXNet computes in it."""
    python = python_of(folder)
    if not python.exists():
        return False
    command = [str(python), "-P", "-W", "ignore", "-c", TRIAL]
    done = subprocess.run(command, env=environment(), timeout=300, check=False, capture_output=True)
    return done.returncode == 0


def set_up(folder: Path, python: str | None = None) -> None:
    """Make the environment, unless it works already."""
    if not works(folder):
        interpreter = find_python(python)
        subprocess.run([interpreter, "-m", "venv", str(folder)], check=True, timeout=600)
        pip = [str(python_of(folder)), "-m", "pip", "install", "-q", *PACKAGES]
        subprocess.run(pip, check=True, timeout=1800)
        if not works(folder):
            raise SystemExit(f"MXNet does not run in {folder}; remove the folder and try again.")
    sys.stdout.write(f"MXNet 1.9.1 is in {folder}\n")


def run(folder: Path, arguments: list[str]) -> int:
    """Run Python with the real MXNet."""
    if not python_of(folder).exists():
        raise SystemExit("It is not there yet: python tools/reference.py setup")
    # A program's folder is searched for modules, the current one is not: it may be a checkout.
    safe = ["-P"] if arguments[:1] in (["-c"], ["-m"], []) else []
    command = [str(python_of(folder)), *safe, "-W", "ignore", *arguments]
    return subprocess.run(command, env=environment(), check=False).returncode


def main(argv: list[str] | None = None) -> int:
    """Run one of the commands."""
    parser = argparse.ArgumentParser(description="Make the real MXNet 1.9.1, and run it.")
    parser.add_argument("--folder", type=Path, default=default_folder(), help="the environment")
    commands = parser.add_subparsers(dest="command", required=True)
    setup = commands.add_parser("setup", help="make the environment")
    setup.add_argument("--python", help=f"a Python {PYTHON}; default: that on the path")
    commands.add_parser("run", help="run Python in it; what follows is for python")
    words = sys.argv[1:] if argv is None else argv
    end = words.index("run") + 1 if "run" in words else len(words)
    args = parser.parse_args(words[:end])
    if args.command == "run":
        return run(args.folder, words[end:])
    set_up(args.folder, args.python)
    return 0


if __name__ == "__main__":
    sys.exit(main())
