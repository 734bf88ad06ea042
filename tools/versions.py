"""Run the quick tests with another Python, torch and NumPy, and keep the result.

    python -m tools.versions --python python3.10 --torch 2.7.1 --numpy 2.2.6 --write

The environment is made in `build/versions` and used again. With ``--write`` the result goes into
`mxnext_cli/tested_versions.json`, from which `docs/compatibility.md` and `mx doctor` take it.
``--torch`` takes whatever pip takes: a version, or ``nightly``.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "mxnext_cli" / "tested_versions.json"
ENVIRONMENTS = ROOT / "build" / "versions"
EXTRAS = "image,onnx,safetensors,sparse,viz"
TOOLS = ("pytest", "pytest-xdist", "scikit-learn")
NIGHTLY = "https://download.pytorch.org/whl/nightly/cpu"
LIMIT = 3600  # seconds for the tests
COUNT = re.compile(r"(\d+) (passed|failed|skipped|errors?)")
NO_TESTS = {"docs.py", "docstrings.py", "memory.py", "runtime.py"}  # as QUICK in the Makefile


class Result(NamedTuple):
    """What the quick tests said of one environment."""

    python: str
    torch: str
    numpy: str
    passed: int
    failed: int
    skipped: int
    date: str


def main() -> int:
    """Make the environment, run the tests, and show the result."""
    args = parse_arguments()
    python = prepare(args.python, args.torch, args.numpy)
    result = run_tests(python, args.jobs, args.tests)
    print(f"{result.passed} passed, {result.failed} failed, {result.skipped} skipped")
    if args.write:
        write(result)
    return int(bool(result.failed))


def parse_arguments() -> argparse.Namespace:
    """Return the arguments of the command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--python", default=sys.executable, help="interpreter (default: this one)")
    parser.add_argument("--torch", default="", help="version, or 'nightly' (default: the newest)")
    parser.add_argument("--numpy", default="", help="version (default: the newest)")
    parser.add_argument("--jobs", default="2", help="processes that run tests (default: 2)")
    parser.add_argument("--write", action="store_true", help=f"keep the result in {RESULTS.name}")
    parser.add_argument("tests", nargs="*", help="files of tests (default: the quick ones)")
    return parser.parse_args()


def prepare(python: str, torch: str, numpy: str) -> str:
    """Return the interpreter of an environment with these versions, which is made if needed."""
    version = _output([python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"])
    folder = ENVIRONMENTS / f"python{version}-torch{torch or 'newest'}-numpy{numpy or 'newest'}"
    inside = str(folder / "bin" / "python")
    if not Path(inside).exists():
        subprocess.run([python, "-m", "venv", str(folder)], check=True)
    wanted = [f"torch=={torch}" if torch and torch != "nightly" else "torch"]
    index = ["--pre", "--extra-index-url", NIGHTLY] if torch == "nightly" else []
    wanted.append(f"numpy=={numpy}" if numpy else "numpy")
    pip = [inside, "-m", "pip", "install", "--quiet", *index]
    subprocess.run([*pip, *wanted, *TOOLS, "-e", f"{ROOT}[{EXTRAS}]"], check=True)
    return inside


def run_tests(python: str, jobs: str, tests: list[str]) -> Result:
    """Return what the quick tests, or those named, say."""
    versions = "import platform, torch, numpy; print(platform.python_version(), torch.__version__, "
    python_version, torch, numpy = _output([python, "-c", versions + "numpy.__version__)"]).split()
    command = [python, "-m", "pytest", "-q", "-n", jobs, "--dist", "loadfile", "-m", "not slow"]
    command += ["-p", "no:cacheprovider", "-rfEs", *(tests or quick_tests())]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=LIMIT
    )
    lines = done.stdout.splitlines()
    print("\n".join(line for line in lines if line.startswith(("FAILED", "ERROR", "SKIPPED"))))
    counts = {what.rstrip("s"): int(n) for n, what in COUNT.findall(lines[-1] if lines else "")}
    if not counts:
        raise SystemExit(done.stdout[-2000:] + done.stderr[-2000:])
    failed = counts.get("failed", 0) + counts.get("error", 0)
    day = datetime.datetime.now(datetime.timezone.utc).date().isoformat()
    numbers = counts.get("passed", 0), failed, counts.get("skipped", 0)
    return Result(python_version, torch.partition("+")[0], numpy, *numbers, day)


def quick_tests() -> list[str]:
    """Return the folders and files that `make test-quick` runs."""
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    folders = re.search(r"^QUICK := (.*?)\$\(filter", text, re.M | re.S)
    assert folders is not None
    files = [
        str(path.relative_to(ROOT))
        for path in sorted((ROOT / "tests").glob("test_*.py"))
        if path.name.removeprefix("test_") not in NO_TESTS
    ]
    return [*folders[1].replace("\\", " ").split(), *files]


def read() -> list[Result]:
    """Return the results that are kept."""
    rows = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else []
    return [Result(**row) for row in rows]


def write(result: Result) -> None:
    """Keep a result in the place of an older one of the same versions."""
    same = (result.python.rpartition(".")[0], result.torch)
    rows = [r for r in read() if (r.python.rpartition(".")[0], r.torch) != same]
    rows = sorted([*rows, result], key=lambda r: ([int(n) for n in r.torch.split(".")], r.python))
    text = json.dumps([row._asdict() for row in rows], indent=1)
    RESULTS.write_text(text + "\n", encoding="utf-8")


def _output(command: list[str]) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


if __name__ == "__main__":
    raise SystemExit(main())
